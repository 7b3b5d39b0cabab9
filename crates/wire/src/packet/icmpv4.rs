//! ICMP, RFC 792.

use super::view::{PacketError, expect_length, view};

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 8;

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const DESTINATION_UNREACHABLE: u8 = 3;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Time exceeded: the time to live or the reassembly time.
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
    /// A message, possibly truncated.
    Packet, check;
    /// Message type.
    kind, set_kind: u8 = field::KIND;
    /// Message code.
    code, set_code: u8 = field::CODE;
    /// Checksum over the message.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Rest of the header; its meaning depends on the type.
    rest, set_rest: u32 = field::REST;
    /// Identifier of an echo request or reply.
    identifier, set_identifier: u16 = field::IDENTIFIER;
    /// Sequence number of an echo request or reply; next-hop MTU of Fragmentation Needed (RFC
    /// 1191).
    sequence, set_sequence: u16 = field::SEQUENCE;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("ICMP", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the bytes behind the header: the echoed data, or the start of the packet in error.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
