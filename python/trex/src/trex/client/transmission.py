"""Streams on their way from a port: a run of the engine, in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trex.client.multiplier import Multiplier
from trex.errors import TRexError
from trex.stl.streams import STLStream

if TYPE_CHECKING:
    from types import ModuleType

# How long a wait lasts before Python looks for signals.
_LOOK_S = 0.05


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
    ) -> None:
        self.streams = dict(streams)
        #: The number of the port where its frames should arrive.
        self.receiver = receive[0] if receive else None
        self.mult = mult
        self.has_duration = duration is not None
        self.is_paused = False
        #: What the kernel had counted at that port before.
        self.counted_before: dict[str, int] | None = None
        #: Whether what came of it was noted.
        self.is_told = False
        #: Whether its rates are still those that it began with.
        self.is_steady = True
        self.started = time.monotonic()
        self._terms = terms
        how = {
            "duration": None if duration is None else f"{round(duration * 1e9)}ns",
            "backend": "auto",
            "workers": 1,
            "catch_up": "bounded",
            "multiplier": "1",
            # Whoever makes an interface a port has decided that.
            "force_interface": True,
        }
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

    def update(self, mult: Multiplier, ids: Iterable[int] | None = None) -> None:
        """Sends streams, or all, at other rates."""
        chosen = self.streams if ids is None else {one: self.streams[one] for one in ids}
        if ids is None:
            factor = 1.0 if self.mult.unit else self.mult.value
            mult = mult.after(load_of(chosen, self._terms, self.mult), factor)
            self.mult = mult
        elif mult.sign:
            raise TRexError("the rate of single streams cannot be changed by + or -")
        text = _document(chosen, linked=ids is None)
        asked(native().trex_update, self._run, text, self._terms.with_(mult))
        self.is_steady = False

    def report(self) -> dict[str, Any] | None:
        """The engine's report, once it is there."""
        if self._document is None and self._run.wait(0):
            self._document = json.loads(asked(self._run.result))
        return self._document

    def sent(self) -> tuple[int, int, int]:
        """Frames that left, their bytes without FCS, frames that the interface refused."""
        report = self.report()
        if report is not None:
            port = report["ports"][0]
            return port["packets"], port["bytes"], port["failed"]
        progress = self._run.progress() or {}
        return tuple(progress.get(name, 0) for name in ("packets", "bytes", "failed"))  # type: ignore[return-value]

    def flows(self) -> dict[int, dict[str, Any]]:
        """What was sent and measured of each stream, by its number.

        `packets`, `bytes`, `received`, `received_bytes`, `duplicated`, `reordered`,
        `delay_mean_ns`; with `lost` and `measured` at the end.
        """
        report = self.report()
        if report is not None:
            named = {flow["name"]: _reported(flow) for flow in report["flows"]}
        else:
            progress = (self._run.progress() or {}).get("flows", {})
            named = {name: _counted(*counts) for name, counts in progress.items()}
        return {
            number: named[_name(number, stream)]
            for number, stream in self.streams.items()
            if _name(number, stream) in named
        }

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


def _counted(left: tuple[int, int, int], arrived: tuple[Any, ...]) -> dict[str, Any]:
    packets, size, _ = left
    received, duplicated, reordered, delay = arrived
    return {
        "packets": packets,
        "bytes": size,
        "received": received,
        # What has arrived so far is as long as what left, in the mean.
        "received_bytes": round((received + duplicated) * size / packets) if packets else 0,
        "duplicated": duplicated,
        "reordered": reordered,
        "delay_mean_ns": delay,
    }


def _reported(flow: dict[str, Any]) -> dict[str, Any]:
    measured = flow["measured"][0] if flow["measured"] else None
    of = measured or {}
    return {
        "packets": flow["packets"],
        "bytes": flow["bytes"],
        "received": of.get("received", 0),
        "received_bytes": of.get("received_bytes", 0),
        "duplicated": of.get("duplicated", 0),
        "reordered": of.get("reordered", 0),
        "delay_mean_ns": measured and measured["delay"]["mean_ns"],
        "lost": flow["lost"] or 0,
        "measured": measured,
    }


def asked(function: Any, *arguments: Any) -> Any:
    """Asks the engine; what it refuses is a `TRexError`."""
    from wirestorm.errors import WirestormError

    try:
        return function(*arguments)
    except (WirestormError, ValueError) as error:
        raise TRexError(str(error)) from error
