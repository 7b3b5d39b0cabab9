"""Older location of ports."""

from trex.client.port_commands import PortCommands as Port

__all__ = ["Port"]
