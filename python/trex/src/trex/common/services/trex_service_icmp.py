"""Ping. The code is in `trex.services.icmp`."""

from trex.services.icmp import ServiceFilterICMP, ServiceICMP

__all__ = ["ServiceFilterICMP", "ServiceICMP"]
