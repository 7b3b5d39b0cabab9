//! ICMPv6, RFC 4443, and neighbor discovery, RFC 4861.

use super::field::{bytes, checksum, ipv6, mac, uint};
use super::{ChecksumCoverage, Field, Layout, Number, Padding, Role, Space};
use crate::packet::protocol;

/// ICMPv6 echo request or reply, RFC 4443 section 4. Other messages have the same first four bytes.
pub static ICMPV6: Layout = Layout::new(
    "icmpv6",
    "ICMPv6, RFC 4443 section 4",
    &[
        kind(128),
        CODE,
        CHECKSUM,
        uint("identifier", 32, 16),
        uint("sequence_number", 48, 16),
        // Fields of Packet Too Big and Parameter Problem (RFC 4443 section 3).
        uint("mtu", 32, 32).view(),
        uint("pointer", 32, 32).view(),
    ],
)
.numbers(&NUMBERS);

/// Router Solicitation, RFC 4861 section 4.1.
pub static ROUTER_SOLICITATION: Layout = Layout::new(
    "icmpv6_router_solicitation",
    "Router solicitation, RFC 4861 section 4.1",
    &[kind(133), CODE, CHECKSUM, uint("reserved", 32, 32)],
)
.items("options", &OPTIONS)
.numbers(&NUMBERS);

/// Router Advertisement, RFC 4861 section 4.2.
pub static ROUTER_ADVERTISEMENT: Layout = Layout::new(
    "icmpv6_router_advertisement",
    "Router advertisement, RFC 4861 section 4.2",
    &[
        kind(134),
        CODE,
        CHECKSUM,
        uint("cur_hop_limit", 32, 8).default(64),
        uint("managed", 40, 1),
        uint("other_configuration", 41, 1),
        uint("reserved", 42, 6),
        uint("router_lifetime", 48, 16).default(1800),
        uint("reachable_time", 64, 32),
        uint("retransmission_timer", 96, 32),
    ],
)
.items("options", &OPTIONS)
.numbers(&NUMBERS);

/// Neighbor Solicitation, RFC 4861 section 4.3.
pub static NEIGHBOR_SOLICITATION: Layout = Layout::new(
    "icmpv6_neighbor_solicitation",
    "Neighbor solicitation, RFC 4861 section 4.3",
    &[kind(135), CODE, CHECKSUM, uint("reserved", 32, 32), ipv6("target_address", 64)],
)
.items("options", &OPTIONS)
.numbers(&NUMBERS);

/// Neighbor Advertisement, RFC 4861 section 4.4.
pub static NEIGHBOR_ADVERTISEMENT: Layout = Layout::new(
    "icmpv6_neighbor_advertisement",
    "Neighbor advertisement, RFC 4861 section 4.4",
    &[
        kind(136),
        CODE,
        CHECKSUM,
        uint("router", 32, 1),
        uint("solicited", 33, 1),
        uint("override", 34, 1),
        uint("reserved", 35, 29),
        ipv6("target_address", 64),
    ],
)
.items("options", &OPTIONS)
.numbers(&NUMBERS);

/// Redirect, RFC 4861 section 4.5.
pub static REDIRECT: Layout = Layout::new(
    "icmpv6_redirect",
    "Redirect, RFC 4861 section 4.5",
    &[
        kind(137),
        CODE,
        CHECKSUM,
        uint("reserved", 32, 32),
        ipv6("target_address", 64),
        ipv6("destination_address", 192),
    ],
)
.items("options", &OPTIONS)
.numbers(&NUMBERS);

static NUMBERS: [Number; 1] = [Number::new(Space::IpProtocol, protocol::ICMPV6 as u16)];

const fn kind(kind: u128) -> Field {
    uint("type", 0, 8).default(kind)
}

const CODE: Field = uint("code", 8, 8);

const CHECKSUM: Field =
    checksum("checksum", 16, ChecksumCoverage::PacketAndAddresses { never_zero: false });

static OPTIONS: [&Layout; 5] =
    [&SOURCE_LINK_LAYER_ADDRESS, &TARGET_LINK_LAYER_ADDRESS, &PREFIX_INFORMATION, &MTU, &OTHER];

static SOURCE_LINK_LAYER_ADDRESS: Layout = Layout::new(
    "source_link_layer_address",
    "Source link-layer address, RFC 4861 section 4.6.1",
    &[kind(1), OPTION_LENGTH, mac("address", 16)],
);

static TARGET_LINK_LAYER_ADDRESS: Layout = Layout::new(
    "target_link_layer_address",
    "Target link-layer address, RFC 4861 section 4.6.1",
    &[kind(2), OPTION_LENGTH, mac("address", 16)],
);

static PREFIX_INFORMATION: Layout = Layout::new(
    "prefix_information",
    "Prefix information, RFC 4861 section 4.6.2",
    &[
        kind(3),
        OPTION_LENGTH,
        uint("prefix_length", 16, 8).default(64),
        uint("on_link", 24, 1).default(1),
        uint("autonomous", 25, 1).default(1),
        uint("reserved", 26, 6),
        uint("valid_lifetime", 32, 32).default(2_592_000),
        uint("preferred_lifetime", 64, 32).default(604_800),
        uint("reserved2", 96, 32),
        ipv6("prefix", 128),
    ],
);

static MTU: Layout = Layout::new(
    "mtu",
    "MTU, RFC 4861 section 4.6.4",
    &[kind(5), OPTION_LENGTH, uint("reserved", 16, 16), uint("mtu", 32, 32).default(1500)],
);

static OTHER: Layout = Layout::new(
    "custom",
    "Any option, RFC 4861 section 4.6",
    &[kind(0), OPTION_LENGTH, bytes("value", 16)],
)
.align(8, Padding::Zeros);

const OPTION_LENGTH: Field = uint("length", 8, 8).role(Role::HeaderLength { unit: 8, subtract: 0 });
