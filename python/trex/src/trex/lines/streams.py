"""Console commands for streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trex.errors import TRexError
from trex.lines.parser import HELP, LineParser, command, ports_of, profiles_of, seconds, tunables
from trex.lines.tables import table
from trex.stl.profile import STLProfile
from trex.stl.streams import STLStream

_HEADERS = ("ID", "name", "profile", "packet type", "length", "mode", "rate", "PG ID", "next")
_LOAD = "load: 2, 50%%, 10kpps, 1gbps"
_PYTHON = ".py"


class StreamLines:
    """Console commands for streams.

    The clients name start, stop and update differently; see the functions `start`, `stop` and
    `update` below.
    """

    @command("pause")
    def pause_line(self: Any, line: str) -> None:
        """Pauses the traffic of ports."""
        parser = LineParser(self.pause_line)
        parser.add_profiles()
        parser.add_ids("only these streams of one port")
        args = parser.parse_line(line)
        if args is None:
            return
        profiles = profiles_of(self, args, "transmitting")
        if args.ids:
            self.pause_streams(_single_profile("pause", profiles), args.ids)
        else:
            self.pause(_require_profiles("pause", profiles))

    @command("resume")
    def resume_line(self: Any, line: str) -> None:
        """Resumes paused traffic."""
        parser = LineParser(self.resume_line)
        parser.add_profiles()
        parser.add_ids("only these streams of one port")
        args = parser.parse_line(line)
        if args is None:
            return
        profiles = profiles_of(self, args, "active" if args.ids else "paused")
        if args.ids:
            self.resume_streams(_single_profile("resume", profiles), args.ids)
        else:
            self.resume(_require_profiles("resume", profiles))

    @command("push")
    def push_line(self: Any, line: str) -> None:
        """Sends the packets of a capture."""
        parser = LineParser(self.push_line)
        parser.add_argument("-f", dest="file", required=True, help="the capture")
        parser.add_argument(
            "-r", "--remote", action="store_true", help="no effect; the engine runs on this machine"
        )
        parser.add_ports()
        parser.add_argument(
            "-c", "--count", type=int, default=1, help="number of passes; 0: endless"
        )
        parser.add_argument(
            "-d", dest="duration", type=seconds, default=-1.0, help="duration: 100, 10m, 1h"
        )
        parser.add_argument(
            "-i",
            "--ipg",
            type=float,
            help="microseconds between packets; default: as captured",
        )
        parser.add_argument("--min-ipg", type=float, help="minimum microseconds between packets")
        parser.add_argument("-s", "--speedup", type=float, default=1.0, help="speed factor")
        parser.add_argument(
            "--force", action="store_true", help="stop the traffic of the ports first"
        )
        parser.add_argument(
            "--dual", action="store_true", help="send the two sides from a port and its neighbour"
        )
        parser.add_argument(
            "--src-mac-pcap", action="store_true", help="keep the capture's source MACs"
        )
        parser.add_argument(
            "--dst-mac-pcap", action="store_true", help="keep the capture's destination MACs"
        )
        args = parser.parse_line(line)
        if args is None:
            return
        push = self.push_remote if args.remote else self.push_pcap
        push(
            args.file,
            ports_of(self, args),
            ipg_usec=args.ipg,
            min_ipg_usec=args.min_ipg,
            speedup=args.speedup,
            count=args.count,
            duration=args.duration,
            force=args.force,
            is_dual=args.dual,
            src_mac_pcap=args.src_mac_pcap,
            dst_mac_pcap=args.dst_mac_pcap,
        )

    @command("streams")
    def streams_line(self: Any, line: str) -> None:
        """Prints the streams of ports."""
        parser = LineParser(self.streams_line)
        parser.add_ports()
        parser.add_ids("only these streams")
        parser.add_argument(
            "--code",
            nargs="?",
            const="",
            metavar="FILE.py",
            help="print Python code of the streams, or write it to a file",
        )
        args = parser.parse_line(line)
        if args is None:
            return
        ports = self._numbers(ports_of(self, args))
        found = {one: _streams(self, [one], set(args.ids)) for one in ports}
        found = {one: streams for one, streams in found.items() if streams}
        if not found:
            print("No streams found with desired filter.")
        elif args.code is None:
            for one in found:
                print(_streams_table(f"port {one}:", self, [one], set(args.ids)))
        elif args.code:
            _write_code(args.code, found)
        else:
            _print_code(found)


def start(client: Any, parser: LineParser, line: str) -> None:
    """Loads a profile of streams onto ports and starts it."""
    parser.add_profiles()
    parser.add_argument("-f", dest="file", required=True, help="a profile of streams")
    parser.add_argument("-m", "--multiplier", dest="mult", default="1", help=_LOAD)
    parser.add_argument(
        "-d", dest="duration", type=seconds, default=-1.0, help="duration: 100, 10m, 1h"
    )
    parser.add_argument("--force", action="store_true", help="stop the traffic of the ports first")
    parser.add_argument("--total", action="store_true", help="the load is the total of all ports")
    parser.add_argument(
        "-n", "--dry", action="store_true", help="load the profile without starting it"
    )
    parser.add_argument("--sync", action="store_true", help="require ports in pairs (0 and 1)")
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument("--pin", action="store_true", help="no effect")
    cores.add_argument(
        "--core_mask", type=lambda text: int(text, 0), nargs="+", help="checked; no effect"
    )
    parser.add_tunables()
    args = parser.parse_line(line)
    if args is None:
        return
    profiles = args.ports or [str(number) for number in client.get_acquired_ports()]
    profiles = list(dict.fromkeys(profiles))
    loaded = {one: _load(args.file, one, args.tunables) for one in profiles}
    if any(word in args.tunables for word in HELP):
        # The profile has only printed its help.
        return
    client.validate_profile_input(profiles)
    if args.force:
        client.stop_stl(profiles)
    client.remove_all_streams(profiles)
    for one, streams in loaded.items():
        client.add_streams(streams, one)
    if args.dry:
        for one in profiles:
            print(_streams_table(f"port {one}:", client, [one], set()))
        print("dry run: no traffic was started")
        return
    mask = args.core_mask or client.CORE_MASK_SPLIT
    is_timed = (args.force, args.duration, args.total, mask, args.sync)
    client.start_stl(profiles, args.mult, *is_timed)


def stop(client: Any, parser: LineParser, line: str) -> None:
    """Stops the traffic of ports."""
    parser.add_profiles(with_all=True)
    parser.add_argument("--remove", action="store_true", help="remove the streams afterwards")
    args = parser.parse_line(line)
    if args is None:
        return
    profiles = profiles_of(client, args, "active")
    client.stop_stl(profiles)
    if args.remove:
        client.remove_all_streams(profiles)


def update(client: Any, parser: LineParser, line: str) -> None:
    """Changes the rates of ports."""
    parser.add_profiles()
    parser.add_argument("-m", "--multiplier", dest="mult", default="1", help=_LOAD)
    parser.add_argument(
        "-t", "--total", action="store_true", help="the load is the total of all ports"
    )
    parser.add_argument("--force", action="store_true", help="no effect")
    parser.add_ids("only these streams of one port")
    args = parser.parse_line(line)
    if args is None:
        return
    profiles = profiles_of(client, args, "active")
    if args.ids:
        client.update_streams(
            _single_profile(parser.prog, profiles), args.mult, args.force, args.ids
        )
    else:
        client.update_stl(
            _require_profiles(parser.prog, profiles), args.mult, args.total, args.force
        )


def _load(file: str, port: str, words: list[str]) -> Any:
    number = int(port.partition(".")[0])
    arguments = {"direction": number % 2, "port_id": number, **tunables(words)}
    profile = STLProfile.load(file, **arguments)
    return [] if profile is None else profile.get_streams()


def _single_profile(prog: str, profiles: list[str]) -> str:
    if len(profiles) != 1:
        names = ", ".join(profiles) or "none"
        raise TRexError(f"{prog}: -i selects streams of a single port, found: {names}")
    return profiles[0]


def _require_profiles(prog: str, profiles: list[str]) -> list[str]:
    if not profiles:
        raise TRexError(f"{prog}: no port is transmitting, or none of these is paused")
    return profiles


def _streams(client: Any, ports: list[Any], ids: set[int]) -> dict[int, STLStream]:
    """Returns the streams of ports or profiles by ID, or only those with these IDs."""
    found: dict[int, STLStream] = {}
    for one in ports:
        number, _, profile = str(one).partition(".")
        port = client.links[int(number)]
        found.update(port.profiles[profile].streams if profile else port.streams)
    return {number: it for number, it in sorted(found.items()) if not ids or number in ids}


def _streams_table(title: str, client: Any, ports: list[Any], ids: set[int]) -> str:
    of = {
        number: name
        for one in ports
        for name, profile in client.links[int(str(one).partition(".")[0])].profiles.items()
        for number in profile.streams
    }
    rows = [
        (
            str(number),
            stream.get_name() or "-",
            of[number],
            stream.get_pkt_type(),
            str(stream.get_pkt_len()),
            stream.get_mode(),
            stream.get_rate(),
            f"{stream.get_flow_stats_type()}: {stream.get_pg_id()}"
            if stream.has_flow_stats()
            else "-",
            stream.get_next() or "-",
        )
        for number, stream in _streams(client, ports, ids).items()
    ]
    return table(title, _HEADERS, rows, f"{title} no streams")


def _print_code(found: dict[int, dict[int, STLStream]]) -> None:
    for port, streams in found.items():
        print(f"Port: {port}\n")
        for number, stream in streams.items():
            print(f"Stream ID: {number}")
            print("    " + "\n    ".join(stream.to_code().splitlines()) + "\n")


def _write_code(name: str, found: dict[int, dict[int, STLStream]]) -> None:
    """Writes code to the file, or to one file for each of several ports."""
    if not name.endswith(_PYTHON):
        raise TRexError(f"streams: --code {name}: expected a name that ends with {_PYTHON}")
    stem = name[: -len(_PYTHON)]
    for port, streams in found.items():
        file = Path(name if len(found) == 1 else f"{stem}_port{port}{_PYTHON}")
        try:
            with file.open("x") as out:
                out.write(STLProfile(list(streams.values())).dump_to_code())
        except FileExistsError:
            raise TRexError(f"streams: --code {file} exists already; remove it first") from None
        except OSError as error:
            raise TRexError(f"streams: --code {error}") from error
        print(f"port {port}: {file}")
