"""What services are made of; it lives in `trex.services.service`."""

from trex.services.service import Service, ServiceFilter

__all__ = ["Service", "ServiceFilter"]
