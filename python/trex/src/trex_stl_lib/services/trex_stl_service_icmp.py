"""Ping."""

from trex.services.icmp import ServiceICMP as STLServiceICMP

__all__ = ["STLServiceICMP"]
