"""Exceptions. The code is in `trex.errors`."""

from trex.errors import *  # noqa: F403
