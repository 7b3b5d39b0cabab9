"""The errors; they live in `trex.errors`."""

from trex.errors import *  # noqa: F403
