"""Runs, simulations, frames to look at."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wirestorm import _native
from wirestorm._plain import Time, time_text
from wirestorm._waiting import wait_for_end
from wirestorm.errors import Interrupted, RunError
from wirestorm.plan import AnyPlan, text_of
from wirestorm.reports import MeasuredReport
from wirestorm.result import Result, measured_reports

if TYPE_CHECKING:
    from wirestorm._native import How


@dataclass(frozen=True)
class FlowCount:
    """What was sent of a flow so far, and what has arrived of it where it is measured.

    Frames, their bytes without FCS, frames left out because they were late; frames that arrived,
    the bytes of all arrivals, further copies of frames, frames that arrived after one sent later,
    and their mean delay.
    """

    packets: int
    bytes: int
    unsent: int
    received: int
    received_bytes: int
    duplicated: int
    reordered: int
    delay_mean_ns: float | None


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Frames that left, their bytes without FCS, frames that interfaces refused, and each flow's.
    """

    elapsed_s: float
    packets: int
    bytes: int
    failed: int
    flows: dict[str, FlowCount]


class Running:
    """A run that goes on by itself; see `wirestorm.start`.

    Flows are told by their names. What is asked of them happens 25 ms later, on all workers at the
    same instant. As a context manager it ends the run at the end of the block and waits for it.
    """

    def __init__(self, native: _native.Run) -> None:
        self._native = native

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._native.wait()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._native.wait(0)

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        told = self._native.progress()
        if told is None:
            return Progress(0.0, 0, 0, 0, {})
        counts = told.pop("flows").items()
        flows = {name: FlowCount(*left, *arrived) for name, (left, arrived) in counts}
        return Progress(flows=flows, **told)

    def measured(self, flow: str) -> list[MeasuredReport]:
        """What was measured of a flow so far, at each port where it should arrive.

        Raises `RunError` where the run has ended: then `wait` gives all of it.
        """
        told = self._native.measured(flow)
        if told is None:
            raise RunError("the run has ended: its result has what was measured")
        return measured_reports(json.loads(told))

    def stop(self, *flows: str) -> None:
        """Ends the run, or flows of these names; returns at once."""
        if flows:
            self._native.give(list(flows), "stop")
        else:
            self._native.stop()

    def start(self, *flows: str) -> None:
        """Starts flows that have ended, or that wait to be named."""
        self._native.give(list(flows), "start")

    def pause(self, *flows: str) -> None:
        """Holds flows; frames that a port was given ahead of their time still leave."""
        self._native.give(list(flows), "pause")

    def resume(self, *flows: str) -> None:
        """Lets flows go on where they were held."""
        self._native.give(list(flows), "resume")

    def set_rate(self, rate: str, *flows: str) -> None:
        """Sends flows at another rate: `"1Mpps"`, `"10G-l1"`, `"10G-l2"` or `"max"`."""
        self._native.give(list(flows), "rate", rate)

    def scale(self, factor: float, *flows: str) -> None:
        """Sends flows at so many times the rate that the plan has for them."""
        self._native.give(list(flows), "scale", f"{factor:.9f}")

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Result:
        """Waits for the end and gives the result.

        :param timeout: seconds; `TimeoutError` after them, while the run goes on
        :param progress: is called about ten times a second
        :raises Interrupted: after Ctrl-C, which ends the run; with what was measured
        :raises RunError: where the run did not begin, or something went wrong in it
        """
        tell = None if progress is None else lambda: progress(self.progress)
        if wait_for_end(self._native, timeout, tell):
            raise Interrupted(self._result())
        result = self._result()
        if result.errors:
            raise RunError("\n".join(result.errors), result)
        return result

    def _result(self) -> Result:
        return Result.from_dict(json.loads(self._native.result()))


def start(
    plan: AnyPlan,
    ports: Mapping[str, str] | None = None,
    *,
    duration: Time | None = None,
    backend: str = "auto",
    workers: int = 1,
    catch_up: str = "bounded",
    multiplier: str = "1",
    tolerance_percent: float = 1,
    force_interface: bool = False,
    per_vlan: bool = False,
) -> Running:
    """Starts a run and leaves it to itself; arguments are those of `run`.

    >>> with start(plan, {"left": "eth1"}) as running:
    ...     time.sleep(1)
    ...     print(running.progress.packets)
    """
    how: How = {
        "duration": None if duration is None else time_text(duration),
        "backend": backend,
        "workers": workers,
        "catch_up": catch_up,
        "multiplier": multiplier,
        "tolerance_percent": tolerance_percent,
        "force_interface": force_interface,
        "beside_others": False,
        "is_visible": False,
        "per_vlan": per_vlan,
    }
    native = _native.Run(*text_of(plan), dict(ports or {}), how)
    native.wait_started()
    if native.wait(0):
        # Tells why, where it did not begin.
        native.result()
    return Running(native)


