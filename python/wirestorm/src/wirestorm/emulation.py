"""Emulated clients and servers."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Union, cast

from wirestorm import _native
from wirestorm._plain import Time, time_text
from wirestorm._waiting import wait_for_end
from wirestorm.emulation_reports import EmulationReport, PortReport, TemplateReport
from wirestorm.errors import Interrupted, RunError
from wirestorm.plan import text_of
from wirestorm.result import build, flat, nanoseconds, scaled, shortened

if TYPE_CHECKING:
    from wirestorm._native import EmulationHow

#: The path of a plan of clients and servers in YAML or JSON, or plain values.
AnyEmulationPlan = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class EmulationResult(EmulationReport):
    """What became of clients and servers.

    `print(result)` shows it as a table, `records` gives rows for pandas, `to_json` the document
    that `wirestorm emulate --json` writes.
    """

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> EmulationResult:
        """The result of a document of the form wirestorm.emulation/1."""
        return cast(EmulationResult, build(cls, document))

    def to_json(self, indent: int | None = None) -> str:
        """The result as a document of the form wirestorm.emulation/1."""
        return json.dumps(asdict(self), indent=indent)

    def port(self, name: str) -> PortReport:
        """The port of this name. Raises `KeyError` where there is none."""
        return {port.name: port for port in self.ports}[name]

    def template(self, name: str, side: str) -> TemplateReport:
        """The `client` or the `server` side of a template. Raises `KeyError` if there is none."""
        templates = [template for port in self.ports for template in port.templates]
        return {(template.name, template.side): template for template in templates}[name, side]

    def records(self) -> list[dict[str, Any]]:
        """A flat row for each side of each template: `pandas.DataFrame(result.records())`.

        What stands below a field has its name before its own, and histograms are left out but for
        their percentiles.
        """
        return [
            {"port": port.name, **dict(flat(template))}
            for port in self.ports
            for template in port.templates
        ]

    def port_records(self) -> list[dict[str, Any]]:
        """A flat row for each port."""
        return [dict(flat(port)) for port in self.ports]

    def shortfalls(self) -> list[str]:
        """What went otherwise than it should, in sentences; empty where nothing did."""
        found = []
        for port in self.ports:
            flows, tunnels = port.flows, port.tunnels
            no_room = port.impairment.no_room if port.impairment is not None else 0
            no_tunnel, too_long = (
                (tunnels.no_tunnel, tunnels.too_long) if tunnels is not None else (0, 0)
            )
            for count, what in (
                (flows.failed, "connections failed"),
                (flows.time_wait_failed, "connections failed, and were in TIME-WAIT in the end"),
                (flows.no_match, "connections began with what no server waits for"),
                (flows.overflow, "connections were not made or taken, for there were too many"),
                (flows.tuple_in_use, "connections were not made: no free addresses and ports"),
                (flows.late, "connections were not made: no time for so many a second"),
                (port.failed, "frames were refused"),
                (port.missed, "frames were missed"),
                (no_room, "frames were dropped, for too many were held"),
                (no_tunnel, "frames were not sent: neither sender nor receiver has a tunnel"),
                (too_long, "frames were not sent: they are too long with a tunnel's headers"),
            ):
                if count:
                    found.append(f"port {port.name}: {count:,} {what}")
            for template in filter(_asks_in_vain, port.templates):
                asked = f"{template.flows['syn_sent']:,} connections of {template.name}"
                found.append(f"port {port.name}: {asked} were asked for, and none was answered")
            # One that was over before it was looked at has no time.
            if port.outages:
                down = f"{port.interface} was down for {port.down_s:.1f} s"
                found.append(f"port {port.name}: {down}, {port.unsent:,} frames were not sent")
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        connects = max((_established(port) for port in self.ports), default=0)
        ended = "interrupted after" if self.interrupted else "done in"
        return f"<EmulationResult: {ended} {self.elapsed_s:.3f} s, {connects:,} connections>"

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        ended = "interrupted after" if self.interrupted else "done in"
        yield f"{ended} {self.elapsed_s:.3f} s"
        yield ""
        row = "{:<16} {:>12} {:>9} {:>10} {:>9} {:>9} {:>9}"
        yield row.format("port", "connections", "a second", "closed", "failed", "b/s", "connect")
        seconds = max(self.elapsed_s, 1e-9)
        for port in self.ports:
            received = port.tcp.get("rcvbyte", 0) + port.udp.get("rcvbyte", 0)
            connect = port.times.connect
            yield row.format(
                shortened(port.name, 16),
                f"{_established(port):,}",
                scaled(_established(port) / seconds),
                f"{port.flows.closed:,}",
                f"{port.flows.failed:,}",
                scaled(8 * received / seconds),
                nanoseconds(connect.p50_ns if connect.count else None),
            )
        for note in self.notes:
            yield f"note: {note}"
        for error_text in self.errors:
            yield f"error: {error_text}"


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
        return [cast(PortReport, build(PortReport, port)) for port in json.loads(told)]

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
        """No connection is made from now on; those that are open have the linger to end."""
        self._native.end_load()

    def stop(self) -> None:
        """Ends them at once, whatever is open; returns at once."""
        self._native.stop()

    def wait(
        self,
        timeout: float | None = None,
        progress: Callable[[EmulationProgress], object] | None = None,
    ) -> EmulationResult:
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

    def _result(self) -> EmulationResult:
        return EmulationResult.from_dict(json.loads(self._native.result()))


def start_emulation(
    plan: AnyEmulationPlan,
    ports: Mapping[str, str] | None = None,
    *,
    duration: Time | None = None,
    linger: Time = "2s",
    down_max: Time = "30s",
    coalesce: Time = "50us",
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
        "linger": time_text(linger),
        "linger_named": "linger",
        "down_max": time_text(down_max),
        "coalesce": time_text(coalesce),
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
    linger: Time = "2s",
    down_max: Time = "30s",
    coalesce: Time = "50us",
    interval: Time = "1s",
    follow: int = 0,
    backend: str = "auto",
    multiplier: float = 1,
    flows_max: int = 1_000_000,
    seed: int | None = None,
    force_interface: bool = False,
    verify_checksums: bool = False,
    progress: Callable[[EmulationProgress], object] | None = None,
) -> EmulationResult:
    """Emulates the clients and servers of a plan, and reports what became of their connections.

    :param plan: the path of a file in YAML or JSON, or its values as Python has them
    :param ports: the interfaces of the plan's ports by name, where the plan does not say them:
        `{"clients": "eth1", "servers": "netns/b:veth1"}`
    :param duration: no connection is made later; without it, not before the plan's limits are
        reached, or Ctrl-C
    :param linger: how long connections may take to end after that
    :param down_max: an interface that is down for so long ends the run
    :param coalesce: how long what arrives may wait until it is looked at, where 32 flows and more
        have 20,000 frames a second and more; measured times are as coarse then
    :param interval: how long the intervals are in which `series` tells flows over time
    :param follow: so many flows of each port at a time are followed, and told at the end of each
        interval: `followed`
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
        linger=linger,
        down_max=down_max,
        coalesce=coalesce,
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


def _asks_in_vain(template: TemplateReport) -> bool:
    """Whether a template's clients asked, and not one of their connections was established."""
    is_asking = template.side == "client" and template.flows.get("syn_sent", 0) > 0
    return is_asking and template.tcp.get("connects", 0) == 0


def _established(port: PortReport) -> int:
    """Connections of a port that were established, and flows of UDP."""
    flows_of_udp = port.udp.get("connects", 0) + port.udp.get("accepts", 0)
    return port.tcp.get("connects", 0) + flows_of_udp
