"""Emulated clients and servers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from wirestorm import _native
from wirestorm._plain import Time, time_text
from wirestorm._waiting import wait_for_end
from wirestorm.errors import Interrupted, RunError
from wirestorm.plan import text_of
from wirestorm.reports import PortReport
from wirestorm.result import Result, port_reports

if TYPE_CHECKING:
    from wirestorm._native import EmulationHow

#: The path of a plan of clients and servers in YAML or JSON, or plain values.
AnyEmulationPlan = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@dataclass(frozen=True)
class EmulationCount:
    """What a port has counted so far.

    Connections established, connections now, those that ended otherwise than by both sides closing
    them, bytes of data in sequence, and segments that were sent again.
    """

    connects: int
    active: int
    failed: int
    received_bytes: int
    retransmitted: int


@dataclass(frozen=True)
class EmulationProgress:
    """How far clients and servers are: each port's counts, by its name in the plan."""

    elapsed_s: float
    ports: dict[str, EmulationCount]


class Emulating:
    """Clients and servers that work by themselves; see `wirestorm.start_emulation`.

    As a context manager it ends them at the end of the block and waits for that.
    """

    def __init__(self, native: _native.Emulation) -> None:
        self._native = native

    def __enter__(self) -> Emulating:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._native.wait()

    @property
    def is_done(self) -> bool:
        """Whether they have ended."""
        return self._native.wait(0)

    @property
    def progress(self) -> EmulationProgress:
        """How far they are; a twentieth of a second old."""
        told = self._native.progress()
        if told is None:
            return EmulationProgress(0.0, {})
        ports = {name: EmulationCount(**counts) for name, counts in told["ports"].items()}
        return EmulationProgress(told["elapsed_s"], ports)

    def ports(self) -> list[PortReport]:
        """All that each port has counted by now, as in a result.

        The threads that work at the ports tell it, and do nothing else meanwhile: some
        microseconds for each template.

        Raises `RunError` where they have ended: then `wait` gives it.
        """
        told = self._native.reports("all")
        if told is None:
            raise RunError("the run has ended: its result has what was counted")
        return port_reports(json.loads(told))

    def set_load(self, factor: float) -> None:
        """Multiplies the loads that they began with: rates, flows that are held, throughputs.

        Raises `PlanError` where a rate becomes too small or too great.
        """
        self._native.set_load(f"{factor:.9f}")

    def switch_clients(self, *clients: str, on: bool) -> None:
        """Switches clients off, or on again: addresses, or ranges such as `10.0.0.1-10.0.0.9`.

        One that is off makes no connections; those that it has go on. Its turn is the next
        client's.
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
        """Gives clients, an address or a range, other tunnels, on all ports that have any.

        :param teid: the identifier of the first client's
        :param source: the tunnels' end at the clients
        :param destination: the other one
        :param teid_step: what is added for each next client
        :param source_port: of UDP; 0: that of what is within
        """
        first, _, last = (it.strip() for it in clients.partition("-"))
        ends = (first, last or first, teid, teid_step, source, destination, source_port)
        self._native.change_tunnels([ends])

    def end_load(self) -> None:
        """No connection is made from now on; those that are open have the drain_timeout to end."""
        self._native.end_load()

    def stop(self) -> None:
        """Ends them at once, whatever is open; returns at once."""
        self._native.stop()

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[EmulationProgress], object] | None = None,
    ) -> Result:
        """Waits for the end and gives the result.

        :param timeout: seconds; `TimeoutError` after them, while they go on
        :param progress: is called about ten times a second
        :raises Interrupted: after Ctrl-C, which ends them; with what was counted
        :raises RunError: where they did not begin, or something went wrong
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
) -> Emulating:
    """Starts clients and servers and leaves them to themselves; arguments are those of `emulate`.

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
        "beside_others": False,
        "is_visible": False,
        "verify_checksums": verify_checksums,
    }
    native = _native.Emulation(*text_of(plan), dict(ports or {}), how)
    native.wait_started()
    if native.wait(0):
        # Tells why, where it did not begin.
        native.result()
    return Emulating(native)


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
    """Emulates the clients and servers of a plan, and reports what became of their connections.

    :param plan: the path of a file in YAML or JSON, or its values as Python has them
    :param ports: the interfaces of the plan's ports by name, where the plan does not say them:
        `{"clients": "eth1", "servers": "netns/b:veth1"}`
    :param duration: no connection is made later; without it, not before the plan's limits are
        reached, or Ctrl-C
    :param drain_timeout: how long connections may take to end after that
    :param link_down_timeout: an interface that is down for so long ends the run
    :param rx_coalesce: how long what arrives may wait until it is looked at, where 32 flows and more
        have 20,000 frames a second and more; measured times are as coarse then
    :param interval: how long the intervals are in which `connections.series` tells flows over time
    :param follow: so many flows of each port are sampled at a time, at the end of each interval:
        `connections.sampled_flows`
    :param backend: what carries the frames: `auto`, `af_packet` or `af_xdp`
    :param multiplier: a factor for loads: connections a second, and how many are held, users, and
        bits a second
    :param flows_max: connections at once on each port, at most
    :param seed: where sequence numbers, drawn delays and the first ports of clients come from;
        without it, each run draws others
    :param force_interface: send also on the interface that carries the default route
    :param verify_checksums: look at the checksums of what AF_XDP receives on a virtual interface
        too; not where a Linux host at its other end leaves them out
    :param progress: is called about ten times a second with how far it is
    :raises PlanError: where the plan makes no sense
    :raises RunError: where nothing can be sent, or something goes wrong meanwhile
    :raises Interrupted: after Ctrl-C, which ends it; with what was counted
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
