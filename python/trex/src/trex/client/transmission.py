"""Transmission of streams from a port: a run of the engine in this process."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trex.client.multiplier import Multiplier
from trex.errors import TRexArgumentError, TRexError
from trex.stl.streams import STLStream

if TYPE_CHECKING:
    from types import ModuleType

# Longest wait before Python checks for signals.
_POLL_S = 0.05
# Number of checks for the report after a measurement, within half a second.
_REPORT_POLLS = 10
# The engine's message about an interface that another run of this process uses.
_IN_USE = re.compile(r"(?P<where>\S+ is in use) by run \d+\b.*: wait for it to end, .* access")


def native() -> ModuleType:
    """Returns the native module. Raises `TRexError` if it is not installed."""
    try:
        from wirestorm import _native
    except ImportError as error:
        raise TRexError(
            f"sending needs the package wirestorm ({error}); from a checkout: "
            "pip install ./python/wirestorm"
        ) from error
    return _native


class StreamParameters:
    """Parameters to convert a port's streams: line speed and addresses."""

    def __init__(self, speed: str, source: str, destination: str) -> None:
        self.speed = speed
        self.source = source
        self.destination = destination

    def to_engine(self, mult: Multiplier) -> dict[str, str]:
        """Returns the parameters for the engine."""
        return {
            "multiplier": str(mult),
            "speed": self.speed,
            "source": self.source,
            "destination": self.destination,
        }


def send_options(**options: Any) -> dict[str, Any]:
    """Returns the send options for the engine."""
    defaults = {
        "duration": None,
        "backend": "auto",
        "workers": 1,
        "catch_up": "bounded",
        "multiplier": "1",
        "tolerance_percent": 1.0,
        # A user who configures an interface as a port has allowed it.
        "force_interface": True,
        "shares_ports": False,
        "is_visible": False,
        "per_vlan": False,
    }
    return {**defaults, **options}


def max_load(
    streams: dict[int, STLStream], parameters: StreamParameters, mult: Multiplier
) -> tuple[Any, ...]:
    """Returns the maximum load of streams: frames, bits at layer 2 and layer 1 per second."""
    load: tuple[float, float, float] = call_engine(
        native().trex_load, _document(streams), parameters.to_engine(mult)
    )
    return load


class EngineRun:
    """A run of the engine in this process."""

    _run: Any

    def wait_started(self) -> None:
        """Waits until it sends. Raises `TRexError` if it cannot."""
        self._run.wait_started()
        if self._run.wait(0):
            call_engine(self._run.result)

    def is_done(self) -> bool:
        """Returns whether it is over; of streams, whether all frames had time to arrive too."""
        return bool(self._run.wait(0))

    def wait(self, seconds: float = _POLL_S) -> bool:
        """Waits for the end, at most `seconds` and 50 ms. Returns whether it is over."""
        return bool(self._run.wait(min(seconds, _POLL_S)))


