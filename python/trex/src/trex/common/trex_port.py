"""A port by its older place."""

from trex.client.port_commands import PortCommands as Port

__all__ = ["Port"]
