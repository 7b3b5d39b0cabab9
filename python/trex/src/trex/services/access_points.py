"""TRex's wireless access points, which are not there."""

from __future__ import annotations

from typing import Any, NoReturn

from trex.errors import TRexError


class _AccessPointService:
    def __init__(self, *arguments: Any, **named: Any) -> NoReturn:
        raise TRexError(
            f"{type(self).__name__}: access points (CAPWAP, DTLS) are not there; services are "
            "there for ARP, neighbour discovery, ping and DHCP"
        )


class ServiceApDiscoverWLC(_AccessPointService):
    """Not there."""


class ServiceApEstablishDTLS(_AccessPointService):
    """Not there."""


class ServiceApShutdownDTLS(_AccessPointService):
    """Not there."""


class ServiceApJoinWLC(_AccessPointService):
    """Not there."""


class ServiceApAddClients(_AccessPointService):
    """Not there."""
