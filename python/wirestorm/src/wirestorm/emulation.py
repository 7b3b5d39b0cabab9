"""Emulations of clients and servers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from wirestorm import _native
from wirestorm._plan_values import Time, time_text
from wirestorm._wait import wait_for_end
from wirestorm.errors import Interrupted, RunError
from wirestorm.plan import plan_text
from wirestorm.reports import PortReport
from wirestorm.result import Result, port_reports

if TYPE_CHECKING:
    from wirestorm._native import EmulationHow

#: Path of a plan of clients and servers in YAML or JSON, or its plain values.
AnyEmulationPlan = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@dataclass(frozen=True)
class EmulationCount:
    """Counters of a port during a run.

    Established connections, open connections, failed connections, bytes received in sequence, and
    retransmitted segments.
    """

    connects: int
    active: int
    failed: int
    received_bytes: int
    retransmitted: int


@dataclass(frozen=True)
class EmulationProgress:
    """Progress of an emulation: the counters of each port by its name in the plan."""

    elapsed_s: float
    ports: dict[str, EmulationCount]


class ActiveEmulation:
    """A background run of clients and servers; see `wirestorm.start_emulation`.

    As a context manager, it stops the run at the end of the block and waits for its end.
    """

    def __init__(self, native: _native.Emulation) -> None:
        self._native = native

    def __enter__(self) -> ActiveEmulation:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._native.wait()

    @property
    def is_done(self) -> bool:
        """Whether the run is over."""
        return self._native.wait(0)

    @property
    def progress(self) -> EmulationProgress:
        """Progress of the run, at most 50 ms old."""
        report = self._native.progress()
        if report is None:
            return EmulationProgress(0.0, {})
        ports = {name: EmulationCount(**counts) for name, counts in report["ports"].items()}
        return EmulationProgress(report["elapsed_s"], ports)

    def ports(self) -> list[PortReport]:
        """Returns the current reports of all ports, as in a result.

        The worker threads of the ports collect them, which takes some microseconds for each
        template.

        Raises `RunError` if the run has ended. Then `wait` returns the result.
        """
        report = self._native.reports("all")
        if report is None:
            raise RunError("the run has ended; wait() returns its result")
        return port_reports(json.loads(report))

    def set_load(self, factor: float) -> None:
        """Multiplies the initial loads: rates, numbers of concurrent flows, throughputs.

        Raises `PlanError` if a rate becomes too small or too large.
        """
        self._native.set_load(f"{factor:.9f}")

    def switch_clients(self, *clients: str, on: bool) -> None:
        """Switches clients off or on: addresses, or ranges such as `10.0.0.1-10.0.0.9`.

        A client that is off opens no connections; the next client opens them instead. Its open
        connections continue.
        """
        ends = (it.partition("-") for it in clients)
        ranges = [(first.strip(), last.strip() or first.strip()) for first, _, last in ends]
        self._native.switch_clients(ranges, on)

    def change_tunnels(
        self,
        clients: str,
        *,
        teid: int,
        source: str,
        destination: str,
        teid_step: int = 1,
        source_port: int = 0,
    ) -> None:
        """Replaces the tunnels of a client or a range of clients, on all ports with tunnels.

        :param teid: TEID of the first client
        :param source: tunnel endpoint on the clients' side
        :param destination: remote tunnel endpoint
        :param teid_step: increment of the TEID for each next client
        :param source_port: UDP source port; 0: source port of the inner packet
        """
        first, _, last = (it.strip() for it in clients.partition("-"))
        ends = (first, last or first, teid, teid_step, source, destination, source_port)
        self._native.change_tunnels([ends])

    def end_load(self) -> None:
        """Stops opening connections. Open connections have `drain_timeout` to finish."""
        self._native.end_load()

    def stop(self) -> None:
        """Stops the run at once, whatever is open. Does not wait."""
        self._native.stop()

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[EmulationProgress], object] | None = None,
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


def start_emulation(
    plan: AnyEmulationPlan,
    ports: Mapping[str, str] | None = None,
    *,
    duration: Time | None = None,
    drain_timeout: Time = "2s",
    link_down_timeout: Time = "30s",
    rx_coalesce: Time = "50us",
    interval: Time = "1s",
    follow: int = 0,
    backend: str = "auto",
    multiplier: float = 1,
    flows_max: int = 1_000_000,
    seed: int | None = None,
    force_interface: bool = False,
    verify_checksums: bool = False,
) -> ActiveEmulation:
    """Starts clients and servers in the background. The arguments are those of `emulate`.

    >>> with start_emulation("pages.yaml", {"clients": "eth1", "servers": "eth2"}) as running:
    ...     running.set_load(2)
    ...     print(running.progress.ports["clients"].connects)
    """
    how: EmulationHow = {
        "duration": None if duration is None else time_text(duration),
        "drain_timeout": time_text(drain_timeout),
        "drain_timeout_flag": "drain_timeout",
        "link_down_timeout": time_text(link_down_timeout),
        "rx_coalesce": time_text(rx_coalesce),
        "interval": time_text(interval),
        "follow": follow,
        "backend": backend,
        "multiplier": f"{multiplier:.9f}",
        "flows_max": flows_max,
        "seed": seed,
        "force_interface": force_interface,
        "shares_ports": False,
        "is_visible": False,
        "verify_checksums": verify_checksums,
    }
    native = _native.Emulation(*plan_text(plan), dict(ports or {}), how)
    native.wait_started()
    if native.wait(0):
        # Raises the error if the run did not begin.
        native.result()
    return ActiveEmulation(native)


def emulate(
    plan: AnyEmulationPlan,
    ports: Mapping[str, str] | None = None,
    *,
    duration: Time | None = None,
    drain_timeout: Time = "2s",
    link_down_timeout: Time = "30s",
    rx_coalesce: Time = "50us",
    interval: Time = "1s",
    follow: int = 0,
    backend: str = "auto",
    multiplier: float = 1,
    flows_max: int = 1_000_000,
    seed: int | None = None,
    force_interface: bool = False,
    verify_checksums: bool = False,
    progress: Callable[[EmulationProgress], object] | None = None,
) -> Result:
    """Emulates the clients and servers of a plan, and returns the result.

    :param plan: path of a file in YAML or JSON, or its plain values
    :param ports: interfaces of the plan's ports by name, where the plan does not have them:
        `{"clients": "eth1", "servers": "netns/b:veth1"}`
    :param duration: time in which connections start; default: until the plan's limits are reached,
        or until Ctrl-C
    :param drain_timeout: time for open connections to finish after that
    :param link_down_timeout: stops the run if an interface stays down for this time
    :param rx_coalesce: maximum receive delay under load, to save CPU time: at 32 flows or more with
        20,000 frames per second or more; measured times have this resolution then
    :param interval: interval of the time series in `connections.series`
    :param follow: number of flows sampled on each port at the end of each interval:
        `connections.sampled_flows`
    :param backend: `auto`, `af_packet` or `af_xdp`
    :param multiplier: a factor for loads: connections per second, concurrent connections, users,
        and bits per second
    :param flows_max: maximum concurrent connections on each port
    :param seed: seed for sequence numbers, delays and first client ports; default: random
    :param force_interface: send even on the interface of the default route
    :param verify_checksums: verify checksums on virtual interfaces with AF_XDP too; not if a Linux
        host at the other end leaves them to its interface
    :param progress: callback, called about ten times a second with the progress
    :raises PlanError: if the plan is invalid
    :raises RunError: if the run cannot send, or an error occurs
    :raises Interrupted: after Ctrl-C, which stops the run; has the result so far
    """
    running = start_emulation(
        plan,
        ports,
        duration=duration,
        drain_timeout=drain_timeout,
        link_down_timeout=link_down_timeout,
        rx_coalesce=rx_coalesce,
        interval=interval,
        follow=follow,
        backend=backend,
        multiplier=multiplier,
        flows_max=flows_max,
        seed=seed,
        force_interface=force_interface,
        verify_checksums=verify_checksums,
    )
    with running:
        return running.wait(progress=progress)
