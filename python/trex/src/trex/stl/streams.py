"""A stream: its packet, schedule and measurements."""

from __future__ import annotations

import base64
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

# Origins of the destination MAC address.
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
    """A stream of a port.

    :param name: name for `next` of other streams
    :param packet: packet; an IPv4 header without payload if None
    :param mode: transmission mode; one frame per second if None
    :param enabled: False: the stream never runs
    :param self_start: False: the stream runs only as `next` of another one
    :param isg: microseconds before the first frame, at each start
    :param flow_stats: measurements at the receiver
    :param next: stream that runs after this one
    :param stream_id: ID, assigned by the client if None
    :param action_count: number of times that `next` runs, 0 for endless
    :param random_seed: seed of random variables, 0 for any
    :param mac_src_override_by_pkt: use the packet's source MAC address instead of the port's; if
        None, when the packet sets one
    :param mac_dst_override_mode: one of STLStreamDstMAC_*; if None, the packet's when it sets one
    :param dummy_stream: only wait, without frames
    :param start_paused: start only after it is resumed
    :param core_id: core that sends the stream, -1 for any
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
        binary = packet.dump_pkt()
        self.pkt = base64.b64decode(binary["binary"])
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
            "packet": binary,
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
        """Returns the ID, None before it has one."""
        return self.id

    def get_name(self) -> Name | None:
        """Returns the name for other streams."""
        return self.name

    def get_next(self) -> Name | None:
        """Returns the name of the next stream."""
        return self.next

    def get_pkt(self) -> bytes:
        """Returns the frame without FCS."""
        return self.pkt

    def get_pkt_len(self, count_crc: bool = True) -> int:
        """Returns the length of the frame, by default with FCS."""
        return len(self.pkt) + 4 * count_crc

    def get_pkt_type(self) -> str:
        """Returns the names of the packet's headers, a dash for a dummy stream."""
        return "-" if self.is_dummy() else STLPktBuilder.pkt_layers_desc_from_buffer(self.pkt)

    def get_mode(self) -> str:
        """Returns a description of the transmission mode."""
        return "delay" if self.is_dummy() else self.mode_desc

    def get_rate(self) -> str:
        """Returns a description of the rate."""
        return self.get_rate_from_field(self.fields["mode"]["rate"])

    @staticmethod
    def get_rate_from_field(rate_json: dict[str, Any]) -> str:
        """Returns a description of a `rate` member."""
        return format_num(rate_json["value"], suffix=_RATE_UNITS[rate_json["type"]])

    def has_flow_stats(self) -> bool:
        """Returns whether the stream is measured."""
        return self.fields["flow_stats"]["enabled"]

    def get_pg_id(self) -> int | None:
        """Returns the packet group."""
        return self.fields["flow_stats"].get("stream_id")

    def get_flow_stats_type(self) -> str | None:
        """Returns the kind of measurement: `stats`, `latency` or `tpg`."""
        return self.fields["flow_stats"].get("rule_type")

    def is_dummy(self) -> bool:
        """Returns whether the stream sends nothing."""
        return bool(self.fields["flags"] & _DUMMY)

    def has_custom_mac_addr(self) -> bool:
        """Returns whether a MAC address is not the port's."""
        return bool(self.fields["flags"] & ~_DUMMY)

    def is_explicit_dst_mac(self) -> bool:
        """Returns whether the destination MAC address is the packet's."""
        return self.mac_dst_override_mode() == STLStreamDstMAC_PKT

    def mac_src_override_by_pkt(self) -> bool:
        """Returns whether the source MAC address is the packet's."""
        return bool(self.fields["flags"] & _SRC_MAC_OF_PACKET)

    def mac_dst_override_mode(self) -> int:
        """Returns one of STLStreamDstMAC_*."""
        return self.fields["flags"] >> _DST_MAC_SHIFT & _DST_MAC_MASK

    def to_pkt_dump(self) -> None:
        """Prints the packet."""
        if self.name is not None:
            print("Stream Name:", self.name)
        self.scapy_pkt_builder.to_pkt_dump()

    def to_code(self) -> str:
        """Returns Python code that assigns an equal stream to the variable `stream`."""
        from trex.stl.code import stream_code

        return stream_code(self)

    def to_json(self) -> dict[str, Any]:
        """Returns the stream in the format of TRex's server."""
        document = dict(self.fields)
        for member, value in (("name", self.name), ("next", self.next)):
            if value not in (None, ""):
                document[member] = value
        return document

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLStream:
        """Creates a stream from a document of `to_json` or TRex."""
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
        """Returns an independent copy."""
        return STLStream.from_json(self.to_json())
