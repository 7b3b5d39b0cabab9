//! ICMPv6, RFC 4443, and the messages of neighbour discovery, RFC 4861.

use core::net::Ipv6Addr;

use super::view::{PacketError, expect_length, view};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;

/// The type of an error: the destination cannot be reached.
pub const DESTINATION_UNREACHABLE: u8 = 1;
/// The type of an error: the packet is too big for the next link.
pub const PACKET_TOO_BIG: u8 = 2;
/// The type of an error: the hop limit or the time to reassemble is over.
pub const TIME_EXCEEDED: u8 = 3;
/// The type of an error: a header has something that is not understood.
pub const PARAMETER_PROBLEM: u8 = 4;
/// The type of a request to answer.
pub const ECHO_REQUEST: u8 = 128;
/// The type of an answer to an echo request.
pub const ECHO_REPLY: u8 = 129;
/// The type of a host's call for routers.
pub const ROUTER_SOLICITATION: u8 = 133;
/// The type of a router's announcement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// The type of a question for a link-layer address.
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// The type of the answer to such a question.
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
    /// A message, or what was captured of it.
    Packet, check;
    /// The type.
    kind, set_kind: u8 = field::KIND;
    /// The code.
    code, set_code: u8 = field::CODE;
    /// The checksum over pseudo header and message.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Four bytes whose meaning depends on the type.
    rest, set_rest: u32 = field::REST;
    /// The identifier of an echo or an answer.
    identifier, set_identifier: u16 = field::IDENTIFIER;
    /// The sequence number of an echo or an answer.
    sequence, set_sequence: u16 = field::SEQUENCE;
    /// The address in question of a neighbour solicitation or advertisement; unspecified where
    /// the message is too short for one.
    target, set_target: Ipv6Addr = field::TARGET;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("ICMPv6", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// What is behind the header: the echoed data, or the beginning of the packet in error.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
