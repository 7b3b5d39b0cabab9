"""The client by an older name of its module: what `trex.stl.api` has."""

from trex.stl.api import *  # noqa: F403
