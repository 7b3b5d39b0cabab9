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

_SWITCH_VALUES = {"on": True, "off": False}
_UP = {"up": True, "down": False}
_FLOW_CONTROL = {"none": 0, "tx": 1, "rx": 2, "full": 3}
_TYPES_OF_TAGS = {"0x8100": 0x8100, "0x88A8": 0x88A8}
_SUBNETS = range(1, 33)
_VERBOSE_LEVELS = ("info", "debug")


class PortLines:
    """Console commands that call the client method of the same name.

    `-h` prints help. Raises `TRexError` for invalid arguments.
    """

    # The session.

    @command("connect")
    def connect_line(self: Any, line: str) -> None:
        """Opens and acquires the ports."""
        parser = LineParser(self.connect_line)
        parser.add_argument(
            "--force", action="store_true", help="acquire ports of other clients on this machine"
        )
        parser.add_argument("-r", dest="readonly", action="store_true", help="acquire no ports")
        args = parser.parse_line(line)
        if args is None:
            return
        self.connect()
        if not args.readonly:
            self.acquire(force=args.force)

    @command("disconnect")
    def disconnect_line(self: Any, line: str) -> None:
        """Ends the session and all traffic."""
        if LineParser(self.disconnect_line).parse_line(line) is not None:
            self.disconnect()

    @command("shutdown")
    def shutdown_line(self: Any, line: str) -> None:
        """Ends the session. There is no server to shut down."""
        parser = LineParser(self.shutdown_line)
        parser.add_argument("--force", action="store_true", help="even while ports send")
        args = parser.parse_line(line)
        if args is not None:
            self.server_shutdown(force=args.force)

    @command("global_cfg")
    def global_cfg_line(self: Any, line: str) -> None:
        """Sets and prints parameters."""
        parser = LineParser(self.global_cfg_line)
        parser.add_argument(
            "-t", dest="tunables", nargs="+", default=[], help="parameters to set: NAME=VALUE"
        )
        args = parser.parse_line(line)
        if args is None:
            return
        if args.tunables:
            self.set_global_cfg(tunables(args.tunables))
        for name, value in self.get_global_cfg().items():
            print(f"{name} = {value}")

    @command("events")
    def get_events_line(self: Any, line: str) -> None:
        """Prints the events of the session."""
        parser = LineParser(self.get_events_line)
        parser.add_argument(
            "-c", "--clear", action="store_true", help="clear the events afterwards"
        )
        parser.add_argument("-i", "--info", action="store_true", help="informational events only")
        parser.add_argument("-w", "--warn", action="store_true", help="warnings only")
        args = parser.parse_line(line)
        if args is None:
            return
        kinds = ["info"] * args.info + ["warning"] * args.warn
        for event in self.get_events(kinds or None):
            print(event)
        if args.clear:
            self.clear_events()

    # Ports.

    @command("map")
    def map_line(self: Any, line: str) -> None:
        """Prints which acquired ports are connected to each other."""
        if LineParser(self.map_line).parse_line(line) is None:
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
        parser = LineParser(self.set_port_attr_line)
        parser.add_ports()
        for flag, text, choices in (
            ("--prom", "promiscuous mode", _SWITCH_VALUES),
            ("--mult", "multicast mode", _SWITCH_VALUES),
            ("--link", "link state; prints the system command to set it", _UP),
            ("--led", "LED; prints the system command to set it", _SWITCH_VALUES),
            ("--fc", "flow control; prints the system command to set it", _FLOW_CONTROL),
        ):
            parser.add_argument(flag, choices=choices, help=text)
        parser.add_argument(
            "--vxlan-fs", dest="vxlan", type=int, nargs="*", help="VXLAN ports; not supported"
        )
        parser.add_argument("--supp", action="store_true", help="print the supported attributes")
        args = parser.parse_line(line)
        if args is None:
            return
        ports = ports_of(self, args)
        if not ports:
            raise TRexError("portattr: no port is acquired; call acquire() or reset()")
        if args.supp:
            _print_supported(self.links[self._numbers(ports)[0]].info())
            return
        chosen = (args.prom, args.mult, args.link, args.led, args.fc, args.vxlan)
        if all(one is None for one in chosen):
            self.show_stats_line("--ps --port " + " ".join(map(str, ports)))
            return
        self.set_port_attr(
            ports,
            _SWITCH_VALUES.get(args.prom),
            _UP.get(args.link),
            _SWITCH_VALUES.get(args.led),
            _FLOW_CONTROL.get(args.fc),
            _SWITCH_VALUES.get(args.mult),
            args.vxlan,
        )

    # Addresses.

    @command("l2")
    def set_l2_mode_line(self: Any, line: str) -> None:
        """Sets the destination Ethernet address of a port."""
        parser = LineParser(self.set_l2_mode_line)
        parser.add_port()
        parser.add_argument(
            "--dst",
            type=mac,
            required=True,
            help="destination address for frames without their own",
        )
        args = parser.parse_line(line)
        if args is not None:
            self.set_l2_mode(args.port, args.dst)

    @command("l3")
    def set_l3_mode_line(self: Any, line: str) -> None:
        """Sets the addresses of a port and of its next hop."""
        parser = LineParser(self.set_l3_mode_line)
        parser.add_port()
        parser.add_argument("--src", type=address, required=True, help="the port's address")
        parser.add_argument("--dst", type=address, required=True, help="address of the next hop")
        parser.add_vlan()
        args = parser.parse_line(line)
        if args is not None:
            self.set_l3_mode(args.port, args.src, args.dst, args.vlan)

    @command("ipv6")
    def conf_ipv6_line(self: Any, line: str) -> None:
        """Sets or removes the IPv6 address of a port."""
        parser = LineParser(self.conf_ipv6_line)
        parser.add_port()
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--off", action="store_true", help="remove the address")
        group.add_argument(
            "--auto-ipv6", action="store_true", help="link-local and router-advertised addresses"
        )
        group.add_argument("-s", "--src", type=ipv6, help="the address")
        args = parser.parse_line(line)
        if args is not None:
            self.conf_ipv6(args.port, not args.off, args.src)

    @command("vlan")
    def set_vlan_line(self: Any, line: str) -> None:
        """Sets the VLANs of ports, for ARP, pings and clients."""
        parser = LineParser(self.set_vlan_line)
        parser.add_ports()
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument("--vlan", type=int, nargs="*", help="the VLAN, or outer and inner VLAN")
        group.add_argument("-c", action="store_true", help="no VLAN")
        args = parser.parse_line(line)
        if args is not None:
            # With -c, `given.vlan` is None.
            self.set_vlan(ports_of(self, args), args.vlan)

    @command("arp")
    def resolve_line(self: Any, line: str) -> None:
        """Resolves the next hops of ports."""
        parser = LineParser(self.resolve_line)
        parser.add_ports()
        parser.add_vlan("the VLAN; default: the port's")
        parser.add_argument("-r", "--retries", type=int, default=0, help="number of retries")
        args = parser.parse_line(line)
        if args is None:
            return
        ports = ports_of(self, args, self.get_resolvable_ports())
        if not ports:
            raise TRexError("arp: no port has a next hop; set one with set_l3_mode()")
        with _verbose_output(self):
            self.resolve(ports, args.retries, vlan=args.vlan)

    @command("ping")
    def ping_line(self: Any, line: str) -> None:
        """Pings an address, or the engine without arguments."""
        if not line.strip():
            print(f"the engine answers: {self.ping_rpc_server()['ts']:.3f} s")
            return
        parser = LineParser(self.ping_line)
        parser.add_port()
        parser.add_argument(
            "-d", dest="address", type=address, required=True, help="address to ping"
        )
        parser.add_argument(
            "-s", dest="size", type=int, default=64, help="bytes of a packet: 64 to 9216"
        )
        parser.add_vlan()
        parser.add_argument("-n", "--count", type=int, default=5, help="number of pings")
        args = parser.parse_line(line)
        if args is not None:
            with _verbose_output(self):
                self.ping_ip(args.port, args.address, args.size, args.count, vlan=args.vlan)

    @command("scan6")
    def scan6_line(self: Any, line: str) -> None:
        """Lists the IPv6 neighbours of ports."""
        parser = LineParser(self.scan6_line)
        parser.add_ports()
        parser.add_argument("-t", dest="timeout", type=int, default=3, help="seconds to wait")
        args = parser.parse_line(line)
        if args is not None:
            self.scan6(ports_of(self, args), args.timeout, verbose=True)

    @command("pkt")
    def pkt_line(self: Any, line: str) -> None:
        """Sends a packet given as a scapy expression."""
        parser = LineParser(self.pkt_line)
        parser.add_ports()
        parser.add_argument(
            "-n", "--dry", action="store_true", help="print the packet without sending it"
        )
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument(
            "-s", dest="packet", type=_packet, help="the packet, without spaces: Ether()/IP()"
        )
        group.add_argument("-l", "--layers", action="store_true", help="print all header classes")
        parser.add_argument(
            "--force", action="store_true", help="stop the traffic of the ports first"
        )
        args = parser.parse_line(line, has_quotes=False)
        if args is None:
            return
        if args.layers:
            for name, layer in sorted(_layers().items()):
                print(f"{name:<42} {layer.name}")
        elif args.dry:
            print(f"Packet (size: {len(args.packet)} bytes):")
            args.packet.show2()
            print("dry run: no packet was sent")
        else:
            self.push_packets(args.packet, ports_of(self, args), args.force)

    # Nodes.

    @command("ns")
    def ns_line(self: Any, line: str) -> None:
        """Manages nodes of ports: add, remove, show-node, show-nodes, show-counters,
        clear-counters, remove-all.
        """
        parser = LineParser(self.ns_line)
        names = ("add", "remove", "show-node")
        of_port = ("show-nodes", "show-counters", "clear-counters")
        subparsers = parser.commands(*names, *of_port, "remove-all")
        for sub in subparsers[:-1]:
            sub.add_port()
        for sub in subparsers[: len(names)]:
            sub.add_argument("--mac", type=mac, required=True, help="its Ethernet address")
        add = subparsers[0]
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
        args = parser.parse_line(line)
        if args is None:
            return
        if args.command is None:
            parser.print_help()
        elif args.command == "remove-all":
            self.namespace_remove_all()
        else:
            _print_nodes(args.command, _execute_commands(self, args))


