"""Topologies of GTP-U tunnels for clients."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from trex.addresses import ip2int, is_valid_ipv4, is_valid_ipv6
from trex.arguments import validate_type
from trex.astf import topology_file
from trex.errors import TRexError

#: The supported type of tunnel, as TRex's number.
GTPU = 1

_NUMBER_MAX = {"initial_teid": 0xFFFFFFFF, "teid_jump": 0xFFFFFFFF, "sport": 0xFFFF}


class TopoTunnelCtx:
    """Tunnels of clients with consecutive addresses."""

    FIELDS = (
        *("src_start", "src_end", "initial_teid", "teid_jump", "sport", "version", "tunnel_type"),
        *("src_ip", "dst_ip", "activate"),
    )

    def __init__(
        self,
        src_start: str,
        src_end: str,
        initial_teid: int,
        teid_jump: int,
        sport: int,
        version: int,
        tunnel_type: int,
        src_ip: str,
        dst_ip: str,
        activate: bool,
    ) -> None:
        """:param src_start: first client
        :param src_end: last client
        :param initial_teid: TEID of the first client
        :param teid_jump: increment of the TEID for each next client
        :param sport: UDP source port; 0: source port of the inner packet
        :param version: outer IP version: 4 or 6
        :param tunnel_type: 1, which is GTP-U
        :param src_ip: endpoint of the clients
        :param dst_ip: remote endpoint
        :param activate: whether the clients open flows from the start
        """
        context = f"tunnels of {src_start} to {src_end}"
        for name, address in (("src_start", src_start), ("src_end", src_end)):
            if not is_valid_ipv4(address):
                raise TRexError(f"{context}: {name} {address!r} is no IPv4 address")
        if ip2int(src_start) > ip2int(src_end):
            raise TRexError(f"{context}: src_start is above src_end")
        numbers = {"initial_teid": initial_teid, "teid_jump": teid_jump, "sport": sport}
        for name, value in numbers.items():
            check_number(context, name, value, _NUMBER_MAX[name])
        validate_type("activate", activate, bool)
        check_type(tunnel_type)
        check_ends(context, version, src_ip, dst_ip)
        self.src_start, self.src_end = src_start, src_end
        self.initial_teid, self.teid_jump, self.sport = initial_teid, teid_jump, sport
        self.version, self.tunnel_type = version, tunnel_type
        self.src_ip, self.dst_ip, self.activate = src_ip, dst_ip, activate

    def get_data(self) -> dict[str, Any]:
        """Returns the fields."""
        return {name: getattr(self, name) for name in self.FIELDS}


class TopoTunnelLatency:
    """Tunnel of a port's latency packets, stored without effect."""

    FIELDS = ("client_port_id", "client_ip", "server_ip")

    def __init__(self, client_port_id: int, client_ip: str, server_ip: str) -> None:
        validate_type("client_port_id", client_port_id, int)
        if isinstance(client_port_id, bool) or client_port_id < 0 or client_port_id % 2:
            raise TRexError(f"client_port_id {client_port_id}: clients are on even ports")
        for name, address in (("client_ip", client_ip), ("server_ip", server_ip)):
            if not is_valid_ipv4(address):
                raise TRexError(f"{name} {address!r} is no IPv4 address")
        self.client_port_id, self.client_ip, self.server_ip = client_port_id, client_ip, server_ip

    def get_data(self) -> dict[str, Any]:
        """Returns the fields."""
        return {name: getattr(self, name) for name in self.FIELDS}


