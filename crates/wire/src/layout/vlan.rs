//! A VLAN tag, IEEE 802.1Q section 9.

use super::field::uint;
use super::{Layout, Number, Role, Space};
use crate::packet::ethertype;

/// VLAN tag. If another tag follows, it is a service tag (IEEE 802.1ad) unless `tpid` is given.
pub static VLAN: Layout = Layout::new(
    "vlan",
    "VLAN tag, IEEE 802.1Q section 9",
    &[
        uint("tpid", 0, 16)
            .default(ethertype::VLAN as u128)
            .role(Role::OwnNumber(Space::EtherType)),
        uint("priority", 0, 3),
        uint("cfi", 3, 1),
        uint("id", 4, 12),
        uint("ether_type", 16, 16).default(0xffff).role(Role::NextProtocol(Space::EtherType)),
    ],
)
.numbers(&[Number {
    space: Space::EtherType,
    number: ethertype::VLAN,
    outer: ethertype::SERVICE_VLAN,
}]);
