//! ICMPv6, RFC 4443, and neighbour discovery, RFC 4861.

use core::net::Ipv6Addr;

use super::view::{PacketError, expect_length, view};

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 8;

/// Destination unreachable.
pub const DESTINATION_UNREACHABLE: u8 = 1;
/// Packet too big for the MTU of the next link.
pub const PACKET_TOO_BIG: u8 = 2;
/// Time exceeded: the hop limit or the reassembly time.
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter problem: a header field is not understood.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// Router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Neighbour solicitation: request for a link-layer address.
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// Neighbour advertisement: reply with a link-layer address.
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;

pub(crate) mod field {
    use core::ops::Range;
    pub(super) const KIND: Range<usize> = 0..1;
    pub(super) const CODE: Range<usize> = 1..2;
    pub(crate) const CHECKSUM: Range<usize> = 2..4;
    pub(super) const REST: Range<usize> = 4..8;
    pub(super) const IDENTIFIER: Range<usize> = 4..6;
    pub(super) const SEQUENCE: Range<usize> = 6..8;
    pub(super) const TARGET: Range<usize> = 8..24;
}

view! {
    /// A message, possibly truncated.
    Packet, check;
    /// Message type.
    kind, set_kind: u8 = field::KIND;
    /// Message code.
    code, set_code: u8 = field::CODE;
    /// Checksum over pseudo-header and message.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Rest of the header; its meaning depends on the type.
    rest, set_rest: u32 = field::REST;
    /// Identifier of an echo request or reply.
    identifier, set_identifier: u16 = field::IDENTIFIER;
    /// Sequence number of an echo request or reply.
    sequence, set_sequence: u16 = field::SEQUENCE;
    /// Target address of a neighbour solicitation or advertisement; unspecified if the message is
    /// too short.
    target, set_target: Ipv6Addr = field::TARGET;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("ICMPv6", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the bytes behind the header: the echoed data, or the start of the packet in error.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
