"""Older location of the exceptions in `trex.astf.api`."""

from trex.astf.api import *  # noqa: F403
