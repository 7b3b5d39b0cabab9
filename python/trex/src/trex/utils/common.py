"""Helpers at their older location."""

from trex.addresses import *  # noqa: F403
from trex.utilities import *  # noqa: F403
