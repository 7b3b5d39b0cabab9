//! An MPLS label stack entry, RFC 3032 section 2.1.

use super::field::uint;
use super::{Layout, Number, Role, Space};
use crate::packet::ethertype;

/// Label stack entry. RFC 5462 renamed the EXP field to `traffic_class`.
pub static MPLS: Layout = Layout::new(
    "mpls",
    "MPLS label, RFC 3032 section 2.1",
    &[
        uint("label", 0, 20).default(16),
        uint("traffic_class", 20, 3),
        uint("bottom_of_stack", 23, 1).role(Role::IsLast),
        uint("time_to_live", 24, 8).default(64),
    ],
)
.numbers(&[
    Number::new(Space::EtherType, ethertype::MPLS),
    // RFC 4023 section 3.
    Number::new(Space::IpProtocol, 137),
    // RFC 3032 section 4.3.
    Number::new(Space::PppProtocol, 0x0281),
    // RFC 7510 section 3.
    Number::new(Space::UdpPort, 6635),
]);
