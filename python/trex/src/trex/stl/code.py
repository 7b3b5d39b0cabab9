"""Conversion of streams to Python code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import scapy.all
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Padding, Raw

from trex.addresses import int2ip
from trex.errors import TRexError
from trex.stl.layout import PacketLayout, field_name

_MODES = {
    "continuous": "STLTXCont",
    "single_burst": "STLTXSingleBurst",
    "multi_burst": "STLTXMultiBurst",
}
_STATISTICS = {
    "stats": "STLFlowStats",
    "latency": "STLFlowLatencyStats",
    "tpg": "STLTaggedPktGroup",
}


class CodeSource(Protocol):
    """Interface of a stream for the conversion to code."""

    name: Any
    next: Any
    id: Any
    fields: dict[str, Any]

    def get_pkt(self) -> bytes:
        """Returns the frame."""

    def is_dummy(self) -> bool:
        """Returns whether it only waits."""

    def has_flow_stats(self) -> bool:
        """Returns whether it is measured."""

    def mac_src_override_by_pkt(self) -> bool:
        """Returns whether the source MAC address is the packet's."""

    def mac_dst_override_mode(self) -> int:
        """Returns the origin of the destination MAC address."""


def profile_code(streams: Iterable[CodeSource]) -> str:
    """Returns the code of a profile with the streams."""
    lines = [
        "from trex.stl.api import *",
        "",
        "",
        "class STLS1:",
        "    def get_streams(self, direction=0, **kwargs):",
        "        streams = []",
    ]
    for stream in streams:
        lines += (f"        {line}".rstrip() for line in stream_code(stream).splitlines())
        lines.append("        streams.append(stream)")
    lines += ["        return streams", "", "", "def register():", "    return STLS1()", ""]
    return "\n".join(lines)


def stream_code(stream: CodeSource) -> str:
    """Returns code that assigns the stream to the variable `stream`."""
    packet = _ScapyPacket.of(stream.get_pkt())
    lines: list[str] = []
    if packet is None:
        lines.append(f"packet = bytes.fromhex('{stream.get_pkt().hex()}')")
    else:
        lines += packet.imports
        lines.append("packet = (" + " /\n          ".join(packet.headers) + ")")
    lines += _program(stream.fields["vm"], None if packet is None else packet.layout)
    argument = "pkt_buffer" if packet is None else "pkt"
    arguments = [f"packet=STLPktBuilder({argument}=packet, vm=vm)"]
    arguments += (f"{name}={value}" for name, value in _arguments(stream))
    separator = ",\n" + " " * len("stream = STLStream(")
    lines.append(f"stream = STLStream({separator.join(arguments)})")
    return "\n".join(lines)


class _ScapyPacket:
    """A frame as a scapy expression."""

    def __init__(self, headers: list[str], imports: list[str], layout: PacketLayout) -> None:
        self.headers = headers
        self.imports = imports
        self.layout = layout

    @classmethod
    def of(cls, frame: bytes) -> _ScapyPacket | None:
        """Returns None if scapy builds other bytes, or if no module exports its headers."""
        packet = Ether(frame)
        layout = PacketLayout(packet)
        packet.hide_defaults()
        headers: list[str] = []
        imports: list[str] = []
        header = packet
        while not isinstance(header, NoPayload):
            kind = type(header)
            if isinstance(header, Padding):
                return None
            if getattr(scapy.all, kind.__name__, None) is not kind:
                if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind:
                    return None
                if not kind.__module__.startswith("scapy."):
                    return None
                line = f"from {kind.__module__} import {kind.__name__}"
                if line not in imports:
                    imports.append(line)
            alone = header.copy()
            alone.remove_payload()
            headers.append(_raw(alone.load) if kind is Raw else alone.command())
            header = header.payload
        built = _build_bytes(headers, imports)
        return cls(headers, imports, layout) if built == frame else None


def _raw(load: bytes) -> str:
    if len(load) > 1 and load == load[:1] * len(load):
        return f"Raw(load={load[:1]!r} * {len(load)})"
    return f"Raw(load={load!r})"


def _build_bytes(headers: list[str], imports: list[str]) -> bytes | None:
    """Returns the bytes of an expression that scapy printed."""
    names: dict[str, Any] = dict(vars(scapy.all))
    try:
        for line in imports:
            exec(line, names)
        return bytes(eval("/".join(headers), names))
    except Exception:
        # The representation of some headers is not valid Python.
        return None


