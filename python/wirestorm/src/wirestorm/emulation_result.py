"""What came of emulated clients and servers."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

from wirestorm.emulation_reports import EmulationReport, PortReport, TemplateReport
from wirestorm.result import build, flat, nanoseconds, scaled, shortened


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


def _asks_in_vain(template: TemplateReport) -> bool:
    """Whether a template's clients asked, and not one of their connections was established."""
    is_asking = template.side == "client" and template.flows.get("syn_sent", 0) > 0
    return is_asking and template.tcp.get("connects", 0) == 0


def _established(port: PortReport) -> int:
    """Connections of a port that were established, and flows of UDP."""
    flows_of_udp = port.udp.get("connects", 0) + port.udp.get("accepts", 0)
    return port.tcp.get("connects", 0) + flows_of_udp
