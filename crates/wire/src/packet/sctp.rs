//! The common header of SCTP, RFC 9260 section 3.1.

use super::view::{PacketError, expect_length, view};

/// Length of the common header in bytes.
pub const HEADER_LENGTH: usize = 12;

mod field {
    use core::ops::Range;
    pub(super) const SOURCE_PORT: Range<usize> = 0..2;
    pub(super) const DESTINATION_PORT: Range<usize> = 2..4;
    pub(super) const VERIFICATION_TAG: Range<usize> = 4..8;
    pub(super) const CHECKSUM: Range<usize> = 8..12;
}

view! {
    /// A packet, possibly truncated.
    Packet, check;
    /// Source port.
    source_port, set_source_port: u16 = field::SOURCE_PORT;
    /// Destination port.
    destination_port, set_destination_port: u16 = field::DESTINATION_PORT;
    /// Verification tag, which identifies the association at the receiver.
    verification_tag, set_verification_tag: u32 = field::VERIFICATION_TAG;
    /// CRC32c over the packet.
    checksum, set_checksum: u32 = field::CHECKSUM;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    expect_length("SCTP", bytes, HEADER_LENGTH)
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the chunks.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH..).unwrap_or_default()
    }
}
