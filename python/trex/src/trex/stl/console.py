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
        words = LineParser(self.acquire_line)
        words.add_ports()
        words.add_argument(
            "--force", action="store_true", help="acquire ports of other clients of this process"
        )
        given = words.of(line)
        if given is None:
            return True
        chosen = ports_of(self, given, self.get_all_ports())
        mine = self.get_acquired_ports()
        ports = [number for number in chosen if number not in mine]
        if not ports:
            raise TRexError(f"acquire: ports {chosen} are acquired already")
        self.acquire(ports, given.force)
        return True

    @command("release")
    def release_line(self: Any, line: str) -> bool:
        """Releases ports."""
        words = LineParser(self.release_line)
        words.add_ports()
        given = words.of(line)
        if given is None:
            return True
        mine = self.get_acquired_ports()
        ports = [number for number in ports_of(self, given) if number in mine]
        if not ports:
            raise TRexError(f"release: none of these ports is acquired; acquired: {mine or 'none'}")
        self.release(ports)
        return True

    @command("reset")
    def reset_line(self: Any, line: str) -> bool:
        """Stops the traffic of ports, removes their streams, and clears their counters."""
        words = LineParser(self.reset_line)
        words.add_ports()
        words.add_argument(
            "-r", "--restart", action="store_true", help="set the interfaces down and up"
        )
        given = words.of(line)
        if given is not None:
            self.reset(ports_of(self, given), given.restart)
        return True

    @command("service")
    def service_line(self: Any, line: str) -> bool:
        """Switches service mode of ports on, or off with --off."""
        words = LineParser(self.service_line)
        words.add_ports()
        add_modes(words)
        given = words.of(line)
        if given is not None:
            self.set_service_mode(ports_of(self, given), *mode_of(given))
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
        words = LineParser(self.profiles_line)
        words.add_ports()
        given = words.of(line)
        if given is not None:
            for number in self._numbers(ports_of(self, given)):
                print(self.ports[number].generate_loaded_profiles())

    # Counters.

    @command("stats")
    def show_stats_line(self: Any, line: str) -> None:
        """Prints counters of all ports and each port; -s (packet groups), -l and --lh (delays)."""
        stats(self, LineParser(self.show_stats_line), line)

    @command("clear")
    def clear_stats_line(self: Any, line: str) -> None:
        """Clears the counters."""
        words = LineParser(self.clear_stats_line)
        words.add_ports()
        given = words.of(line)
        if given is not None:
            self.clear_stats(ports_of(self, given))
