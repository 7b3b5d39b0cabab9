"""DHCP. The code is in `trex.services.dhcp`."""

from trex.services.dhcp import ServiceDHCP, ServiceFilterDHCP

__all__ = ["ServiceDHCP", "ServiceFilterDHCP"]
