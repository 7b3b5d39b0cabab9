"""A stream: a packet, when it is sent, and what is measured of it."""

from __future__ import annotations

import json
from typing import Any, Union

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from trex.arguments import validate_type
from trex.errors import TRexError
from trex.stl.modes import STLTXCont, STLTXMode
from trex.stl.packet_builder import CTrexPktBuilderInterface, STLPktBuilder
from trex.stl.statistics import (
    STLFlowLatencyStats,
    STLFlowStatsInterface,
    STLTaggedPktGroup,
)
from trex.utilities import format_num

# Where the destination MAC address comes from.
STLStreamDstMAC_CFG_FILE = 0
STLStreamDstMAC_PKT = 1
STLStreamDstMAC_ARP = 2

# Bits of `flags`.
_SRC_MAC_OF_PACKET = 1
_DST_MAC_SHIFT = 1
_DST_MAC_MASK = 0b11
_DUMMY = 1 << 3

_RATE_UNITS = {"pps": "pps", "bps_L1": "bps (L1)", "bps_L2": "bps (L2)", "percentage": "%"}

Name = Union[str, int]


class STLStream:
    """A stream.

    :param name: what another stream's `next` calls it
    :param packet: the packet; an IPv4 header without payload if None
    :param mode: when it sends; one frame a second if None
    :param enabled: a stream that is not enabled never runs
    :param self_start: False: runs only when another stream's `next` names it
    :param isg: microseconds to wait before the first frame, each time it runs
    :param flow_stats: what is measured of it where it is received
    :param next: the stream that runs when this one has ended
    :param stream_id: its number, chosen by the client if None
    :param action_count: how often `next` is followed, 0 for ever
    :param random_seed: what its random variables draw from, 0 for anything
    :param mac_src_override_by_pkt: the source MAC address is the packet's rather than the port's;
        if None, when the packet sets one
    :param mac_dst_override_mode: one of STLStreamDstMAC_*; if None, the packet's when it sets one
    :param dummy_stream: only waits, and sends nothing
    :param start_paused: does not send before it is resumed
    :param core_id: the core that sends it, -1 for any
    """

    def __init__(
        self,
        name: Name | None = None,
        packet: STLPktBuilder | None = None,
        mode: STLTXMode | None = None,
        enabled: bool = True,
        self_start: bool = True,
        isg: float = 0.0,
        flow_stats: STLFlowStatsInterface | None = None,
        next: Name | None = None,
        stream_id: int | None = None,
        action_count: int = 0,
        random_seed: int = 0,
        mac_src_override_by_pkt: bool | int | None = None,
        mac_dst_override_mode: int | None = None,
        dummy_stream: bool = False,
        start_paused: bool = False,
        core_id: int = -1,
    ) -> None:
        mode = STLTXCont(pps=1.0) if mode is None else mode
        for argument, value, types in (
            ("name", name, (type(None), int, str)),
            ("packet", packet, (type(None), CTrexPktBuilderInterface)),
            ("mode", mode, STLTXMode),
            ("enabled", enabled, bool),
            ("self_start", self_start, bool),
            ("isg", isg, (int, float)),
            ("flow_stats", flow_stats, (type(None), STLFlowStatsInterface)),
            ("next", next, (type(None), int, str)),
            ("stream_id", stream_id, (type(None), int)),
            ("random_seed", random_seed, int),
            ("dummy_stream", dummy_stream, bool),
            ("start_paused", start_paused, bool),
            ("core_id", core_id, int),
        ):
            validate_type(argument, value, types)
        if isinstance(mode, STLTXCont) and next is not None:
            raise TRexError(f"a continuous stream never ends: it cannot have {next} as next")
        if core_id >= 0 and isinstance(flow_stats, (STLFlowLatencyStats, STLTaggedPktGroup)):
            raise TRexError("a stream with sequence numbers cannot be tied to a core (core_id)")

        packet = STLPktBuilder(pkt=Ether() / IP()) if packet is None else packet
        packet.compile()
        if mac_src_override_by_pkt is None:
            mac_src_override_by_pkt = not packet.is_default_src_mac()
        if mac_dst_override_mode is None:
            of_packet = not packet.is_default_dst_mac()
            mac_dst_override_mode = STLStreamDstMAC_PKT if of_packet else STLStreamDstMAC_CFG_FILE

        self.name = name
        self.next = next
        self.id = stream_id
        self.scapy_pkt_builder = packet
        self.mode_desc = str(mode)
        self.pkt: bytes = packet.dump_pkt(encode=False)["binary"]
        self.fields: dict[str, Any] = {
            "flags": int(mac_src_override_by_pkt) & _SRC_MAC_OF_PACKET
            | (mac_dst_override_mode & _DST_MAC_MASK) << _DST_MAC_SHIFT
            | dummy_stream * _DUMMY,
            "action_count": action_count,
            "enabled": enabled,
            "self_start": self_start,
            "start_paused": start_paused,
            "isg": isg,
            "core_id": core_id,
            "mode": mode.to_json(),
            "packet": packet.dump_pkt(),
            "vm": packet.get_vm_data(),
            "flow_stats": flow_stats.to_json()
            if flow_stats is not None
            else STLFlowStatsInterface.defaults(),
        }
        if random_seed:
            self.fields["random_seed"] = random_seed

    def __str__(self) -> str:
        return json.dumps(self.to_json(), indent=4, sort_keys=True)

    def get_id(self) -> int | None:
        """Its number, None before it has one."""
        return self.id

    def get_name(self) -> Name | None:
        """What other streams call it."""
        return self.name

    def get_next(self) -> Name | None:
        """The name of the stream that runs after it."""
        return self.next

    def get_pkt(self) -> bytes:
        """The frame without FCS."""
        return self.pkt

    def get_pkt_len(self, count_crc: bool = True) -> int:
        """Bytes of the frame, with its FCS unless told otherwise."""
        return len(self.pkt) + 4 * count_crc

    def get_pkt_type(self) -> str:
        """The names of the packet's headers, a dash if nothing is sent."""
        return "-" if self.is_dummy() else STLPktBuilder.pkt_layers_desc_from_buffer(self.pkt)

    def get_mode(self) -> str:
        """When it sends, for people."""
        return "delay" if self.is_dummy() else self.mode_desc

    def get_rate(self) -> str:
        """Its rate, for people."""
        return self.get_rate_from_field(self.fields["mode"]["rate"])

    @staticmethod
    def get_rate_from_field(rate_json: dict[str, Any]) -> str:
        """A `rate` member, for people."""
        return format_num(rate_json["value"], suffix=_RATE_UNITS[rate_json["type"]])

    def has_flow_stats(self) -> bool:
        """Whether something is measured of it."""
        return self.fields["flow_stats"]["enabled"]

    def get_pg_id(self) -> int | None:
        """The number that it is measured under."""
        return self.fields["flow_stats"].get("stream_id")

    def get_flow_stats_type(self) -> str | None:
        """What is measured: `stats`, `latency` or `tpg`."""
        return self.fields["flow_stats"].get("rule_type")

    def is_dummy(self) -> bool:
        """Whether it sends nothing."""
        return bool(self.fields["flags"] & _DUMMY)

    def has_custom_mac_addr(self) -> bool:
        """Whether one of its MAC addresses is not the port's."""
        return bool(self.fields["flags"] & ~_DUMMY)

    def is_explicit_dst_mac(self) -> bool:
        """Whether the packet's destination MAC address is sent."""
        return self.mac_dst_override_mode() == STLStreamDstMAC_PKT

    def mac_src_override_by_pkt(self) -> bool:
        """Whether the packet's source MAC address is sent."""
        return bool(self.fields["flags"] & _SRC_MAC_OF_PACKET)

    def mac_dst_override_mode(self) -> int:
        """One of STLStreamDstMAC_*."""
        return self.fields["flags"] >> _DST_MAC_SHIFT & _DST_MAC_MASK

    def to_pkt_dump(self) -> None:
        """Prints the packet."""
        if self.name is not None:
            print("Stream Name:", self.name)
        self.scapy_pkt_builder.to_pkt_dump()

    def to_code(self) -> str:
        """Python that makes the same stream again, as the variable `stream`."""
        from trex.stl.code import stream_code

        return stream_code(self)

    def to_json(self) -> dict[str, Any]:
        """The stream as its server reads it."""
        document = dict(self.fields)
        for member, value in (("name", self.name), ("next", self.next)):
            if value not in (None, ""):
                document[member] = value
        return document

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLStream:
        """The stream of a document that `to_json` made, or TRex."""
        try:
            flags = json_data["flags"]
            return STLStream(
                name=json_data.get("name"),
                packet=STLPktBuilder.from_json(json_data),
                mode=STLTXMode.from_json(json_data),
                enabled=json_data["enabled"],
                self_start=json_data["self_start"],
                isg=json_data["isg"],
                flow_stats=STLFlowStatsInterface.from_json(json_data["flow_stats"]),
                next=json_data.get("next"),
                stream_id=json_data.get("stream_id"),
                action_count=json_data["action_count"],
                random_seed=json_data.get("random_seed", 0),
                mac_src_override_by_pkt=flags & _SRC_MAC_OF_PACKET,
                mac_dst_override_mode=flags >> _DST_MAC_SHIFT & _DST_MAC_MASK,
                dummy_stream=bool(flags & _DUMMY),
                start_paused=json_data.get("start_paused", False),
                core_id=json_data.get("core_id", -1),
            )
        except KeyError as missing:
            raise TRexError(f"the stream has no {missing}") from missing

    def clone(self) -> STLStream:
        """A copy that shares nothing with this."""
        return STLStream.from_json(self.to_json())
