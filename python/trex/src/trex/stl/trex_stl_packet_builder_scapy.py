"""Older location of packets and programs in `trex.stl.api`."""

from trex.stl.api import *  # noqa: F403
