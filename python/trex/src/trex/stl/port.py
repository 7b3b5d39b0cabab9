"""A port of `STLClient`."""

from __future__ import annotations

from trex.client.port_commands import PortCommands


class STLPort(PortCommands):
    """A port that sends streams."""