class TunnelsTopo:
    """Tunnels of clients."""

    def __init__(
        self,
        client: Any = None,
        tunnel_ctxs: Iterable[TopoTunnelCtx] | None = None,
        tunnel_latency: Iterable[TopoTunnelLatency] | None = None,
    ) -> None:
        self.client = client
        self.tunnel_ctxs = list(tunnel_ctxs or [])
        self.tunnel_latency = list(tunnel_latency or [])

    def add_tunnel_ctx_obj(self, tunnel_ctx: TopoTunnelCtx) -> None:
        """Adds tunnels."""
        validate_type("tunnel_ctx", tunnel_ctx, TopoTunnelCtx)
        self.tunnel_ctxs.append(tunnel_ctx)

    def add_tunnel_ctx(self, *a: Any, **k: Any) -> None:
        """Adds a `TopoTunnelCtx` with these arguments."""
        self.tunnel_ctxs.append(TopoTunnelCtx(*a, **k))

    def add_tunnel_latency_obj(self, tunnel_latency: TopoTunnelLatency) -> None:
        """Adds a tunnel of latency packets."""
        validate_type("tunnel_latency", tunnel_latency, TopoTunnelLatency)
        self.tunnel_latency.append(tunnel_latency)

    def add_tunnel_latency(self, *a: Any, **k: Any) -> None:
        """Adds a `TopoTunnelLatency` with these arguments."""
        self.tunnel_latency.append(TopoTunnelLatency(*a, **k))

    def is_empty(self) -> bool:
        """Returns whether the topology is empty."""
        return not self.tunnel_ctxs and not self.tunnel_latency

    def get_data(self) -> dict[str, Any]:
        """Returns the topology as a document."""
        return {
            "tunnels": [it.get_data() for it in self.tunnel_ctxs],
            "latency": [it.get_data() for it in self.tunnel_latency],
        }

    def to_json(self) -> str:
        """Returns the topology as JSON for `tunnels_topo_load`."""
        return json.dumps(self.get_data(), sort_keys=True)

    def check(self) -> None:
        """Raises `TRexError` if clients have two tunnels, or a latency client has none."""
        ordered = sorted(self.tunnel_ctxs, key=lambda it: ip2int(it.src_start))
        for first, second in zip(ordered, ordered[1:]):
            if ip2int(first.src_end) >= ip2int(second.src_start):
                raise TRexError(
                    f"clients have two tunnels: {first.src_start} to {first.src_end}, and "
                    f"{second.src_start} to {second.src_end}"
                )
        for latency in self.tunnel_latency:
            client = ip2int(latency.client_ip)
            if not any(ip2int(it.src_start) <= client <= ip2int(it.src_end) for it in ordered):
                raise TRexError(
                    f"the client of latency packets, {latency.client_ip}, has no tunnel"
                )

    @staticmethod
    def from_data(data: Any) -> TunnelsTopo:
        """Creates a topology from a document."""
        validate_type("topology", data, dict)
        found = TunnelsTopo()
        for name, add in (
            ("tunnels", found.add_tunnel_ctx),
            ("latency", found.add_tunnel_latency),
        ):
            entries = data.get(name) or []
            validate_type(name, entries, list)
            for entry in entries:
                validate_type(f"an entry of {name}", entry, dict)
                add(**entry)
        return found


def check_type(tunnel_type: Any) -> None:
    """Raises `TRexError` unless the tunnel type is GTP-U."""
    if isinstance(tunnel_type, bool) or tunnel_type != GTPU:
        raise TRexError(f"Invalid Tunnel Type: {tunnel_type!r}, expected {GTPU}, which is GTP-U")


def check_number(context: str, name: str, value: Any, most: int) -> None:
    """Raises `TRexError` unless the value is an integer from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise TRexError(f"{context}: {name} {value!r} is not a number from 0 to {most}")


def check_ends(context: str, version: Any, *ends: Any) -> None:
    """Raises `TRexError` unless the endpoints are addresses of the IP version."""
    if version not in (4, 6):
        raise TRexError(f"{context}: version {version!r} is neither 4 nor 6")
    is_valid = is_valid_ipv4 if version == 4 else is_valid_ipv6
    for end in ends:
        if not isinstance(end, str) or not is_valid(end):
            raise TRexError(f"{context}: {end!r} is no IPv{version} address")


def load(topology: Any, tunables: Mapping[str, Any]) -> TunnelsTopo:
    """Returns a topology, from an object or a file in Python (`get_topo()`), JSON or YAML."""
    return topology_file.load(topology, TunnelsTopo, TunnelsTopo.from_data, tunables)
