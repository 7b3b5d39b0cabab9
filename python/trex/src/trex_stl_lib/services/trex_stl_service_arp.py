"""ARP."""

from trex.services.arp import ServiceARP as STLServiceARP

__all__ = ["STLServiceARP"]
