"""Neighbour discovery. The code is in `trex.services.neighbour`."""

from trex.services.neighbour import IPv6Neighbor, ServiceFilterIPv6NDP, ServiceIPv6ND

__all__ = ["IPv6Neighbor", "ServiceFilterIPv6NDP", "ServiceIPv6ND"]
