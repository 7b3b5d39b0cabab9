"""DHCP; it lives in `trex.services.dhcp`."""

from trex.services.dhcp import ServiceDHCP, ServiceFilterDHCP

__all__ = ["ServiceDHCP", "ServiceFilterDHCP"]
