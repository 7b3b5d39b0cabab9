"""Commands for nodes. The code is in `trex.client.ns_commands`."""

from trex.client.ns_commands import NSCmdResult, NSCmds

__all__ = ["NSCmdResult", "NSCmds"]
