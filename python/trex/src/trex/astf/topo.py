"""Topologies: virtual interfaces of clients, and gateways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from trex.addresses import ip2int, is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.arguments import validate_type
from trex.astf import topology_file
from trex.errors import TRexError

_SUB_INTERFACE_MAX = 100_000
_VLAN_MAX = 4095
_PORT_ID = re.compile(r"(-?[0-9]{1,9})(?:\.([0-9]{1,9}))?")


class TopoVIF:
    """A virtual interface of a port: MAC address, VLAN, and IPv4 address for ARP requests."""

    def __init__(
        self,
        port_id: str,
        src_mac: str,
        src_ipv4: str = "",
        src_ipv6: str = "",
        vlan: int | None = 0,
    ) -> None:
        """:param port_id: `PORT.SUB`: port, and number of the virtual interface from 1
        :param src_mac: source MAC address of frames
        :param src_ipv4: source address of ARP requests for gateways
        :param src_ipv6: stored without effect
        :param vlan: VLAN ID of the frames; none if 0 or None
        """
        self.trex_port, self.sub_if = _numbers(port_id)
        context = f"virtual interface {port_id}"
        if not self.sub_if:
            raise TRexError(f"{context}: its number is 1 or more, as in 0.1")
        validate_type("src_mac", src_mac, str)
        if not is_valid_mac(src_mac):
            raise TRexError(f"{context}: src_mac {src_mac!r} is no MAC address")
        if src_ipv4 and not is_valid_ipv4(src_ipv4):
            raise TRexError(f"{context}: src_ipv4 {src_ipv4!r} is no IPv4 address")
        if src_ipv6 and not is_valid_ipv6(src_ipv6):
            raise TRexError(f"{context}: src_ipv6 {src_ipv6!r} is no IPv6 address")
        validate_type("vlan", vlan, (int, type(None)))
        if not 0 <= (vlan or 0) <= _VLAN_MAX:
            raise TRexError(f"{context}: vlan {vlan} is not from 1 to {_VLAN_MAX}")
        self.port_id, self.src_mac = port_id, src_mac
        self.src_ipv4, self.src_ipv6, self.vlan = src_ipv4, src_ipv6, vlan or 0

    def get_data(self, to_server: bool) -> dict[str, Any]:
        """Returns the fields, with the port in one (`port_id`) or two fields."""
        fields = {name: getattr(self, name) for name in ("src_mac", "src_ipv4", "src_ipv6", "vlan")}
        return {**fields, **_port_fields(self, to_server)}

    def to_code(self) -> str:
        """Returns the Python code of the object."""
        fields = [self.port_id, self.src_mac, self.src_ipv4, self.src_ipv6, self.vlan]
        return f"TopoVIF({', '.join(map(repr, fields))})"


class TopoGW:
    """A gateway: next hop for the frames of some clients."""

    def __init__(
        self, port_id: str, src_start: str, src_end: str, dst: str, dst_mac: str | None = ""
    ) -> None:
        """:param port_id: a port, `0`, or a virtual interface, `0.1`
        :param src_start: first client
        :param src_end: last client
        :param dst: MAC address of the gateway, or its IPv4 address, which ARP resolves
        :param dst_mac: resolved MAC address, if it is known
        """
        self.trex_port, self.sub_if = _numbers(port_id)
        context = f"gateway of port {port_id}"
        if self.trex_port % 2:
            raise TRexError(f"{context}: clients are on even ports")
        for name, address in (("src_start", src_start), ("src_end", src_end)):
            if not is_valid_ipv4(address):
                raise TRexError(f"{context}: {name} {address!r} is no IPv4 address")
        validate_type("dst", dst, str)
        if not (is_valid_ipv4(dst) or is_valid_ipv6(dst) or is_valid_mac(dst)):
            raise TRexError(f"{context}: dst {dst!r} is no address of IP or Ethernet")
        if dst_mac and is_valid_mac(dst) and dst_mac != dst:
            raise TRexError(f"{context}: dst is {dst}, and dst_mac another one: {dst_mac}")
        self.port_id, self.src_start, self.src_end, self.dst = port_id, src_start, src_end, dst
        self.dst_mac: str | None = dst if is_valid_mac(dst) else dst_mac or None

    def get_data(self, to_server: bool) -> dict[str, Any]:
        """Returns the fields, with the port in one (`port_id`) field, or in two with `dst_mac`."""
        fields = {name: getattr(self, name) for name in ("src_start", "src_end", "dst")}
        if to_server:
            fields["dst_mac"] = self.dst_mac
        return {**fields, **_port_fields(self, to_server)}

    def to_code(self) -> str:
        """Returns the Python code of the object."""
        fields = [self.port_id, self.src_start, self.src_end, self.dst]
        return f"TopoGW({', '.join(map(repr, fields))})"


class ASTFTopology:
    """Virtual interfaces and gateways."""

    def __init__(
        self, vifs: Iterable[TopoVIF] | None = None, gws: Iterable[TopoGW] | None = None
    ) -> None:
        self.vifs = list(vifs or [])
        self.gws = list(gws or [])

    def add_vif_obj(self, vif: TopoVIF) -> None:
        """Adds a virtual interface."""
        validate_type("vif", vif, TopoVIF)
        self.vifs.append(vif)

    def add_gw_obj(self, gw: TopoGW) -> None:
        """Adds a gateway."""
        validate_type("gw", gw, TopoGW)
        self.gws.append(gw)

    def add_vif(self, *a: Any, **k: Any) -> None:
        """Adds a `TopoVIF`. `trex_port` and `sub_if` can replace `port_id`."""
        self.vifs.append(TopoVIF(*a, **_with_port_id(k)))

    def add_gw(self, *a: Any, **k: Any) -> None:
        """Adds a `TopoGW`. `trex_port` and `sub_if` can replace `port_id`."""
        self.gws.append(TopoGW(*a, **_with_port_id(k)))

    def is_empty(self) -> bool:
        """Returns whether the topology is empty."""
        return not self.vifs and not self.gws

    def get_data(self, to_server: bool = True) -> dict[str, Any]:
        """Returns the topology as a document."""
        return {
            "vifs": [vif.get_data(to_server) for vif in self.vifs],
            "gws": [gw.get_data(to_server) for gw in self.gws],
        }

    def by_gateway(self) -> list[tuple[TopoGW, TopoVIF | None]]:
        """Returns the gateways, each with its virtual interface; None for the port itself."""
        vifs = {(vif.trex_port, vif.sub_if): vif for vif in self.vifs}
        return [(gw, vifs.get((gw.trex_port, gw.sub_if))) for gw in self.gws]

    def check(self) -> None:
        """Raises `TRexError` for duplicate virtual interfaces, or for gateways that overlap or have
        no interface.
        """
        names: set[tuple[int, int]] = set()
        addresses: dict[tuple[int, str], TopoVIF] = {}
        for vif in self.vifs:
            if (vif.trex_port, vif.sub_if) in names:
                raise TRexError(f"virtual interface {vif.port_id} exists twice")
            names.add((vif.trex_port, vif.sub_if))
            other = addresses.setdefault((vif.trex_port, vif.src_mac), vif)
            if other is not vif:
                raise TRexError(
                    f"virtual interfaces {other.port_id} and {vif.port_id} both have the address "
                    f"{vif.src_mac}"
                )
        for gw in self.gws:
            if ip2int(gw.src_start) > ip2int(gw.src_end):
                raise TRexError(
                    f"gateway {gw.dst}: src_start {gw.src_start} is above src_end, {gw.src_end}"
                )
        ordered = sorted(self.gws, key=lambda gw: ip2int(gw.src_start))
        for first, second in zip(ordered, ordered[1:]):
            if ip2int(first.src_end) >= ip2int(second.src_start):
                raise TRexError(
                    f"gateways {first.dst} and {second.dst} have clients in common: "
                    f"{first.src_start} to {first.src_end}, {second.src_start} to {second.src_end}"
                )
        for gw, by in self.by_gateway():
            if gw.sub_if and by is None:
                raise TRexError(f"gateway {gw.dst}: there is no virtual interface {gw.port_id}")

    def to_json(self, to_server: bool = False) -> str:
        """Returns the topology as JSON for `topo_load`."""
        return json.dumps(self.get_data(to_server), indent=4, sort_keys=True)

    def to_yaml(self) -> str:
        """Returns the topology as YAML for `topo_load`."""
        return str(yaml.safe_dump(self.get_data(False), default_flow_style=False))

    def to_code(self) -> str:
        """Returns the topology as Python code for `topo_load`."""
        lines = ["from trex.astf.topo import *", "", "", "def get_topo():"]
        for name, objects in (("vifs", self.vifs), ("gws", self.gws)):
            lines += [f"    {name} = [", *(f"        {it.to_code()}," for it in objects), "    ]"]
        return "\n".join([*lines, "    return ASTFTopology(vifs=vifs, gws=gws)", ""])


def load(topology: Any, tunables: Mapping[str, Any] | None = None) -> ASTFTopology:
    """Returns a topology, from an object or a file in Python (`get_topo()`), JSON or YAML."""
    return topology_file.load(topology, ASTFTopology, from_data, tunables or {})


def from_data(data: Any) -> ASTFTopology:
    """Creates a topology from a document."""
    validate_type("topology", data, dict)
    topology = ASTFTopology()
    for name, add in (("vifs", topology.add_vif), ("gws", topology.add_gw)):
        entries = data.get(name) or []
        validate_type(name, entries, list)
        for entry in entries:
            validate_type(f"an entry of {name}", entry, dict)
            add(**entry)
    return topology


def _numbers(port_id: Any) -> tuple[int, int]:
    """Returns a port and a virtual interface, 0 for the port itself."""
    validate_type("port_id", port_id, str)
    found = _PORT_ID.fullmatch(port_id)
    if found is None:
        raise TRexError(f"port_id {port_id!r}: expected a port, 0, or a virtual interface, 0.2")
    # `load` checks whether the port exists.
    port, number = found[1], int(found[2] or 0)
    if number > _SUB_INTERFACE_MAX:
        raise TRexError(f"port_id {port_id!r}: virtual interfaces are 1 to {_SUB_INTERFACE_MAX}")
    return int(port), number


def _port_fields(it: TopoVIF | TopoGW, to_server: bool) -> dict[str, Any]:
    if to_server:
        return {"trex_port": it.trex_port, "sub_if": it.sub_if}
    return {"port_id": it.port_id}


def _with_port_id(fields: dict[str, Any]) -> dict[str, Any]:
    if "trex_port" not in fields:
        return fields
    rest = {name: value for name, value in fields.items() if name not in ("trex_port", "sub_if")}
    port_id = str(fields["trex_port"])
    if fields.get("sub_if"):
        port_id += f".{fields['sub_if']}"
    return {"port_id": port_id, **rest}
