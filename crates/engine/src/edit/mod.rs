//! Changing frames on their way out.
//!
//! [`EditOptions`] say what is wanted; an [`Editor`] is made of them once and then changes one
//! frame after the other in the port's buffer, without allocating. What it finds in a frame is
//! checked against the frame's length at every step, so no frame can make it panic.
//!
//! # Order
//!
//! As tcpreplay's: FCS, Ethernet addresses, VLAN tags, fields of the IP header, ports, TCP
//! numbers, damage, lengths, IP addresses by prefix, IP addresses by seed, length of the IP
//! header, checksums. Each sees what those before it made.
//!
//! # Checksums
//!
//! A checksum follows what changes below it (RFC 1624): one that was right stays right, one that
//! was wrong stays wrong, in fragments too. [`EditOptions::fix_checksums`] makes all right. Where
//! an edit brings or names bytes that the capture does not have, nothing can tell whether the
//! checksum was right, and it is computed anew.
//!
//! # What stays as it is
//!
//! Frames whose Ethernet header, VLAN tags or type make no sense, and frames of IEEE 802.3 with
//! LLC that do not lead to IP: only their FCS goes. Whatever is inside of tunnels over IP, in
//! the packets that ICMP errors quote, in neighbour discovery and above.

mod address;
mod editor;
mod frame;
mod fuzz;
mod link;
mod network;
mod random;
mod transport;
mod vlan;

pub use editor::{Edited, Editor};
pub use frame::FrameFacts;
pub use wirestorm_model::edit::{
    CapturedShort, EditOptions, Fuzz, MacSeed, MacSubstitution, PortMapping, PrefixMapping,
    TimeToLiveEdit, VlanChange, VlanEdit, VlanTag,
};
pub use wirestorm_wire::prefix::Prefix;
