"""What TRex's stateful client has and this one has not: why, and what to do instead."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError

_TUNNELS = (
    "frames of stateful profiles are not put into tunnels (GTP-U): let a device before the port do "
    "it, or send streams whose packets have the tunnel's headers"
)


class Tunnel:
    """A GTP-U tunnel of a client, as TRex's scripts describe it; see `activate_tunnel`."""

    def __init__(self, sip: Any, dip: Any, sport: int, teid: int, version: int) -> None:
        self.sip = sip
        self.dip = dip
        self.sport = sport
        self.teid = teid
        self.version = version


class Unavailable:
    """Commands that are refused, or have nothing to do."""

    def tunnels_topo_load(self, topology: Any, tunables: Any = None) -> None:
        """Refused."""
        raise TRexError(f"tunnels_topo_load: {_TUNNELS}")

    def tunnels_topo_clear(self) -> None:
        """Nothing: no tunnels are loaded."""

    def tunnels_topo_show(self) -> None:
        """Prints that there are none."""
        print("there are no tunnels")

    def update_tunnel_client_record(self, client_list: Any, tunnel_type: int) -> None:
        """Refused."""
        raise TRexError(f"update_tunnel_client_record: {_TUNNELS}")

    def is_tunnel_supported(self, tunnel_type: int = 1) -> dict[str, Any]:
        """That they are not, and why."""
        return {"is_tunnel_supported": False, "error_msg": _TUNNELS}

    def activate_tunnel(
        self, tunnel_type: int = 1, activate: bool = True, loopback: bool = False
    ) -> None:
        """Refused, unless tunnels are to be off, which they are."""
        if activate:
            raise TRexError(f"activate_tunnel: {_TUNNELS}")
