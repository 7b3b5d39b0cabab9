"""The result of a run."""

from __future__ import annotations

import html
import json
import typing
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Union, cast

from wirestorm import _table
from wirestorm.reports import FlowReport, MeasuredReport, PortReport, RunResult, TemplateReport


@dataclass(frozen=True, repr=False)
class Result(RunResult):
    """What a run sent, what arrived, and what became of connections: of every kind of run.

    `verdict.outcome` is `met` where the run did what was asked for, and `verdict.reasons` say why
    not. `print(result)` shows a table, `records` gives rows for pandas, and `to_json` gives the
    document that the option `--json` of the commands writes.
    """

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Result:
        """The result of a document of the form wirestorm.result/2."""
        return cast(Result, build(cls, document))

    def to_json(self, indent: int | None = None) -> str:
        """The result as a document of the form wirestorm.result/2."""
        document = asdict(self, dict_factory=lambda pairs: {_key(name): it for name, it in pairs})
        return json.dumps(document, indent=indent)

    def flow(self, name: str) -> FlowReport:
        """The flow of this name. Raises `KeyError` where there is none."""
        return {flow.name: flow for flow in self.flows}[name]

    def port(self, name: str) -> PortReport:
        """The port of this name. Raises `KeyError` where there is none."""
        return {port.name: port for port in self.ports}[name]

    def template(self, name: str, side: str) -> TemplateReport:
        """The `client` or the `server` side of a template. Raises `KeyError` if there is none."""
        templates = [template for port in self.ports for template in port.templates]
        return {(template.name, template.side): template for template in templates}[name, side]

    def records(self) -> list[dict[str, Any]]:
        """Flat rows: `pandas.DataFrame(result.records())`.

        A run of streams has a row for each flow, or for each port where a flow is measured; an
        emulation has one for each side of each template, a pktgen script one for each device of
        each start, other runs have one for each port. The name of a nested field has the names of
        those around it in front: `delay_p50_ns`. Lists of values are left out.
        """
        if self.kind == "streams":
            return [row for flow in self.flows for row in _flow_rows(flow)]
        if self.kind == "emulation":
            return [
                {"port": port.name, **dict(_flat(template))}
                for port in self.ports
                for template in port.templates
            ]
        if self.kind == "pktgen":
            return [
                {"start": number, **dict(_flat(device))}
                for number, run in enumerate(self.device_runs, start=1)
                for device in run.devices
            ]
        return self.port_records()

    def port_records(self) -> list[dict[str, Any]]:
        """A flat row for each port."""
        return [dict(_flat(port)) for port in self.ports]

    def __str__(self) -> str:
        return "\n".join(_table.lines(self))

    def __repr__(self) -> str:
        return f"<Result: {_table.summary(self)}>"

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"


def port_reports(documents: list[dict[str, Any]]) -> list[PortReport]:
    """What each port counted, of documents as in a result."""
    return [build(PortReport, document) for document in documents]


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
        members = [one.name for one in fields(kind) if _key(one.name) in value]
        return kind(**{name: build(types[name], value[_key(name)]) for name in members})  # type: ignore[operator]
    return value


def _key(name: str) -> str:
    """What a document calls a field: the name of one that is a keyword of Python ends with `_`."""
    return name.rstrip("_")


def _flow_rows(flow: FlowReport) -> list[dict[str, Any]]:
    row = dict(_flat(flow))
    return [{**row, **dict(_flat(it, "measured_"))} for it in flow.measured] or [row]


def _flat(report: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for one in fields(report):
        name, value = prefix + _key(one.name), getattr(report, one.name)
        if is_dataclass(value):
            yield from _flat(value, f"{name}_")
        elif isinstance(value, dict):
            for key, item in value.items():
                if is_dataclass(item):
                    yield from _flat(item, f"{name}_{key}_")
                else:
                    yield f"{name}_{key}", item
        elif not isinstance(value, list):
            yield name, value
        elif one.type == "list[str]":
            yield name, ",".join(value)