class Transmission(EngineRun):
    """A run of streams on an interface, with the receiving port if there is one."""

    def __init__(
        self,
        streams: dict[int, STLStream],
        parameters: StreamParameters,
        mult: Multiplier,
        interface: str,
        receive: tuple[int, str] | None,
        duration: float | None,
        is_visible: bool = False,
        keeps_schedule: bool = False,
    ) -> None:
        """Starts the run.

        With `keeps_schedule`, late frames leave back to back until the schedule is met, as in TRex.
        Otherwise frames that are more than 1 ms late move the schedule.
        """
        self.streams = dict(streams)
        #: Number of the receiving port.
        self.receiver = receive[0] if receive else None
        self.mult = mult
        self.has_duration = duration is not None
        #: Whether packet sockets on its interface see the frames.
        self.is_visible = is_visible
        self.is_paused = False
        #: Whether its result was recorded.
        self.is_recorded = False
        #: Whether it was stopped early.
        self.is_stopped = False
        #: Whether it still has its initial rates.
        self.has_initial_rates = True
        self.started = time.monotonic()
        self._parameters = parameters
        options = send_options(
            duration=None if duration is None else f"{round(duration * 1e9)}ns",
            # Each profile of a port is a separate run.
            shares_ports=True,
            is_visible=is_visible,
            catch_up="bounded:unlimited" if keeps_schedule else "bounded",
            per_vlan=any(it.get_flow_stats_type() == "tpg" for it in streams.values()),
        )
        document = _document(streams)
        self._run = call_engine(
            native().trex_start,
            document,
            parameters.to_engine(mult),
            interface,
            receive[1] if receive else None,
            options,
        )
        self._document: dict[str, Any] | None = None

    def stop(self) -> None:
        """Stops the run and waits for its end."""
        self._run.stop()
        while not self.wait():
            pass

    def pause(self, ids: Iterable[int] | None = None) -> None:
        """Pauses streams, or all."""
        self._send_command("pause", ids)
        self.is_paused = ids is None or self.is_paused

    def resume(self, ids: Iterable[int] | None = None) -> None:
        """Resumes streams, or all."""
        self._send_command("resume", ids)
        self.is_paused = False

    def changed_multiplier(self, mult: Multiplier) -> Multiplier:
        """Applies a change to the current multiplier. Raises if no load would remain."""
        factor = 1.0 if self.mult.unit else self.mult.value
        found = mult.apply_to(self.load(), factor)
        if found.value <= 0:
            raise TRexArgumentError("mult", f"-{mult.value:g}{mult.unit}", "less than what is sent")
        return found

    def update(self, mult: Multiplier, ids: Iterable[int] | None = None) -> None:
        """Changes the rates of streams, or of all. `mult` is absolute; see `changed_multiplier`."""
        chosen = self.streams if ids is None else {one: self.streams[one] for one in ids}
        if ids is None:
            self.mult = mult
        text = _document(chosen, linked=ids is None)
        call_engine(native().trex_update, self._run, text, self._parameters.to_engine(mult))
        self.has_initial_rates = False

    def load(self) -> tuple[Any, ...]:
        """Returns the maximum load of its streams; see `max_load`."""
        return max_load(self.streams, self._parameters, self.mult)

    def cpu_load(self) -> list[float]:
        """Returns the CPU load in each of the last 20 seconds in percent, the latest first."""
        return [] if self.is_done() else list(self._run.load)

    def report(self) -> dict[str, Any] | None:
        """Returns the engine's report; None before the end."""
        if self._document is None and self._run.wait(0):
            self._document = json.loads(call_engine(self._run.result))
        return self._document

    def counters_time(self) -> float:
        """Returns the time of the current counters, by the clock of `time.monotonic`."""
        progress = {} if self.is_done() else self._run.progress() or {}
        return self.started + progress["elapsed_s"] if progress else time.monotonic()

    def sent(self) -> tuple[int, int, int]:
        """Returns frames sent, their bytes without FCS, and failed frames."""
        report = self.report()
        if report is not None:
            tx = report["ports"][0]["tx"]
            return tx["packets"], tx["bytes"], tx["failed"]
        progress = self._run.progress() or {}
        return tuple(progress.get(name, 0) for name in ("packets", "bytes", "failed"))  # type: ignore[return-value]

    def flows(self) -> dict[int, dict[str, Any]]:
        """Returns the counters of each stream by ID.

        `packets`, `bytes`, `received`, `received_bytes`, `duplicated`; at most 100 ms old.
        """
        report = self.report()
        if report is not None:
            unsent = _unsent(report)
            totals = {
                it["name"]: _final_counts(it, unsent.get(it["name"], 0)) for it in report["flows"]
            }
        else:
            progress = (self._run.progress() or {}).get("flows", {})
            totals = {name: _live_counts(*counts) for name, counts in progress.items()}
        return {
            number: totals[_name(number, stream)]
            for number, stream in self.streams.items()
            if _name(number, stream) in totals
        }

    def measured(self, number: int) -> dict[str, Any] | None:
        """Returns the current or final measurements of a stream, as in the engine's report.

        During the run, `lost` counts the frames known to be missing, at the end all that did not
        arrive. None if the stream is not measured.
        """
        name = self._name(number)
        # After the end, the report has the measurements as soon as it is written.
        for _ in range(_REPORT_POLLS):
            report = self.report()
            if report is not None:
                flow = next((it for it in report["flows"] if it["name"] == name), None)
                if flow is None or not flow["measured"]:
                    return None
                return {**flow["measured"][0], "lost": flow["lost"] - _unsent(report).get(name, 0)}
            found = json.loads(self._run.measured(name) or "[]")
            if found:
                return {**found[0], "lost": found[0]["missing"]}
            if self.receiver is None or self._run.progress() is None:
                return None
            self.wait()
        return None

    def _send_command(self, command: str, ids: Iterable[int] | None) -> None:
        names = list(self._run.flows)
        if ids is not None:
            names = [name for name in map(self._name, ids) if name in names]
        self._run.send_command(names, command)
        self.has_initial_rates = False

    def _name(self, number: int) -> str:
        if number not in self.streams:
            raise TRexError(f"stream {number} is not being sent")
        return _name(number, self.streams[number])


