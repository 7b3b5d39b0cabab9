"""Streams on their way from a port: a run of the engine, in this process."""

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

# How long a wait lasts before Python looks for signals.
_LOOK_S = 0.05
# How often a report is looked for when measuring has ended: for half a second.
_LOOKS_FOR_REPORT = 10
# The engine's message about an interface that another run of this process has.
_IN_USE = re.compile(r"(?P<where>\S+ is in use) by run \d+\b.*: wait for it to end, .* access")


def native() -> ModuleType:
    """The engine. Raises `TRexError` where it is not installed."""
    try:
        from wirestorm import _native
    except ImportError as error:
        raise TRexError(
            f"sending needs the package wirestorm ({error}); from a checkout: "
            "pip install ./python/wirestorm"
        ) from error
    return _native


class Terms:
    """How a port's streams are understood: its line, its addresses."""

    def __init__(self, speed: str, source: str, destination: str) -> None:
        self.speed = speed
        self.source = source
        self.destination = destination

    def with_(self, mult: Multiplier) -> dict[str, str]:
        """As the engine takes them."""
        return {
            "multiplier": str(mult),
            "speed": self.speed,
            "source": self.source,
            "destination": self.destination,
        }


def how_to_send(**options: Any) -> dict[str, Any]:
    """How ports send, as the engine takes it."""
    how = {
        "duration": None,
        "backend": "auto",
        "workers": 1,
        "catch_up": "bounded",
        "multiplier": "1",
        "tolerance_percent": 1.0,
        # Whoever makes an interface a port has decided that.
        "force_interface": True,
        "beside_others": False,
        "is_visible": False,
        "per_vlan": False,
    }
    return {**how, **options}


def load_of(streams: dict[int, STLStream], terms: Terms, mult: Multiplier) -> tuple[Any, ...]:
    """What streams send together at most: frames, bits at layer 2 and at layer 1 a second."""
    load: tuple[float, float, float] = asked(
        native().trex_load, _document(streams), terms.with_(mult)
    )
    return load


class Transmission:
    """A run of streams from an interface, received at that of another port or nowhere."""

    def __init__(
        self,
        streams: dict[int, STLStream],
        terms: Terms,
        mult: Multiplier,
        interface: str,
        receive: tuple[int, str] | None,
        duration: float | None,
        is_visible: bool = False,
        keeps_time: bool = False,
    ) -> None:
        """With `keeps_time` late frames leave one after the other until the time is caught up, as
        those of TRex do; otherwise what is later than 1 ms moves the schedule."""
        self.streams = dict(streams)
        #: The number of the port where its frames should arrive.
        self.receiver = receive[0] if receive else None
        self.mult = mult
        self.has_duration = duration is not None
        #: Whether packet sockets on its interface see what is sent.
        self.is_visible = is_visible
        self.is_paused = False
        #: Whether what came of it was noted.
        self.is_told = False
        #: Whether it was stopped before all had been sent.
        self.is_stopped = False
        #: Whether its rates are still those that it began with.
        self.is_steady = True
        self.started = time.monotonic()
        self._terms = terms
        how = how_to_send(
            duration=None if duration is None else f"{round(duration * 1e9)}ns",
            # A port's profiles are runs of their own.
            beside_others=True,
            is_visible=is_visible,
            catch_up="bounded:unlimited" if keeps_time else "bounded",
            per_vlan=any(it.get_flow_stats_type() == "tpg" for it in streams.values()),
        )
        document = _document(streams)
        self._run = asked(
            native().trex_start,
            document,
            terms.with_(mult),
            interface,
            receive[1] if receive else None,
            how,
        )
        self._document: dict[str, Any] | None = None

    def wait_started(self) -> None:
        """Waits until frames leave. Raises `TRexError` where they cannot."""
        self._run.wait_started()
        if self._run.wait(0):
            asked(self._run.result)

    def is_done(self) -> bool:
        """Whether all has been sent, and has had the time to arrive."""
        return bool(self._run.wait(0))

    def wait(self, seconds: float = _LOOK_S) -> bool:
        """Waits for the end, at most so long; whether it has come."""
        return bool(self._run.wait(min(seconds, _LOOK_S)))

    def stop(self) -> None:
        """Ends sending, and waits for it."""
        self._run.stop()
        while not self.wait():
            pass

    def pause(self, ids: Iterable[int] | None = None) -> None:
        """Holds streams, or all."""
        self._give("pause", ids)
        self.is_paused = ids is None or self.is_paused

    def resume(self, ids: Iterable[int] | None = None) -> None:
        """Lets streams go on, or all."""
        self._give("resume", ids)
        self.is_paused = False

    def after(self, mult: Multiplier) -> Multiplier:
        """What a change makes of its multiplier of now. Raises where nothing would be left."""
        factor = 1.0 if self.mult.unit else self.mult.value
        found = mult.after(self.load(), factor)
        if found.value <= 0:
            raise TRexArgumentError("mult", f"-{mult.value:g}{mult.unit}", "less than what is sent")
        return found

    def update(self, mult: Multiplier, ids: Iterable[int] | None = None) -> None:
        """Sends streams, or all, at other rates; `mult` changes nothing of now: see `after`."""
        chosen = self.streams if ids is None else {one: self.streams[one] for one in ids}
        if ids is None:
            self.mult = mult
        text = _document(chosen, linked=ids is None)
        asked(native().trex_update, self._run, text, self._terms.with_(mult))
        self.is_steady = False

    def load(self) -> tuple[Any, ...]:
        """What its streams send together at most: see `load_of`."""
        return load_of(self.streams, self._terms, self.mult)

    def busy(self) -> list[float]:
        """Percent of a CPU that sending took in each of the last 20 seconds, the latest first."""
        return [] if self.is_done() else list(self._run.load)

    def report(self) -> dict[str, Any] | None:
        """The engine's report, once it is there."""
        if self._document is None and self._run.wait(0):
            self._document = json.loads(asked(self._run.result))
        return self._document

    def told_at(self) -> float:
        """The time of the counters that are told now, by the clock of `time.monotonic`."""
        progress = {} if self.is_done() else self._run.progress() or {}
        return self.started + progress["elapsed_s"] if progress else time.monotonic()

    def sent(self) -> tuple[int, int, int]:
        """Frames that left, their bytes without FCS, frames that the interface refused."""
        report = self.report()
        if report is not None:
            tx = report["ports"][0]["tx"]
            return tx["packets"], tx["bytes"], tx["failed"]
        progress = self._run.progress() or {}
        return tuple(progress.get(name, 0) for name in ("packets", "bytes", "failed"))  # type: ignore[return-value]

    def flows(self) -> dict[int, dict[str, Any]]:
        """What was sent and what arrived of each stream, by its number.

        `packets`, `bytes`, `received`, `received_bytes`, `duplicated`; a tenth of a second old.
        """
        report = self.report()
        if report is not None:
            unsent = _unsent(report)
            named = {it["name"]: _reported(it, unsent.get(it["name"], 0)) for it in report["flows"]}
        else:
            progress = (self._run.progress() or {}).get("flows", {})
            named = {name: _counted(*counts) for name, counts in progress.items()}
        return {
            number: named[_name(number, stream)]
            for number, stream in self.streams.items()
            if _name(number, stream) in named
        }

    def measured(self, number: int) -> dict[str, Any] | None:
        """What was measured of a stream, of this moment or in the end.

        As in the engine's report; `lost` is what is known to be missing, and in the end all that
        did not arrive. None where nothing is measured.
        """
        name = self._name(number)
        # What has ended is in the report as soon as that is written.
        for _ in range(_LOOKS_FOR_REPORT):
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

    def _give(self, order: str, ids: Iterable[int] | None) -> None:
        names = list(self._run.flows)
        if ids is not None:
            names = [name for name in map(self._name, ids) if name in names]
        self._run.give(names, order)
        self.is_steady = False

    def _name(self, number: int) -> str:
        if number not in self.streams:
            raise TRexError(f"there is no stream {number} on its way")
        return _name(number, self.streams[number])


