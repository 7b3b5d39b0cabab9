"""Base of a client's parts: its ports and its session."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterable
from typing import Any

from trex.arguments import listify
from trex.client.events import EventsHandler
from trex.client.port import Port
from trex.client.profile_id import PortProfileID
from trex.errors import TRexArgumentError, TRexError
from trex.logger import ScreenLogger


class Session:
    """Ports by number, and their events."""

    #: Whether captures and services require service mode.
    needs_service_mode = True

    def __init__(self, username: str | None = None) -> None:
        #: Ports by number.
        self.links: dict[int, Port] = {}
        self._username = username or _current_user()
        self._events = EventsHandler()
        self._is_connected = False
        self._logger: Any = ScreenLogger()

    def get_all_ports(self) -> list[int]:
        """Returns the numbers of all ports."""
        return list(self.links)

    def get_acquired_ports(self) -> list[int]:
        """Returns the acquired ports."""
        return self._matching_ports(lambda port: port.is_acquired)

    def _log_event(self, message: str, ev_type: str = "info") -> None:
        self._events.add(ev_type, message)
        if ev_type == "warning":
            self._logger.warning(message)
        else:
            self._logger.info(message)

    def _record_results(self) -> None:
        """Records the results of finished traffic."""

    def _collect_group_counters(self) -> None:
        """Collects the counters of packet groups before transmissions are removed."""

    def _discard_groups(self, ports: Iterable[int]) -> None:
        """Stops counting tagged packet groups at ports that change their owner."""

    def _require_session(self) -> None:
        if not self._is_connected:
            raise TRexError("not connected; call connect() first")

    def _matching_ports(self, predicate: Any, owned: bool = True) -> list[int]:
        return [
            number
            for number, port in self.links.items()
            if predicate(port) and (port.is_acquired or not owned)
        ]

    def _numbers(self, ports: Any, of_all: bool = False) -> list[int]:
        """Returns the numbers of ports; by default the acquired ones, or all with `of_all`."""
        if ports is None:
            return self.get_all_ports() if of_all else self.get_acquired_ports()
        numbers = [PortProfileID(port).port_id for port in listify(ports)]
        wrong = [number for number in numbers if number not in self.links]
        if wrong:
            known = ", ".join(map(str, self.links)) or "none: not connected"
            raise TRexArgumentError("ports", wrong, known)
        if len(set(numbers)) < len(numbers):
            raise TRexError(f"duplicate port: {numbers}")
        return numbers

    def _acquired_ports(self, ports: Any) -> list[int]:
        numbers = self._numbers(ports)
        for number in numbers:
            if not self.links[number].is_acquired:
                raise TRexError(f"port {number} is not acquired; call acquire() or reset()")
        return numbers

    def _idle_ports(self, ports: Any) -> list[int]:
        numbers = self._acquired_ports(ports)
        for number in numbers:
            if self.links[number].is_active:
                raise TRexError(f"port {number} is sending; stop it first")
        return numbers


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"{os.getuid()}@{socket.gethostname()}"
