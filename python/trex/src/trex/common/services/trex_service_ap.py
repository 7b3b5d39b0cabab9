"""Access points, which are not there."""

from trex.services.access_points import (
    ServiceApAddClients,
    ServiceApDiscoverWLC,
    ServiceApEstablishDTLS,
    ServiceApJoinWLC,
    ServiceApShutdownDTLS,
)

__all__ = [
    "ServiceApAddClients",
    "ServiceApDiscoverWLC",
    "ServiceApEstablishDTLS",
    "ServiceApJoinWLC",
    "ServiceApShutdownDTLS",
]
