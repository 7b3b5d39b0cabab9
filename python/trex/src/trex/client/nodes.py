"""Nodes of a port: hosts with their own addresses, and the commands that create them.

A node lives in this process. It answers ARP, neighbour discovery and pings within its VLANs. It
runs no program, and it ends with the session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trex.addresses import compress_ipv6, generate_ipv6
from trex.client.hosts import Hosts, tags_of
from trex.errors import TRexError

_NO_BIRD = (
    "BIRD is not supported: a node answers ARP, neighbour discovery and pings, but runs no "
    "program; "
    "run bird in a network namespace of its own (ip netns) that is connected to the device"
)
_FILTER_NO_TCP_UDP = 1
_FILTER_NAMES = {0: "none", 1: "no_tcp_udp", 2: "tcp_udp", 3: "all"}


@dataclass
class Node:
    """Settings of a node."""

    mac: str
    shared_ns: str | None = None
    ipv4: str = ""
    gateway: str = ""
    subnet_ipv4: int = 0
    has_ipv6: bool = False
    ipv6: str = ""
    subnet_ipv6: int = 0
    vlans: list[int] = field(default_factory=list)
    tpids: list[int] = field(default_factory=list)
    filter_mask: int = _FILTER_NO_TCP_UDP
    mtu: int = 1500

    @property
    def addresses(self) -> list[str]:
        """Addresses that the node answers for."""
        link_local = [generate_ipv6(self.mac)] if self.has_ipv6 else []
        return [*filter(None, [self.ipv4, self.ipv6]), *link_local]

    def info(self) -> dict[str, Any]:
        """Returns the properties of a node in TRex's format."""
        ipv4: dict[str, Any] = {"state": "none"}
        if self.ipv4:
            ipv4 = {"src": self.ipv4, "dst": self.gateway}
        ipv6: dict[str, Any] = {"enabled": self.has_ipv6}
        if self.has_ipv6:
            ipv6["src"] = self.ipv6
        if self.shared_ns is not None:
            ipv4.pop("dst", None)
            ipv4["subnet"], ipv6["subnet"] = self.subnet_ipv4, self.subnet_ipv6
        return {
            "ether": {"src": self.mac},
            "vlan": {"tags": list(self.vlans), "tpids": list(self.tpids)},
            "ipv4": ipv4,
            "ipv6": ipv6,
            "is-shared-ns": self.shared_ns is not None,
            "shared-ns": self.shared_ns or "",
            "is_bird": False,
            "mtu": self.mtu,
            "vlan_filter": _FILTER_NAMES[self.filter_mask],
        }