def _node_commands(args: argparse.Namespace) -> NSCmds:
    commands = NSCmds()
    if args.command == "add":
        _add_node(commands, args)
    elif args.command == "remove":
        commands.remove_node(args.mac)
    elif args.command == "show-node":
        commands.get_nodes_info([args.mac])
    elif args.command == "show-nodes":
        commands.get_nodes()
    elif args.command == "clear-counters":
        commands.clear_counters()
    else:
        commands.counters_get_meta()
        commands.counters_get_values()
    return commands


def _add_node(commands: NSCmds, args: argparse.Namespace) -> None:
    is_shared = args.shared_ns is not None
    commands.add_node(args.mac, shared_ns=args.shared_ns)
    if is_shared:
        commands.set_ipv4(args.mac, args.src, subnet=args.subnet, shared_ns=True)
        if args.dst is not None:
            commands.set_dg(args.shared_ns, args.dst)
    else:
        commands.set_ipv4(args.mac, args.src, args.dst, args.subnet)
    if args.vlan:
        types = args.tpid and [_TYPES_OF_TAGS[name] for name in args.tpid]
        commands.set_vlan(args.mac, args.vlan, types)
    if args.auto_ipv6:
        commands.set_ipv6(args.mac, True, shared_ns=is_shared)


def _execute_commands(client: Any, args: argparse.Namespace) -> list[Any]:
    client.set_namespace_start(args.port, _node_commands(args))
    results: list[Any] = client.wait_for_async_results(args.port)
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
    for text, name in (
        ("Promiscuous", "is_prom_supported"),
        ("Multicast", None),
        ("Link status", "is_link_supported"),
        ("LED status", "is_led_supported"),
        ("Flow control", "is_fc_supported"),
    ):
        print(f"  {text + ':':<15}{'yes' if name is None else info[name]}")


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
    if before not in _VERBOSE_LEVELS:
        client.set_verbose(_VERBOSE_LEVELS[0])
    try:
        yield
    finally:
        client.set_verbose(before)
