"""Runs, simulations and previews of frames."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wirestorm import _native
from wirestorm._plan_values import Time, time_text
from wirestorm._wait import wait_for_end
from wirestorm.errors import Interrupted, RunError
from wirestorm.plan import AnyPlan, plan_text
from wirestorm.reports import MeasuredReport
from wirestorm.result import Result, measured_reports

if TYPE_CHECKING:
    from wirestorm._native import How


@dataclass(frozen=True)
class FlowCount:
    """Counters of a flow during a run. The last five require a measured flow.

    Frames sent, their bytes without FCS, late frames skipped; frames received, the bytes of all
    received frames, duplicates, reordered frames, and the mean delay.
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
    """Progress of a run.

    Frames sent, their bytes without FCS, frames that failed to send, and the counters of each flow.
    """

    elapsed_s: float
    packets: int
    bytes: int
    failed: int
    flows: dict[str, FlowCount]


class ActiveRun:
    """A background run; see `wirestorm.start`.

    Flows are identified by name. Commands to flows take effect after 25 ms, at the same instant on
    all workers. As a context manager, it stops the run at the end of the block and waits for its
    end.
    """

    def __init__(self, native: _native.Run) -> None:
        self._native = native

    def __enter__(self) -> ActiveRun:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._native.wait()

    @property
    def is_done(self) -> bool:
        """Whether the run is over."""
        return self._native.wait(0)

    @property
    def progress(self) -> Progress:
        """Progress of the run."""
        report = self._native.progress()
        if report is None:
            return Progress(0.0, 0, 0, 0, {})
        counts = report.pop("flows").items()
        flows = {name: FlowCount(*sent, *received) for name, (sent, received) in counts}
        return Progress(flows=flows, **report)

    def measured(self, flow: str) -> list[MeasuredReport]:
        """Returns the current measurements of a flow at each of its receiving ports.

        Raises `RunError` if the run has ended. Then `wait` returns the result.
        """
        report = self._native.measured(flow)
        if report is None:
            raise RunError("the run has ended; wait() returns its result")
        return measured_reports(json.loads(report))

    def stop(self, *flows: str) -> None:
        """Stops the run, or only these flows. Returns at once."""
        if flows:
            self._native.send_command(list(flows), "stop")
        else:
            self._native.stop()

    def start(self, *flows: str) -> None:
        """Starts flows that have ended or that wait for a trigger."""
        self._native.send_command(list(flows), "start")

    def pause(self, *flows: str) -> None:
        """Pauses flows. Frames that the port has queued already still leave."""
        self._native.send_command(list(flows), "pause")

    def resume(self, *flows: str) -> None:
        """Resumes paused flows."""
        self._native.send_command(list(flows), "resume")

    def set_rate(self, rate: str, *flows: str) -> None:
        """Changes the rate of flows: `"1Mpps"`, `"10G-l1"`, `"10G-l2"` or `"max"`."""
        self._native.send_command(list(flows), "rate", rate)

    def scale(self, factor: float, *flows: str) -> None:
        """Changes the rate of flows to a multiple of the plan's rate."""
        self._native.send_command(list(flows), "scale", f"{factor:.9f}")

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> Result:
        """Waits for the end and returns the result.

        :param timeout: seconds; then raises `TimeoutError`, and the run continues
        :param progress: callback, called about ten times a second
        :raises Interrupted: after Ctrl-C, which stops the run; has the result so far
        :raises RunError: if the run did not begin, or an error occurred
        """
        on_progress = None if progress is None else lambda: progress(self.progress)
        if wait_for_end(self._native, timeout, on_progress):
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
) -> ActiveRun:
    """Starts a run in the background. The arguments are those of `run`.

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
        "shares_ports": False,
        "is_visible": False,
        "per_vlan": per_vlan,
    }
    native = _native.Run(*plan_text(plan), dict(ports or {}), how)
    native.wait_started()
    if native.wait(0):
        # Raises the error if the run did not begin.
        native.result()
    return ActiveRun(native)


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
    """Sends the flows of a plan and returns the result.

    :param plan: a `Plan`, or the path of a file in YAML or JSON
    :param ports: interfaces of the plan's ports by name, where the plan does not have them:
        `{"left": "eth1", "right": "netns/b:veth1"}`
    :param duration: time limit of the run
    :param backend: `auto`, `af_packet`, `af_xdp`, `xdp` or `memory`
    :param workers: number of threads that share each flow
    :param catch_up: policy for late frames: `bounded:MS`, `strict:MS` or `stretch`
    :param multiplier: a factor for all rates (`"2"`), or the total load of each port: `"50%"` of
        its speed, `"10kpps"`, `"1gbps"` (frames with FCS), `"1gbpsl1"` (line rate)
    :param tolerance_percent: largest rate error that does not fail the result's `verdict`
    :param force_interface: send even on the interface of the default route
    :param per_vlan: count received frames of measured flows by VLAN tag: `measured[0].tags`
    :param progress: callback, called about ten times a second with the progress
    :raises PlanError: if the plan is invalid
    :raises RunError: if the run cannot send, or an error occurs while it sends
    :raises Interrupted: after Ctrl-C, which stops the run; has the result so far
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
    """A frame of a flow."""

    flow: str
    """Name of the flow."""
    departure_ns: int
    """Departure time in nanoseconds since the start of the flow."""
    data: bytes
    """Bytes of the frame without FCS."""


def frames(plan: AnyPlan, count: int = 3, *, speed: str = "10G") -> list[Frame]:
    """Returns the first `count` frames of each flow, without sending them.

    :param speed: bits per second of ports without `speed` in the plan
    :raises PlanError: if the plan is invalid
    """
    return [Frame(*frame) for frame in _native.frames(*plan_text(plan), count, speed)]


class SimulatedPort(NamedTuple):
    """Simulated frames of a port."""

    port: str
    """Name of the port in the plan."""
    file: Path
    """Path of the capture file."""
    packets: int
    """Number of frames."""
    bytes: int
    """Bytes of the frames without FCS."""


def simulate(
    plan: AnyPlan,
    output: str | os.PathLike[str],
    *,
    packets: int | None = None,
    duration: Time | None = None,
    speed: str = "10G",
    multiplier: str = "1",
) -> list[SimulatedPort]:
    """Simulates a plan and writes its frames with their times to capture files.

    :param output: capture file; several sending ports have one each, with the port's name before
        the suffix
    :param packets: maximum number of frames of each port
    :param duration: maximum simulated time
    :param speed: bits per second of ports without `speed` in the plan
    :param multiplier: multiplier of rates, as in `run`
    :raises PlanError: if the plan is invalid
    :raises RunError: if a file cannot be written
    """
    if packets is None and duration is None:
        raise ValueError("a simulation requires an end: packets or duration")
    limit = None if duration is None else time_text(duration)
    simulated = _native.simulation(*plan_text(plan), output, packets, limit, speed, multiplier)
    return [SimulatedPort(port, Path(file), *counts) for port, file, *counts in simulated]


def line_rate(speed: str, frame_size: int) -> float:
    """Returns the maximum frame rate of a speed in bits per second, such as `"10G"`."""
    return _native.line_rate(speed, frame_size)
