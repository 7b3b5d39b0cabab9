"""Older location of the tunables in `trex.astf.api`."""

from trex.astf.api import *  # noqa: F403
