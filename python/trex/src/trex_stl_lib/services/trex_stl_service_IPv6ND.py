"""Neighbour discovery."""

from trex.services.neighbour import ServiceIPv6ND as STLServiceIPv6ND

__all__ = ["STLServiceIPv6ND"]
