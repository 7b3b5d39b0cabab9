//! Edits frames before they are sent.
//!
//! An [`Editor`] is built once from [`EditOptions`]. It then edits each frame in the port's buffer
//! without allocating. Every access is checked against the frame's length, so no frame can cause a
//! panic.
//!
//! # Order
//!
//! The order is tcpreplay's: FCS, Ethernet addresses, VLAN tags, IP header fields, ports, TCP
//! sequence numbers, fuzzing, lengths, IP addresses by prefix, IP addresses by seed, IP length,
//! checksums. Each step sees the result of the steps before it.
//!
//! # Checksums
//!
//! A checksum is updated incrementally (RFC 1624): a correct one stays correct and a wrong one
//! stays wrong, in fragments too. [`EditOptions::fix_checksums`] corrects all checksums. If an edit
//! adds bytes that the capture lacks, the old checksum cannot be verified, so it is computed anew.
//!
//! # Frames that are not edited
//!
//! Only the FCS is removed from frames with an incomplete Ethernet header or VLAN tags, and from
//! IEEE 802.3 frames with LLC that carry no IP. Edits do not reach inside IP tunnels, packets
//! quoted in ICMP errors, neighbour discovery or application data.

mod address;
mod editor;
mod frame;
mod fuzz;
mod link;
mod network;
mod random;
mod transport;
mod vlan;

pub use editor::{EditResult, Editor};
pub use frame::FrameFacts;
pub use wirestorm_model::edit::{
    EditOptions, Fuzz, MacSeed, MacSubstitution, PortReplacement, PrefixReplacement,
    TimeToLiveEdit, TruncatedFrameAction, VlanChange, VlanEdit, VlanTag,
};
pub use wirestorm_wire::prefix::Prefix;
