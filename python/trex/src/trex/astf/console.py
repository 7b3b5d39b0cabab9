"""Commands of TRex's console: a line of words, as in `start_line("-f http.py -m 10")`."""

from __future__ import annotations

import argparse
from typing import Any

from trex.addresses import ip2int
from trex.astf.profile_commands import ALL_PROFILE_ID, DEFAULT_PROFILE_ID
from trex.astf.tunnel_commands import RECORDS_MAX, Tunnel
from trex.astf.tunnels_topo import GTPU
from trex.errors import TRexError
from trex.lines import streams
from trex.lines.parser import HELP, LineParser, command, ipv4, ports_of, seconds, tunables
from trex.lines.ports import PortLines
from trex.lines.service import add_modes, mode_of
from trex.lines.stats import PORT_SECTIONS, print_ports, stats
from trex.lines.streams import StreamLines
from trex.lines.tables import sides
from trex.lines.tagged_groups import TaggedLines


class Console(PortLines, StreamLines, TaggedLines):
    """Console commands that call the client method of the same name.

    `-h` prints help. Raises `TRexError` for invalid arguments.
    """

    @command("acquire")
    def acquire_line(self: Any, line: str) -> bool:
        """Acquires all ports."""
        parser = LineParser(self.acquire_line)
        parser.add_argument(
            "--force",
            action="store_true",
            help="acquire ports of other clients of this process",
        )
        args = parser.parse_line(line)
        if args is not None:
            self.acquire(force=args.force)
        return True

    @command("release")
    def release_line(self: Any, line: str) -> None:
        """Releases all ports, which clients and servers share."""
        parser = LineParser(self.release_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is None:
            return
        acquired = self.get_acquired_ports()
        if not set(ports_of(self, args)) & set(acquired):
            raise TRexError(
                f"release: none of these ports is acquired; acquired: {acquired or 'none'}"
            )
        self.release()

    @command("reset")
    def reset_line(self: Any, line: str) -> bool:
        """Acquires all ports, stops all traffic, and clears profiles and counters."""
        parser = LineParser(self.reset_line)
        parser.add_argument(
            "-r", "--restart", action="store_true", help="set the interfaces down and up"
        )
        args = parser.parse_line(line)
        if args is not None:
            self.reset(restart=args.restart)
        return True

    @command("start")
    def start_line(self: Any, line: str) -> bool:
        """Loads a profile and starts it."""
        parser = LineParser(self.start_line)
        parser.add_argument("-f", dest="file", required=True, help="a profile in Python or JSON")
        parser.add_argument(
            "-m",
            dest="mult",
            type=float,
            default=1,
            help="multiplier of the flows per second",
        )
        parser.add_argument(
            "-d",
            dest="duration",
            type=seconds,
            default=-1.0,
            help="time in which flows start: 100, 10m, 1h; default: endless",
        )
        parser.add_argument(
            "--e_duration",
            type=seconds,
            default=0.0,
            help="stop if no flow is established in this time",
        )
        parser.add_argument(
            "--t_duration", type=seconds, default=0.0, help="longest wait for the end of flows"
        )
        parser.add_argument(
            "--dump_interval",
            type=seconds,
            default=0.0,
            help="interval of samples of single flows",
        )
        parser.add_argument("--nc", action="store_true", help="drop open flows at the end")
        parser.add_argument(
            "-l",
            dest="latency_pps",
            type=int,
            default=0,
            help="latency traffic in packets per second",
        )
        parser.add_argument("--ipv6", action="store_true", help="over IPv6")
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            "--clients",
            type=int,
            nargs="+",
            default=[],
            help="ports whose clients open flows; default: all",
        )
        group.add_argument("--servers-only", action="store_true", help="run no clients")
        parser.add_argument("--pid", default=DEFAULT_PROFILE_ID, help="profile ID")
        parser.add_tunables()
        args = parser.parse_line(line)
        if args is None:
            return True
        mask = self._client_mask(args.clients)
        self.load_profile(args.file, tunables(args.tunables), pid_input=args.pid)
        if any(word in args.tunables for word in HELP):
            # The profile has only printed its help.
            return True
        self.start(
            args.mult,
            args.duration,
            args.nc,
            False,
            args.latency_pps,
            args.ipv6,
            pid_input=args.pid,
            client_mask=0 if args.servers_only else mask,
            e_duration=args.e_duration,
            t_duration=args.t_duration,
            dump_interval=args.dump_interval,
        )
        return True

    @command("stop")
    def stop_line(self: Any, line: str) -> None:
        """Stops profiles."""
        parser = LineParser(self.stop_line)
        parser.add_argument("--pid", nargs="+", default=[DEFAULT_PROFILE_ID], help="profile IDs")
        parser.add_argument("--remove", action="store_true", help="remove the profiles afterwards")
        args = parser.parse_line(line)
        if args is not None:
            self.stop(False, args.pid, args.remove)

    @command("update")
    def update_line(self: Any, line: str) -> None:
        """Changes the multiplier of profiles."""
        parser = LineParser(self.update_line)
        parser.add_argument(
            "-m",
            dest="mult",
            type=float,
            default=1,
            help="multiplier of the flows per second",
        )
        parser.add_argument("--pid", nargs="+", default=[DEFAULT_PROFILE_ID], help="profile IDs")
        args = parser.parse_line(line)
        if args is not None:
            self.update(args.mult, args.pid)

    @command("service")
    def service_line(self: Any, line: str) -> bool:
        """Switches service mode of all ports on, or off with --off."""
        parser = LineParser(self.service_line)
        add_modes(parser)
        args = parser.parse_line(line)
        if args is not None:
            self.set_service_mode(None, *mode_of(args))
        return True

    @command("latency")
    def latency_line(self: Any, line: str) -> bool:
        """Latency traffic: start, stop, update, show, hist, counters."""
        parser = LineParser(self.latency_line)
        start, _, update, *_ = parser.commands(
            "start", "stop", "update", "show", "hist", "counters"
        )
        for sub in (start, update):
            sub.add_argument(
                "-m", dest="mult", type=float, default=1, help="packets per second of each port"
            )
        start.add_argument(
            "--src", dest="src_ipv4", type=ipv4, required=True, help="address of port 0"
        )
        start.add_argument(
            "--dst", dest="dst_ipv4", type=ipv4, required=True, help="address of port 1"
        )
        start.add_argument(
            "--dual-ip",
            dest="dual_ipv4",
            type=ipv4,
            default="1.0.0.0",
            help="address offset for each further pair of ports",
        )
        start.add_argument(
            "-p",
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            default=[],
            help="sending ports; default: all",
        )
        args = parser.parse_line(line)
        if args is None:
            return True
        if args.command == "start":
            chosen = args.ports or list(self.links)
            mask = sum(1 << number for number in set(chosen))
            self.start_latency(args.mult, args.src_ipv4, args.dst_ipv4, mask, args.dual_ipv4)
        elif args.command == "stop":
            self.stop_latency()
        elif args.command == "update":
            self.update_latency(args.mult)
        else:
            self._print_latency(args.command or "show")
        return True

    @command("topo")
    def topo_line(self: Any, line: str) -> bool:
        """Topology: load, resolve, show, clear, save."""
        parser = LineParser(self.topo_line)
        load, resolve, show, _, save = parser.commands("load", "resolve", "show", "clear", "save")
        for sub in (load, save):
            sub.add_argument(
                "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
            )
        load.add_argument("-t", dest="tunables", default="", help="arguments of get_topo()")
        for sub in (resolve, show):
            sub.add_argument(
                "-p",
                "--port",
                dest="ports",
                type=int,
                nargs="+",
                help="port numbers; default: all",
            )
        args = parser.parse_line(line)
        if args is None:
            return True
        if args.command == "load":
            self.topo_load(args.file, tunables(args.tunables.split()))
        elif args.command == "resolve":
            self.topo_resolve(args.ports)
        elif args.command == "clear":
            self.topo_clear()
        elif args.command == "save":
            self.topo_save(args.file)
        else:
            self.topo_show(getattr(args, "ports", None))
        return args.command in ("resolve", "clear", "save")

    @command("tunnels_topo")
    def tunnels_topo_line(self: Any, line: str) -> bool:
        """Tunnels: load, show, clear."""
        parser = LineParser(self.tunnels_topo_line)
        load, show, _ = parser.commands("load", "show", "clear")
        show.add_argument(
            "-p",
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            help="no effect; all ports share the tunnels",
        )
        load.add_argument(
            "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
        )
        load.add_argument("-t", dest="tunables", default="", help="arguments of get_topo()")
        args = parser.parse_line(line)
        if args is not None and args.command == "load":
            self.tunnels_topo_load(args.file, tunables(args.tunables.split()))
        elif args is not None and args.command == "clear":
            self.tunnels_topo_clear()
        elif args is not None:
            self.tunnels_topo_show()
        return True

    @command("tunnel")
    def activate_tunnel_line(self: Any, line: str) -> None:
        """Switches tunnels on or off."""
        parser = LineParser(self.activate_tunnel_line)
        parser.add_argument(
            "--type", type=_tunnel_type, default=GTPU, help="the type of tunnels: gtpu"
        )
        parser.add_argument("--off", action="store_true", help="switch tunnels off")
        parser.add_argument(
            "--loopback", action="store_true", help="the servers' ports are the other endpoints"
        )
        args = parser.parse_line(line)
        if args is not None:
            self.activate_tunnel(args.type, not args.off, args.loopback)

    @command("update_tunnel")
    def update_clients_tunnel(self: Any, line: str) -> None:
        """Sets the tunnels of a range of clients, with ascending TEIDs."""
        parser = LineParser(self.update_clients_tunnel)
        for name, help_text in (("--c_start", "first client"), ("--c_end", "last client")):
            parser.add_argument(name, type=ipv4, required=True, help=help_text)
        parser.add_argument(
            "--teid",
            type=int,
            required=True,
            help="TEID of the first client; it increments for each next client",
        )
        parser.add_argument("--sport", type=int, required=True, help="UDP source port")
        parser.add_argument("--src_ip", required=True, help="source address of the tunnel")
        parser.add_argument("--dst_ip", required=True, help="destination address of the tunnel")
        parser.add_argument("--ipv6", action="store_true", help="the addresses are IPv6")
        parser.add_argument(
            "--type", type=_tunnel_type, default=GTPU, help="the type of tunnels: gtpu"
        )
        args = parser.parse_line(line)
        if args is None:
            return
        first, last = ip2int(args.c_start), ip2int(args.c_end)
        if first > last:
            raise TRexError(f"--c_end {args.c_end}: expected {args.c_start} or an address behind")
        if last - first >= RECORDS_MAX:
            raise TRexError(
                f"--c_end {args.c_end}: {last - first + 1:,} clients, expected {RECORDS_MAX:,} at "
                "most"
            )
        ends, version = (args.src_ip, args.dst_ip, args.sport), 6 if args.ipv6 else 4
        clients = range(first, last + 1)
        records = {it: Tunnel(*ends, args.teid + it - first, version) for it in clients}
        self.update_tunnel_client_record(records, args.type)

    @command("black_list")
    def black_list_line(self: Any, line: str) -> bool:
        """Addresses that get no resets: set, remove, show, clear, get, upload."""
        parser = LineParser(self.black_list_line)
        added, removed, clear, *_ = parser.commands(
            "set", "remove", "clear", "show", "get", "upload"
        )
        for sub in (added, removed):
            sub.add_argument("--macs", nargs="+", default=[], help="Ethernet addresses")
            sub.add_argument("--ipv4", nargs="+", default=[], help="addresses of IPv4")
        for sub in (added, removed, clear):
            # There is a single list, which the engine uses at once.
            sub.add_argument(
                "--upload", action="store_true", help="no effect; the list applies at once"
            )
        args = parser.parse_line(line)
        if args is None:
            return True
        if args.command in ("set", "remove"):
            if not args.macs and not args.ipv4:
                raise TRexError("black_list: give --macs or --ipv4")
            self._change_ignored(args.command == "set", args.macs, args.ipv4)
        elif args.command == "clear":
            self.set_ignored_macs_ips()
        elif args.command in (None, "show"):
            for name, addresses in self.get_ignored_macs_ips().items():
                print(f"{name}: {', '.join(addresses) or 'none'}")
        return True

    @command("template_group")
    def template_group_line(self: Any, line: str) -> None:
        """Template groups: names, stats."""
        parser = LineParser(self.template_group_line)
        names, stats = parser.commands("names", "stats")
        names.add_argument("--start", type=int, default=0, help="first group to show, from 0")
        names.add_argument("--amount", type=int, default=50, help="number of groups to show")
        stats.add_argument("--name", required=True, help="name of the group")
        for sub in (names, stats):
            sub.add_argument("--pid", default=DEFAULT_PROFILE_ID, help="profile ID")
        args = parser.parse_line(line)
        if args is None:
            return
        if args.command == "names":
            found = self.get_tg_names(args.pid)[args.start :][: args.amount]
            print(f"profile {args.pid}: {', '.join(found) or 'no template groups'}")
        elif args.command == "stats":
            counted = self.get_traffic_tg_stats(args.name, pid_input=args.pid)
            print(sides(counted[args.name]))
        else:
            parser.print_help()

    @command("profiles")
    def profiles_line(self: Any, line: str) -> None:
        """Prints the state of each profile, and the profiles of streams on ports."""
        parser = LineParser(self.profiles_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is None:
            return
        for pid, state in sorted(self.get_profiles_state().items()):
            print(f"{pid:<20} {state}")
        for number in self._numbers(ports_of(self, args)):
            for name, profile in self.links[number].profiles.items():
                status = "active" if profile.is_active else f"{len(profile.streams)} streams"
                print(f"{f'port {number}.{name}':<20} {status}")

    @command("clear")
    def clear_stats_line(self: Any, line: str) -> None:
        """Clears the counters."""
        parser = LineParser(self.clear_stats_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is not None:
            self.clear_stats(ports_of(self, args), pid_input=ALL_PROFILE_ID)
            self.clear_dynamic_traffic_stats(clear_all=True)

    @command("stats")
    def show_stats_line(self: Any, line: str) -> None:
        """Prints counters of all ports and each port; -g, -a and --za (flows), -l, --lh, --lc
        (latency).
        """
        parser = LineParser(self.show_stats_line)
        parser.add_argument(
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            help="port numbers; default: all",
        )
        parser.add_argument(
            "--pid", help="profile ID for counters of flows; default: the sum of all"
        )
        group = parser.add_mutually_exclusive_group()
        for flags, kind, help_text in (
            (["-a"], "flows", "counters of flows"),
            (["--za", "--az"], "all flows", "counters of flows, including zeros"),
            (["-l"], "show", "latency traffic: delays"),
            (["--lh"], "hist", "latency traffic: histogram of delays"),
            (["--lc"], "counters", "latency traffic: packets"),
            *PORT_SECTIONS,
        ):
            group.add_argument(
                *flags, dest="section", action="store_const", const=kind, help=help_text
            )
        args = parser.parse_line(line)
        if args is None:
            return
        if args.section in ("flows", "all flows"):
            is_sum, pid = args.pid is None, args.pid or DEFAULT_PROFILE_ID
            print(sides(self.get_traffic_stats(args.section == "flows", pid, is_sum)))
        elif args.section in ("show", "hist", "counters"):
            self._print_latency(args.section)
        else:
            print_ports(self, args.section, args.ports)

    @command("start_stl")
    def start_stl_line(self: Any, line: str) -> None:
        """Loads a profile of streams onto ports and starts it."""
        streams.start(self, LineParser(self.start_stl_line), line)

    @command("stop_stl")
    def stop_stl_line(self: Any, line: str) -> None:
        """Stops the traffic of ports."""
        streams.stop(self, LineParser(self.stop_stl_line), line)

    @command("update_stl")
    def update_stl_line(self: Any, line: str) -> None:
        """Changes the rates of ports."""
        streams.update(self, LineParser(self.update_stl_line), line)

    @command("stats_stl")
    def stats_stl_line(self: Any, line: str) -> None:
        """Prints counters of streams: all ports and each port; -s (packet groups), -l and --lh
        (delays).
        """
        stats(self, LineParser(self.stats_stl_line), line)

    # Internal methods.

    def _client_mask(self: Any, clients: list[int]) -> int:
        for number in clients:
            if number not in self.links or number % 2:
                raise TRexError(f"start: --clients {number}: there is no such port with clients")
        return sum(1 << number for number in set(clients)) if clients else 0xFFFFFFFF

    def _change_ignored(self: Any, is_added: bool, macs: list[str], ips: list[str]) -> None:
        lists = self.get_ignored_macs_ips()
        changed = []
        for name, addresses in (("macs", macs), ("ips", ips)):
            missing = [address for address in addresses if address not in lists[name]]
            if missing and not is_added:
                raise TRexError(f"black_list: {missing[0]} is not listed")
            changed.append(
                [*lists[name], *missing]
                if is_added
                else [address for address in lists[name] if address not in addresses]
            )
        self.set_ignored_macs_ips(*changed)

    def _print_latency(self: Any, kind: str) -> None:
        shown = {
            "show": self.latency_stats.to_table_main,
            "hist": self.latency_stats.histogram_to_table,
            "counters": self.latency_stats.counters_to_table,
        }
        print(shown[kind](), flush=True)


def _tunnel_type(text: str) -> int:
    if text.lower() not in ("gtpu", str(GTPU)):
        raise argparse.ArgumentTypeError(f"{text!r} is no type of tunnels: expected gtpu")
    return GTPU
