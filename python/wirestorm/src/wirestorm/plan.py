"""Plans of flows: their frames, ports, rates and durations.

The fields have the names of the keys in docs/guide/streams.md. They also accept the texts and
mappings of a plan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from wirestorm import _native
from wirestorm._plan_values import Time, plan_value, time_text
from wirestorm.errors import PlanError
from wirestorm.header import Header

Packet = Sequence[Union[Header, Mapping[str, Any]]]


@dataclass
class Port:
    """A port that sends or receives frames.

    :param name: name in the plan
    :param location: interface, `eth1` or `netns/NAME:veth0`; a run can set it with `ports`
    :param speed: bits per second, such as `"10G"`, for percentages; default: the interface's speed
    :param addresses: IPv4 and IPv6 addresses of an emulated host, such as `"198.18.0.2/24"`
    :param gateway: gateway of that host, at most one for each address family
    """

    name: str
    location: str | None = None
    speed: str | int | None = None
    addresses: str | Sequence[str] | None = None
    gateway: str | Sequence[str] | None = None

    def to_plan(self) -> dict[str, Any]:
        """Returns the port in the form of a plan."""
        document = {
            "name": self.name,
            "location": self.location,
            "speed": self.speed,
            "addresses": plan_value(self.addresses),
            "gateway": plan_value(self.gateway),
        }
        return {name: value for name, value in document.items() if value is not None}


PortName = Union[str, Port]


@dataclass
class Flow:
    """A flow: frames of one kind from one port.

    :param name: name in the plan
    :param tx: port that sends the flow
    :param packet: headers, outermost first, from `wirestorm.headers`
    :param rx: port or ports that receive the flow and count it
    :param size: frame bytes with FCS, or another form such as `{"frame": 60}` or `"imix"`; default:
        length of the headers
    :param rate: `"1Mpps"`, `"10G-l1"`, `"10G-l2"`, `"50%"`, `"max"`, or `{"pps": 1000}`; default:
        1000 frames per second
    :param duration: a time, `packets(1000)` or `bursts(...)`; default: endless
    :param inter_departure: `"constant"`, `"poisson"` or `{"on_off": {"on": "10ms", "off": "10ms"}}`
    :param start_delay: delay of the first frame after each start of the flow
    :param start: `"immediate"`, `"paused"` or `"triggered"` (by another flow's `next`)
    :param next: flow that starts when this one ends, or `{"flow": NAME, "times": N}`
    :param measure: adds a signature to the frames, to measure loss, order and delay
    """

    name: str
    tx: PortName
    packet: Packet
    rx: PortName | Sequence[PortName] | None = None
    size: int | str | Mapping[str, Any] | None = None
    rate: str | Mapping[str, Any] | None = None
    duration: Time | Mapping[str, Any] | None = None
    inter_departure: str | Mapping[str, Any] | None = None
    start_delay: Time | None = None
    start: str | None = None
    next: str | Mapping[str, Any] | None = None
    measure: bool = False

    def to_plan(self) -> dict[str, Any]:
        """Returns the flow in the form of a plan."""
        rx = self.rx
        document = {
            "name": self.name,
            "tx": _port_name(self.tx),
            "rx": [_port_name(port) for port in rx]
            if rx is not None and not isinstance(rx, (str, Port))
            else rx and _port_name(rx),
            "packet": plan_value(list(self.packet)),
            "size": plan_value(self.size),
            "rate": plan_value(self.rate),
            "duration": plan_value(self.duration)
            if isinstance(self.duration, (str, Mapping))
            else self.duration and time_text(self.duration),
            "inter_departure": plan_value(self.inter_departure),
            "start_delay": None if self.start_delay is None else time_text(self.start_delay),
            "start": self.start,
            "next": plan_value(self.next),
            "metrics": {"enable": True} if self.measure else None,
        }
        return {name: value for name, value in document.items() if value is not None}

    @classmethod
    def from_scapy(
        cls,
        name: str,
        packet: Any,
        tx: PortName,
        *,
        vary: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Flow:
        """Creates a flow from a Scapy packet.

        The frames have exactly the packet's bytes. Known headers become headers of the plan, so
        that `vary` can change their fields (`{"ipv4.src": increment("10.0.0.1", 250)}`). A packet
        that headers cannot describe exactly becomes bytes. Other arguments are those of the class.
        """
        from wirestorm.from_scapy import packet_headers

        return cls(name, tx, packet_headers(packet, dict(vary or {})), **arguments)


@dataclass
class Plan:
    """Ports and the flows between them. Relative paths of captures start at `folder`.

    >>> plan = Plan()
    >>> left, right = plan.add_port("left"), plan.add_port("right")
    >>> flow = plan.add_flow("hello", left, [ethernet(), ipv4(), udp()], rx=right, size=64)
    """

    ports: list[Port] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    folder: Path = field(default=Path(), compare=False)

    def add_port(self, name: str, location: str | None = None, **arguments: Any) -> Port:
        """Adds a port. The arguments are those of `Port`."""
        self.ports.append(Port(name, location, **arguments))
        return self.ports[-1]

    def add_flow(self, name: str, tx: PortName, packet: Packet, **arguments: Any) -> Flow:
        """Adds a flow. The arguments are those of `Flow`."""
        self.flows.append(Flow(name, tx, packet, **arguments))
        return self.flows[-1]

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as plain values."""
        return {
            "ports": [port.to_plan() for port in self.ports],
            "flows": [flow.to_plan() for flow in self.flows],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Returns the plan as JSON, which every wirestorm command accepts."""
        return json.dumps(self.to_dict(), indent=indent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a file as JSON."""
        Path(path).write_text(self.to_json(indent=2) + "\n")

    def check(self) -> None:
        """Raises `PlanError` with all errors of the plan."""
        _native.check(self.to_json(), self.folder)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan from a file in YAML or JSON. Raises `PlanError` if it is invalid."""
        return cls.from_yaml(Path(path).read_text(), Path(path).parent)

    @classmethod
    def from_yaml(cls, text: str, folder: str | os.PathLike[str] = "") -> Plan:
        """Reads a plan in YAML or JSON. Raises `PlanError` if it is invalid."""
        _native.check(text, folder)
        return cls.from_dict(json.loads(_native.document(text)), folder)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], folder: str | os.PathLike[str] = "") -> Plan:
        """Creates a plan from the values of `to_dict`. Raises `PlanError` if they are invalid."""
        _native.check(json.dumps(plan_value(document)), folder)
        return cls(
            [Port(**port) for port in document["ports"]],
            [_parse_flow(flow) for flow in document["flows"]],
            Path(folder),
        )


def packets(count: int) -> dict[str, Any]:
    """A duration of `count` frames."""
    return {"fixed_packets": count}


def bursts(count: int, packets: int, gap: Time = 0) -> dict[str, Any]:
    """A duration of `count` bursts of `packets` frames each, with `gap` between bursts."""
    return {"burst": {"bursts": count, "packets": packets, "inter_burst_gap": time_text(gap)}}


#: A plan, the path of a file in YAML or JSON, or plain values.
AnyPlan = Union[Plan, str, "os.PathLike[str]", Mapping[str, Any]]


def plan_text(plan: AnyPlan) -> tuple[str, Path]:
    """Returns a plan as text for the native module, and the folder of its relative paths."""
    if isinstance(plan, Plan):
        return plan.to_json(), plan.folder
    if isinstance(plan, Mapping):
        return json.dumps(plan_value(plan)), Path()
    try:
        return Path(plan).read_text(), Path(plan).parent
    except OSError as error:
        raise PlanError([(os.fspath(plan), error.strerror or str(error))]) from error


def _parse_flow(document: Mapping[str, Any]) -> Flow:
    fields = dict(document)
    metrics = fields.pop("metrics", None)
    packet = [_header_of(item) for item in fields.pop("packet")]
    measure = metrics is not None and metrics.get("enable", True)
    return Flow(packet=packet, measure=measure, **fields)


def _header_of(document: Mapping[str, Any]) -> Header | Mapping[str, Any]:
    ((name, fields),) = document.items()
    return Header(name, fields) if fields is None or isinstance(fields, dict) else document


def _port_name(port: PortName) -> str:
    return port.name if isinstance(port, Port) else port
