"""TRex's console commands for the stateless client: `start_line("-f imix.py -m 10kpps")`."""

from __future__ import annotations

from typing import Any

from trex.client.rc import RC, RC_OK
from trex.errors import TRexError
from trex.lines import streams
from trex.lines.parser import LineParser, command, ports_of
from trex.lines.ports import PortLines
from trex.lines.service import add_modes, mode_of
from trex.lines.stats import stats
from trex.lines.streams import StreamLines
from trex.lines.tagged_groups import TaggedLines


class Console(PortLines, StreamLines, TaggedLines):
    """Console commands that call the client method of the same name.

    `-h` prints help. Raises `TRexError` for invalid arguments.
    """

    # Ports.

    @command("acquire")
    def acquire_line(self: Any, line: str) -> bool:
        """Acquires ports."""
        parser = LineParser(self.acquire_line)
        parser.add_ports()
        parser.add_argument(
            "--force", action="store_true", help="acquire ports of other clients of this process"
        )
        args = parser.parse_line(line)
        if args is None:
            return True
        chosen = ports_of(self, args, self.get_all_ports())
        acquired = self.get_acquired_ports()
        ports = [number for number in chosen if number not in acquired]
        if not ports:
            raise TRexError(f"acquire: ports {chosen} are acquired already")
        self.acquire(ports, args.force)
        return True

    @command("release")
    def release_line(self: Any, line: str) -> bool:
        """Releases ports."""
        parser = LineParser(self.release_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is None:
            return True
        acquired = self.get_acquired_ports()
        ports = [number for number in ports_of(self, args) if number in acquired]
        if not ports:
            raise TRexError(
                f"release: none of these ports is acquired; acquired: {acquired or 'none'}"
            )
        self.release(ports)
        return True

    @command("reset")
    def reset_line(self: Any, line: str) -> bool:
        """Stops the traffic of ports, removes their streams, and clears their counters."""
        parser = LineParser(self.reset_line)
        parser.add_ports()
        parser.add_argument(
            "-r", "--restart", action="store_true", help="set the interfaces down and up"
        )
        args = parser.parse_line(line)
        if args is not None:
            self.reset(ports_of(self, args), args.restart)
        return True

    @command("service")
    def service_line(self: Any, line: str) -> bool:
        """Switches service mode of ports on, or off with --off."""
        parser = LineParser(self.service_line)
        parser.add_ports()
        add_modes(parser)
        args = parser.parse_line(line)
        if args is not None:
            self.set_service_mode(ports_of(self, args), *mode_of(args))
        return True

    # Streams.

    @command("start")
    def start_line(self: Any, line: str) -> RC:
        """Loads a profile of streams onto ports and starts it."""
        streams.start(self, LineParser(self.start_line), line)
        return RC_OK()

    @command("stop")
    def stop_line(self: Any, line: str) -> RC:
        """Stops the traffic of ports."""
        streams.stop(self, LineParser(self.stop_line), line)
        return RC_OK()

    @command("update")
    def update_line(self: Any, line: str) -> RC:
        """Changes the rates of ports."""
        streams.update(self, LineParser(self.update_line), line)
        return RC_OK()

    @command("profiles")
    def profiles_line(self: Any, line: str) -> None:
        """Prints the profiles of streams on ports, their states and streams."""
        parser = LineParser(self.profiles_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is not None:
            for number in self._numbers(ports_of(self, args)):
                print(self.ports[number].generate_loaded_profiles())

    # Counters.

    @command("stats")
    def show_stats_line(self: Any, line: str) -> None:
        """Prints counters of all ports and each port; -s (packet groups), -l and --lh (delays)."""
        stats(self, LineParser(self.show_stats_line), line)

    @command("clear")
    def clear_stats_line(self: Any, line: str) -> None:
        """Clears the counters."""
        parser = LineParser(self.clear_stats_line)
        parser.add_ports()
        args = parser.parse_line(line)
        if args is not None:
            self.clear_stats(ports_of(self, args))
