"""Commands of TRex's console for the stateless client: `start_line("-f imix.py -m 10kpps")`."""

from __future__ import annotations

from typing import Any

from trex.client.answers import RC, RC_OK
from trex.errors import TRexError
from trex.lines import streams
from trex.lines.ports import PortLines
from trex.lines.service import add_modes, mode_of
from trex.lines.stats import stats
from trex.lines.streams import StreamLines
from trex.lines.tagged import TaggedLines
from trex.lines.words import Words, command, ports_of


class Console(PortLines, StreamLines, TaggedLines):
    """Each takes the words behind the command's name, and does what the method of that name does.

    `-h` prints help. Raises `TRexError` where the words are wrong.
    """

    # Ports.

    @command("acquire")
    def acquire_line(self: Any, line: str) -> bool:
        """Takes ports."""
        words = Words(self.acquire_line)
        words.add_ports()
        words.add_argument(
            "--force", action="store_true", help="also from other clients of this process"
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
        """Gives ports back."""
        words = Words(self.release_line)
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
        """Ends what ports send, removes their streams, clears their counters."""
        words = Words(self.reset_line)
        words.add_ports()
        words.add_argument(
            "-r", "--restart", action="store_true", help="sets the interfaces down and up"
        )
        given = words.of(line)
        if given is not None:
            self.reset(ports_of(self, given), given.restart)
        return True

    @command("service")
    def service_line(self: Any, line: str) -> bool:
        """Puts ports into service mode, or with --off out of it."""
        words = Words(self.service_line)
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
        streams.start(self, Words(self.start_line), line)
        return RC_OK()

    @command("stop")
    def stop_line(self: Any, line: str) -> RC:
        """Ends what ports send."""
        streams.stop(self, Words(self.stop_line), line)
        return RC_OK()

    @command("update")
    def update_line(self: Any, line: str) -> RC:
        """Sends at other rates."""
        streams.update(self, Words(self.update_line), line)
        return RC_OK()

    @command("profiles")
    def profiles_line(self: Any, line: str) -> None:
        """The profiles of streams on ports, what they are doing, and their streams."""
        words = Words(self.profiles_line)
        words.add_ports()
        given = words.of(line)
        if given is not None:
            for number in self._numbers(ports_of(self, given)):
                print(self.ports[number].generate_loaded_profiles())

    # Counters.

    @command("stats")
    def show_stats_line(self: Any, line: str) -> None:
        """Counters of all and of ports; -s (packet groups), -l and --lh (delays)."""
        stats(self, Words(self.show_stats_line), line)

    @command("clear")
    def clear_stats_line(self: Any, line: str) -> None:
        """Counts from now on."""
        words = Words(self.clear_stats_line)
        words.add_ports()
        given = words.of(line)
        if given is not None:
            self.clear_stats(ports_of(self, given))
