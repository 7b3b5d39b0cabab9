"""Results of runs."""

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
    """Result of a run of any kind: frames sent and received, and connections.

    `verdict.outcome` is `met` if the run met its target; otherwise `verdict.reasons` lists why not.
    `print(result)` prints a table, `records` returns rows for pandas, and `to_json` returns the
    document that the option `--json` of the commands writes.
    """

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Result:
        """Creates a result from a wirestorm.result/2 document."""
        return cast(Result, build(cls, document))

    def to_json(self, indent: int | None = None) -> str:
        """Returns the result as a wirestorm.result/2 document."""
        document = asdict(self, dict_factory=lambda pairs: {_key(name): it for name, it in pairs})
        return json.dumps(document, indent=indent)

    def flow(self, name: str) -> FlowReport:
        """Returns the flow with this name. Raises `KeyError` if it does not exist."""
        return {flow.name: flow for flow in self.flows}[name]

    def port(self, name: str) -> PortReport:
        """Returns the port with this name. Raises `KeyError` if it does not exist."""
        return {port.name: port for port in self.ports}[name]

    def template(self, name: str, side: str) -> TemplateReport:
        """Returns the `client` or `server` side of a template. Raises `KeyError` if it does not
        exist.
        """
        templates = [template for port in self.ports for template in port.templates]
        return {(template.name, template.side): template for template in templates}[name, side]

    def records(self) -> list[dict[str, Any]]:
        """Returns flat rows, for `pandas.DataFrame(result.records())`.

        A run of flows has a row for each flow, and for each port of a measured flow. An emulation
        has a row for each side of each template. A pktgen script has a row for each device of each
        start. Other runs have a row for each port.

        The name of a nested field has the outer names as prefix: `delay_p50_ns`. Lists are omitted.
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
        """Returns a flat row for each port."""
        return [dict(_flat(port)) for port in self.ports]

    def __str__(self) -> str:
        return "\n".join(_table.lines(self))

    def __repr__(self) -> str:
        return f"<Result: {_table.summary(self)}>"

    def _repr_html_(self) -> str:
        """Returns the table for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"


def port_reports(documents: list[dict[str, Any]]) -> list[PortReport]:
    """Converts documents to reports of ports."""
    return [build(PortReport, document) for document in documents]


def measured_reports(documents: list[dict[str, Any]]) -> list[MeasuredReport]:
    """Converts documents to the measurements of a flow at each port."""
    return [build(MeasuredReport, document) for document in documents]


def build(kind: Any, value: Any) -> Any:
    """Builds a value of a type from a document.

    Ignores members that the class lacks, which are from a later version. Missing members have their
    default.
    """
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
    """Returns a field's name in documents. Fields named like Python keywords end with `_`."""
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