class Nodes:
    """The nodes of a port."""

    def __init__(self, port: int, hosts: Hosts) -> None:
        self._port = port
        self._hosts = hosts
        self._nodes: dict[str, Node] = {}
        #: Default gateway of each shared namespace.
        self._shared: dict[str, str] = {}
        self._shared_count = 0
        self._results: list[Any] | None = None
        self._commands: dict[str, Callable[..., Any]] = {
            "add_node": self._add,
            "remove_node": self._remove,
            "remove_all": self.remove_all,
            "add_shared_ns": self._add_shared,
            "remove_shared_ns": self._remove_shared,
            "set_dg": self._set_gateway,
            "set_vlans": self._set_vlans,
            "set_ipv4": self._set_ipv4,
            "clear_ipv4": self._clear_ipv4,
            "set_ipv6": self._set_ipv6,
            "set_vlan_filter": self._set_vlan_filter,
            "set_filter": self._set_filter,
            "set_mtu": self._set_mtu,
            "get_nodes": self._names,
            "get_nodes_info": self._infos,
            "counters_clear": self._hosts.clear_counters,
            "counters_get_meta": self._counters_meta,
            "counters_get_value": self._counters,
            "get_commands": lambda: sorted(self._commands),
        }

    def execute(self, commands: list[dict[str, Any]]) -> None:
        """Executes commands in order. `pop_results` returns their results."""
        self._results = [self._execute(one["method"], one["params"]) for one in commands]

    @property
    def has_results(self) -> bool:
        """Whether there are results."""
        return self._results is not None

    def pop_results(self) -> list[Any] | None:
        """Removes and returns the results of the last commands."""
        results, self._results = self._results, None
        return results

    def remove_all(self) -> None:
        """Removes all nodes and shared namespaces."""
        for mac in list(self._nodes):
            self._remove(mac)
        self._shared.clear()

    def _execute(self, method: str, arguments: dict[str, Any]) -> Any:
        command = self._commands.get(method)
        if command is None:
            return {"error": f"{method}: unknown command"}
        try:
            result = command(**arguments)
        except TRexError as error:
            return {"error": f"{method}: {error}"}
        return None if result is None else {"result": result}

    def _node(self, mac: str, shared: bool | None = None) -> Node:
        """Returns a node. Raises unless it is in a shared namespace as `shared` requires."""
        node = self._nodes.get(mac.lower())
        if node is None:
            raise TRexError(f"there is no node {mac} on port {self._port}")
        if shared is not None and shared != (node.shared_ns is not None):
            location = "is in no" if shared else "is in a"
            raise TRexError(f"node {mac} {location} shared namespace")
        return node

    def _update_host(self, node: Node) -> None:
        """Updates the answers of a node to its current settings."""
        filter_mask = node.filter_mask & _FILTER_NO_TCP_UDP
        if filter_mask and node.addresses:
            solicits_routers = node.has_ipv6 and not node.ipv6
            tags = tags_of(node.vlans, node.tpids)
            self._hosts.add(node.mac, tags, node.addresses, solicits_routers)
        else:
            self._remove_host(node)

    def _remove_host(self, node: Node) -> None:
        self._hosts.remove(node.mac, tags_of(node.vlans, node.tpids))

    def _add(self, mac: str, is_bird: bool = False, shared_ns: str | None = None) -> None:
        if is_bird:
            raise TRexError(_NO_BIRD)
        if mac.lower() in self._nodes:
            raise TRexError(f"there is a node {mac} on port {self._port} already")
        if shared_ns is not None:
            self._check_shared(shared_ns)
        self._nodes[mac.lower()] = Node(mac.lower(), shared_ns)

    def _remove(self, mac: str) -> None:
        self._remove_host(self._node(mac))
        del self._nodes[mac.lower()]

    def _check_shared(self, name: str) -> None:
        if name not in self._shared:
            known = ", ".join(self._shared) or "none"
            raise TRexError(f"there is no shared namespace {name!r}; there are: {known}")

    def _add_shared(self) -> str:
        name = f"shared-{self._port}-{self._shared_count}"
        self._shared_count += 1
        self._shared[name] = ""
        return name

    def _remove_shared(self, shared_ns: str) -> None:
        self._check_shared(shared_ns)
        for node in [node for node in self._nodes.values() if node.shared_ns == shared_ns]:
            self._remove(node.mac)
        del self._shared[shared_ns]

    def _set_gateway(self, shared_ns: str, dg: str) -> None:
        self._check_shared(shared_ns)
        self._shared[shared_ns] = dg

    def _set_vlans(self, mac: str, vlans: list[int], tpids: list[int] | None) -> None:
        node = self._node(mac)
        if len(vlans) > 2 or any(not 0 < vlan < 4096 for vlan in vlans):
            raise TRexError(f"vlans {vlans}: expected at most two, of 1 to 4095")
        self._remove_host(node)
        node.vlans, node.tpids = list(vlans), list(tpids or [])
        self._update_host(node)

    def _set_ipv4(
        self, mac: str, ipv4: str, shared_ns: bool = False, dg: str = "", subnet: int = 0
    ) -> None:
        node = self._node(mac, shared_ns)
        if shared_ns and not 1 <= subnet <= 32:
            raise TRexError(f"subnet {subnet}: expected 1 to 32")
        node.ipv4, node.gateway, node.subnet_ipv4 = ipv4, dg, subnet
        self._update_host(node)

    def _clear_ipv4(self, mac: str) -> None:
        node = self._node(mac)
        node.ipv4, node.gateway, node.subnet_ipv4 = "", "", 0
        self._update_host(node)

    def _set_ipv6(
        self,
        mac: str,
        enable: bool,
        src_ipv6: str = "",
        shared_ns: bool = False,
        subnet: int = 0,
    ) -> None:
        node = self._node(mac, shared_ns)
        if enable and shared_ns and src_ipv6 and not 1 <= subnet <= 128:
            raise TRexError(f"subnet {subnet}: expected 1 to 128")
        node.has_ipv6 = enable
        node.ipv6 = compress_ipv6(src_ipv6) if enable and src_ipv6 else ""
        node.subnet_ipv6 = subnet if node.ipv6 else 0
        self._update_host(node)

    def _set_vlan_filter(self, mac: str, filter_mask: int) -> None:
        node = self._node(mac)
        node.filter_mask = filter_mask & 3
        self._update_host(node)

    def _set_filter(self, mac: str, filter: str) -> None:
        self._node(mac)
        raise TRexError(
            "a node receives ARP, neighbour discovery and pings, and has no other filter"
        )

    def _set_mtu(self, mac: str, mtu: int) -> None:
        self._node(mac, shared=True).mtu = mtu

    def _names(self, only_bird: bool = False) -> dict[str, Any]:
        return {"nodes": [] if only_bird else list(self._nodes)}

    def _infos(self, macs: list[str]) -> dict[str, Any]:
        return {"nodes": [self._node(mac).info() for mac in macs]}

    def _counters_meta(self) -> dict[str, Any]:
        data = [
            {
                "id": str(number),
                "name": name,
                "help": name.replace("_", " "),
                "units": "",
                "zero": False,
                "info": "info",
                "real": False,
                "abs": False,
            }
            for number, name in enumerate(self._hosts.counters(), start=1)
        ]
        return {"name": "stack_counters", "data": data}

    def _counters(self, zeros: bool) -> dict[str, Any]:
        values = {
            str(number): value
            for number, value in enumerate(self._hosts.counters().values(), start=1)
            if value or zeros
        }
        return {"name": "stack_counters", "epoch": 0, "": values}
