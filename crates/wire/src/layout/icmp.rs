//! ICMP, RFC 792.

use super::field::{checksum, ipv4, uint};
use super::{ChecksumCoverage, Layout, Number, Space};
use crate::packet::{icmpv4, protocol};

/// ICMP echo request or reply. Other messages have the same first four bytes.
pub static ICMP: Layout = Layout::new(
    "icmp",
    "ICMP, RFC 792",
    &[
        uint("type", 0, 8).default(icmpv4::ECHO_REQUEST as u128),
        uint("code", 8, 8),
        checksum("checksum", 16, ChecksumCoverage::Packet),
        uint("identifier", 32, 16),
        uint("sequence_number", 48, 16),
        // Fields of Redirect, Parameter Problem and Fragmentation Needed (RFC 1191 section 4).
        ipv4("gateway", 32).view(),
        uint("pointer", 32, 8).view(),
        uint("next_hop_mtu", 48, 16).view(),
    ],
)
.numbers(&[Number::new(Space::IpProtocol, protocol::ICMP as u16)]);
