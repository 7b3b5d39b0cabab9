"""Helpers by their older place."""

from trex.addresses import *  # noqa: F403
from trex.utilities import *  # noqa: F403
