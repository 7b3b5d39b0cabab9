//! UDP, RFC 768.

use super::view::{PacketError, expect_length, view};

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 8;

/// Byte ranges of the fields, for changes in place.
pub mod field {
    use core::ops::Range;
    /// Source port.
    pub const SOURCE_PORT: Range<usize> = 0..2;
    /// Destination port.
    pub const DESTINATION_PORT: Range<usize> = 2..4;
    /// Length of header and payload.
    pub const LENGTH: Range<usize> = 4..6;
    /// Checksum; 0 means none.
    pub const CHECKSUM: Range<usize> = 6..8;
}

view! {
    /// A datagram, possibly truncated.
    Packet, check;
    /// Source port.
    source_port, set_source_port: u16 = field::SOURCE_PORT;
    /// Destination port.
    destination_port, set_destination_port: u16 = field::DESTINATION_PORT;
    /// Length of header and payload, from the header.
    length, set_length: u16 = field::LENGTH;
    /// Checksum over pseudo-header and datagram; 0 means none.
    checksum, set_checksum: u16 = field::CHECKSUM;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("UDP", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the captured payload.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.bytes();
        let end = usize::from(self.length()).clamp(HEADER_LENGTH, bytes.len().max(HEADER_LENGTH));
        bytes.get(HEADER_LENGTH..end).unwrap_or_default()
    }
}
