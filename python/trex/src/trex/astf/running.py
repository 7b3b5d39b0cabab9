"""A stateful profile on its way: a run of the engine, in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trex.arguments import validate_type
from trex.client.transmission import asked, native
from trex.errors import TRexArgumentError

# How long a wait lasts before Python looks for signals.
_LOOK_S = 0.05
# What the engine multiplies loads by: nine digits behind the point.
_FACTOR_MIN, _FACTOR_END = 1e-9, 1 << 32
# What was told is told again for so long.
_FRESH_S = 0.02
# How often it is looked whether a flow was established.
_ESTABLISHED_S = 0.02


def port_name(number: int) -> str:
    """What the engine calls a port: `clients`, `servers`, `clients1` and so on."""
    return f"{'servers' if number % 2 else 'clients'}{number // 2 or ''}"


class Tunnels(NamedTuple):
    """Tunnels of consecutive clients, as the engine takes them."""

    first: str
    last: str
    teid: int
    step: int
    source: str
    destination: str
    port: int


class StatefulRun:
    """Clients on the even ports and servers on the odd ones, from start to end."""

    def __init__(
        self,
        document: str,
        ports: list[dict[str, Any] | None],
        mult: float,
        ipv6: bool,
        client_mask: int,
        duration: float | None,
        drain_timeout: float | None,
        is_visible: bool,
        beside_others: bool,
        interval: float = 1.0,
        clients_off: Iterable[tuple[str, str]] = (),
    ) -> None:
        """
        :param ports: by number, None where there is none
        :param drain_timeout: seconds that flows have in the end; None: as many as it takes
        :param is_visible: whether packet sockets are to see what is sent and what arrives
        :param beside_others: whether others may run on the same ports, which are visible then too
        :param interval: seconds from look to look at the flow of each side that is followed
        :param clients_off: those that make no flows until they are switched on, by first and last
            addresses
        """
        self.mult, self.interval = mult, interval
        #: What the profile's flows a second are multiplied by now, and the pairs of ports that
        #: share them.
        self.load, self.pairs = mult, (len(ports) + 1) // 2
        self.is_visible, self.is_beside_others = is_visible or beside_others, beside_others
        #: Whether what came of it was noted.
        self.is_told = False
        how = {
            "duration": _time(duration),
            "drain_timeout": _time(drain_timeout),
            # Where it is 0, what is open in the end is meant to be dropped.
            "drain_timeout_flag": "t_duration of start()" if drain_timeout else None,
            "link_down_timeout": "30s",
            "rx_coalesce": "50us",
            "interval": _time(interval),
            "follow": 1,
            "backend": "af_packet" if self.is_visible else "auto",
            "multiplier": f"{mult:.9f}",
            "flows_max": 16_000_000,
            "seed": None,
            # Whoever makes an interface a port has decided that.
            "force_interface": True,
            "beside_others": beside_others,
            "is_visible": self.is_visible,
            "verify_checksums": False,
        }
        off = list(clients_off)
        self._run = asked(native().trex_emulate, document, ports, ipv6, client_mask, off, how)
        self._run.wait_started()
        if self._run.wait(0):
            # Tells why, where it did not begin.
            asked(self._run.result)
        #: When it began to make flows, by the clock of `time.monotonic`.
        self.started = time.monotonic()
        self._has_begun = False
        self._look_at_clock()
        self._result: dict[str, Any] | None = None
        #: When it was told, whether with templates, and what.
        self._told: tuple[float, bool, dict[str, Any]] = (0.0, False, {})

    def is_done(self) -> bool:
        """Whether it is over."""
        return bool(self._run.wait(0))

    def wait(self, seconds: float = _LOOK_S) -> bool:
        """Waits for the end, at most so long; whether it has come."""
        return bool(self._run.wait(min(seconds, _LOOK_S)))

    def stop(self) -> None:
        """Ends it at once, whatever is open."""
        self._run.stop()

    def end_load(self) -> None:
        """No flow is made from now on."""
        self._run.end_load()

    def update(self, mult: float) -> None:
        """Makes so many times the profile's flows a second."""
        factor = mult / self.mult
        if not _FACTOR_MIN <= factor < _FACTOR_END:
            raise TRexArgumentError(
                "mult", mult, f"near the {self.mult:g} that it was started with"
            )
        asked(self._run.set_load, f"{factor:.9f}")
        self.load = mult

    def switch_clients(self, ranges: list[tuple[str, str]], is_on: bool) -> None:
        """Lets clients, by their first and last addresses, make flows or no more."""
        asked(self._run.switch_clients, ranges, is_on)

    def change_tunnels(self, tunnels: list[Tunnels]) -> None:
        """Gives clients other tunnels."""
        asked(self._run.change_tunnels, tunnels)

    def clients(self, addresses: list[str]) -> list[bool | None]:
        """Of each address whether it is a client that is on; None of one that is none."""
        found: list[bool | None] = asked(self._run.clients, addresses)
        return found

    def elapsed(self) -> float:
        """Seconds since the start, or until the end."""
        result = self.result()
        if result is not None:
            return float(result["times"]["elapsed_s"])
        self._look_at_clock()
        return max(time.monotonic() - self.started, 0.0)

    def _look_at_clock(self) -> None:
        """Finds out when it began: the engine tells ten times a second how long ago that was.

        It waits for the first time that it is told, and before that for neighbours, of which it
        tells at 0.
        """
        progress = self._run.progress()
        told = progress["elapsed_s"] if progress else 0.0
        # What was told a while ago puts the start as much too late, and never too early.
        since = time.monotonic() - told
        self.started = min(self.started, since) if self._has_begun else since
        self._has_begun = told > 0

    def is_established(self) -> bool:
        """Whether a connection of clients was established; flows of UDP are from their start."""
        ports = self.ports().items()
        clients = [port["connections"] for name, port in ports if name.startswith("clients")]
        return any(it[kind]["connects"] for it in clients for kind in ("tcp", "udp"))

    def result(self) -> dict[str, Any] | None:
        """The engine's report, once it is over."""
        if self._result is None and self._run.wait(0):
            self._result = json.loads(asked(self._run.result))
        return self._result

    def ports(self, with_templates: bool = False) -> dict[str, Any]:
        """What each port has counted, by its name: of this moment, or in the end.

        `with_templates`: what each of its templates has counted, too.
        """
        result = self.result()
        if result is not None:
            return {port["name"]: port for port in result["ports"]}
        now = time.monotonic()
        told_at, had_templates, ports = self._told
        if now - told_at > _FRESH_S or with_templates > had_templates:
            told = self._run.reports("templates" if with_templates else "port")
            if told is None:
                # It has ended meanwhile: what came of it is there in a moment, and what was told
                # before is older than that.
                while not self.wait():
                    pass
                return self.ports(with_templates)
            ports = {port["name"]: port for port in json.loads(told)}
            self._told = (time.monotonic(), with_templates, ports)
        return ports

    def port(self, number: int) -> Mapping[str, Any] | None:
        """What a port has counted; None of one that has no part in it."""
        port: Mapping[str, Any] | None = self.ports().get(port_name(number))
        return port

    def sent(self, number: int) -> tuple[int, int, int]:
        """Frames that left a port, their bytes without FCS, frames that were refused."""
        port = self.port(number)
        if port is None:
            return 0, 0, 0
        tx = port["tx"]
        return tx["packets"], tx["bytes"], tx["failed"]


def multiplier(mult: Any) -> None:
    """Raises unless flows a second can be multiplied by this."""
    validate_type("mult", mult, (int, float))
    if not _FACTOR_MIN <= mult < _FACTOR_END:
        raise TRexArgumentError("mult", mult, f"more than 0, and less than {_FACTOR_END:,}")


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{round(seconds * 1e9)}ns"


def times(duration: float, nc: bool, t_duration: float) -> tuple[float | None, float | None]:
    """How long flows are made, and how long they may take to end then; None: without end."""
    if duration <= 0 and t_duration > 0:
        # As TRex has it, whatever it says of the end of flows.
        return float(t_duration), 0.0
    limit = None if duration <= 0 else float(duration)
    return limit, 0.0 if nc else float(t_duration) if t_duration > 0 else None


def end_unestablished(run: StatefulRun, seconds: float) -> None:
    """Ends a run where no flow was established for so long: there is none to be waited for."""
    deadline = run.started + seconds
    while time.monotonic() < deadline:
        # The engine tells of its end, and of no first flow.
        if run.is_established() or run.wait(_ESTABLISHED_S):
            return
    run.stop()
