"""Headers of packets, outermost first; made by tools/make_headers.py.

A field that is not given is filled in: lengths, checksums and numbers of next protocols follow from
the rest of the packet. What is given is kept, so frames can be wrong on purpose:
`ipv4(header_checksum="bad")`. A field can vary from frame to frame: see `wirestorm.patterns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from wirestorm._plain import Scalar
from wirestorm.header import Header, given
from wirestorm.patterns import Pattern

Field = Optional[Union[Scalar, Pattern, bytes, dict[str, Any]]]
Items = Optional[Sequence[Union[Header, dict[str, Any]]]]

__all__ = [
    "ethernet",
    "vlan",
    "mpls",
    "arp",
    "ipv4",
    "ipv6",
    "ipv6_hop_by_hop",
    "ipv6_destination_options",
    "ipv6_routing",
    "ipv6_fragment",
    "icmp",
    "icmpv6",
    "icmpv6_router_solicitation",
    "icmpv6_router_advertisement",
    "icmpv6_neighbor_solicitation",
    "icmpv6_neighbor_advertisement",
    "icmpv6_redirect",
    "igmpv1",
    "igmpv2",
    "igmpv3_query",
    "igmpv3_report",
    "udp",
    "tcp",
    "sctp",
    "sctp_data",
    "gre",
    "vxlan",
    "gtpv1",
    "pppoe",
    "pppoe_discovery",
    "ppp",
    "custom",
]


def ethernet(
    *,
    dst: Field = None,
    src: Field = None,
    ether_type: Field = None,
) -> Header:
    """Ethernet, IEEE 802.3 section 3.1.1."""
    return Header("ethernet", given(locals()))


def vlan(
    *,
    tpid: Field = None,
    priority: Field = None,
    cfi: Field = None,
    id: Field = None,
    ether_type: Field = None,
) -> Header:
    """VLAN tag, IEEE 802.1Q section 9."""
    return Header("vlan", given(locals()))


def mpls(
    *,
    label: Field = None,
    traffic_class: Field = None,
    bottom_of_stack: Field = None,
    time_to_live: Field = None,
) -> Header:
    """MPLS label, RFC 3032 section 2.1."""
    return Header("mpls", given(locals()))


def arp(
    *,
    hardware_type: Field = None,
    protocol_type: Field = None,
    hardware_length: Field = None,
    protocol_length: Field = None,
    operation: Field = None,
    sender_hardware_addr: Field = None,
    sender_protocol_addr: Field = None,
    target_hardware_addr: Field = None,
    target_protocol_addr: Field = None,
) -> Header:
    """ARP for IPv4 over Ethernet, RFC 826."""
    return Header("arp", given(locals()))


def ipv4(
    *,
    version: Field = None,
    header_length: Field = None,
    priority: Field = None,
    dscp: Field = None,
    ecn: Field = None,
    tos: Field = None,
    precedence: Field = None,
    delay: Field = None,
    throughput: Field = None,
    reliability: Field = None,
    monetary: Field = None,
    unused: Field = None,
    total_length: Field = None,
    identification: Field = None,
    reserved: Field = None,
    dont_fragment: Field = None,
    more_fragments: Field = None,
    fragment_offset: Field = None,
    time_to_live: Field = None,
    protocol: Field = None,
    header_checksum: Field = None,
    src: Field = None,
    dst: Field = None,
    options: Items = None,
) -> Header:
    """IPv4, RFC 791 section 3.1."""
    return Header("ipv4", given(locals()))


def ipv6(
    *,
    version: Field = None,
    traffic_class: Field = None,
    dscp: Field = None,
    ecn: Field = None,
    flow_label: Field = None,
    payload_length: Field = None,
    next_header: Field = None,
    hop_limit: Field = None,
    src: Field = None,
    dst: Field = None,
) -> Header:
    """IPv6, RFC 8200 section 3."""
    return Header("ipv6", given(locals()))


def ipv6_hop_by_hop(
    *,
    next_header: Field = None,
    hdr_ext_len: Field = None,
    options: Items = None,
) -> Header:
    """IPv6 hop-by-hop options, RFC 8200 section 4.3."""
    return Header("ipv6_hop_by_hop", given(locals()))


def ipv6_destination_options(
    *,
    next_header: Field = None,
    hdr_ext_len: Field = None,
    options: Items = None,
) -> Header:
    """IPv6 destination options, RFC 8200 section 4.6."""
    return Header("ipv6_destination_options", given(locals()))


def ipv6_routing(
    *,
    next_header: Field = None,
    hdr_ext_len: Field = None,
    routing_type: Field = None,
    segments_left: Field = None,
    last_entry: Field = None,
    flags: Field = None,
    tag: Field = None,
    segments: Items = None,
) -> Header:
    """IPv6 routing header, RFC 8754 section 2."""
    return Header("ipv6_routing", given(locals()))


def ipv6_fragment(
    *,
    next_header: Field = None,
    reserved: Field = None,
    fragment_offset: Field = None,
    reserved2: Field = None,
    more_fragments: Field = None,
    identification: Field = None,
) -> Header:
    """IPv6 fragment header, RFC 8200 section 4.5."""
    return Header("ipv6_fragment", given(locals()))


def icmp(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    identifier: Field = None,
    sequence_number: Field = None,
    gateway: Field = None,
    pointer: Field = None,
    next_hop_mtu: Field = None,
) -> Header:
    """ICMP, RFC 792."""
    return Header("icmp", given(locals()))


def icmpv6(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    identifier: Field = None,
    sequence_number: Field = None,
    mtu: Field = None,
    pointer: Field = None,
) -> Header:
    """ICMPv6, RFC 4443 section 4."""
    return Header("icmpv6", given(locals()))


def icmpv6_router_solicitation(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    reserved: Field = None,
    options: Items = None,
) -> Header:
    """Router solicitation, RFC 4861 section 4.1."""
    return Header("icmpv6_router_solicitation", given(locals()))


def icmpv6_router_advertisement(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    cur_hop_limit: Field = None,
    managed: Field = None,
    other_configuration: Field = None,
    reserved: Field = None,
    router_lifetime: Field = None,
    reachable_time: Field = None,
    retransmission_timer: Field = None,
    options: Items = None,
) -> Header:
    """Router advertisement, RFC 4861 section 4.2."""
    return Header("icmpv6_router_advertisement", given(locals()))


def icmpv6_neighbor_solicitation(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    reserved: Field = None,
    target_address: Field = None,
    options: Items = None,
) -> Header:
    """Neighbor solicitation, RFC 4861 section 4.3."""
    return Header("icmpv6_neighbor_solicitation", given(locals()))


def icmpv6_neighbor_advertisement(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    router: Field = None,
    solicited: Field = None,
    override: Field = None,
    reserved: Field = None,
    target_address: Field = None,
    options: Items = None,
) -> Header:
    """Neighbor advertisement, RFC 4861 section 4.4."""
    return Header("icmpv6_neighbor_advertisement", given(locals()))


def icmpv6_redirect(
    *,
    type: Field = None,
    code: Field = None,
    checksum: Field = None,
    reserved: Field = None,
    target_address: Field = None,
    destination_address: Field = None,
    options: Items = None,
) -> Header:
    """Redirect, RFC 4861 section 4.5."""
    return Header("icmpv6_redirect", given(locals()))


def igmpv1(
    *,
    version: Field = None,
    type: Field = None,
    unused: Field = None,
    checksum: Field = None,
    group_address: Field = None,
) -> Header:
    """IGMP version 1, RFC 1112 appendix I."""
    return Header("igmpv1", given(locals()))


def igmpv2(
    *,
    type: Field = None,
    max_response_time: Field = None,
    checksum: Field = None,
    group_address: Field = None,
) -> Header:
    """IGMP version 2, RFC 2236 section 2."""
    return Header("igmpv2", given(locals()))


def igmpv3_query(
    *,
    type: Field = None,
    max_response_code: Field = None,
    checksum: Field = None,
    group_address: Field = None,
    reserved: Field = None,
    suppress_router_processing: Field = None,
    querier_robustness: Field = None,
    query_interval_code: Field = None,
    number_of_sources: Field = None,
    sources: Items = None,
) -> Header:
    """IGMP version 3 query, RFC 9776 section 4.1."""
    return Header("igmpv3_query", given(locals()))


def igmpv3_report(
    *,
    type: Field = None,
    reserved: Field = None,
    checksum: Field = None,
    reserved2: Field = None,
    number_of_records: Field = None,
    records: Items = None,
) -> Header:
    """IGMP version 3 report, RFC 9776 section 4.2."""
    return Header("igmpv3_report", given(locals()))


def udp(
    *,
    src_port: Field = None,
    dst_port: Field = None,
    length: Field = None,
    checksum: Field = None,
) -> Header:
    """UDP, RFC 768."""
    return Header("udp", given(locals()))


def tcp(
    *,
    src_port: Field = None,
    dst_port: Field = None,
    seq_num: Field = None,
    ack_num: Field = None,
    data_offset: Field = None,
    reserved: Field = None,
    ecn_ns: Field = None,
    ecn_cwr: Field = None,
    ecn_echo: Field = None,
    ctl_urg: Field = None,
    ctl_ack: Field = None,
    ctl_psh: Field = None,
    ctl_rst: Field = None,
    ctl_syn: Field = None,
    ctl_fin: Field = None,
    flags: Field = None,
    window: Field = None,
    checksum: Field = None,
    urgent_pointer: Field = None,
    options: Items = None,
) -> Header:
    """TCP, RFC 9293 section 3.1."""
    return Header("tcp", given(locals()))


def sctp(
    *,
    src_port: Field = None,
    dst_port: Field = None,
    verification_tag: Field = None,
    checksum: Field = None,
    chunks: Items = None,
) -> Header:
    """SCTP, RFC 9260 section 3.1."""
    return Header("sctp", given(locals()))


def sctp_data(
    *,
    type: Field = None,
    reserved: Field = None,
    immediate: Field = None,
    unordered: Field = None,
    beginning: Field = None,
    ending: Field = None,
    length: Field = None,
    transmission_sequence_number: Field = None,
    stream_identifier: Field = None,
    stream_sequence_number: Field = None,
    payload_protocol: Field = None,
) -> Header:
    """SCTP user data, RFC 9260 section 3.3.1."""
    return Header("sctp_data", given(locals()))


def gre(
    *,
    checksum_present: Field = None,
    reserved_routing: Field = None,
    key_present: Field = None,
    sequence_present: Field = None,
    reserved0: Field = None,
    version: Field = None,
    protocol: Field = None,
    checksum: Field = None,
    reserved1: Field = None,
    key: Field = None,
    sequence_number: Field = None,
) -> Header:
    """GRE, RFC 2784 section 2 and RFC 2890 section 2."""
    return Header("gre", given(locals()))


def vxlan(
    *,
    flags: Field = None,
    reserved0: Field = None,
    vni: Field = None,
    reserved1: Field = None,
) -> Header:
    """VXLAN, RFC 7348 section 5."""
    return Header("vxlan", given(locals()))


def gtpv1(
    *,
    version: Field = None,
    protocol_type: Field = None,
    reserved: Field = None,
    e_flag: Field = None,
    s_flag: Field = None,
    pn_flag: Field = None,
    message_type: Field = None,
    message_length: Field = None,
    teid: Field = None,
    sequence_number: Field = None,
    n_pdu_number: Field = None,
    next_extension_header_type: Field = None,
    extension_headers: Items = None,
) -> Header:
    """GTP-U, 3GPP TS 29.281 section 5.1."""
    return Header("gtpv1", given(locals()))


def pppoe(
    *,
    version: Field = None,
    type: Field = None,
    code: Field = None,
    session_id: Field = None,
    length: Field = None,
) -> Header:
    """PPPoE session, RFC 2516 section 4."""
    return Header("pppoe", given(locals()))


def pppoe_discovery(
    *,
    version: Field = None,
    type: Field = None,
    code: Field = None,
    session_id: Field = None,
    length: Field = None,
    tags: Items = None,
) -> Header:
    """PPPoE discovery, RFC 2516 section 5."""
    return Header("pppoe_discovery", given(locals()))


def ppp(
    *,
    address: Field = None,
    control: Field = None,
    protocol_type: Field = None,
) -> Header:
    """PPP, RFC 1661 section 2."""
    return Header("ppp", given(locals()))


def custom(
    bytes: Field = None,
) -> Header:
    """Any bytes."""
    return Header("custom", given(locals()))
