"""Older location of the profile classes in `trex.astf.api`."""

from trex.astf.api import *  # noqa: F403
