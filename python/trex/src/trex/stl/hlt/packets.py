"""The packet of a stream, header by header, and the program that varies it."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from trex.addresses import ip2int, is_valid_ipv6_ret
from trex.errors import TRexError
from trex.stl.hlt.arguments import Arguments
from trex.stl.hlt.sweeps import Sweeps
from trex.stl.packet_builder import STLPktBuilder
from trex.stl.packet_operations import (
    STLVmFixIpv4,
    STLVmTrimPktSize,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)
from trex.stl.variables import STLVmFlowVar
from trex.stl.vm import STLScVmRaw

_TAG_PROTOCOLS = (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300)
_VLAN_ID_MASK = 0xFFF
_LENGTH_MODES = {"increment": "inc", "decrement": "dec", "random": "random"}
_L3_LEN_MIN = 40
# Variable with a frame's length.
_LENGTH = "pkt_len"

# Three interpretations of IPv4's second byte, by field and shift (RFC 791, 1349, 2474).
_TOS_INTERPRETATIONS: tuple[dict[str, int], ...] = (
    {"ip_precedence": 5, "ip_tos_field": 1, "ip_mbz": 0},
    {
        "ip_precedence": 5,
        "ip_delay": 4,
        "ip_throughput": 3,
        "ip_reliability": 2,
        "ip_cost": 1,
        "ip_reserved": 0,
    },
    {"ip_dscp": 2, "ip_cu": 0},
)

_TCP_FLAGS = {
    "F": "tcp_fin_flag",
    "S": "tcp_syn_flag",
    "R": "tcp_rst_flag",
    "P": "tcp_psh_flag",
    "A": "tcp_ack_flag",
    "U": "tcp_urg_flag",
}


def packet_builder(arguments: Arguments) -> STLPktBuilder:
    """Builds the packet that the arguments describe."""
    return _Builder(arguments).build()


class _Builder:
    def __init__(self, arguments: Arguments) -> None:
        self._args = arguments
        self._args.reverse_direction()
        self._sweeps = Sweeps()
        # Whether a field under the IPv4 checksum changes.
        self._ip_changes = False

    def build(self) -> STLPktBuilder:
        ethernet = self._ethernet()
        ip = self._ip()
        transport = self._transport(ip)
        packet = ethernet
        for header in (ip, transport):
            if header is not None:
                packet = packet / header
        payload_len = self._payload_len(ethernet, ip, transport, len(packet))
        if payload_len < 0:
            raise TRexError(
                f"the headers have {len(packet)} bytes, {-payload_len} more than the frame"
            )
        builder = STLPktBuilder(pkt=packet / ("!" * payload_len))
        commands = self._sweeps.commands
        if self._ip_changes and isinstance(ip, IP) and self._args["ip_checksum"] is None:
            commands.append(STLVmFixIpv4("IP"))
        if commands:
            # One thread sends a port's streams, so that all values mean `single`.
            if self._args["split_by_cores"] not in ("split", "duplicate", "single"):
                found = self._args["split_by_cores"]
                raise TRexError(f"split_by_cores is split, duplicate or single, not {found}")
            builder.add_command(STLScVmRaw(commands))
            builder.compile()
        if isinstance(self._args.get("save_to_pcap"), str):
            builder.dump_pkt_to_pcap(self._args["save_to_pcap"])
        return builder

    def _ethernet(self) -> Packet:
        args = self._args
        if args["l2_encap"] not in ("ethernet_ii", "ethernet_ii_vlan"):
            raise TRexError(f"l2_encap is ethernet_ii or ethernet_ii_vlan, not {args['l2_encap']}")
        packet = Ether()
        for field in ("src", "dst"):
            argument = f"mac_{field}"
            if args["ignore_macs"] or not args[argument]:
                continue
            setattr(packet, field, args[argument])
            # The variable covers the address's last four bytes.
            self._sweep(
                argument,
                f"Ether.{field}",
                4,
                _low32(args[argument]),
                _step(args[f"{argument}_step"], _low32),
                offset_fixup=2,
            )
        for index, tag in enumerate(args.tags()):
            packet = self._tag(packet, index, tag)
        return packet

    def _tag(self, packet: Packet, index: int, tag: dict[str, Any]) -> Packet:
        protocol = tag["vlan_protocol_tag_id"]
        if protocol is not None:
            protocol = int(protocol, 16) if isinstance(protocol, str) else protocol
            if protocol not in _TAG_PROTOCOLS:
                allowed = ", ".join(f"{p:#06x}" for p in _TAG_PROTOCOLS)
                raise TRexError(f"vlan_protocol_tag_id is one of {allowed}, not {protocol:#06x}")
            packet.lastlayer().type = protocol
        vlan = int(tag["vlan_id"])
        header = Dot1Q(prio=int(tag["vlan_user_priority"]), vlan=vlan)
        # The name of the bit depends on scapy's version, its position does not.
        setattr(header, header.fields_desc[1].name, int(tag["vlan_cfi"]))
        found = self._sweeps.variable(
            "vlan_id",
            2,
            tag["vlan_id_mode"],
            vlan,
            int(tag["vlan_id_step"]),
            tag["vlan_id_count"],
            random_name="vlan_id_random",
            # TRex uses this name for VLAN counters in both directions.
            counter_prefix="dec",
        )
        if found is not None:
            self._sweeps.commands.append(
                STLVmWrMaskFlowVar(
                    found[0],
                    pkt_offset=f"Dot1Q:{index}.vlan",
                    pkt_cast_size=2,
                    mask=_VLAN_ID_MASK,
                    add_value=found[1],
                )
            )
        return packet / header

    def _ip(self) -> Packet | None:
        args = self._args
        if args["l3_protocol"] is None:
            return None
        if args["l3_protocol"] == "ipv4":
            for field in ("src", "dst"):
                self._ip_changes |= self._sweep(
                    f"ip_{field}",
                    f"IP.{field}",
                    4,
                    ip2int(args[f"ip_{field}_addr"]),
                    _step(args[f"ip_{field}_step"], ip2int),
                )
            return IP(
                tos=_tos(args),
                id=args.number("ip_id"),
                frag=args.number("ip_fragment_offset"),
                ttl=args.number("ip_ttl"),
                chksum=args["ip_checksum"],
                src=args["ip_src_addr"],
                dst=args["ip_dst_addr"],
            )
        if args["l3_protocol"] == "ipv6":
            for field in ("src", "dst"):
                # The variable covers the address's last four bytes.
                self._sweep(
                    f"ipv6_{field}",
                    f"IPv6.{field}",
                    4,
                    _low32_ipv6(args[f"ipv6_{field}_addr"]),
                    _step(args[f"ipv6_{field}_step"], _low32_ipv6),
                    offset_fixup=12,
                )
            header = IPv6(
                tc=args.number("ipv6_traffic_class"),
                fl=args.number("ipv6_flow_label"),
                plen=args["ipv6_length"],
                hlim=args.number("ipv6_hop_limit"),
                src=args["ipv6_src_addr"],
                dst=args["ipv6_dst_addr"],
            )
            if args["ipv6_next_header"] is not None:
                header.nh = args.number("ipv6_next_header")
            return header
        raise TRexError(f"l3_protocol is ipv4 or ipv6, not {args['l3_protocol']}")

    def _transport(self, ip: Packet | None) -> Packet | None:
        args = self._args
        protocol = args["l4_protocol"]
        if protocol is None:
            return None
        if protocol not in ("tcp", "udp"):
            raise TRexError(f"l4_protocol is tcp or udp, not {protocol}")
        if ip is None:
            raise TRexError(f"l4_protocol {protocol} requires an l3_protocol, ipv4 or ipv6")
        for argument, field in (("src_port", "sport"), ("dst_port", "dport")):
            argument = f"{protocol}_{argument}"
            self._ip_changes |= self._sweep(
                argument,
                f"{protocol.upper()}.{field}",
                2,
                args.number(argument),
                args.number(f"{argument}_step"),
                random_name=f"{argument[: -len('_port')]}_random",
            )
        ports = {
            "sport": args.number(f"{protocol}_src_port"),
            "dport": args.number(f"{protocol}_dst_port"),
        }
        if protocol == "udp":
            return UDP(len=args["udp_length"], **ports)
        return TCP(
            seq=args.number("tcp_seq_num"),
            ack=args.number("tcp_ack_num"),
            dataofs=args.number("tcp_data_offset"),
            flags="".join(flag for flag, name in _TCP_FLAGS.items() if args.flag(name)),
            window=args.number("tcp_window"),
            chksum=args["tcp_checksum"],
            urgptr=args.number("tcp_urgent_ptr"),
            **ports,
        )

    def _payload_len(
        self, ethernet: Packet, ip: Packet | None, transport: Packet | None, headers_len: int
    ) -> int:
        args = self._args
        mode = args["length_mode"]
        if mode == "auto":
            return 0
        if mode == "fixed":
            if "l3_length" in args.names_set and "frame_size" not in args.names_set:
                return args.number("l3_length") + len(ethernet) - headers_len
            return args.frame_len("frame_size") - headers_len
        if mode not in _LENGTH_MODES:
            raise TRexError(
                f"length_mode is auto, fixed, imix, {', '.join(_LENGTH_MODES)}, not {mode}"
            )
        if args.names_set.isdisjoint(("frame_size_min", "frame_size_max")):
            l3_shortest, l3_longest = args.number("l3_length_min"), args.number("l3_length_max")
            if min(l3_shortest, l3_longest) < _L3_LEN_MIN:
                raise TRexError(f"l3_length_min and l3_length_max are at least {_L3_LEN_MIN}")
            shortest, longest = l3_shortest + len(ethernet), l3_longest + len(ethernet)
            step = args.number("l3_length_step")
        else:
            shortest, longest = args.frame_len("frame_size_min"), args.frame_len("frame_size_max")
            if min(shortest, longest) < 44:
                raise TRexError("frame_size_min and frame_size_max are at least 48")
            step = args.number("frame_size_step")
        if shortest > longest:
            raise TRexError("the shortest frame is longer than the longest")
        if shortest < longest:
            self._vary_length(_LENGTH_MODES[mode], shortest, longest, step, ethernet, ip, transport)
        return longest - headers_len

    def _vary_length(
        self,
        operation: str,
        shortest: int,
        longest: int,
        step: int,
        ethernet: Packet,
        ip: Packet | None,
        transport: Packet | None,
    ) -> None:
        self._ip_changes = True
        commands = self._sweeps.commands
        commands.append(
            STLVmFlowVar(
                _LENGTH,
                size=2,
                op=operation,
                step=step,
                min_value=shortest,
                max_value=longest,
            )
        )
        commands.append(STLVmTrimPktSize(_LENGTH))
        if isinstance(ip, IP):
            commands.append(STLVmWrFlowVar(_LENGTH, "IP.len", add_val=-len(ethernet)))
        if isinstance(transport, UDP) and ip is not None:
            above_len = len(ethernet) + len(ip)
            commands.append(STLVmWrFlowVar(_LENGTH, "UDP.len", add_val=-above_len))

    def _sweep(
        self,
        argument: str,
        field: str,
        size: int,
        start: int,
        step: int,
        offset_fixup: int = 0,
        random_name: str = "",
    ) -> bool:
        """Varies a field if its arguments request it. Returns whether they do."""
        found = self._sweeps.variable(
            argument,
            size,
            self._args[f"{argument}_mode"],
            start,
            step,
            self._args[f"{argument}_count"],
            random_name or f"{argument}_random",
        )
        if found is None:
            return False
        self._sweeps.commands.append(
            STLVmWrFlowVar(found[0], field, offset_fixup=offset_fixup, add_val=found[1])
        )
        return True


def _tos(args: Arguments) -> int:
    """Returns IPv4's second byte, in the interpretation of the given arguments."""
    interpretations = [r for r in _TOS_INTERPRETATIONS if not args.names_set.isdisjoint(r)]
    # The precedence belongs to two interpretations. Alone it selects either.
    only = [
        r for r in interpretations if args.names_set & r.keys() - {"ip_precedence"}
    ] or interpretations[:1]
    if len(only) > 1 or (only and "ip_precedence" in args.names_set - only[0].keys()):
        raise TRexError(
            "use one of these ways for the type of service: "
            + "; ".join(", ".join(interpretation) for interpretation in _TOS_INTERPRETATIONS)
        )
    interpretation = only[0] if only else _TOS_INTERPRETATIONS[-1]
    tos = sum(args.number(field) << shift for field, shift in interpretation.items())
    if not 0 <= tos <= 0xFF:
        raise TRexError(f"the type of service is {tos}, more than a byte")
    return tos


def _step(value: Any, address: Any) -> int:
    """Converts a step given as a number or an address."""
    if isinstance(value, str) and not value.isdigit():
        return address(value)
    return int(value)


def _low32(mac: str) -> int:
    return int(mac.replace(":", "")[-8:], 16)


def _low32_ipv6(address: str) -> int:
    return int.from_bytes(is_valid_ipv6_ret(address)[-4:], "big")
