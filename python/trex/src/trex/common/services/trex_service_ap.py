"""Access points, which are not supported."""

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
