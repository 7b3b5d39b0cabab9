//! ARP for Ethernet and IPv4, RFC 826.

use core::net::Ipv4Addr;

use super::MacAddress;
use super::view::{PacketError, expect_length, view};

/// Bytes of a packet.
pub const PACKET_LENGTH: usize = 28;
/// The operation that asks for the address of [`Packet::target_address`].
pub const REQUEST: u16 = 1;
/// The operation that answers.
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
    /// A packet of Ethernet and IPv4 addresses.
    Packet, check;
    /// The hardware's number; 1 for Ethernet.
    hardware, set_hardware: u16 = field::HARDWARE;
    /// The protocol's Ethernet type; 0x0800 for IPv4.
    protocol, set_protocol: u16 = field::PROTOCOL;
    /// What is asked or said.
    operation, set_operation: u16 = field::OPERATION;
    /// The sender's Ethernet address.
    sender_hardware, set_sender_hardware: MacAddress = field::SENDER_HARDWARE;
    /// The sender's IPv4 address.
    sender_address, set_sender_address: Ipv4Addr = field::SENDER_ADDRESS;
    /// The target's Ethernet address; zero in a request.
    target_hardware, set_target_hardware: MacAddress = field::TARGET_HARDWARE;
    /// The target's IPv4 address.
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
