//! ICMP, RFC 792.

use super::view::{PacketError, expect_length, view};

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 8;

/// The type of an answer to an echo request.
pub const ECHO_REPLY: u8 = 0;
/// The type of an error: the destination cannot be reached.
pub const DESTINATION_UNREACHABLE: u8 = 3;
/// The type of advice to use another router.
pub const REDIRECT: u8 = 5;
/// The type of a request to answer.
pub const ECHO_REQUEST: u8 = 8;
/// The type of an error: the time to live or to reassemble is over.
pub const TIME_EXCEEDED: u8 = 11;

pub(crate) mod field {
    use core::ops::Range;
    pub(super) const KIND: Range<usize> = 0..1;
    pub(super) const CODE: Range<usize> = 1..2;
    pub(crate) const CHECKSUM: Range<usize> = 2..4;
    pub(super) const REST: Range<usize> = 4..8;
    pub(super) const IDENTIFIER: Range<usize> = 4..6;
    pub(super) const SEQUENCE: Range<usize> = 6..8;
}

view! {
    /// A message, or what was captured of it.
    Packet, check;
    /// The type.
    kind, set_kind: u8 = field::KIND;
    /// The code.
    code, set_code: u8 = field::CODE;
    /// The checksum over the message.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Four bytes whose meaning depends on the type.
    rest, set_rest: u32 = field::REST;
    /// The identifier of an echo or an answer.
    identifier, set_identifier: u16 = field::IDENTIFIER;
    /// The sequence number of an echo or an answer; the next hop's MTU (RFC 1191).
    sequence, set_sequence: u16 = field::SEQUENCE;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("ICMP", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// What is behind the header: the echoed data, or the beginning of the packet in error.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
