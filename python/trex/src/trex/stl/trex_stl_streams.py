"""Streams and profiles by an older name of their module: what `trex.stl.api` has."""

from trex.stl.api import *  # noqa: F403
