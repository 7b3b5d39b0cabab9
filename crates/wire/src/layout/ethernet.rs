//! Ethernet, IEEE 802.3 section 3.1.1.

use super::field::{mac, uint};
use super::{Layout, Number, Role, Space};

/// Ethernet header.
pub static ETHERNET: Layout = Layout::new(
    "ethernet",
    "Ethernet, IEEE 802.3 section 3.1.1",
    &[
        mac("dst", 0),
        mac("src", 48),
        uint("ether_type", 96, 16).default(0xffff).role(Role::NextProtocol(Space::EtherType)),
    ],
)
.numbers(&[
    // Transparent Ethernet bridging, RFC 7637 section 3.2.
    Number::new(Space::EtherType, 0x6558),
    // RFC 8986 section 10.1.
    Number::new(Space::IpProtocol, 143),
]);
