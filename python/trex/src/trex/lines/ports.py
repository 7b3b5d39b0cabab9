"""Commands about the session, ports, their addresses and their nodes."""

from __future__ import annotations

import argparse
import pprint
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trex.client.ns_commands import CNsStats, NSCmds
from trex.errors import TRexError
from trex.lines.words import Words, address, command, ipv4, ipv6, mac, ports_of, tunables

_ON = {"on": True, "off": False}
_UP = {"up": True, "down": False}
_FLOW_CONTROL = {"none": 0, "tx": 1, "rx": 2, "full": 3}
_TYPES_OF_TAGS = {"0x8100": 0x8100, "0x88A8": 0x88A8}
_SUBNETS = range(1, 33)
_ALOUD = ("info", "debug")


class PortLines:
    """Each takes the words behind the command's name, and does what the method of that name does.

    `-h` prints help. Raises `TRexError` where the words are wrong.
    """

    # The session.

    @command("connect")
    def connect_line(self: Any, line: str) -> None:
        """Opens the ports, and takes them."""
        words = Words(self.connect_line)
        words.add_argument("--force", action="store_true", help="also from other clients here")
        words.add_argument("-r", dest="readonly", action="store_true", help="takes no ports")
        given = words.of(line)
        if given is None:
            return
        self.connect()
        if not given.readonly:
            self.acquire(force=given.force)

    @command("disconnect")
    def disconnect_line(self: Any, line: str) -> None:
        """Ends the session, and what is running."""
        if Words(self.disconnect_line).of(line) is not None:
            self.disconnect()

    @command("shutdown")
    def shutdown_line(self: Any, line: str) -> None:
        """Ends the session, which is all that there is of a server."""
        words = Words(self.shutdown_line)
        words.add_argument("--force", action="store_true", help="also while something is sent")
        given = words.of(line)
        if given is not None:
            self.server_shutdown(force=given.force)

    @command("global_cfg")
    def global_cfg_line(self: Any, line: str) -> None:
        """Sets parameters, and prints them."""
        words = Words(self.global_cfg_line)
        words.add_argument(
            "-t", dest="tunables", nargs="+", default=[], help="what to set: NAME=VALUE"
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
        """What has happened."""
        words = Words(self.get_events_line)
        words.add_argument("-c", "--clear", action="store_true", help="forgets it then")
        words.add_argument("-i", "--info", action="store_true", help="no warnings, without -w")
        words.add_argument("-w", "--warn", action="store_true", help="warnings alone, without -i")
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
        """Which acquired port is connected to which."""
        if Words(self.map_line).of(line) is None:
            return
        ports = self.get_acquired_ports()
        if not ports:
            raise TRexError("map: no port is acquired: acquire() or reset() takes them")
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
        """Attributes of ports: sets them, or prints them where nothing is to be set."""
        words = Words(self.set_port_attr_line)
        words.add_ports()
        for flag, told, choices in (
            ("--prom", "whether ports hear every frame", _ON),
            ("--mult", "whether ports hear frames to every group", _ON),
            ("--link", "the system's to set: says how", _UP),
            ("--led", "the system's to set: says how", _ON),
            ("--fc", "flow control, the system's to set: says how", _FLOW_CONTROL),
        ):
            words.add_argument(flag, choices=choices, help=told)
        words.add_argument(
            "--vxlan-fs", dest="vxlan", type=int, nargs="*", help="ports of VXLAN: is not there"
        )
        words.add_argument("--supp", action="store_true", help="prints which can be set")
        given = words.of(line)
        if given is None:
            return
        ports = ports_of(self, given)
        if not ports:
            raise TRexError("portattr: no port is acquired: acquire() or reset() takes them")
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
        """Sends a port's frames to an Ethernet address."""
        words = Words(self.set_l2_mode_line)
        words.add_port()
        words.add_argument(
            "--dst", type=mac, required=True, help="the address, where the port chooses it"
        )
        given = words.of(line)
        if given is not None:
            self.set_l2_mode(given.port, given.dst)

    @command("l3")
    def set_l3_mode_line(self: Any, line: str) -> None:
        """Gives a port an address, and sends its frames to the next hop of another one."""
        words = Words(self.set_l3_mode_line)
        words.add_port()
        words.add_argument("--src", type=address, required=True, help="the port's address")
        words.add_argument("--dst", type=address, required=True, help="the next hop's")
        words.add_vlan()
        given = words.of(line)
        if given is not None:
            self.set_l3_mode(given.port, given.src, given.dst, given.vlan)

    @command("ipv6")
    def conf_ipv6_line(self: Any, line: str) -> None:
        """Gives a port an IPv6 address, or takes it away."""
        words = Words(self.conf_ipv6_line)
        words.add_port()
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument("--off", action="store_true", help="takes it away")
        which.add_argument(
            "--auto-ipv6", action="store_true", help="of its link, and as routers tell"
        )
        which.add_argument("-s", "--src", type=ipv6, help="the address")
        given = words.of(line)
        if given is not None:
            self.conf_ipv6(given.port, not given.off, given.src)

    @command("vlan")
    def set_vlan_line(self: Any, line: str) -> None:
        """The VLAN in which ports ask, answer and ping, and clients are."""
        words = Words(self.set_vlan_line)
        words.add_ports()
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--vlan", type=int, nargs="*", help="the VLAN, or the outer and the inner one"
        )
        which.add_argument("-c", action="store_true", help="none")
        given = words.of(line)
        if given is not None:
            # With -c there is none.
            self.set_vlan(ports_of(self, given), given.vlan)

    @command("arp")
    def resolve_line(self: Any, line: str) -> None:
        """Asks for the next hops of ports."""
        words = Words(self.resolve_line)
        words.add_ports()
        words.add_vlan("the VLAN to ask in; the port's where nothing is said")
        words.add_argument("-r", "--retries", type=int, default=0, help="how often to ask again")
        given = words.of(line)
        if given is None:
            return
        ports = ports_of(self, given, self.get_resolvable_ports())
        if not ports:
            raise TRexError("arp: no port has a next hop: set_l3_mode() gives it one")
        with _aloud(self):
            self.resolve(ports, given.retries, vlan=given.vlan)

    @command("ping")
    def ping_line(self: Any, line: str) -> None:
        """Pings an address; without any words the engine."""
        if not line.strip():
            print(f"the engine answers: {self.ping_rpc_server()['ts']:.3f} s")
            return
        words = Words(self.ping_line)
        words.add_port()
        words.add_argument("-d", dest="address", type=address, required=True, help="whom to ping")
        words.add_argument(
            "-s", dest="size", type=int, default=64, help="bytes of a packet: 64 to 9216"
        )
        words.add_vlan()
        words.add_argument("-n", "--count", type=int, default=5, help="how often")
        given = words.of(line)
        if given is not None:
            with _aloud(self):
                self.ping_ip(given.port, given.address, given.size, given.count, vlan=given.vlan)

    @command("scan6")
    def scan6_line(self: Any, line: str) -> None:
        """The IPv6 neighbours of ports."""
        words = Words(self.scan6_line)
        words.add_ports()
        words.add_argument("-t", dest="timeout", type=int, default=3, help="for how many seconds")
        given = words.of(line)
        if given is not None:
            self.scan6(ports_of(self, given), given.timeout, verbose=True)

    @command("pkt")
    def pkt_line(self: Any, line: str) -> None:
        """Sends a packet, which is written as scapy has it."""
        words = Words(self.pkt_line)
        words.add_ports()
        words.add_argument("-n", "--dry", action="store_true", help="prints it, and sends nothing")
        which = words.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "-s", dest="packet", type=_packet, help="the packet, without spaces: Ether()/IP()"
        )
        which.add_argument("-l", "--layers", action="store_true", help="prints all headers")
        words.add_argument("--force", action="store_true", help="ends what ports send already")
        given = words.of(line, has_quotes=False)
        if given is None:
            return
        if given.layers:
            for name, layer in sorted(_layers().items()):
                print(f"{name:<42} {layer.name}")
        elif given.dry:
            print(f"Packet (size: {len(given.packet)} bytes):")
            given.packet.show2()
            print("dry run: nothing was sent")
        else:
            self.push_packets(given.packet, ports_of(self, given), given.force)

    # Nodes.

    @command("ns")
    def ns_line(self: Any, line: str) -> None:
        """Nodes of ports: add, remove, show-node, show-nodes, show-counters, clear-counters,
        remove-all."""
        words = Words(self.ns_line)
        named = ("add", "remove", "show-node")
        of_port = ("show-nodes", "show-counters", "clear-counters")
        made = words.commands(*named, *of_port, "remove-all")
        for sub in made[:-1]:
            sub.add_port()
        for sub in made[: len(named)]:
            sub.add_argument("--mac", type=mac, required=True, help="its Ethernet address")
        add = made[0]
        add.add_vlan()
        add.add_argument(
            "--tpid", nargs="*", choices=_TYPES_OF_TAGS, help="the types of the VLANs' tags"
        )
        add.add_argument("--src", type=ipv4, required=True, help="its address")
        add.add_argument("--dst", type=ipv4, help="its default gateway")
        add.add_argument(
            "--auto-ipv6", action="store_true", help="with IPv6 as its link and routers tell"
        )
        add.add_argument("--shared-ns", help="the shared namespace that it is in")
        add.add_argument(
            "--subnet",
            type=int,
            choices=_SUBNETS,
            metavar="1-32",
            help="the length of that network's prefix",
        )
        given = words.of(line)
        if given is None:
            return
        if given.command is None:
            words.print_help()
        elif given.command == "remove-all":
            self.namespace_remove_all()
        else:
            _print_nodes(given.command, _carried_out(self, given))


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


def _carried_out(client: Any, given: argparse.Namespace) -> list[Any]:
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
    """The headers that scapy knows, by name."""
    import scapy.all
    import scapy.layers.dhcp
    from scapy.packet import Packet

    names = {**vars(scapy.all), **vars(scapy.layers.dhcp)}
    return {k: v for k, v in names.items() if isinstance(v, type) and issubclass(v, Packet)}


def _packet(text: str) -> Any:
    try:
        # It is Python, as whoever calls this writes it.
        packet = eval(text, {"__builtins__": {}}, _layers())
        len(packet)
        return packet
    except Exception as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no packet of scapy's: {error}") from error


@contextmanager
def _aloud(client: Any) -> Iterator[None]:
    """Prints what happens meanwhile."""
    before = client.get_verbose()
    if before not in _ALOUD:
        client.set_verbose(_ALOUD[0])
    try:
        yield
    finally:
        client.set_verbose(before)
