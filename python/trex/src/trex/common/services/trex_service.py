"""Base classes of services. The code is in `trex.services.service`."""

from trex.services.service import Service, ServiceFilter

__all__ = ["Service", "ServiceFilter"]