def _arguments(stream: CodeSource) -> Iterable[tuple[str, str]]:
    """Yields the arguments that differ from their defaults."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(stream)).parameters.items()
    }
    fields = stream.fields
    values = {
        "name": stream.name,
        "next": stream.next,
        "stream_id": stream.id,
        "dummy_stream": stream.is_dummy(),
        "random_seed": fields.get("random_seed", 0),
    }
    for name in ("enabled", "self_start", "start_paused", "isg", "action_count", "core_id"):
        values[name] = fields[name]
    for name, value in values.items():
        if value != defaults[name]:
            yield name, repr(value)
    if stream.has_flow_stats():
        yield "flow_stats", _statistics(fields["flow_stats"])
    yield "mac_src_override_by_pkt", repr(stream.mac_src_override_by_pkt())
    yield "mac_dst_override_mode", repr(stream.mac_dst_override_mode())
    yield "mode", _mode(fields["mode"])


def _statistics(rule: dict[str, Any]) -> str:
    arguments = [str(rule["stream_id"])]
    arguments += (f"{name}=True" for name in ("vxlan", "ieee_1588") if rule[name])
    return f"{_STATISTICS[rule['rule_type']]}({', '.join(arguments)})"


def _mode(mode: dict[str, Any]) -> str:
    rate = mode["rate"]
    arguments = {k: v for k, v in mode.items() if k not in ("rate", "type")}
    arguments[rate["type"]] = rate["value"]
    return f"{_MODES[mode['type']]}({_format_arguments(arguments)})"


def _format_arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _program(vm: dict[str, Any], layout: PacketLayout | None) -> list[str]:
    """Returns code that assigns the program to the variable `vm`."""
    instructions = vm["instructions"]
    addresses = _address_variables(instructions, layout)
    lines = ["vm = STLVM()"]
    for instruction in instructions:
        write = _LINES.get(instruction["type"])
        if write is None:
            raise TRexError(f"unknown instruction type '{instruction['type']}'")
        method, arguments = write(dict(instruction), layout)
        if instruction["type"] == "flow_var" and instruction["name"] in addresses:
            arguments = {k: _as_address(k, v) for k, v in arguments.items()}
        lines.append(f"vm.{method}({_format_arguments(arguments)})")
    if "cache" in vm:
        lines.append(f"vm.set_cached({vm['cache']})")
    return lines


def _address_variables(instructions: list[dict[str, Any]], layout: PacketLayout | None) -> set[str]:
    """Returns the 4-byte variables that are written only to IPv4 addresses."""
    names = {i["name"] for i in instructions if i["type"] == "flow_var" and i["size"] == 4}
    written: set[str] = set()
    for instruction in instructions:
        if "pkt_offset" not in instruction or "name" not in instruction:
            continue
        position = layout.field_at(instruction["pkt_offset"]) if layout else None
        is_address = (
            position is not None and position.layer == "IP" and position.field in ("src", "dst")
        )
        if is_address and not instruction["add_value"]:
            written.add(instruction["name"])
        else:
            names.discard(instruction["name"])
    return names & written


def _as_address(argument: str, value: Any) -> Any:
    if argument in ("init_value", "min_value", "max_value") and value is not None:
        return int2ip(value)
    if argument == "value_list":
        return [int2ip(v) for v in value]
    return value


Line = tuple[str, dict[str, Any]]


def _flow_var(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    i.pop("type")
    if "value_list" in i:
        # The method requires a range, even if it has no effect.
        i.update(min_value=None, max_value=None)
    return "var", i


def _repeatable_random(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    i.pop("type")
    return "repeatable_random_var", {"fv_name": i.pop("name"), **i}


def _tuple(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    i.pop("type")
    return "tuple_var", {**i, "ip_min": int2ip(i["ip_min"]), "ip_max": int2ip(i["ip_max"])}


def _write(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    return "write", _position_arguments(i, layout)


def _write_mask(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    bits = {k: i[k] for k in ("pkt_cast_size", "mask", "shift")}
    return "write_mask", {**_position_arguments(i, layout), **bits}


def _position_arguments(i: dict[str, Any], layout: PacketLayout | None) -> dict[str, Any]:
    offset = i["pkt_offset"]
    position = layout.field_at(offset) if layout else None
    return {
        "fv_name": i["name"],
        "pkt_offset": offset if position is None else field_name(position),
        "add_val": i["add_value"],
        "byte_order": "big" if i["is_big_endian"] else "little",
    }


def _trim(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    return "trim", {"fv_name": i["name"]}


def _fix_ipv4(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    return "fix_chksum", {"offset": _header(i["pkt_offset"], layout)}


def _fix_hw(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    method, offsets = _fix_icmpv6(i, layout)
    if i["l3_len"] == 0:
        offsets["l4_offset"] = 0
    return "fix_chksum_hw", {**offsets, "l4_type": i["l4_type"]}


def _fix_icmpv6(i: dict[str, Any], layout: PacketLayout | None) -> Line:
    l3_offset = i["l2_len"]
    return "fix_chksum_icmpv6", {
        "l3_offset": _header(l3_offset, layout),
        "l4_offset": _header(l3_offset + i["l3_len"], layout),
    }


def _header(offset: int, layout: PacketLayout | None) -> Any:
    name = layout.layer_at(offset) if layout else None
    return offset if name is None else name


_LINES: dict[str, Callable[[dict[str, Any], PacketLayout | None], Line]] = {
    "flow_var": _flow_var,
    "flow_var_rand_limit": _repeatable_random,
    "tuple_flow_var": _tuple,
    "write_flow_var": _write,
    "write_mask_flow_var": _write_mask,
    "trim_pkt_size": _trim,
    "fix_checksum_ipv4": _fix_ipv4,
    "fix_checksum_hw": _fix_hw,
    "fix_checksum_icmpv6": _fix_icmpv6,
}
