//! IGMP: version 1 (RFC 1112 appendix I), 2 (RFC 2236) and 3 (RFC 9776).

use super::field::{bytes, checksum, ipv4, uint};
use super::{ChecksumCoverage, Field, Layout, Number, Padding, Role, Space};
use crate::packet::protocol;

/// IGMPv1 query or report, RFC 1112 appendix I.
pub static IGMPV1: Layout = Layout::new(
    "igmpv1",
    "IGMP version 1, RFC 1112 appendix I",
    &[
        uint("version", 0, 4).default(1),
        uint("type", 4, 4).default(1),
        uint("unused", 8, 8),
        CHECKSUM,
        ipv4("group_address", 32),
    ],
)
.numbers(&NUMBERS);

/// IGMPv2 query, report or leave, RFC 2236 section 2.
pub static IGMPV2: Layout = Layout::new(
    "igmpv2",
    "IGMP version 2, RFC 2236 section 2",
    &[
        uint("type", 0, 8).default(0x11),
        uint("max_response_time", 8, 8).default(100),
        CHECKSUM,
        ipv4("group_address", 32),
    ],
)
.numbers(&NUMBERS);

/// IGMPv3 query, RFC 9776 section 4.1.
pub static IGMPV3_QUERY: Layout = Layout::new(
    "igmpv3_query",
    "IGMP version 3 query, RFC 9776 section 4.1",
    &[
        uint("type", 0, 8).default(0x11),
        uint("max_response_code", 8, 8).default(100),
        CHECKSUM,
        ipv4("group_address", 32),
        uint("reserved", 64, 4),
        uint("suppress_router_processing", 68, 1),
        uint("querier_robustness", 69, 3).default(2),
        uint("query_interval_code", 72, 8).default(125),
        uint("number_of_sources", 80, 16).role(Role::ItemCount { less: 0 }),
    ],
)
.items("sources", &[&SOURCE])
.numbers(&NUMBERS);

/// IGMPv3 report, RFC 9776 section 4.2.
pub static IGMPV3_REPORT: Layout = Layout::new(
    "igmpv3_report",
    "IGMP version 3 report, RFC 9776 section 4.2",
    &[
        uint("type", 0, 8).default(0x22),
        uint("reserved", 8, 8),
        CHECKSUM,
        uint("reserved2", 32, 16),
        uint("number_of_records", 48, 16).role(Role::ItemCount { less: 0 }),
    ],
)
.items("records", &[&RECORD, &OTHER])
.numbers(&NUMBERS);

static NUMBERS: [Number; 1] = [Number::new(Space::IpProtocol, protocol::IGMP as u16)];

const CHECKSUM: Field = checksum("checksum", 16, ChecksumCoverage::Packet);

static SOURCE: Layout = Layout::new("source", "Source address", &[ipv4("value", 0)]);

static RECORD: Layout = Layout::new(
    "group_record",
    "Group record, RFC 9776 section 4.2.4",
    &[
        uint("type", 0, 8).default(4),
        uint("auxiliary_length", 8, 8),
        uint("number_of_sources", 16, 16).role(Role::ItemCount { less: 0 }),
        ipv4("group_address", 32),
    ],
)
.items("sources", &[&SOURCE]);

static OTHER: Layout = Layout::new(
    "custom",
    "A group record of any bytes, RFC 9776 section 4.2.4",
    &[bytes("bytes", 0)],
)
.align(4, Padding::Zeros);
