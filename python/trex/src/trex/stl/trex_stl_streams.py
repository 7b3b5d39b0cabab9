"""Older location of streams and profiles in `trex.stl.api`."""

from trex.stl.api import *  # noqa: F403
