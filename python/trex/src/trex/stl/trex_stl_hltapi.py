"""Streams from the named arguments of the HLTAPI, and what `trex.stl.api` has."""

from trex.stl.api import *  # noqa: F403
from trex.stl.hlt.arguments import DEFAULTS as traffic_config_kwargs  # noqa: F401
from trex.stl.hlt.streams import STLHltStream  # noqa: F401
