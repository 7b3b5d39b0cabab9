"""DHCP."""

from trex.services.dhcp import ServiceDHCP as STLServiceDHCP

__all__ = ["STLServiceDHCP"]
