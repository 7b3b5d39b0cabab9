"""Commands as TRex's console has them: a line of words, as in `start_line("-f http.py -m 10")`."""

from __future__ import annotations

import argparse
from typing import Any

from trex.addresses import ip2int
from trex.astf.profiles import ALL_PROFILE_ID, DEFAULT_PROFILE_ID
from trex.astf.tunnelling import RECORDS_MAX, Tunnel
from trex.astf.tunnels_topo import GTPU
from trex.errors import TRexError
from trex.lines import streams
from trex.lines.ports import PortLines
from trex.lines.service import add_modes, mode_of
from trex.lines.stats import OF_PORTS, print_ports, stats
from trex.lines.streams import StreamLines
from trex.lines.tables import sides
from trex.lines.tagged import TaggedLines
from trex.lines.words import HELP, Words, command, ipv4, ports_of, seconds, tunables


class Console(PortLines, StreamLines, TaggedLines):
    """Each takes the words behind the command's name, and does what the method of that name does.

    `-h` prints help. Raises `TRexError` where the words are wrong.
    """

    @command("acquire")
    def acquire_line(self: Any, line: str) -> bool:
        """Takes all ports."""
        words = Words(self.acquire_line)
        words.add_argument(
            "--force",
            action="store_true",
            help="also from other clients of this process",
        )
        given = words.of(line)
        if given is not None:
            self.acquire(force=given.force)
        return True

    @command("release")
    def release_line(self: Any, line: str) -> None:
        """Gives all ports back: clients and servers have them together."""
        words = Words(self.release_line)
        words.add_ports()
        given = words.of(line)
        if given is None:
            return
        mine = self.get_acquired_ports()
        if not set(ports_of(self, given)) & set(mine):
            raise TRexError(f"release: none of these ports is acquired; acquired: {mine or 'none'}")
        self.release()

    @command("reset")
    def reset_line(self: Any, line: str) -> bool:
        """Takes all ports, ends what is running, forgets profiles and counters."""
        words = Words(self.reset_line)
        words.add_argument(
            "-r", "--restart", action="store_true", help="sets the interfaces down and up"
        )
        given = words.of(line)
        if given is not None:
            self.reset(restart=given.restart)
        return True

    @command("start")
    def start_line(self: Any, line: str) -> bool:
        """Loads a profile and starts it."""
        words = Words(self.start_line)
        words.add_argument("-f", dest="file", required=True, help="a profile in Python or JSON")
        words.add_argument(
            "-m",
            dest="mult",
            type=float,
            default=1,
            help="what the flows a second are multiplied by",
        )
        words.add_argument(
            "-d",
            dest="duration",
            type=seconds,
            default=-1.0,
            help="after which no flow is made: 100, 10m, 1h; without end where it is left out",
        )
        words.add_argument(
            "--e_duration",
            type=seconds,
            default=0.0,
            help="all ends if no flow was established after so long",
        )
        words.add_argument(
            "--t_duration", type=seconds, default=0.0, help="how long flows may take to end then"
        )
        words.add_argument(
            "--dump_interval",
            type=seconds,
            default=0.0,
            help="from look to look at flows that are followed",
        )
        words.add_argument("--nc", action="store_true", help="drops what is open in the end")
        words.add_argument(
            "-l",
            dest="latency_pps",
            type=int,
            default=0,
            help="packets a second of latency traffic",
        )
        words.add_argument("--ipv6", action="store_true", help="over IPv6")
        which = words.add_mutually_exclusive_group()
        which.add_argument(
            "--clients",
            type=int,
            nargs="+",
            default=[],
            help="ports whose clients make flows; all where none are named",
        )
        which.add_argument("--servers-only", action="store_true", help="no clients make flows")
        words.add_argument("--pid", default=DEFAULT_PROFILE_ID, help="the profile's identifier")
        words.add_tunables()
        given = words.of(line)
        if given is None:
            return True
        mask = self._client_mask(given.clients)
        self.load_profile(given.file, tunables(given.tunables), pid_input=given.pid)
        if any(word in given.tunables for word in HELP):
            # All that the profile did was print its help.
            return True
        self.start(
            given.mult,
            given.duration,
            given.nc,
            False,
            given.latency_pps,
            given.ipv6,
            pid_input=given.pid,
            client_mask=0 if given.servers_only else mask,
            e_duration=given.e_duration,
            t_duration=given.t_duration,
            dump_interval=given.dump_interval,
        )
        return True

    @command("stop")
    def stop_line(self: Any, line: str) -> None:
        """Ends profiles."""
        words = Words(self.stop_line)
        words.add_argument(
            "--pid", nargs="+", default=[DEFAULT_PROFILE_ID], help="profiles by their identifiers"
        )
        words.add_argument("--remove", action="store_true", help="forgets them then")
        given = words.of(line)
        if given is not None:
            self.stop(False, given.pid, given.remove)

    @command("update")
    def update_line(self: Any, line: str) -> None:
        """Makes so many times the profiles' flows a second."""
        words = Words(self.update_line)
        words.add_argument(
            "-m",
            dest="mult",
            type=float,
            default=1,
            help="what the flows a second of the profile are multiplied by",
        )
        words.add_argument(
            "--pid", nargs="+", default=[DEFAULT_PROFILE_ID], help="profiles by their identifiers"
        )
        given = words.of(line)
        if given is not None:
            self.update(given.mult, given.pid)

    @command("service")
    def service_line(self: Any, line: str) -> bool:
        """Puts all ports into service mode, or with --off out of it."""
        words = Words(self.service_line)
        add_modes(words)
        given = words.of(line)
        if given is not None:
            self.set_service_mode(None, *mode_of(given))
        return True

    @command("latency")
    def latency_line(self: Any, line: str) -> bool:
        """Latency traffic: start, stop, update, show, hist, counters."""
        words = Words(self.latency_line)
        start, _, update, *_ = words.commands("start", "stop", "update", "show", "hist", "counters")
        for sub in (start, update):
            sub.add_argument(
                "-m", dest="mult", type=float, default=1, help="packets a second from each port"
            )
        start.add_argument(
            "--src", dest="src_ipv4", type=ipv4, required=True, help="the address of port 0"
        )
        start.add_argument(
            "--dst", dest="dst_ipv4", type=ipv4, required=True, help="the address of port 1"
        )
        start.add_argument(
            "--dual-ip",
            dest="dual_ipv4",
            type=ipv4,
            default="1.0.0.0",
            help="what is added for each further pair of ports",
        )
        start.add_argument(
            "-p",
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            default=[],
            help="ports that send; all where none are named",
        )
        given = words.of(line)
        if given is None:
            return True
        if given.command == "start":
            chosen = given.ports or list(self.links)
            mask = sum(1 << number for number in set(chosen))
            self.start_latency(given.mult, given.src_ipv4, given.dst_ipv4, mask, given.dual_ipv4)
        elif given.command == "stop":
            self.stop_latency()
        elif given.command == "update":
            self.update_latency(given.mult)
        else:
            self._print_latency(given.command or "show")
        return True

    @command("topo")
    def topo_line(self: Any, line: str) -> bool:
        """The topology: load, resolve, show, clear, save."""
        words = Words(self.topo_line)
        load, resolve, show, _, save = words.commands("load", "resolve", "show", "clear", "save")
        for sub in (load, save):
            sub.add_argument(
                "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
            )
        load.add_argument("-t", dest="tunables", default="", help="arguments of its get_topo()")
        for sub in (resolve, show):
            sub.add_argument(
                "-p",
                "--port",
                dest="ports",
                type=int,
                nargs="+",
                help="ports by number; all where none are named",
            )
        given = words.of(line)
        if given is None:
            return True
        if given.command == "load":
            self.topo_load(given.file, tunables(given.tunables.split()))
        elif given.command == "resolve":
            self.topo_resolve(given.ports)
        elif given.command == "clear":
            self.topo_clear()
        elif given.command == "save":
            self.topo_save(given.file)
        else:
            self.topo_show(getattr(given, "ports", None))
        return given.command in ("resolve", "clear", "save")

    @command("tunnels_topo")
    def tunnels_topo_line(self: Any, line: str) -> bool:
        """Tunnels: load, show, clear."""
        words = Words(self.tunnels_topo_line)
        load, show, _ = words.commands("load", "show", "clear")
        show.add_argument(
            "-p", "--port", dest="ports", type=int, nargs="+", help="no effect: ports share them"
        )
        load.add_argument(
            "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
        )
        load.add_argument("-t", dest="tunables", default="", help="arguments of its get_topo()")
        given = words.of(line)
        if given is not None and given.command == "load":
            self.tunnels_topo_load(given.file, tunables(given.tunables.split()))
        elif given is not None and given.command == "clear":
            self.tunnels_topo_clear()
        elif given is not None:
            self.tunnels_topo_show()
        return True

    @command("tunnel")
    def activate_tunnel_line(self: Any, line: str) -> None:
        """Tunnels on or off."""
        words = Words(self.activate_tunnel_line)
        words.add_argument(
            "--type", type=_tunnel_type, default=GTPU, help="the type of tunnels: gtpu"
        )
        words.add_argument("--off", action="store_true", help="switches them off")
        words.add_argument(
            "--loopback", action="store_true", help="the servers' ports have the other ends"
        )
        given = words.of(line)
        if given is not None:
            self.activate_tunnel(given.type, not given.off, given.loopback)

    @command("update_tunnel")
    def update_clients_tunnel(self: Any, line: str) -> None:
        """Gives the clients of a range tunnels, whose identifiers count."""
        words = Words(self.update_clients_tunnel)
        for name, told in (("--c_start", "the first client"), ("--c_end", "the last one")):
            words.add_argument(name, type=ipv4, required=True, help=told)
        words.add_argument(
            "--teid",
            type=int,
            required=True,
            help="the first client's identifier; those of others count on",
        )
        words.add_argument("--sport", type=int, required=True, help="the source port of UDP")
        words.add_argument("--src_ip", required=True, help="the source of the tunnel")
        words.add_argument("--dst_ip", required=True, help="its destination")
        words.add_argument("--ipv6", action="store_true", help="these are of IPv6")
        words.add_argument(
            "--type", type=_tunnel_type, default=GTPU, help="the type of tunnels: gtpu"
        )
        given = words.of(line)
        if given is None:
            return
        first, last = ip2int(given.c_start), ip2int(given.c_end)
        if first > last:
            raise TRexError(f"--c_end {given.c_end}: expected {given.c_start} or an address behind")
        if last - first >= RECORDS_MAX:
            raise TRexError(
                f"--c_end {given.c_end}: {last - first + 1:,} clients, expected {RECORDS_MAX:,} at "
                "most"
            )
        ends, version = (given.src_ip, given.dst_ip, given.sport), 6 if given.ipv6 else 4
        clients = range(first, last + 1)
        records = {it: Tunnel(*ends, given.teid + it - first, version) for it in clients}
        self.update_tunnel_client_record(records, given.type)

    @command("black_list")
    def black_list_line(self: Any, line: str) -> bool:
        """Addresses that no resets are sent to: set, remove, show, clear, get, upload."""
        words = Words(self.black_list_line)
        added, removed, clear, *_ = words.commands(
            "set", "remove", "clear", "show", "get", "upload"
        )
        for sub in (added, removed):
            sub.add_argument("--macs", nargs="+", default=[], help="Ethernet addresses")
            sub.add_argument("--ipv4", nargs="+", default=[], help="addresses of IPv4")
        for sub in (added, removed, clear):
            # There is one list: it is the engine's at once.
            sub.add_argument(
                "--upload", action="store_true", help="no effect: what is listed counts at once"
            )
        given = words.of(line)
        if given is None:
            return True
        if given.command in ("set", "remove"):
            if not given.macs and not given.ipv4:
                raise TRexError("black_list: give --macs or --ipv4")
            self._change_ignored(given.command == "set", given.macs, given.ipv4)
        elif given.command == "clear":
            self.set_ignored_macs_ips()
        elif given.command in (None, "show"):
            for name, addresses in self.get_ignored_macs_ips().items():
                print(f"{name}: {', '.join(addresses) or 'none'}")
        return True

    @command("template_group")
    def template_group_line(self: Any, line: str) -> None:
        """Template groups: names, stats."""
        words = Words(self.template_group_line)
        names, stats = words.commands("names", "stats")
        names.add_argument("--start", type=int, default=0, help="the first one to show, from 0")
        names.add_argument("--amount", type=int, default=50, help="how many to show")
        stats.add_argument("--name", required=True, help="the group")
        for sub in (names, stats):
            sub.add_argument("--pid", default=DEFAULT_PROFILE_ID, help="the profile's identifier")
        given = words.of(line)
        if given is None:
            return
        if given.command == "names":
            found = self.get_tg_names(given.pid)[given.start :][: given.amount]
            print(f"profile {given.pid}: {', '.join(found) or 'no template groups'}")
        elif given.command == "stats":
            counted = self.get_traffic_tg_stats(given.name, pid_input=given.pid)
            print(sides(counted[given.name]))
        else:
            words.print_help()

    @command("profiles")
    def profiles_line(self: Any, line: str) -> None:
        """What each profile is doing, and the profiles of streams on ports."""
        words = Words(self.profiles_line)
        words.add_ports()
        given = words.of(line)
        if given is None:
            return
        for pid, state in sorted(self.get_profiles_state().items()):
            print(f"{pid:<20} {state}")
        for number in self._numbers(ports_of(self, given)):
            for name, profile in self.links[number].profiles.items():
                doing = "active" if profile.is_active else f"{len(profile.streams)} streams"
                print(f"{f'port {number}.{name}':<20} {doing}")

    @command("clear")
    def clear_stats_line(self: Any, line: str) -> None:
        """Counts from now on."""
        words = Words(self.clear_stats_line)
        words.add_ports()
        given = words.of(line)
        if given is not None:
            self.clear_stats(ports_of(self, given), pid_input=ALL_PROFILE_ID)
            self.clear_dynamic_traffic_stats(clear_all=True)

    @command("stats")
    def show_stats_line(self: Any, line: str) -> None:
        """Counters: of all and of ports; -g, -a and --za (of flows), -l, --lh, --lc (latency)."""
        words = Words(self.show_stats_line)
        words.add_argument(
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            help="ports by number; all where none are named",
        )
        words.add_argument(
            "--pid", help="the profile whose flows are shown; all together where it is left out"
        )
        which = words.add_mutually_exclusive_group()
        for flags, what, told in (
            (["-a"], "flows", "of flows"),
            (["--za", "--az"], "all flows", "of flows, also those that are 0"),
            (["-l"], "show", "of latency traffic: delays"),
            (["--lh"], "hist", "of latency traffic: how often delays were so long"),
            (["--lc"], "counters", "of latency traffic: packets"),
            *OF_PORTS,
        ):
            which.add_argument(*flags, dest="what", action="store_const", const=what, help=told)
        given = words.of(line)
        if given is None:
            return
        if given.what in ("flows", "all flows"):
            is_sum, pid = given.pid is None, given.pid or DEFAULT_PROFILE_ID
            print(sides(self.get_traffic_stats(given.what == "flows", pid, is_sum)))
        elif given.what in ("show", "hist", "counters"):
            self._print_latency(given.what)
        else:
            print_ports(self, given.what, given.ports)

    @command("start_stl")
    def start_stl_line(self: Any, line: str) -> None:
        """Loads a profile of streams onto ports and starts it."""
        streams.start(self, Words(self.start_stl_line), line)

    @command("stop_stl")
    def stop_stl_line(self: Any, line: str) -> None:
        """Ends what ports send."""
        streams.stop(self, Words(self.stop_stl_line), line)

    @command("update_stl")
    def update_stl_line(self: Any, line: str) -> None:
        """Sends at other rates."""
        streams.update(self, Words(self.update_stl_line), line)

    @command("stats_stl")
    def stats_stl_line(self: Any, line: str) -> None:
        """Counters of streams: of all and of ports; -s (packet groups), -l and --lh (delays)."""
        stats(self, Words(self.stats_stl_line), line)

    # For the commands above.

    def _client_mask(self: Any, clients: list[int]) -> int:
        for number in clients:
            if number not in self.links or number % 2:
                raise TRexError(f"start: --clients {number}: there is no such port with clients")
        return sum(1 << number for number in set(clients)) if clients else 0xFFFFFFFF

    def _change_ignored(self: Any, is_added: bool, macs: list[str], ips: list[str]) -> None:
        lists = self.get_ignored_macs_ips()
        changed = []
        for name, given in (("macs", macs), ("ips", ips)):
            missing = [address for address in given if address not in lists[name]]
            if missing and not is_added:
                raise TRexError(f"black_list: {missing[0]} is not in the list")
            changed.append(
                [*lists[name], *missing]
                if is_added
                else [address for address in lists[name] if address not in given]
            )
        self.set_ignored_macs_ips(*changed)

    def _print_latency(self: Any, what: str) -> None:
        shown = {
            "show": self.latency_stats.to_table_main,
            "hist": self.latency_stats.histogram_to_table,
            "counters": self.latency_stats.counters_to_table,
        }
        print(shown[what](), flush=True)


def _tunnel_type(text: str) -> int:
    if text.lower() not in ("gtpu", str(GTPU)):
        raise argparse.ArgumentTypeError(f"{text!r} is no type of tunnels: expected gtpu")
    return GTPU
