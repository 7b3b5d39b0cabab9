"""ARP. The code is in `trex.services.arp`."""

from trex.services.arp import ARPRecord, ServiceARP, ServiceFilterARP

__all__ = ["ARPRecord", "ServiceARP", "ServiceFilterARP"]
