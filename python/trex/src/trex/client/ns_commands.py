"""Commands for the nodes of a port, and their results."""

from __future__ import annotations

import copy
import json
from typing import Any

from trex.addresses import is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.arguments import listify, validate_type
from trex.errors import TRexArgumentError, TRexError


class NSCmds:
    """A list of commands, to which each method adds one.

    `STLClient.set_namespace_start` executes them. The Ethernet address identifies a node.
    """

    def __init__(self) -> None:
        self.cmds: list[dict[str, Any]] = []

    def add_cmd(self, method: str, **arg: Any) -> None:
        """Adds a command by name."""
        self.cmds.append({"method": method, "params": arg})

    def clone(self) -> NSCmds:
        """Returns a copy."""
        return copy.deepcopy(self)

    def get_json(self) -> list[dict[str, Any]]:
        """Returns the commands: `method` and `params` of each."""
        return self.cmds

    def get_json_str(self) -> str:
        """Returns the commands as JSON text."""
        return json.dumps(self.get_json(), separators=(",", ": "))

    # Nodes.

    def add_node(self, mac: str, is_bird: bool = False, shared_ns: str | None = None) -> None:
        """Adds a node, alone or in a shared namespace."""
        _check_mac(mac)
        validate_type("is_bird", is_bird, bool)
        arguments: dict[str, Any] = {"mac": mac, "is_bird": is_bird}
        if shared_ns is not None:
            validate_type("shared_ns", shared_ns, str)
            if is_bird:
                raise TRexError("add_node: is_bird and shared_ns exclude each other")
            arguments["shared_ns"] = shared_ns
        self.add_cmd("add_node", **arguments)

    def remove_node(self, mac: str) -> None:
        """Removes a node."""
        _check_mac(mac)
        self.add_cmd("remove_node", mac=mac)

    def remove_all(self) -> None:
        """Removes all nodes and shared namespaces."""
        self.add_cmd("remove_all")

    def add_shared_ns(self) -> None:
        """Adds a shared namespace. The result is its name."""
        self.add_cmd("add_shared_ns")

    def remove_shared_ns(self, shared_ns: str) -> None:
        """Removes a shared namespace and its nodes."""
        validate_type("shared_ns", shared_ns, str)
        self.add_cmd("remove_shared_ns", shared_ns=shared_ns)

    # Settings of nodes.

    def set_dg(self, shared_ns: str, dg: str) -> None:
        """Sets the default gateway of a shared namespace."""
        validate_type("shared_ns", shared_ns, str)
        _check_ipv4("dg", dg)
        self.add_cmd("set_dg", shared_ns=shared_ns, dg=dg)

    def set_vlan(self, mac: str, vlans: Any, tpids: Any = None) -> None:
        """Sets up to two VLANs, the outer one first.

        `tpids` defaults to 0x8100 for one VLAN, and to 0x88a8 and 0x8100 for two.
        """
        _check_mac(mac)
        tags = listify(vlans)
        types = None if tpids is None else listify(tpids)
        if types is not None and len(types) != len(tags):
            raise TRexError(f"set_vlan: {len(tags)} vlans, and {len(types)} tpids")
        for name, numbers in (("vlans", tags), ("tpids", types or [])):
            for number in numbers:
                validate_type(name, number, int)
        self.add_cmd("set_vlans", mac=mac, vlans=tags, tpids=types)

    def set_ipv4(
        self,
        mac: str,
        ipv4: str,
        dg: str | None = None,
        subnet: int | None = None,
        shared_ns: bool = False,
    ) -> None:
        """Sets the IPv4 address: with a default gateway `dg`, or in a shared namespace with the
        prefix length `subnet`.
        """
        _check_mac(mac)
        _check_ipv4("ipv4", ipv4)
        validate_type("shared_ns", shared_ns, bool)
        if shared_ns:
            if subnet is None:
                raise TRexError("set_ipv4: a node in a shared namespace needs a subnet")
            validate_type("subnet", subnet, int)
            self.add_cmd("set_ipv4", mac=mac, ipv4=ipv4, shared_ns=True, subnet=subnet)
            return
        if dg is None or subnet is not None:
            raise TRexError("set_ipv4: a node by itself needs dg, a gateway, and no subnet")
        _check_ipv4("dg", dg)
        self.add_cmd("set_ipv4", mac=mac, ipv4=ipv4, shared_ns=False, dg=dg)

    def clear_ipv4(self, mac: str) -> None:
        """Removes the IPv4 address."""
        _check_mac(mac)
        self.add_cmd("clear_ipv4", mac=mac)

    def set_ipv6(
        self,
        mac: str,
        enable: bool,
        src_ipv6: str | None = None,
        subnet: int | None = None,
        shared_ns: bool = False,
    ) -> None:
        """Enables IPv6 with the link-local address (EUI-64) and `src_ipv6`, or disables it.

        Without `src_ipv6`, the node takes addresses from router advertisements.
        """
        _check_mac(mac)
        validate_type("enable", enable, bool)
        validate_type("shared_ns", shared_ns, bool)
        arguments: dict[str, Any] = {"mac": mac, "enable": enable, "src_ipv6": src_ipv6 or ""}
        if src_ipv6 and not is_valid_ipv6(src_ipv6):
            raise TRexArgumentError("src_ipv6", src_ipv6, "an address of IPv6")
        if shared_ns:
            if (src_ipv6 is None) != (subnet is None):
                raise TRexError("set_ipv6: in a shared namespace set both src_ipv6 and subnet")
            arguments["shared_ns"] = True
            if subnet is not None:
                validate_type("subnet", subnet, int)
                arguments["subnet"] = subnet
        self.add_cmd("set_ipv6", **arguments)

    def set_vlan_filter(
        self, mac: str, is_no_tcp_udp: bool = True, is_tcp_udp: bool = False
    ) -> None:
        """Sets whether a node receives TCP and UDP, and whether it receives other protocols."""
        _check_mac(mac)
        validate_type("is_no_tcp_udp", is_no_tcp_udp, bool)
        validate_type("is_tcp_udp", is_tcp_udp, bool)
        self.add_cmd("set_vlan_filter", mac=mac, filter_mask=is_no_tcp_udp | is_tcp_udp << 1)

    def set_filter(self, mac: str, bpf_filter: str) -> None:
        """Sets a tcpdump expression for the frames of a node."""
        _check_mac(mac)
        validate_type("bpf_filter", bpf_filter, str)
        self.add_cmd("set_filter", mac=mac, filter=bpf_filter)

    def set_mtu(self, mac: str, mtu: int) -> None:
        """Sets the MTU of a node in a shared namespace."""
        _check_mac(mac)
        validate_type("mtu", mtu, int)
        self.add_cmd("set_mtu", mac=mac, mtu=mtu)

    # Queries.

    def get_nodes(self, only_bird: bool = False) -> None:
        """Requests the Ethernet addresses of the nodes."""
        self.add_cmd("get_nodes", only_bird=only_bird)

    def get_nodes_info(self, macs_list: list[str]) -> None:
        """Requests the properties of nodes."""
        validate_type("macs_list", macs_list, list)
        self.add_cmd("get_nodes_info", macs=macs_list)

    def clear_counters(self) -> None:
        """Clears the counters."""
        self.add_cmd("counters_clear")

    def counters_get_meta(self) -> None:
        """Requests the descriptions of the counters."""
        self.add_cmd("counters_get_meta")

    def counters_get_values(self, zeros: bool = False) -> None:
        """Requests the counters; zeros only with `zeros`."""
        validate_type("zeros", zeros, bool)
        self.add_cmd("counters_get_value", zeros=zeros)

    def get_commands_list(self) -> None:
        """Requests the names of all commands."""
        self.add_cmd("get_commands")