def _name(number: int, stream: STLStream) -> str:
    """Returns the name of a stream in the engine."""
    return str(number if stream.get_name() in (None, "") else stream.get_name())


def _document(streams: dict[int, STLStream], linked: bool = True) -> str:
    documents = []
    for number, stream in streams.items():
        document = {"id": number, **stream.to_json()}
        if not linked:
            document.pop("next", None)
        documents.append(document)
    return json.dumps(documents)


def _live_counts(sent: tuple[int, int, int], received_counts: tuple[Any, ...]) -> dict[str, int]:
    packets, size, _ = sent
    received, received_bytes, duplicated, *_ = received_counts
    return {
        "packets": packets,
        "bytes": size,
        "received": received,
        "received_bytes": received_bytes,
        "duplicated": duplicated,
    }


def _final_counts(flow: dict[str, Any], unsent: int) -> dict[str, int]:
    measured = flow["measured"][0] if flow["measured"] else {}
    names = ("received", "received_bytes", "duplicated")
    found = {name: measured.get(name, 0) for name in names}
    packets = flow["packets"] - unsent
    size = round(flow["bytes"] * packets / flow["packets"]) if unsent else flow["bytes"]
    return {"packets": packets, "bytes": size, **found}


def _unsent(report: dict[str, Any]) -> dict[str, int]:
    """Returns the frames of each measured stream that a stopped port did not send.

    A port does not report their streams. They are among the frames behind the last received ones.
    """
    last = {
        flow["name"]: flow["lost"] - flow["measured"][0]["missing"]
        for flow in report["flows"]
        if flow["measured"]
    }
    share = min(report["ports"][0]["tx"]["unsent"] / max(sum(last.values()), 1), 1)
    return {name: round(count * share) for name, count in last.items()}


def call_engine(function: Any, *arguments: Any) -> Any:
    """Calls the engine and converts its errors to `TRexError`."""
    from wirestorm.errors import WirestormError

    try:
        return function(*arguments)
    except (WirestormError, ValueError) as error:
        raise TRexError(_rewrite_in_use(str(error))) from error


def _rewrite_in_use(message: str) -> str:
    """Rewrites the message about an interface that another run of this process uses.

    Scripts know neither run numbers nor shared access.
    """
    found = _IN_USE.search(message)
    if found is None:
        return message
    return message.replace(
        found[0],
        f"{found['where']} by this process: stop() the traffic of the other client or run "
        "there, or wait for its end",
    )
