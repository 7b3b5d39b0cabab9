"""Ping over IPv6. The code is in `trex.services.icmpv6`."""

from trex.services.icmpv6 import ServiceFilterIPv6, ServiceICMPv6, ServiceIPv6, ServiceIPv6Scan

__all__ = ["ServiceFilterIPv6", "ServiceICMPv6", "ServiceIPv6", "ServiceIPv6Scan"]
