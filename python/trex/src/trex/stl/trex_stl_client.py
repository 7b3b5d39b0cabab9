"""Older location of the client in `trex.stl.api`."""

from trex.stl.api import *  # noqa: F403
