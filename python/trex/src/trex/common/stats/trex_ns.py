"""Counters of nodes. The code is in `trex.client.ns_commands`."""

from trex.client.ns_commands import CNsStats

__all__ = ["CNsStats"]
