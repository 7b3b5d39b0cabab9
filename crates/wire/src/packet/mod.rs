//! Views of packets, which read and write header fields in place.
//!
//! A view accepts any bytes that are long enough for the header. So it can express malformed
//! packets, which may be sent on purpose. [`new`](udp::Packet::new) checks only the length and the
//! fields that give the header length. The `field` module of a file lists byte ranges in the order
//! of the header diagram. Nothing here can panic.

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
