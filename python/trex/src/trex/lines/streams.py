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
        words = LineParser(self.pause_line)
        words.add_profiles()
        words.add_ids("only these streams of one port")
        given = words.of(line)
        if given is None:
            return
        profiles = profiles_of(self, given, "transmitting")
        if given.ids:
            self.pause_streams(_one("pause", profiles), given.ids)
        else:
            self.pause(_some("pause", profiles))

    @command("resume")
    def resume_line(self: Any, line: str) -> None:
        """Resumes paused traffic."""
        words = LineParser(self.resume_line)
        words.add_profiles()
        words.add_ids("only these streams of one port")
        given = words.of(line)
        if given is None:
            return
        profiles = profiles_of(self, given, "active" if given.ids else "paused")
        if given.ids:
            self.resume_streams(_one("resume", profiles), given.ids)
        else:
            self.resume(_some("resume", profiles))

    @command("push")
    def push_line(self: Any, line: str) -> None:
        """Sends the packets of a capture."""
        words = LineParser(self.push_line)
        words.add_argument("-f", dest="file", required=True, help="the capture")
        words.add_argument(
            "-r", "--remote", action="store_true", help="no effect; the engine runs on this machine"
        )
        words.add_ports()
        words.add_argument(
            "-c", "--count", type=int, default=1, help="number of passes; 0: endless"
        )
        words.add_argument(
            "-d", dest="duration", type=seconds, default=-1.0, help="duration: 100, 10m, 1h"
        )
        words.add_argument(
            "-i",
            "--ipg",
            type=float,
            help="microseconds between packets; default: as captured",
        )
        words.add_argument("--min-ipg", type=float, help="minimum microseconds between packets")
        words.add_argument("-s", "--speedup", type=float, default=1.0, help="speed factor")
        words.add_argument(
            "--force", action="store_true", help="stop the traffic of the ports first"
        )
        words.add_argument(
            "--dual", action="store_true", help="send the two sides from a port and its neighbour"
        )
        words.add_argument(
            "--src-mac-pcap", action="store_true", help="keep the capture's source MACs"
        )
        words.add_argument(
            "--dst-mac-pcap", action="store_true", help="keep the capture's destination MACs"
        )
        given = words.of(line)
        if given is None:
            return
        push = self.push_remote if given.remote else self.push_pcap
        push(
            given.file,
            ports_of(self, given),
            ipg_usec=given.ipg,
            min_ipg_usec=given.min_ipg,
            speedup=given.speedup,
            count=given.count,
            duration=given.duration,
            force=given.force,
            is_dual=given.dual,
            src_mac_pcap=given.src_mac_pcap,
            dst_mac_pcap=given.dst_mac_pcap,
        )

    @command("streams")
    def streams_line(self: Any, line: str) -> None:
        """Prints the streams of ports."""
        words = LineParser(self.streams_line)
        words.add_ports()
        words.add_ids("only these streams")
        words.add_argument(
            "--code",
            nargs="?",
            const="",
            metavar="FILE.py",
            help="print Python code of the streams, or write it to a file",
        )
        given = words.of(line)
        if given is None:
            return
        ports = self._numbers(ports_of(self, given))
        found = {one: _streams(self, [one], set(given.ids)) for one in ports}
        found = {one: streams for one, streams in found.items() if streams}
        if not found:
            print("No streams found with desired filter.")
        elif given.code is None:
            for one in found:
                print(_streams_table(f"port {one}:", self, [one], set(given.ids)))
        elif given.code:
            _write_code(given.code, found)
        else:
            _print_code(found)


def start(client: Any, words: LineParser, line: str) -> None:
    """Loads a profile of streams onto ports and starts it."""
    words.add_profiles()
    words.add_argument("-f", dest="file", required=True, help="a profile of streams")
    words.add_argument("-m", "--multiplier", dest="mult", default="1", help=_LOAD)
    words.add_argument(
        "-d", dest="duration", type=seconds, default=-1.0, help="duration: 100, 10m, 1h"
    )
    words.add_argument("--force", action="store_true", help="stop the traffic of the ports first")
    words.add_argument("--total", action="store_true", help="the load is the total of all ports")
    words.add_argument(
        "-n", "--dry", action="store_true", help="load the profile without starting it"
    )
    words.add_argument("--sync", action="store_true", help="require ports in pairs (0 and 1)")
    cores = words.add_mutually_exclusive_group()
    cores.add_argument("--pin", action="store_true", help="no effect")
    cores.add_argument(
        "--core_mask", type=lambda text: int(text, 0), nargs="+", help="checked; no effect"
    )
    words.add_tunables()
    given = words.of(line)
    if given is None:
        return
    named = given.ports or [str(number) for number in client.get_acquired_ports()]
    named = list(dict.fromkeys(named))
    loaded = {one: _load(given.file, one, given.tunables) for one in named}
    if any(word in given.tunables for word in HELP):
        # The profile has only printed its help.
        return
    client.validate_profile_input(named)
    if given.force:
        client.stop_stl(named)
    client.remove_all_streams(named)
    for one, streams in loaded.items():
        client.add_streams(streams, one)
    if given.dry:
        for one in named:
            print(_streams_table(f"port {one}:", client, [one], set()))
        print("dry run: no traffic was started")
        return
    mask = given.core_mask or client.CORE_MASK_SPLIT
    is_timed = (given.force, given.duration, given.total, mask, given.sync)
    client.start_stl(named, given.mult, *is_timed)


def stop(client: Any, words: LineParser, line: str) -> None:
    """Stops the traffic of ports."""
    words.add_profiles(with_all=True)
    words.add_argument("--remove", action="store_true", help="remove the streams afterwards")
    given = words.of(line)
    if given is None:
        return
    profiles = profiles_of(client, given, "active")
    client.stop_stl(profiles)
    if given.remove:
        client.remove_all_streams(profiles)


def update(client: Any, words: LineParser, line: str) -> None:
    """Changes the rates of ports."""
    words.add_profiles()
    words.add_argument("-m", "--multiplier", dest="mult", default="1", help=_LOAD)
    words.add_argument(
        "-t", "--total", action="store_true", help="the load is the total of all ports"
    )
    words.add_argument("--force", action="store_true", help="no effect")
    words.add_ids("only these streams of one port")
    given = words.of(line)
    if given is None:
        return
    profiles = profiles_of(client, given, "active")
    if given.ids:
        client.update_streams(_one(words.prog, profiles), given.mult, given.force, given.ids)
    else:
        client.update_stl(_some(words.prog, profiles), given.mult, given.total, given.force)


def _load(file: str, port: str, words: list[str]) -> Any:
    number = int(port.partition(".")[0])
    named = {"direction": number % 2, "port_id": number, **tunables(words)}
    profile = STLProfile.load(file, **named)
    return [] if profile is None else profile.get_streams()


def _one(what: str, profiles: list[str]) -> str:
    if len(profiles) != 1:
        named = ", ".join(profiles) or "none"
        raise TRexError(f"{what}: -i selects streams of a single port, found: {named}")
    return profiles[0]


def _some(what: str, profiles: list[str]) -> list[str]:
    if not profiles:
        raise TRexError(f"{what}: no port is transmitting, or none of these is paused")
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
