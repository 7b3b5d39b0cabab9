"""Commands as TRex's console has them: a line of words, as in `start_line("-f http.py -m 10")`."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from typing import Any, NoReturn

from trex.addresses import ip2int, is_valid_ipv4
from trex.astf.counters import SECTIONS
from trex.astf.profiles import DEFAULT_PROFILE_ID
from trex.astf.tunnelling import RECORDS_MAX, Tunnel
from trex.astf.tunnels_topo import GTPU
from trex.errors import TRexError
from trex.tunables import keywords_of

_HELP = ("-h", "--help")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([mh]?)")
_SECONDS = {"": 1.0, "m": 60.0, "h": 3600.0}
_SERVICE_FILTERS = ("bgp", "tran", "dhcp", "mdns", "emu", "no-tcp-udp", "all")


class Console:
    """Each takes the words behind the command's name, and does what the method of that name does.

    `-h` prints help. Raises `TRexError` where the words are wrong.
    """

    def acquire_line(self: Any, line: str) -> bool:
        """Takes all ports."""
        words = _Words("acquire", self.acquire_line)
        words.add_argument(
            "--force",
            action="store_true",
            help="ends tagged packet groups",
        )
        given = words.of(line)
        if given is not None:
            self.acquire(force=given.force)
        return True

    def reset_line(self: Any, line: str) -> bool:
        """Takes all ports, ends what is running, forgets profiles and counters."""
        words = _Words("reset", self.reset_line)
        words.add_argument(
            "-r", "--restart", action="store_true", help="sets the interfaces down and up"
        )
        given = words.of(line)
        if given is not None:
            self.reset(restart=given.restart)
        return True

    def start_line(self: Any, line: str) -> bool:
        """Loads a profile and starts it."""
        words = _Words("start", self.start_line)
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
            type=_seconds,
            default=-1.0,
            help="after which no flow is made: 100, 10m, 1h; without end where it is left out",
        )
        words.add_argument(
            "--e_duration",
            type=_seconds,
            default=0.0,
            help="all ends if no flow was established after so long",
        )
        words.add_argument(
            "--t_duration", type=_seconds, default=0.0, help="how long flows may take to end then"
        )
        words.add_argument(
            "--dump_interval",
            type=_seconds,
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
        _add_tunables(words)
        given = words.of(line)
        if given is None:
            return True
        mask = self._client_mask(given.clients)
        self.load_profile(given.file, _tunables(given.tunables), pid_input=given.pid)
        if any(word in given.tunables for word in _HELP):
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

    def stop_line(self: Any, line: str) -> None:
        """Ends profiles."""
        words = _Words("stop", self.stop_line)
        words.add_argument(
            "--pid", nargs="+", default=[DEFAULT_PROFILE_ID], help="profiles by their identifiers"
        )
        words.add_argument("--remove", action="store_true", help="forgets them then")
        given = words.of(line)
        if given is not None:
            self.stop(False, given.pid, given.remove)

    def update_line(self: Any, line: str) -> None:
        """Makes so many times the profiles' flows a second."""
        words = _Words("update", self.update_line)
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

    def service_line(self: Any, line: str) -> bool:
        """Puts all ports into service mode, or with --off out of it."""
        words = _Words("service", self.service_line)
        words.add_argument("--off", action="store_true", help="out of service mode")
        for name in _SERVICE_FILTERS:
            words.add_argument(f"--{name}", action="store_true", help="in filtered service mode")
        given = words.of(line)
        if given is not None:
            is_filtered = any(getattr(given, name.replace("-", "_")) for name in _SERVICE_FILTERS)
            self.set_service_mode(enabled=not given.off, filtered=is_filtered)
        return True

    def latency_line(self: Any, line: str) -> bool:
        """Latency traffic: start, stop, update, show, hist, counters."""
        words = _Words("latency", self.latency_line)
        start, _, update, *_ = words.commands("start", "stop", "update", "show", "hist", "counters")
        for command in (start, update):
            command.add_argument(
                "-m", dest="mult", type=float, default=1, help="packets a second from each port"
            )
        start.add_argument(
            "--src", dest="src_ipv4", type=_ipv4, required=True, help="the address of port 0"
        )
        start.add_argument(
            "--dst", dest="dst_ipv4", type=_ipv4, required=True, help="the address of port 1"
        )
        start.add_argument(
            "--dual-ip",
            dest="dual_ipv4",
            type=_ipv4,
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
            chosen = given.ports or list(self.ports)
            mask = sum(1 << number for number in set(chosen))
            self.start_latency(given.mult, given.src_ipv4, given.dst_ipv4, mask, given.dual_ipv4)
        elif given.command == "stop":
            self.stop_latency()
        elif given.command == "update":
            self.update_latency(given.mult)
        else:
            _print_latency(self.get_latency_stats(), given.command or "show")
        return True

    def topo_line(self: Any, line: str) -> bool:
        """The topology: load, resolve, show, clear, save."""
        words = _Words("topo", self.topo_line)
        load, resolve, show, _, save = words.commands("load", "resolve", "show", "clear", "save")
        for command in (load, save):
            command.add_argument(
                "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
            )
        load.add_argument("-t", dest="tunables", default="", help="arguments of its get_topo()")
        for command in (resolve, show):
            command.add_argument(
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
            self.topo_load(given.file, _tunables(given.tunables.split()))
        elif given.command == "resolve":
            self.topo_resolve(given.ports)
        elif given.command == "clear":
            self.topo_clear()
        elif given.command == "save":
            self.topo_save(given.file)
        else:
            self.topo_show(getattr(given, "ports", None))
        return given.command in ("resolve", "clear", "save")

    def tunnels_topo_line(self: Any, line: str) -> bool:
        """Tunnels: load, show, clear."""
        words = _Words("tunnels_topo", self.tunnels_topo_line)
        load, *_ = words.commands("load", "show", "clear")
        load.add_argument(
            "-f", dest="file", required=True, help="a topology in Python, JSON or YAML"
        )
        load.add_argument("-t", dest="tunables", default="", help="arguments of its get_topo()")
        given = words.of(line)
        if given is not None and given.command == "load":
            self.tunnels_topo_load(given.file, _tunables(given.tunables.split()))
        elif given is not None and given.command == "clear":
            self.tunnels_topo_clear()
        elif given is not None:
            self.tunnels_topo_show()
        return True

    def activate_tunnel_line(self: Any, line: str) -> None:
        """Tunnels on or off."""
        words = _Words("tunnel", self.activate_tunnel_line)
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

    def update_clients_tunnel(self: Any, line: str) -> None:
        """Gives the clients of a range tunnels, whose identifiers count."""
        words = _Words("update_tunnel", self.update_clients_tunnel)
        for name, told in (("--c_start", "the first client"), ("--c_end", "the last one")):
            words.add_argument(name, type=_ipv4, required=True, help=told)
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

    def black_list_line(self: Any, line: str) -> bool:
        """Addresses that no resets are sent to: set, remove, show, clear, get, upload."""
        words = _Words("black_list", self.black_list_line)
        added, removed, clear, *_ = words.commands(
            "set", "remove", "clear", "show", "get", "upload"
        )
        for command in (added, removed):
            command.add_argument("--macs", nargs="+", default=[], help="Ethernet addresses")
            command.add_argument("--ipv4", nargs="+", default=[], help="addresses of IPv4")
        for command in (added, removed, clear):
            # There is one list: it is the engine's at once.
            command.add_argument(
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

    def template_group_line(self: Any, line: str) -> None:
        """Template groups: names, stats."""
        words = _Words("template_group", self.template_group_line)
        names, stats = words.commands("names", "stats")
        names.add_argument("--start", type=int, default=0, help="the first one to show, from 0")
        names.add_argument("--amount", type=int, default=50, help="how many to show")
        stats.add_argument("--name", required=True, help="the group")
        for command in (names, stats):
            command.add_argument(
                "--pid", default=DEFAULT_PROFILE_ID, help="the profile's identifier"
            )
        given = words.of(line)
        if given is None:
            return
        if given.command == "names":
            found = self.get_tg_names(given.pid)[given.start :][: given.amount]
            print(f"profile {given.pid}: {', '.join(found) or 'no template groups'}")
        elif given.command == "stats":
            counted = self.get_traffic_tg_stats(given.name, pid_input=given.pid)
            _print_sections(counted[given.name])
        else:
            words.print_help()

    def profiles_line(self: Any, line: str) -> None:
        """What each profile is doing."""
        if _Words("profiles", self.profiles_line).of(line) is not None:
            for pid, state in sorted(self.get_profiles_state().items()):
                print(f"{pid:<20} {state}")

    def clear_stats_line(self: Any, line: str) -> None:
        """Counts from now on."""
        words = _Words("clear", self.clear_stats_line)
        which = words.add_mutually_exclusive_group()
        which.add_argument(
            "-p",
            "--port",
            dest="ports",
            type=int,
            nargs="+",
            help="ports by number; all where none are named",
        )
        which.add_argument("-a", dest="all_ports", action="store_true", help="all ports")
        given = words.of(line)
        if given is not None:
            self.clear_stats(given.ports, pid_input="*")

    def show_stats_line(self: Any, line: str) -> None:
        """Counters: of all and of ports; -g, -a and --za (of flows), -l, --lh, --lc (latency)."""
        words = _Words("stats", self.show_stats_line)
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
            (["-g"], "global", "of all ports together"),
            (["-p"], "ports", "of ports"),
            (["--ps"], "status", "what ports are"),
            (["-a"], "flows", "of flows"),
            (["--za", "--az"], "all flows", "of flows, also those that are 0"),
            (["-l"], "show", "of latency traffic: delays"),
            (["--lh"], "hist", "of latency traffic: how often delays were so long"),
            (["--lc"], "counters", "of latency traffic: packets"),
            (["-c"], "cpu", "the load of CPUs"),
            (["-x"], "kernel", "the kernel's, of ports"),
            (["--xz", "--zx"], "all kernel", "the kernel's, also those that are 0"),
        ):
            which.add_argument(*flags, dest="what", action="store_const", const=what, help=told)
        given = words.of(line)
        if given is None:
            return
        if given.what in ("flows", "all flows"):
            is_sum, pid = given.pid is None, given.pid or DEFAULT_PROFILE_ID
            _print_sections(self.get_traffic_stats(given.what == "flows", pid, is_sum))
        elif given.what in ("show", "hist", "counters"):
            _print_latency(self.get_latency_stats(), given.what)
        else:
            self._print_ports(given.what, given.ports)

    # Of streams, beside profiles.

    def start_stl_line(self: Any, line: str) -> None:
        """Loads a profile of streams onto ports and starts it."""
        words = _stream_words("start_stl", self.start_stl_line)
        words.add_argument("-f", dest="file", required=True, help="a profile of streams")
        words.add_argument("-m", dest="mult", default="1", help="the load: 2, 50%%, 10kpps, 1gbps")
        words.add_argument(
            "-d", dest="duration", type=_seconds, default=-1.0, help="how long: 100, 10m, 1h"
        )
        words.add_argument("--force", action="store_true", help="ends what ports send already")
        words.add_argument(
            "--total", action="store_true", help="the load is that of all ports together"
        )
        _add_tunables(words)
        given = words.of(line)
        if given is None:
            return
        ports = given.ports or self.get_acquired_ports()
        self.clear_stl_profiles(ports)
        for port in ports:
            tunables = {"direction": port % 2, "port_id": port, **_tunables(given.tunables)}
            self.add_profile(given.file, port, **tunables)
        self.start_stl(ports, given.mult, given.force, given.duration, given.total)

    def stop_stl_line(self: Any, line: str) -> None:
        """Ends what ports send."""
        given = _stream_words("stop_stl", self.stop_stl_line).of(line)
        if given is not None:
            self.stop_stl(given.ports)

    def update_stl_line(self: Any, line: str) -> None:
        """Sends at other rates."""
        words = _stream_words("update_stl", self.update_stl_line)
        words.add_argument("-m", dest="mult", default="1", help="the load: 2, 50%%, 10kpps, 1gbps")
        words.add_argument("--total", action="store_true", help="it is that of all ports together")
        words.add_argument("--force", action="store_true", help="no effect")
        given = words.of(line)
        if given is not None:
            self.update_stl(given.ports, given.mult, given.total, given.force)

    def stats_stl_line(self: Any, line: str) -> None:
        """Counters of ports."""
        given = _stream_words("stats_stl", self.stats_stl_line).of(line)
        if given is not None:
            self._print_ports("ports", given.ports)

    # For the commands above.

    def _client_mask(self: Any, clients: list[int]) -> int:
        for number in clients:
            if number not in self.ports or number % 2:
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

    def _print_ports(self: Any, what: str | None, ports: list[int] | None) -> None:
        stats = self.get_stats(ports)
        chosen = [number for number in stats if isinstance(number, int)]
        if what in (None, "global"):
            _print_values("all ports", stats["global"])
        if what in (None, "ports"):
            for number in chosen:
                _print_values(f"port {number}", stats[number])
        if what == "status":
            for info in self.get_port_info(chosen):
                _print_values(f"port {info['index']}", info)
        if what == "cpu":
            for one in self.get_util_stats()["cpu"]:
                print(f"port {one['ports'][0]}: {one['history'][0]} %")
        if what in ("kernel", "all kernel"):
            for number in chosen:
                counted = self.get_xstats(number)
                kept = {k: v for k, v in counted.items() if v or what == "all kernel"}
                _print_values(f"port {number}", kept)


class _Words(argparse.ArgumentParser):
    """The words of a command."""

    def __init__(self, command: str, method: Any) -> None:
        super().__init__(prog=command, description=method.__doc__)

    def commands(self, *names: str) -> list[argparse.ArgumentParser]:
        """Commands of its own, of which one may be given."""
        chosen = self.add_subparsers(dest="command", parser_class=_Sub)
        return [chosen.add_parser(name) for name in names]

    def of(self, line: str) -> argparse.Namespace | None:
        """What a line says; None if it asks for help, which was printed then."""
        try:
            return self.parse_args(shlex.split(line))
        except ValueError as error:
            raise TRexError(f"{self.prog}: {line!r}: {error}") from error
        except SystemExit:
            return None

    def error(self, message: str) -> NoReturn:
        _refuse(self, message)


class _Sub(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _refuse(self, message)


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    raise TRexError(f"{parser.prog}: {message}\n{parser.format_usage().strip()}")


def _stream_words(command: str, method: Any) -> _Words:
    words = _Words(command, method)
    words.add_argument(
        "-p",
        "--port",
        dest="ports",
        type=int,
        nargs="+",
        help="ports by number; all where none are named",
    )
    return words


def _add_tunables(words: argparse.ArgumentParser) -> None:
    words.add_argument(
        "-t",
        "--tunables",
        nargs=argparse.REMAINDER,
        default=[],
        help="last: the profile's own arguments",
    )


def _tunables(words: list[str]) -> dict[str, Any]:
    try:
        return keywords_of(words)
    except SystemExit as error:
        raise TRexError(str(error)) from error


def _seconds(text: str) -> float:
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 100, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def _ipv4(text: str) -> str:
    if not is_valid_ipv4(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no IPv4 address")
    return text


def _tunnel_type(text: str) -> int:
    if text.lower() not in ("gtpu", str(GTPU)):
        raise argparse.ArgumentTypeError(f"{text!r} is no type of tunnels: expected gtpu")
    return GTPU


def _print_values(title: str, values: dict[str, Any]) -> None:
    print(title)
    for name, value in values.items():
        print(f"  {name:<24} {_number(value)}")


def _print_sections(sections: dict[str, dict[str, float]]) -> None:
    """Counters of clients beside those of servers."""
    print(f"{'':<28} {'client':>20} {'server':>20}")
    for name in dict.fromkeys(name for side in SECTIONS for name in sections[side]):
        values = [sections[side].get(name, 0) for side in SECTIONS]
        print(f"{name:<28} " + " ".join(f"{_number(value):>20}" for value in values))


def _number(value: Any) -> Any:
    """A number with its thousands apart, and three digits behind the point where it has any."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def _print_latency(ports: dict[int, dict[str, Any]], what: str) -> None:
    if not ports:
        print("no latency traffic was sent")
    for number, told in ports.items():
        shown = told["stats"] if what == "counters" else told["hist"]
        if what == "hist":
            shown = {str(it["key"]): it["val"] for it in shown["histogram"]}
        elif what == "show":
            shown = {k: v for k, v in shown.items() if k != "histogram"}
        _print_values(f"port {number}", shown)
    sys.stdout.flush()
