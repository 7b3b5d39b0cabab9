"""TRex's wireless access points, which this package does not support."""

from __future__ import annotations

from typing import Any, NoReturn

from trex.errors import TRexError


class _AccessPointService:
    def __init__(self, *arguments: Any, **kwargs: Any) -> NoReturn:
        raise TRexError(
            f"{type(self).__name__}: access points (CAPWAP, DTLS) are not supported; "
            "the supported services are ARP, neighbour discovery, ping and DHCP"
        )


class ServiceApDiscoverWLC(_AccessPointService):
    """Not supported."""


class ServiceApEstablishDTLS(_AccessPointService):
    """Not supported."""


class ServiceApShutdownDTLS(_AccessPointService):
    """Not supported."""


class ServiceApJoinWLC(_AccessPointService):
    """Not supported."""


class ServiceApAddClients(_AccessPointService):
    """Not supported."""
