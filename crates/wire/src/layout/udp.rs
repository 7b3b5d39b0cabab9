//! UDP, RFC 768.

use super::field::{checksum, uint};
use super::{ChecksumCoverage, Layout, Number, Role, Space};
use crate::packet::protocol;

/// UDP header. If a tunnel header follows, the destination port is that of the tunnel.
pub static UDP: Layout = Layout::new(
    "udp",
    "UDP, RFC 768",
    &[
        uint("src_port", 0, 16),
        uint("dst_port", 16, 16).role(Role::NextProtocol(Space::UdpPort)),
        uint("length", 32, 16).role(Role::LengthToEnd { from: 0 }),
        checksum("checksum", 48, ChecksumCoverage::PacketAndAddresses { never_zero: true }),
    ],
)
.numbers(&[Number::new(Space::IpProtocol, protocol::UDP as u16)]);
