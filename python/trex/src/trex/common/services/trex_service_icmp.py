"""Ping; it lives in `trex.services.icmp`."""

from trex.services.icmp import ServiceFilterICMP, ServiceICMP

__all__ = ["ServiceFilterICMP", "ServiceICMP"]
