"""Console commands for the session, ports, addresses and nodes."""

from __future__ import annotations

import argparse
import pprint
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trex.client.ns_commands import CNsStats, NSCmds
from trex.errors import TRexError
from trex.lines.parser import LineParser, address, command, ipv4, ipv6, mac, ports_of, tunables

_ON = {"on": True, "off": False}
_UP = {"up": True, "down": False}
_FLOW_CONTROL = {"none": 0, "tx": 1, "rx": 2, "full": 3}
_TYPES_OF_TAGS = {"0x8100": 0x8100, "0x88A8": 0x88A8}
_SUBNETS = range(1, 33)
_ALOUD = ("info", "debug")


class PortLines:
    """Console commands that call the client method of the same name.

    `-h` prints help. Raises `TRexError` for invalid arguments.
    """

    # The session.

    @command("connect")
    def connect_line(self: Any, line: str) -> None:
        """Opens and acquires the ports."""
        words = LineParser(self.connect_line)
        words.add_argument(
            "--force", action="store_true", help="acquire ports of other clients on this machine"
        )
        words.add_argument("-r", dest="readonly", action="store_true", help="acquire no ports")
        given = words.of(line)
        if given is None:
            return
        self.connect()
        if not given.readonly:
            self.acquire(force=given.force)

    @command("disconnect")
    def disconnect_line(self: Any, line: str) -> None:
        """Ends the session and all traffic."""
        if LineParser(self.disconnect_line).of(line) is not None:
            self.disconnect()

    @command("shutdown")
    def shutdown_line(self: Any, line: str) -> None:
        """Ends the session. There is no server to shut down."""
        words = LineParser(self.shutdown_line)
        words.add_argument("--force", action="store_true", help="even while ports send")
        given = words.of(line)
        if given is not None:
            self.server_shutdown(force=given.force)

    @command("global_cfg")
    def global_cfg_line(self: Any, line: str) -> None:
        """Sets and prints parameters."""
        words = LineParser(self.global_cfg_line)
        words.add_argument(
            "-t", dest="tunables", nargs="+", default=[], help="parameters to set: NAME=VALUE"
        )
        given = words.of(line)
        if given is None:
            return
        if given.tunables:
            self.set_global_cfg(tunables(given.tunables))
        for name, value in self.get_global_cfg().items():
            print(f"{name} = {value}")

    @command("events")
    def get_events_line(self: Any, line: str) -> None:
        """Prints the events of the session."""
        words = LineParser(self.get_events_line)
        words.add_argument("-c", "--clear", action="store_true", help="clear the events afterwards")
        words.add_argument("-i", "--info", action="store_true", help="informational events only")
        words.add_argument("-w", "--warn", action="store_true", help="warnings only")
        given = words.of(line)
        if given is None:
            return
        kinds = ["info"] * given.info + ["warning"] * given.warn
        for event in self.get_events(kinds or None):
            print(event)
        if given.clear:
            self.clear_events()

    # Ports.

    @command("map")
    def map_line(self: Any, line: str) -> None:
        """Prints which acquired ports are connected to each other."""
        if LineParser(self.map_line).of(line) is None:
            return
        ports = self.get_acquired_ports()
        if not ports:
            raise TRexError("map: no port is acquired; call acquire() or reset()")
        found = self.map_ports(ports)
        print("Acquired ports topology:")
        print("Bi-directional ports:")
        for one, other in found["bi"]:
            print(f"port {one} <--> port {other}")
        print("Mapping unknown:")
        for number in found["unknown"]:
            print(f"port {number}")

    @command("portattr")
    def set_port_attr_line(self: Any, line: str) -> None:
        """Sets attributes of ports, or prints them if none are given."""
        words = LineParser(self.set_port_attr_line)
        words.add_ports()
        for flag, told, choices in (
            ("--prom", "promiscuous mode", _ON),
            ("--mult", "multicast mode", _ON),
            ("--link", "link state; prints the system command to set it", _UP),
            ("--led", "LED; prints the system command to set it", _ON),
            ("--fc", "flow control; prints the system command to set it", _FLOW_CONTROL),
        ):
            words.add_argument(flag, choices=choices, help=told)
        words.add_argument(
            "--vxlan-fs", dest="vxlan", type=int, nargs="*", help="VXLAN ports; not supported"
        )
        words.add_argument("--supp", action="store_true", help="print the supported attributes")
        given = words.of(line)
        if given is None:
            return
        ports = ports_of(self, given)
        if not ports:
            raise TRexError("portattr: no port is acquired; call acquire() or reset()")
        if given.supp:
            _print_supported(self.links[self._numbers(ports)[0]].info())
            return
        chosen = (given.prom, given.mult, given.link, given.led, given.fc, given.vxlan)
        if all(one is None for one in chosen):
            self.show_stats_line("--ps --port " + " ".join(map(str, ports)))
            return
        self.set_port_attr(
            ports,
            _ON.get(given.prom),
            _UP.get(given.link),
            _ON.get(given.led),
            _FLOW_CONTROL.get(given.fc),
            _ON.get(given.mult),
            given.vxlan,
        )

    # Addresses.

    @command("l2")
    def set_l2_mode_line(self: Any, line: str) -> None:
        """Sets the destination Ethernet address of a port."""
        words = LineParser(self.set_l2_mode_line)
        words.add_port()
        words.add_argument(
            "--dst",
            type=mac,
            required=True,
            help="destination address for frames without their own",
        )
        given = words.of(line)
        if given is not None:
            self.set_l2_mode(given.port, given.dst)

    @command("l3")
    def set_l3_mode_line(self: Any, line: str) -> None:
        """Sets the addresses of a port and of its next hop."""
        words = LineParser(self.set_l3_mode_line)
        words.add_port()
        words.add_argument("--src", type=address, required=True, help="the port's address")
        words.add_argument("--dst", type=address, required=True, help="address of the next hop")
        words.add_vlan()
        given = words.of(line)
        if given is not None:
            self.set_l3_mode(given.port, given.src, given.dst, given.vlan)

    @command("ipv6")
    def conf_ipv6_line(self: Any, line: str) -> None:
        """Sets or removes the IPv6 address of a port."""
        words = LineParser(self.conf_ipv6_line)
        words.add_port()
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument("--off", action="store_true", help="remove the address")
        which.add_argument(
            "--auto-ipv6", action="store_true", help="link-local and router-advertised addresses"
        )
        which.add_argument("-s", "--src", type=ipv6, help="the address")
        given = words.of(line)
        if given is not None:
            self.conf_ipv6(given.port, not given.off, given.src)

    @command("vlan")
    def set_vlan_line(self: Any, line: str) -> None:
        """Sets the VLANs of ports, for ARP, pings and clients."""
        words = LineParser(self.set_vlan_line)
        words.add_ports()
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument("--vlan", type=int, nargs="*", help="the VLAN, or outer and inner VLAN")
        which.add_argument("-c", action="store_true", help="no VLAN")
        given = words.of(line)
        if given is not None:
            # With -c, `given.vlan` is None.
            self.set_vlan(ports_of(self, given), given.vlan)

    @command("arp")
    def resolve_line(self: Any, line: str) -> None:
        """Resolves the next hops of ports."""
        words = LineParser(self.resolve_line)
        words.add_ports()
        words.add_vlan("the VLAN; default: the port's")
        words.add_argument("-r", "--retries", type=int, default=0, help="number of retries")
        given = words.of(line)
        if given is None:
            return
        ports = ports_of(self, given, self.get_resolvable_ports())
        if not ports:
            raise TRexError("arp: no port has a next hop; set one with set_l3_mode()")
        with _verbose_output(self):
            self.resolve(ports, given.retries, vlan=given.vlan)

    @command("ping")
    def ping_line(self: Any, line: str) -> None:
        """Pings an address, or the engine without arguments."""
        if not line.strip():
            print(f"the engine answers: {self.ping_rpc_server()['ts']:.3f} s")
            return
        words = LineParser(self.ping_line)
        words.add_port()
        words.add_argument(
            "-d", dest="address", type=address, required=True, help="address to ping"
        )
        words.add_argument(
            "-s", dest="size", type=int, default=64, help="bytes of a packet: 64 to 9216"
        )
        words.add_vlan()
        words.add_argument("-n", "--count", type=int, default=5, help="number of pings")
        given = words.of(line)
        if given is not None:
            with _verbose_output(self):
                self.ping_ip(given.port, given.address, given.size, given.count, vlan=given.vlan)

    @command("scan6")
    def scan6_line(self: Any, line: str) -> None:
        """Lists the IPv6 neighbours of ports."""
        words = LineParser(self.scan6_line)
        words.add_ports()
        words.add_argument("-t", dest="timeout", type=int, default=3, help="seconds to wait")
        given = words.of(line)
        if given is not None:
            self.scan6(ports_of(self, given), given.timeout, verbose=True)

    @command("pkt")
    def pkt_line(self: Any, line: str) -> None:
        """Sends a packet given as a scapy expression."""
        words = LineParser(self.pkt_line)
        words.add_ports()
        words.add_argument(
            "-n", "--dry", action="store_true", help="print the packet without sending it"
        )
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "-s", dest="packet", type=_packet, help="the packet, without spaces: Ether()/IP()"
        )
        which.add_argument("-l", "--layers", action="store_true", help="print all header classes")
        words.add_argument(
            "--force", action="store_true", help="stop the traffic of the ports first"
        )
        given = words.of(line, has_quotes=False)
        if given is None:
            return
        if given.layers:
            for name, layer in sorted(_layers().items()):
                print(f"{name:<42} {layer.name}")
        elif given.dry:
            print(f"Packet (size: {len(given.packet)} bytes):")
            given.packet.show2()
            print("dry run: no packet was sent")
        else:
            self.push_packets(given.packet, ports_of(self, given), given.force)

    # Nodes.

    @command("ns")
    def ns_line(self: Any, line: str) -> None:
        """Manages nodes of ports: add, remove, show-node, show-nodes, show-counters,
        clear-counters, remove-all.
        """
        words = LineParser(self.ns_line)
        named = ("add", "remove", "show-node")
        of_port = ("show-nodes", "show-counters", "clear-counters")
        made = words.commands(*named, *of_port, "remove-all")
        for sub in made[:-1]:
            sub.add_port()
        for sub in made[: len(named)]:
            sub.add_argument("--mac", type=mac, required=True, help="its Ethernet address")
        add = made[0]
        add.add_vlan()
        add.add_argument("--tpid", nargs="*", choices=_TYPES_OF_TAGS, help="TPIDs of the VLAN tags")
        add.add_argument("--src", type=ipv4, required=True, help="its address")
        add.add_argument("--dst", type=ipv4, help="its default gateway")
        add.add_argument(
            "--auto-ipv6",
            action="store_true",
            help="use link-local and router-advertised IPv6 addresses",
        )
        add.add_argument("--shared-ns", help="shared namespace of the node")
        add.add_argument(
            "--subnet",
            type=int,
            choices=_SUBNETS,
            metavar="1-32",
            help="prefix length of that namespace",
        )
        given = words.of(line)
        if given is None:
            return
        if given.command is None:
            words.print_help()
        elif given.command == "remove-all":
            self.namespace_remove_all()
        else:
            _print_nodes(given.command, _execute_commands(self, given))


