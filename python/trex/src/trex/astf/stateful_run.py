"""A running stateful profile: a run of the engine in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trex.arguments import validate_type
from trex.client.transmission import EngineRun, call_engine, native
from trex.errors import TRexArgumentError

# Range of the engine's multipliers, which have nine decimals.
_FACTOR_MIN, _FACTOR_END = 1e-9, 1 << 32
# Time for which reports are cached, in seconds.
_CACHE_S = 0.02
# Interval of checks for an established flow, in seconds.
_ESTABLISHED_S = 0.02


def port_name(number: int) -> str:
    """Returns the engine's name of a port: `clients`, `servers`, `clients1` and so on."""
    return f"{'servers' if number % 2 else 'clients'}{number // 2 or ''}"


class Tunnels(NamedTuple):
    """Tunnels of consecutive clients, in the engine's format."""

    first: str
    last: str
    teid: int
    step: int
    source: str
    destination: str
    port: int


class StatefulRun(EngineRun):
    """Clients on the even ports and servers on the odd ports, from start to end."""

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
        shares_ports: bool,
        interval: float = 1.0,
        clients_off: Iterable[tuple[str, str]] = (),
    ) -> None:
        """:param ports: ports by number, None for unused numbers
        :param drain_timeout: seconds for flows to finish at the end; None: unlimited
        :param is_visible: whether packet sockets see sent and received frames
        :param shares_ports: whether other runs can use the same ports; implies `is_visible`
        :param interval: interval of samples of one flow on each side, in seconds
        :param clients_off: clients that open no flows until they are switched on, as first and last
            addresses
        """
        self.mult, self.interval = mult, interval
        #: Current multiplier of the profile's flows per second, and the number of port pairs.
        self.load, self.pairs = mult, (len(ports) + 1) // 2
        self.is_visible, self.shares_ports = is_visible or shares_ports, shares_ports
        #: Whether its result was recorded.
        self.is_recorded = False
        options = {
            "duration": _time(duration),
            "drain_timeout": _time(drain_timeout),
            # With 0, the user wants open flows to be dropped, so that no note is necessary.
            "drain_timeout_flag": "t_duration of start()" if drain_timeout else None,
            "link_down_timeout": "30s",
            "rx_coalesce": "50us",
            "interval": _time(interval),
            "follow": 1,
            "backend": "af_packet" if self.is_visible else "auto",
            "multiplier": f"{mult:.9f}",
            "flows_max": 16_000_000,
            "seed": None,
            # A user who configures an interface as a port has allowed it.
            "force_interface": True,
            "shares_ports": shares_ports,
            "is_visible": self.is_visible,
            "verify_checksums": False,
        }
        off = list(clients_off)
        self._run = call_engine(
            native().trex_emulate, document, ports, ipv6, client_mask, off, options
        )
        self.wait_started()
        #: Start of the flows, by the clock of `time.monotonic`.
        self.started = time.monotonic()
        self._has_begun = False
        self._update_start_time()
        self._result: dict[str, Any] | None = None
        #: Cached reports: their time, whether they have templates, and their content.
        self._cached_reports: tuple[float, bool, dict[str, Any]] = (0.0, False, {})

    def stop(self) -> None:
        """Stops the run at once, whatever is open."""
        self._run.stop()

    def end_load(self) -> None:
        """Stops opening flows."""
        self._run.end_load()

    def update(self, mult: float) -> None:
        """Changes the multiplier of the profile's flows per second."""
        factor = mult / self.mult
        if not _FACTOR_MIN <= factor < _FACTOR_END:
            raise TRexArgumentError(
                "mult", mult, f"near the {self.mult:g} that it was started with"
            )
        call_engine(self._run.set_load, f"{factor:.9f}")
        self.load = mult

    def switch_clients(self, ranges: list[tuple[str, str]], is_on: bool) -> None:
        """Switches clients, by first and last addresses, on or off."""
        call_engine(self._run.switch_clients, ranges, is_on)

    def change_tunnels(self, tunnels: list[Tunnels]) -> None:
        """Replaces tunnels of clients."""
        call_engine(self._run.change_tunnels, tunnels)

    def clients(self, addresses: list[str]) -> list[bool | None]:
        """Returns for each address whether its client is on; None if it is not a client."""
        found: list[bool | None] = call_engine(self._run.clients, addresses)
        return found

    def elapsed(self) -> float:
        """Returns the seconds since the start, or the length of a finished run."""
        result = self.result()
        if result is not None:
            return float(result["times"]["elapsed_s"])
        self._update_start_time()
        return max(time.monotonic() - self.started, 0.0)

    def _update_start_time(self) -> None:
        """Determines the start time from the engine's progress, which it updates ten times a
        second.

        The progress stays 0 while the engine resolves neighbours.
        """
        progress = self._run.progress()
        elapsed_s = progress["elapsed_s"] if progress else 0.0
        # An old progress value makes the start too late, never too early.
        since = time.monotonic() - elapsed_s
        self.started = min(self.started, since) if self._has_begun else since
        self._has_begun = elapsed_s > 0

    def is_established(self) -> bool:
        """Returns whether a client connection was established. UDP flows count from their start."""
        ports = self.ports().items()
        clients = [port["connections"] for name, port in ports if name.startswith("clients")]
        return any(it[kind]["connects"] for it in clients for kind in ("tcp", "udp"))

    def result(self) -> dict[str, Any] | None:
        """Returns the engine's report; None before the end."""
        if self._result is None and self._run.wait(0):
            self._result = json.loads(call_engine(self._run.result))
        return self._result

    def ports(self, with_templates: bool = False) -> dict[str, Any]:
        """Returns the current or final report of each port by name.

        `with_templates` includes the reports of its templates.
        """
        result = self.result()
        if result is not None:
            return {port["name"]: port for port in result["ports"]}
        now = time.monotonic()
        cached_at, had_templates, ports = self._cached_reports
        if now - cached_at > _CACHE_S or with_templates > had_templates:
            reports = self._run.reports("templates" if with_templates else "port")
            if reports is None:
                # The run has ended meanwhile. Waits for its result, because the cached reports are
                # older.
                while not self.wait():
                    pass
                return self.ports(with_templates)
            ports = {port["name"]: port for port in json.loads(reports)}
            self._cached_reports = (time.monotonic(), with_templates, ports)
        return ports

    def port(self, number: int) -> Mapping[str, Any] | None:
        """Returns the report of a port; None if it does not take part."""
        port: Mapping[str, Any] | None = self.ports().get(port_name(number))
        return port

    def sent(self, number: int) -> tuple[int, int, int]:
        """Returns frames sent by a port, their bytes without FCS, and failed frames."""
        port = self.port(number)
        if port is None:
            return 0, 0, 0
        tx = port["tx"]
        return tx["packets"], tx["bytes"], tx["failed"]


def multiplier(mult: Any) -> None:
    """Raises unless the value is a valid multiplier."""
    validate_type("mult", mult, (int, float))
    if not _FACTOR_MIN <= mult < _FACTOR_END:
        raise TRexArgumentError("mult", mult, f"more than 0, and less than {_FACTOR_END:,}")


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else f"{round(seconds * 1e9)}ns"


def times(duration: float, nc: bool, t_duration: float) -> tuple[float | None, float | None]:
    """Returns the time in which flows start, and the time for them to finish; None: unlimited."""
    if duration <= 0 and t_duration > 0:
        # As TRex, ignores the other arguments in this case.
        return float(t_duration), 0.0
    limit = None if duration <= 0 else float(duration)
    return limit, 0.0 if nc else float(t_duration) if t_duration > 0 else None


def stop_if_unestablished(run: StatefulRun, seconds: float) -> None:
    """Stops a run in which no flow is established within `seconds`."""
    deadline = run.started + seconds
    while time.monotonic() < deadline:
        # The engine reports its end, but not a first flow.
        if run.is_established() or run.wait(_ESTABLISHED_S):
            return
    run.stop()
