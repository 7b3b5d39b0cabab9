//! Views of packets: a header's fields, read from and written to the bytes where they are.
//!
//! A view can hold anything that is long enough to be the header, malformed packets included,
//! so that they can be sent on purpose; [`new`](udp::Packet::new) checks that much and what is
//! needed to find the header's end. The `field` module of each file is the picture of the
//! header: ranges of bytes, to be compared with the source at a glance. Nothing here can panic.

mod view;

pub mod arp;
pub mod ethernet;
pub mod ethertype;
pub mod gtpu;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
mod link;
pub mod llc;
mod mac_address;
pub mod mpls;
pub mod protocol;
pub mod sctp;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use link::{LINK_LENGTH_MAX, network_header};
pub use mac_address::{MacAddress, ParseMacAddressError};
pub use view::PacketError;
