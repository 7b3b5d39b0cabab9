"""The result of a run."""

from __future__ import annotations

import html
import json
import typing
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Union, cast

from wirestorm.reports import FlowReport, MeasuredReport, PortReport, RunReport


@dataclass(frozen=True, repr=False)
class Result(RunReport):
    """What a run sent, and what arrived.

    `print(result)` shows it as a table, `records` gives rows for pandas, `to_json` the document
    that `wirestorm run --json` writes.
    """

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Result:
        """The result of a document of the form wirestorm.run/1."""
        return cast(Result, build(cls, document))

    def to_json(self, indent: int | None = None) -> str:
        """The result as a document of the form wirestorm.run/1."""
        return json.dumps(asdict(self), indent=indent)

    def flow(self, name: str) -> FlowReport:
        """The flow of this name. Raises `KeyError` where there is none."""
        return {flow.name: flow for flow in self.flows}[name]

    def port(self, name: str) -> PortReport:
        """The port of this name. Raises `KeyError` where there is none."""
        return {port.name: port for port in self.ports}[name]

    def records(self) -> list[dict[str, Any]]:
        """A flat row for each flow: `pandas.DataFrame(result.records())`.

        What stands below a field has its name before its own, and lists of values are left out. A
        flow that is measured on several ports has a row for each.
        """
        rows = []
        for flow in self.flows:
            row = dict(flat(flow))
            rows += [{**row, **dict(flat(it, "measured_"))} for it in flow.measured] or [row]
        return rows

    def port_records(self) -> list[dict[str, Any]]:
        """A flat row for each port."""
        return [dict(flat(port)) for port in self.ports]

    def shortfalls(self, tolerance_percent: float = 1.0) -> list[str]:
        """What fell short of what was asked, in sentences; empty where nothing did.

        :param tolerance_percent: how far a rate may be off
        """
        found = []
        for flow in self.flows:
            error = flow.rate_error_ppm
            if error is not None and abs(error) > tolerance_percent * 1e4:
                found.append(f"flow {flow.name}: its rate was off by {error / 1e4:+.2f} %")
            if flow.lost:
                found.append(f"flow {flow.name}: {flow.lost:,} frames did not arrive")
        for port in self.ports:
            if port.failed:
                found.append(f"port {port.name}: {port.failed:,} frames were refused")
            if port.unsent:
                found.append(f"port {port.name}: {port.unsent:,} frames were left out")
            if port.rx is not None and port.rx.lost:
                found.append(f"port {port.name}: {port.rx.lost:,} frames did not arrive")
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        packets = sum(flow.packets for flow in self.flows)
        ended = "interrupted after" if self.interrupted else "done in"
        flows = "1 flow" if len(self.flows) == 1 else f"{len(self.flows)} flows"
        counts = f"{flows}, {packets:,} packets"
        return f"<Result: {ended} {self.elapsed_s:.3f} s, {counts}>"

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        ended = "interrupted after" if self.interrupted else "done in"
        yield f"{ended} {self.elapsed_s:.3f} s"
        yield ""
        row = "{:<22} {:>14} {:>12} {:>9} {:>9} {:>8}"
        yield row.format("flow", "packets", "pps", "b/s L2", "b/s L1", "off")
        for flow in self.flows:
            error = flow.rate_error_ppm
            yield row.format(
                shortened(flow.name, 22),
                f"{flow.packets:,}",
                f"{flow.pps:,.0f}",
                scaled(flow.bps_l2),
                scaled(flow.bps_l1),
                "" if error is None else f"{error / 1e4:+.2f}%",
            ).rstrip()
        yield from self._measured_lines()
        for port in self.ports:
            yield ""
            yield f"port {port.name} on {port.interface}"
            if port.backend is not None:
                yield f"  sent      {port.packets:,} packets by {port.backend}, {port.pps:,.0f} pps"
            if port.failed or port.unsent:
                yield f"  failed    {port.failed:,}, unsent {port.unsent:,}"
            if port.rx is not None:
                rx = port.rx
                lost = f"{rx.lost:,} lost ({rx.loss_percent:.4f}%)"
                yield f"  received  {rx.packets:,} packets, {rx.pps:,.0f} pps; {lost}"
        for note in self.notes:
            yield f"note: {note}"
        for error_text in self.errors:
            yield f"error: {error_text}"

    def _measured_lines(self) -> Iterator[str]:
        measured = [(flow, it) for flow in self.flows for it in flow.measured]
        if not measured:
            return
        row = "{:<22} {:>12} {:>10} {:>9} {:>11} {:>11}"
        yield ""
        yield row.format("measured", "received", "lost", "reordered", "delay p50", "delay max")
        for flow, it in measured:
            yield row.format(
                shortened(flow.name, 22),
                f"{it.received:,}",
                f"{flow.lost:,}",
                f"{it.reordered:,}",
                nanoseconds(it.delay.p50_ns),
                nanoseconds(it.delay.max_ns),
            )


def measured_reports(documents: list[dict[str, Any]]) -> list[MeasuredReport]:
    """What was measured of a flow at each port, of documents as in a result."""
    return [build(MeasuredReport, document) for document in documents]


def build(kind: Any, value: Any) -> Any:
    """A value as what its type says. Members that a class does not have are of a later version,
    and those that are not there have their default."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:
        return None if value is None else build(arguments[0], value)
    if origin is list:
        return [build(arguments[0], item) for item in value]
    if origin is dict:
        return {key: build(arguments[1], item) for key, item in value.items()}
    if origin is tuple:
        return tuple(value)
    if is_dataclass(kind):
        types = typing.get_type_hints(kind)
        members = [one.name for one in fields(kind) if one.name in value]
        return kind(**{name: build(types[name], value[name]) for name in members})  # type: ignore[operator]
    return value


def flat(report: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for one in fields(report):
        name, value = prefix + one.name, getattr(report, one.name)
        if is_dataclass(value):
            yield from flat(value, f"{name}_")
        elif isinstance(value, dict):
            for key, item in value.items():
                if is_dataclass(item):
                    yield from flat(item, f"{name}_{key}_")
                else:
                    yield f"{name}_{key}", item
        elif not isinstance(value, list):
            yield name, value
        elif one.type == "list[str]":
            yield name, ",".join(value)


def shortened(name: str, columns: int) -> str:
    return name if len(name) <= columns else name[: columns - 2] + ".."


def nanoseconds(value_ns: int | None) -> str:
    if value_ns is None:
        return "-"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(value_ns) >= scale:
            return f"{value_ns / scale:.2f} {unit}"
    return f"{value_ns} ns"


def scaled(value: float) -> str:
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.2f}{unit}"
    return f"{value:.0f}"