def run(
    plan: AnyPlan,
    ports: Mapping[str, str] | None = None,
    *,
    duration: Time | None = None,
    backend: str = "auto",
    workers: int = 1,
    catch_up: str = "bounded",
    multiplier: str = "1",
    tolerance_percent: float = 1,
    force_interface: bool = False,
    per_vlan: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Result:
    """Sends a plan's flows, and reports what left and what arrived.

    :param plan: a `Plan`, or the path of a file in YAML or JSON
    :param ports: the interfaces of the plan's ports by name, where the plan does not say them:
        `{"left": "eth1", "right": "netns/b:veth1"}`
    :param duration: nothing is sent for longer
    :param backend: what carries the frames: `auto`, `af_packet`, `af_xdp`, `xdp` or `memory`
    :param workers: threads that share every flow
    :param catch_up: what becomes of late frames: `bounded:MS`, `strict:MS` or `stretch`
    :param multiplier: a factor for all rates (`"2"`), or what each port's flows send together:
        `"50%"` of its speed, `"10kpps"`, `"1gbps"` (with FCS), `"1gbpsl1"` (all of the wire)
    :param tolerance_percent: a rate that is off by more is a reason in the result's `verdict`
    :param force_interface: send also on the interface that carries the default route
    :param per_vlan: count arrivals of measured flows by their VLAN tags too: `measured[0].tags`
    :param progress: is called about ten times a second with how far the run has come
    :raises PlanError: where the plan makes no sense
    :raises RunError: where nothing can be sent, or something goes wrong while sending
    :raises Interrupted: after Ctrl-C, which ends the run; with what was measured
    """
    running = start(
        plan,
        ports,
        duration=duration,
        backend=backend,
        workers=workers,
        catch_up=catch_up,
        multiplier=multiplier,
        tolerance_percent=tolerance_percent,
        force_interface=force_interface,
        per_vlan=per_vlan,
    )
    with running:
        return running.wait(progress=progress)


class Frame(NamedTuple):
    """A frame that a flow would send."""

    flow: str
    """The flow's name."""
    departure_ns: int
    """When it would leave, in nanoseconds since the start of its flow."""
    data: bytes
    """The frame without FCS."""


def frames(plan: AnyPlan, count: int = 3, *, speed: str = "10G") -> list[Frame]:
    """The first `count` frames of each flow; nothing is sent.

    :param speed: bits a second of ports whose speed the plan does not say
    :raises PlanError: where the plan makes no sense
    """
    return [Frame(*frame) for frame in _native.frames(*text_of(plan), count, speed)]


class Simulated(NamedTuple):
    """What a port would have sent."""

    port: str
    """Its name in the plan."""
    file: Path
    """The capture."""
    packets: int
    """Frames in it."""
    bytes: int
    """Their bytes without FCS."""


def simulate(
    plan: AnyPlan,
    output: str | os.PathLike[str],
    *,
    packets: int | None = None,
    duration: Time | None = None,
    speed: str = "10G",
    multiplier: str = "1",
) -> list[Simulated]:
    """Writes what a plan would send, and when, to capture files; nothing is sent.

    :param output: the file; with several transmitting ports one for each, with the port's name
        before the suffix
    :param packets: frames for each port at most
    :param duration: simulated time at most
    :param speed: bits a second of ports whose speed the plan does not say
    :param multiplier: what rates are multiplied by, as for `run`
    :raises PlanError: where the plan makes no sense
    :raises RunError: where a file cannot be written
    """
    if packets is None and duration is None:
        raise ValueError("a simulation needs an end: packets or duration")
    limit = None if duration is None else time_text(duration)
    simulated = _native.simulation(*text_of(plan), output, packets, limit, speed, multiplier)
    return [Simulated(port, Path(file), *counts) for port, file, *counts in simulated]


def line_rate(speed: str, frame_size: int) -> float:
    """Frames a second that a wire of so many bits a second (`"10G"`) carries at most."""
    return _native.line_rate(speed, frame_size)
