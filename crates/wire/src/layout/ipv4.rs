//! IPv4, RFC 791 section 3.1, and its options.

use super::field::{bytes, checksum, ipv4, option_length, uint};
use super::{ChecksumCoverage, Layout, Number, Padding, Role, Space};
use crate::packet::{ethertype, protocol};

/// IPv4 header.
pub static IPV4: Layout = Layout::new(
    "ipv4",
    "IPv4, RFC 791 section 3.1",
    &[
        uint("version", 0, 4).default(4),
        uint("header_length", 4, 4).role(Role::HeaderLength { unit: 4, subtract: 0 }),
        uint("priority", 8, 8),
        // RFC 2474 section 3, RFC 3168 section 5.
        uint("dscp", 8, 6).view(),
        uint("ecn", 14, 2).view(),
        // RFC 791, RFC 1349 section 3.
        uint("tos", 8, 8).view(),
        uint("precedence", 8, 3).view(),
        uint("delay", 11, 1).view(),
        uint("throughput", 12, 1).view(),
        uint("reliability", 13, 1).view(),
        uint("monetary", 14, 1).view(),
        uint("unused", 15, 1).view(),
        uint("total_length", 16, 16).role(Role::LengthToEnd { from: 0 }),
        uint("identification", 32, 16),
        uint("reserved", 48, 1),
        uint("dont_fragment", 49, 1),
        uint("more_fragments", 50, 1),
        uint("fragment_offset", 51, 13),
        uint("time_to_live", 64, 8).default(64),
        // 61: any host internal protocol.
        uint("protocol", 72, 8).default(61).role(Role::NextProtocol(Space::IpProtocol)),
        checksum("header_checksum", 80, ChecksumCoverage::Header),
        ipv4("src", 96),
        ipv4("dst", 128),
    ],
)
.items(
    "options",
    &[&ROUTER_ALERT, &TIMESTAMP, &RECORD_ROUTE, &NO_OPERATION, &END_OF_OPTIONS, &OTHER],
)
.align(4, Padding::Zeros)
.numbers(&[
    Number::new(Space::EtherType, ethertype::IPV4),
    Number::new(Space::IpProtocol, protocol::IPV4 as u16),
    // RFC 1332 section 2.
    Number::new(Space::PppProtocol, 0x0021),
]);

static ROUTER_ALERT: Layout = Layout::new(
    "router_alert",
    "Router alert, RFC 2113 section 2.1",
    &[uint("type", 0, 8).default(148), option_length(8), uint("value", 16, 16)],
);

static TIMESTAMP: Layout = Layout::new(
    "timestamp",
    "Internet timestamp, RFC 791 section 3.1",
    &[
        uint("type", 0, 8).default(68),
        option_length(8),
        uint("pointer", 16, 8).default(5),
        uint("overflow", 24, 4),
        uint("flag", 28, 4),
    ],
)
.items("entries", &[&TIME, &ADDRESS]);

static TIME: Layout =
    Layout::new("timestamp", "Time in milliseconds since midnight UT", &[uint("value", 0, 32)]);

static ADDRESS: Layout = Layout::new("address", "IPv4 address", &[ipv4("value", 0)]);

static RECORD_ROUTE: Layout = Layout::new(
    "record_route",
    "Record route, RFC 791 section 3.1",
    &[uint("type", 0, 8).default(7), option_length(8), uint("pointer", 16, 8).default(4)],
)
.items("route", &[&ADDRESS]);

static NO_OPERATION: Layout = Layout::new(
    "no_operation",
    "No operation, RFC 791 section 3.1",
    &[uint("type", 0, 8).default(1)],
);

static END_OF_OPTIONS: Layout =
    Layout::new("end_of_options", "End of option list, RFC 791 section 3.1", &[uint("type", 0, 8)]);

static OTHER: Layout = Layout::new(
    "custom",
    "Any option, RFC 791 section 3.1",
    &[
        uint("copied_flag", 0, 1),
        uint("option_class", 1, 2),
        uint("option_number", 3, 5),
        uint("type", 0, 8).view(),
        option_length(8),
        bytes("value", 16),
    ],
);
