//! VXLAN, RFC 7348 section 5.

use super::field::uint;
use super::{Layout, Number, Space};

/// VXLAN header; an Ethernet header follows.
pub static VXLAN: Layout = Layout::new(
    "vxlan",
    "VXLAN, RFC 7348 section 5",
    &[
        uint("flags", 0, 8).default(8),
        uint("reserved0", 8, 24),
        uint("vni", 32, 24),
        uint("reserved1", 56, 8),
    ],
)
.numbers(&[Number::new(Space::UdpPort, 4789)]);