class NSCmdResult:
    """Results of commands: None, or a dictionary with `result` or `error`."""

    def __init__(self, data: list[Any]) -> None:
        self.data = data

    def is_any_error(self) -> bool:
        """Returns whether a command failed."""
        return bool(self.errors())

    def errors(self) -> list[str]:
        """Returns the errors."""
        return [one["error"] for one in self.data if one is not None and "error" in one]


class CNsStats:
    """Counters of nodes by name."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Resets the counters and names."""
        self.is_init = False
        self._names: dict[str, dict[str, Any]] = {}
        self._values: dict[str, int] = {}

    def set_meta_values(self, meta: Any, values: Any) -> None:
        """Sets the counters from the results of `counters_get_meta` (its `data`) and
        `counters_get_values` (its `""`).
        """
        self.reset()
        if meta is not None and values is not None:
            self.is_init = True
            self._names = {str(one["id"]): one for one in meta}
            self._values = values

    def get_values_stats(self) -> dict[str, int]:
        """Returns the counters."""
        return {self._names[key]["name"]: value for key, value in self._values.items()}

    def dump_stats(self) -> None:
        """Prints the counters."""
        for key, value in self._values.items():
            one = self._names[key]
            print(f"{one['name']:<24}{value:>12}  {one['help']}")


def _check_mac(mac: Any) -> None:
    is_single = isinstance(mac, str) and ":" in mac and is_valid_mac(mac)
    if not is_single or int(mac[:2], 16) & 1:
        raise TRexArgumentError("mac", mac, "the address of one node, such as 00:00:00:01:00:07")


def _check_ipv4(name: str, address: Any) -> None:
    if not is_valid_ipv4(address):
        raise TRexArgumentError(name, address, "an address of IPv4")