def _node_commands(given: argparse.Namespace) -> NSCmds:
    commands = NSCmds()
    if given.command == "add":
        _add_node(commands, given)
    elif given.command == "remove":
        commands.remove_node(given.mac)
    elif given.command == "show-node":
        commands.get_nodes_info([given.mac])
    elif given.command == "show-nodes":
        commands.get_nodes()
    elif given.command == "clear-counters":
        commands.clear_counters()
    else:
        commands.counters_get_meta()
        commands.counters_get_values()
    return commands


def _add_node(commands: NSCmds, given: argparse.Namespace) -> None:
    is_shared = given.shared_ns is not None
    commands.add_node(given.mac, shared_ns=given.shared_ns)
    if is_shared:
        commands.set_ipv4(given.mac, given.src, subnet=given.subnet, shared_ns=True)
        if given.dst is not None:
            commands.set_dg(given.shared_ns, given.dst)
    else:
        commands.set_ipv4(given.mac, given.src, given.dst, given.subnet)
    if given.vlan:
        types = given.tpid and [_TYPES_OF_TAGS[name] for name in given.tpid]
        commands.set_vlan(given.mac, given.vlan, types)
    if given.auto_ipv6:
        commands.set_ipv6(given.mac, True, shared_ns=is_shared)


def _execute_commands(client: Any, given: argparse.Namespace) -> list[Any]:
    client.set_namespace_start(given.port, _node_commands(given))
    results: list[Any] = client.wait_for_async_results(given.port)
    return results


