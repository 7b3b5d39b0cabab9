"""Conversion of Scapy packets to the headers of a plan.

The conversion parses the bytes that Scapy builds. To find out whether the headers describe the
packet fully, it compares the frame of the headers with the packet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wirestorm import _native, headers
from wirestorm.errors import PlanError
from wirestorm.header import Header

# Minimum frame length without FCS. Shorter packets are padded to it.
_FRAME_LENGTH_MIN = 60

_ARP = ("hwtype", "ptype", "hwlen", "plen", "op", "hwsrc", "psrc", "hwdst", "pdst")


def packet_headers(packet: Any, vary: dict[str, Any]) -> list[Header]:
    """Returns a packet's headers, or its bytes. `vary` has values for fields such as `ipv4.src`."""
    data = bytes(packet)
    found = list(_headers(packet.__class__(data)))
    if _frame(found) != data.ljust(_FRAME_LENGTH_MIN, b"\0"):
        if vary:
            names = ", ".join(vary)
            raise PlanError([("packet", f"its headers are not all known; cannot vary {names}")])
        return [headers.custom(data)]
    for path, value in vary.items():
        _header_of(found, path).fields[path.partition(".")[2]] = value
    return found


def _header_of(found: list[Header], path: str) -> Header:
    name = path.partition(".")[0]
    matching = [header for header in found if header.name == name]
    if not matching or "." not in path:
        fields = ", ".join(f"{header.name}.*" for header in found)
        raise PlanError([("vary", f"found {path!r}, expected a field of the packet: {fields}")])
    return matching[0]


def _frame(found: list[Header]) -> bytes | None:
    """Returns the frame of these headers, None if they are invalid."""
    flow = {"name": "packet", "tx": "port", "packet": [header.to_plan() for header in found]}
    plan = json.dumps({"ports": [{"name": "port"}], "flows": [flow]})
    try:
        ((_, _, frame),) = _native.frames(plan, "", 1, "10G")
    except PlanError:
        return None
    return frame


def _headers(layer: Any) -> Iterator[Header]:
    """Yields the headers from this layer on. The rest behind the last known header is bytes."""
    while layer.name in _KNOWN:
        yield _KNOWN[layer.name](layer)
        if not layer.payload:
            return
        layer = layer.payload
    # Not a payload, which would extend to the end of a padded frame.
    yield headers.custom(bytes(layer))


def _ethernet(layer: Any) -> Header:
    return headers.ethernet(dst=layer.dst, src=layer.src, ether_type=layer.type)


def _vlan(layer: Any) -> Header:
    # The tag's TPID is the type field of the preceding header.
    return headers.vlan(priority=layer.prio, cfi=layer.dei, id=layer.vlan, ether_type=layer.type)


def _ipv4(layer: Any) -> Header:
    return headers.ipv4(
        priority=layer.tos,
        identification=layer.id,
        reserved=int(layer.flags) >> 2,
        dont_fragment=int(layer.flags) >> 1 & 1,
        more_fragments=int(layer.flags) & 1,
        fragment_offset=layer.frag,
        time_to_live=layer.ttl,
        protocol=layer.proto,
        src=layer.src,
        dst=layer.dst,
    )


def _ipv6(layer: Any) -> Header:
    return headers.ipv6(
        traffic_class=layer.tc,
        flow_label=layer.fl,
        next_header=layer.nh,
        hop_limit=layer.hlim,
        src=layer.src,
        dst=layer.dst,
    )


def _udp(layer: Any) -> Header:
    return headers.udp(src_port=layer.sport, dst_port=layer.dport)


def _tcp(layer: Any) -> Header:
    flags = int(layer.flags)
    return headers.tcp(
        src_port=layer.sport,
        dst_port=layer.dport,
        seq_num=layer.seq,
        ack_num=layer.ack,
        reserved=layer.reserved,
        ecn_ns=flags >> 8,
        flags=flags & 0xFF,
        window=layer.window,
        urgent_pointer=layer.urgptr,
    )


def _icmp(layer: Any) -> Header:
    return headers.icmp(
        type=layer.type, code=layer.code, identifier=layer.id, sequence_number=layer.seq
    )


def _arp(layer: Any) -> Header:
    names = (
        "hardware_type protocol_type hardware_length protocol_length operation "
        "sender_hardware_addr sender_protocol_addr target_hardware_addr target_protocol_addr"
    ).split()
    return headers.arp(**{name: layer.getfieldval(of) for name, of in zip(names, _ARP)})


_KNOWN = {
    "Ethernet": _ethernet,
    "802.1Q": _vlan,
    "802.1AD": _vlan,
    "IP": _ipv4,
    "IPv6": _ipv6,
    "UDP": _udp,
    "TCP": _tcp,
    "ICMP": _icmp,
    "ARP": _arp,
}
