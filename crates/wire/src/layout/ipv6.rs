//! IPv6, RFC 8200 section 3, and its extension headers.

use super::field::{bytes, ipv6, uint};
use super::{Field, Layout, Number, Padding, Role, Space};
use crate::packet::{ethertype, protocol};

/// IPv6 header.
pub static IPV6: Layout = Layout::new(
    "ipv6",
    "IPv6, RFC 8200 section 3",
    &[
        uint("version", 0, 4).default(6),
        uint("traffic_class", 4, 8),
        uint("dscp", 4, 6).view(),
        uint("ecn", 10, 2).view(),
        uint("flow_label", 12, 20),
        uint("payload_length", 32, 16).role(Role::LengthToEnd { from: 40 }),
        next_header(48),
        uint("hop_limit", 56, 8).default(64),
        ipv6("src", 64),
        ipv6("dst", 192),
    ],
)
.numbers(&[
    Number::new(Space::EtherType, ethertype::IPV6),
    Number::new(Space::IpProtocol, protocol::IPV6 as u16),
    // RFC 5072 section 2.
    Number::new(Space::PppProtocol, 0x0057),
]);

/// Hop-by-hop options, RFC 8200 section 4.3.
pub static HOP_BY_HOP: Layout = Layout::new(
    "ipv6_hop_by_hop",
    "IPv6 hop-by-hop options, RFC 8200 section 4.3",
    &[next_header(0), HEADER_LENGTH],
)
.items("options", &OPTIONS)
.align(8, Padding::Ipv6Options)
.numbers(&[Number::new(Space::IpProtocol, protocol::HOP_BY_HOP as u16)]);

/// Destination options, RFC 8200 section 4.6.
pub static DESTINATION_OPTIONS: Layout = Layout::new(
    "ipv6_destination_options",
    "IPv6 destination options, RFC 8200 section 4.6",
    &[next_header(0), HEADER_LENGTH],
)
.items("options", &OPTIONS)
.align(8, Padding::Ipv6Options)
.numbers(&[Number::new(Space::IpProtocol, protocol::DESTINATION_OPTIONS as u16)]);

/// Routing header, RFC 8200 section 4.4; by default a segment routing header (RFC 8754 section 2).
pub static ROUTING: Layout = Layout::new(
    "ipv6_routing",
    "IPv6 routing header, RFC 8754 section 2",
    &[
        next_header(0),
        HEADER_LENGTH,
        uint("routing_type", 16, 8).default(4),
        uint("segments_left", 24, 8),
        uint("last_entry", 32, 8).role(Role::ItemCount { less: 1 }),
        uint("flags", 40, 8),
        uint("tag", 48, 16),
    ],
)
.items("segments", &[&SEGMENT])
.numbers(&[Number::new(Space::IpProtocol, protocol::ROUTING as u16)]);

/// A fragment header, RFC 8200 section 4.5.
pub static FRAGMENT: Layout = Layout::new(
    "ipv6_fragment",
    "IPv6 fragment header, RFC 8200 section 4.5",
    &[
        next_header(0),
        uint("reserved", 8, 8),
        uint("fragment_offset", 16, 13),
        uint("reserved2", 29, 2),
        uint("more_fragments", 31, 1),
        uint("identification", 32, 32),
    ],
)
.numbers(&[Number::new(Space::IpProtocol, protocol::FRAGMENT as u16)]);

/// Returns whether the layout is an extension header.
pub fn is_extension(layout: &Layout) -> bool {
    [&HOP_BY_HOP, &DESTINATION_OPTIONS, &ROUTING, &FRAGMENT].iter().any(|one| one.is(layout))
}

static SEGMENT: Layout =
    Layout::new("segment", "A segment, RFC 8754 section 2", &[ipv6("value", 0)]);

static OPTIONS: [&Layout; 5] = [&ROUTER_ALERT, &JUMBO_PAYLOAD, &PAD1, &PADN, &OTHER];

static ROUTER_ALERT: Layout = Layout::new(
    "router_alert",
    "Router alert, RFC 2711 section 2.1",
    &[uint("type", 0, 8).default(5), OPTION_LENGTH, uint("value", 16, 16)],
);

static JUMBO_PAYLOAD: Layout = Layout::new(
    "jumbo_payload",
    "Jumbo payload, RFC 2675 section 2",
    &[uint("type", 0, 8).default(0xc2), OPTION_LENGTH, uint("payload_length", 16, 32)],
);

static PAD1: Layout =
    Layout::new("pad1", "One byte of padding, RFC 8200 section 4.2", &[uint("type", 0, 8)]);

static PADN: Layout = Layout::new(
    "padn",
    "Bytes of padding, RFC 8200 section 4.2",
    &[uint("type", 0, 8).default(1), OPTION_LENGTH, bytes("value", 16)],
);

static OTHER: Layout = Layout::new(
    "custom",
    "Any option, RFC 8200 section 4.2",
    &[uint("type", 0, 8), OPTION_LENGTH, bytes("value", 16)],
);

/// In units of 8 bytes, without the first unit.
const HEADER_LENGTH: Field =
    uint("hdr_ext_len", 8, 8).role(Role::HeaderLength { unit: 8, subtract: 1 });

/// Without the type and length bytes.
const OPTION_LENGTH: Field = uint("length", 8, 8).role(Role::HeaderLength { unit: 1, subtract: 2 });

const fn next_header(bit_offset: usize) -> Field {
    uint("next_header", bit_offset, 8)
        .default(protocol::NO_NEXT_HEADER as u128)
        .role(Role::NextProtocol(Space::IpProtocol))
}