def _name(number: int, stream: STLStream) -> str:
    """What the engine calls a stream."""
    return str(number if stream.get_name() in (None, "") else stream.get_name())


def _document(streams: dict[int, STLStream], linked: bool = True) -> str:
    documents = []
    for number, stream in streams.items():
        document = {"id": number, **stream.to_json()}
        if not linked:
            document.pop("next", None)
        documents.append(document)
    return json.dumps(documents)


def _counted(left: tuple[int, int, int], arrived: tuple[Any, ...]) -> dict[str, int]:
    packets, size, _ = left
    received, received_bytes, duplicated, *_ = arrived
    return {
        "packets": packets,
        "bytes": size,
        "received": received,
        "received_bytes": received_bytes,
        "duplicated": duplicated,
    }


def _reported(flow: dict[str, Any], unsent: int) -> dict[str, int]:
    measured = flow["measured"][0] if flow["measured"] else {}
    names = ("received", "received_bytes", "duplicated")
    found = {name: measured.get(name, 0) for name in names}
    packets = flow["packets"] - unsent
    size = round(flow["bytes"] * packets / flow["packets"]) if unsent else flow["bytes"]
    return {"packets": packets, "bytes": size, **found}


def _unsent(report: dict[str, Any]) -> dict[str, int]:
    """Frames of each measured stream that the port had and did not send, because it was stopped.

    A port does not tell whose they were; they are among those behind the last ones that arrived.
    """
    last = {
        flow["name"]: flow["lost"] - flow["measured"][0]["missing"]
        for flow in report["flows"]
        if flow["measured"]
    }
    share = min(report["ports"][0]["tx"]["unsent"] / max(sum(last.values()), 1), 1)
    return {name: round(count * share) for name, count in last.items()}


def asked(function: Any, *arguments: Any) -> Any:
    """Asks the engine; what it refuses is a `TRexError`."""
    from wirestorm.errors import WirestormError

    try:
        return function(*arguments)
    except (WirestormError, ValueError) as error:
        raise TRexError(_of_here(str(error))) from error


def _of_here(message: str) -> str:
    """What to do in a script about an interface that another run of this process has: scripts know
    neither runs by their numbers nor shared access."""
    found = _IN_USE.search(message)
    if found is None:
        return message
    return message.replace(
        found[0],
        f"{found['where']} by this process itself: stop() what another client or a run of it "
        "sends there, or wait for its end",
    )
