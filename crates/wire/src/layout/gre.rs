//! GRE, RFC 2784 section 2, with the key and sequence number of RFC 2890.

use super::field::{checksum, uint};
use super::{ChecksumCoverage, Layout, Number, Role, Space};
use crate::packet::{ethertype, protocol};

/// GRE header. An optional field is present if it is given or its flag is set.
pub static GRE: Layout = Layout::new(
    "gre",
    "GRE, RFC 2784 section 2 and RFC 2890 section 2",
    &[
        uint("checksum_present", 0, 1).role(Role::Flag(&["checksum", "reserved1"])),
        uint("reserved_routing", 1, 1),
        uint("key_present", 2, 1).role(Role::Flag(&["key"])),
        uint("sequence_present", 3, 1).role(Role::Flag(&["sequence_number"])),
        uint("reserved0", 4, 9),
        uint("version", 13, 3),
        uint("protocol", 16, 16)
            .default(ethertype::IPV4 as u128)
            .role(Role::NextProtocol(Space::EtherType)),
        checksum("checksum", 32, ChecksumCoverage::Packet).if_flag_set(&["checksum_present"]),
        uint("reserved1", 48, 16).if_flag_set(&["checksum_present"]),
        uint("key", 64, 32).if_flag_set(&["key_present"]),
        uint("sequence_number", 96, 32).if_flag_set(&["sequence_present"]),
    ],
)
.numbers(&[Number::new(Space::IpProtocol, protocol::GRE as u16)]);
