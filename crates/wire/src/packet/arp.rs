//! ARP for Ethernet and IPv4, RFC 826.

use core::net::Ipv4Addr;

use super::MacAddress;
use super::view::{PacketError, expect_length, view};

/// Length of a packet in bytes.
pub const PACKET_LENGTH: usize = 28;
/// Operation: request for the Ethernet address of [`Packet::target_address`].
pub const REQUEST: u16 = 1;
/// Operation: reply.
pub const REPLY: u16 = 2;

mod field {
    use core::ops::Range;
    pub(super) const HARDWARE: Range<usize> = 0..2;
    pub(super) const PROTOCOL: Range<usize> = 2..4;
    pub(super) const HARDWARE_LENGTH: usize = 4;
    pub(super) const PROTOCOL_LENGTH: usize = 5;
    pub(super) const OPERATION: Range<usize> = 6..8;
    pub(super) const SENDER_HARDWARE: Range<usize> = 8..14;
    pub(super) const SENDER_ADDRESS: Range<usize> = 14..18;
    pub(super) const TARGET_HARDWARE: Range<usize> = 18..24;
    pub(super) const TARGET_ADDRESS: Range<usize> = 24..28;
}

view! {
    /// An ARP packet with Ethernet and IPv4 addresses.
    Packet, check;
    /// Hardware type; 1 for Ethernet.
    hardware, set_hardware: u16 = field::HARDWARE;
    /// Protocol type; 0x0800 for IPv4.
    protocol, set_protocol: u16 = field::PROTOCOL;
    /// Operation: [`REQUEST`] or [`REPLY`].
    operation, set_operation: u16 = field::OPERATION;
    /// Sender's Ethernet address.
    sender_hardware, set_sender_hardware: MacAddress = field::SENDER_HARDWARE;
    /// Sender's IPv4 address.
    sender_address, set_sender_address: Ipv4Addr = field::SENDER_ADDRESS;
    /// Target's Ethernet address; zero in a request.
    target_hardware, set_target_hardware: MacAddress = field::TARGET_HARDWARE;
    /// Target's IPv4 address.
    target_address, set_target_address: Ipv4Addr = field::TARGET_ADDRESS;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("ARP", bytes, PACKET_LENGTH)?;
    let length = |at: usize| bytes.get(at).copied().unwrap_or_default();
    match (length(field::HARDWARE_LENGTH), length(field::PROTOCOL_LENGTH)) {
        (6, 4) => Ok(()),
        (hardware, protocol) => Err(PacketError::BadAddressLengths { hardware, protocol }),
    }
}
