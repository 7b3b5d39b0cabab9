"""What TRex's stateful client has and this one has not: why, and what to do instead."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError

_TOPOLOGY = (
    "topologies are not loaded here: clients behind gateways and in VLANs are told by a client "
    "configuration file (wirestorm emulate --cc FILE), or by `devices` of a plan (wirestorm."
    "emulate)"
)
_TUNNELS = "frames are not put into tunnels (GTP-U): stateful profiles are sent as they are"
_CLIENTS = (
    "single clients are not switched off while a profile runs: start profiles with their own "
    "address pools, each with its pid_input, and stop these"
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

    def topo_load(self, topology: Any, tunables: Any = None) -> None:
        """Refused."""
        raise TRexError(f"topo_load: {_TOPOLOGY}")

    def topo_resolve(self, ports: Any = None) -> None:
        """Refused."""
        raise TRexError(f"topo_resolve: {_TOPOLOGY}")

    def topo_save(self, filename: str) -> None:
        """Refused."""
        raise TRexError(f"topo_save: there is no topology; {_TOPOLOGY}")

    def topo_clear(self) -> None:
        """Nothing: no topology is loaded."""

    def topo_show(self, ports: Any = None) -> None:
        """Prints that there is none."""
        print("there is no topology")

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

    def set_client_enable(self, client_list: Any, is_enable: bool) -> None:
        """Refused."""
        raise TRexError(f"set_client_enable: {_CLIENTS}")

    def set_client_enable_range(self, client_start: Any, client_end: Any, is_enable: bool) -> None:
        """Refused."""
        raise TRexError(f"set_client_enable_range: {_CLIENTS}")

    def get_clients_info(self, client_list: Any, timeout: float = 10) -> None:
        """Refused."""
        raise TRexError("get_clients_info: nothing is kept of single clients: ask get_flow_info")

    def get_clients_info_range(
        self, client_start: Any, client_end: Any, timeout: float = 10
    ) -> None:
        """Refused."""
        raise TRexError(
            "get_clients_info_range: nothing is kept of single clients: ask get_flow_info"
        )

    def get_ignored_macs_ips(self, to_str: bool = True) -> dict[str, list[Any]]:
        """The addresses that no resets are sent to: none."""
        return {"ips": [], "macs": []}

    def set_ignored_macs_ips(
        self, mac_list: Any = None, ip_list: Any = None, is_str: bool = True
    ) -> None:
        """Refused, unless the lists are empty, which they are."""
        if mac_list or ip_list:
            raise TRexError(
                "set_ignored_macs_ips: segments of no connection are answered by a reset, whoever "
                "sends them: keep others' frames from the ports, by nftables say"
            )
