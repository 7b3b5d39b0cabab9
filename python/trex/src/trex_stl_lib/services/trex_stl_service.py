"""Base classes of services."""

from trex.services.service import Service as STLService
from trex.services.service import ServiceFilter as STLServiceFilter

__all__ = ["STLService", "STLServiceFilter"]