def _print_nodes(command: str, results: list[Any]) -> None:
    if command == "show-node":
        pprint.pprint(results[0]["result"])
    elif command == "show-nodes":
        nodes = results[0]["result"]["nodes"]
        print("\n".join(f"{number:<8}{node}" for number, node in enumerate(nodes)) or "no nodes")
    elif command == "show-counters":
        counters = CNsStats()
        counters.set_meta_values(results[0]["result"]["data"], results[1]["result"][""])
        counters.dump_stats()


def _print_supported(info: dict[str, Any]) -> None:
    print("Attributes that can be set:")
    for told, name in (
        ("Promiscuous", "is_prom_supported"),
        ("Multicast", None),
        ("Link status", "is_link_supported"),
        ("LED status", "is_led_supported"),
        ("Flow control", "is_fc_supported"),
    ):
        print(f"  {told + ':':<15}{'yes' if name is None else info[name]}")


def _layers() -> dict[str, Any]:
    """Returns scapy's header classes by name."""
    import scapy.all
    import scapy.layers.dhcp
    from scapy.packet import Packet

    names = {**vars(scapy.all), **vars(scapy.layers.dhcp)}
    return {k: v for k, v in names.items() if isinstance(v, type) and issubclass(v, Packet)}


def _packet(text: str) -> Any:
    try:
        # The user typed this Python expression.
        packet = eval(text, {"__builtins__": {}}, _layers())
        len(packet)
        return packet
    except Exception as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a scapy packet: {error}") from error


@contextmanager
def _verbose_output(client: Any) -> Iterator[None]:
    """Prints the client's messages within the block."""
    before = client.get_verbose()
    if before not in _ALOUD:
        client.set_verbose(_ALOUD[0])
    try:
        yield
    finally:
        client.set_verbose(before)
