"""The tunables by an older name of their module: what `trex.astf.api` has."""

from trex.astf.api import *  # noqa: F403
