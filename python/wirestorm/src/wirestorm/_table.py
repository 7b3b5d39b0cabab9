"""Text tables of a result, at most 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from wirestorm.reports import FlowReport, PortReport, RunResult

_COLUMNS = 80


def lines(result: RunResult) -> Iterator[str]:
    """Yields the lines of a result's table."""
    yield f"{_outcome(result)} {result.times.elapsed_s:.3f} s"
    if result.flows:
        yield ""
        yield from _flows(result.flows)
    yield from _measured(result.flows)
    emulated = [port for port in result.ports if port.connections is not None]
    if emulated:
        yield ""
        yield from _connection_rows(emulated, result.times.elapsed_s)
    for number, run in enumerate(result.device_runs, start=1):
        yield ""
        row = "{:<22} {:>14} {:>12} {:>9} {:>9}"
        yield row.format(f"start {number}", "packets", "pps", "failed", "unsent")
        for device in run.devices:
            yield row.format(
                _shorten(device.name, 22),
                f"{device.packets:,}",
                f"{device.pps:,.0f}",
                f"{device.failed:,}",
                f"{device.unsent:,}",
            )
    for port in result.ports:
        yield ""
        yield f"port {port.name} on {port.interface}"
        yield from _port(port)
    if result.notes or result.errors or result.verdict.reasons:
        yield ""
    for note in result.notes:
        yield from _wrap("note: ", note)
    for error in result.errors:
        yield from _wrap("error: ", error)
    # The table lists errors already, and its first line reports an interruption.
    if result.verdict.outcome == "fell_short":
        for reason in result.verdict.reasons:
            yield from _wrap("fell short: ", reason)


def summary(result: RunResult) -> str:
    """Formats a result in one line."""
    counts = [f"{result.achieved.packets:,} packets"]
    if result.flows:
        counts.insert(0, _plural(len(result.flows), "flow"))
    established = [_established(port) for port in result.ports if port.connections is not None]
    if established:
        counts.insert(0, _plural(max(established), "connection"))
    return f"{result.kind} {_outcome(result)} {result.times.elapsed_s:.3f} s, {', '.join(counts)}"


def _outcome(result: RunResult) -> str:
    if result.errors:
        return "failed after"
    return "interrupted after" if result.interrupted else "done in"


def _plural(count: int, unit: str) -> str:
    return f"{count:,} {unit}" + ("" if count == 1 else "s")


def _flows(flows: Iterable[FlowReport]) -> Iterator[str]:
    row = "{:<22} {:>14} {:>12} {:>9} {:>9} {:>8}"
    yield row.format("flow", "packets", "pps", "b/s L2", "b/s L1", "off")
    for flow in flows:
        error = flow.rate_error_ppm
        yield row.format(
            _shorten(flow.name, 22),
            f"{flow.packets:,}",
            f"{flow.pps:,.0f}",
            _scaled(flow.bps_l2),
            _scaled(flow.bps_l1),
            "" if error is None else f"{error / 1e4:+.2f}%",
        ).rstrip()


def _measured(flows: Iterable[FlowReport]) -> Iterator[str]:
    measured = [(flow, it) for flow in flows for it in flow.measured]
    if not measured:
        return
    row = "{:<22} {:>12} {:>10} {:>9} {:>11} {:>11}"
    yield ""
    yield row.format("measured", "received", "lost", "reordered", "delay p50", "delay max")
    for flow, it in measured:
        yield row.format(
            _shorten(flow.name, 22),
            f"{it.received:,}",
            "-" if flow.lost is None else f"{flow.lost:,}",
            f"{it.reordered:,}",
            _nanoseconds(it.delay.p50_ns),
            _nanoseconds(it.delay.max_ns),
        )


def _connection_rows(ports: Iterable[PortReport], elapsed_s: float) -> Iterator[str]:
    row = "{:<15} {:>12} {:>10} {:>10} {:>9} {:>9} {:>9}"
    yield row.format("port", "connections", "per second", "closed", "failed", "b/s", "connect")
    seconds = max(elapsed_s, 1e-9)
    for port in ports:
        connections = port.connections
        if connections is None:
            continue
        received = connections.tcp.get("rcvbyte", 0) + connections.udp.get("rcvbyte", 0)
        yield row.format(
            _shorten(port.name, 15),
            f"{_established(port):,}",
            _scaled(_established(port) / seconds),
            f"{connections.flows.closed:,}",
            f"{connections.flows.failed:,}",
            _scaled(8 * received / seconds),
            _nanoseconds(connections.times.connect.p50_ns),
        )


def _established(port: PortReport) -> int:
    """Returns the established TCP connections and the UDP flows of a port."""
    if port.connections is None:
        return 0
    tcp, udp = port.connections.tcp, port.connections.udp
    return tcp.get("connects", 0) + udp.get("connects", 0) + udp.get("accepts", 0)


def _port(port: PortReport) -> Iterator[str]:
    tx, rx, impairment = port.tx, port.rx, port.impairment
    if tx is not None:
        by = "" if port.backend is None else f" by {port.backend}"
        yield f"  sent      {tx.packets:,} packets{by}, {tx.pps:,.0f} pps"
        if tx.failed or tx.unsent:
            yield f"  failed    {tx.failed:,}, unsent {tx.unsent:,}"
    if rx is not None:
        line = f"  received  {rx.packets:,} packets"
        if rx.pps is not None:
            line += f", {rx.pps:,.0f} pps"
        if rx.lost is not None:
            line += f"; {rx.lost:,} lost ({rx.loss_percent or 0:.4f}%)"
        yield line
        if rx.dropped:
            yield f"  dropped   {rx.dropped:,} because the receiver was full"
    if impairment is not None:
        lost = f"{impairment.lost:,} lost, {impairment.queue_dropped:,} dropped by a full queue"
        yield f"  impaired  {impairment.entered:,} packets, {lost}"
    if port.outages:
        yield f"  outages   {port.outages:,}, {port.down_s:.1f} s"


def _wrap(head: str, text: str) -> list[str]:
    return textwrap.wrap(head + text, _COLUMNS, subsequent_indent="  ")


def _shorten(name: str, columns: int) -> str:
    return name if len(name) <= columns else name[: columns - 2] + ".."


def _nanoseconds(value_ns: int | None) -> str:
    if value_ns is None:
        return "-"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(value_ns) >= scale:
            return f"{value_ns / scale:.2f} {unit}"
    return f"{value_ns} ns"


def _scaled(value: float) -> str:
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.2f}{unit}"
    return f"{value:.0f}"
