//! TCP, RFC 9293 section 3.1.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use super::view::{PacketError, expect_length, view};

/// Length of a header without options, in bytes.
pub const HEADER_LENGTH_MIN: usize = 20;

/// Longest header, with all options, in bytes.
pub const HEADER_LENGTH_MAX: usize = 60;

/// Byte ranges of the fields, for changes in place.
pub mod field {
    use core::ops::Range;
    /// Source port.
    pub const SOURCE_PORT: Range<usize> = 0..2;
    /// Destination port.
    pub const DESTINATION_PORT: Range<usize> = 2..4;
    /// Sequence number.
    pub const SEQUENCE: Range<usize> = 4..8;
    /// Acknowledgement number.
    pub const ACKNOWLEDGEMENT: Range<usize> = 8..12;
    /// Header length in units of 4 bytes (4 bits), reserved (4).
    pub const DATA_OFFSET: Range<usize> = 12..13;
    /// Flags.
    pub const FLAGS: Range<usize> = 13..14;
    /// Window.
    pub const WINDOW: Range<usize> = 14..16;
    /// Checksum.
    pub const CHECKSUM: Range<usize> = 16..18;
    /// Urgent pointer.
    pub const URGENT_POINTER: Range<usize> = 18..20;
}

/// Control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo, RFC 3168.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced, RFC 3168.
    pub const CWR: Self = Self(0x80);

    /// Returns whether all bits of `others` are set.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Flags {
    /// Formats as tcpdump does: `S.` for SYN and ACK, `none` without flags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        for (bit, letter) in "FSRP.UEW".char_indices() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

view! {
    /// A segment, possibly truncated.
    Packet, check;
    /// Source port.
    source_port, set_source_port: u16 = field::SOURCE_PORT;
    /// Destination port.
    destination_port, set_destination_port: u16 = field::DESTINATION_PORT;
    /// Sequence number of the first byte, or of SYN.
    sequence, set_sequence: u32 = field::SEQUENCE;
    /// Next sequence number that the sender expects, if [`Flags::ACK`] is set.
    acknowledgement, set_acknowledgement: u32 = field::ACKNOWLEDGEMENT;
    /// Receive window of the sender, before scaling.
    window, set_window: u16 = field::WINDOW;
    /// Checksum over pseudo-header and segment.
    checksum, set_checksum: u16 = field::CHECKSUM;
    /// Offset of the end of urgent data, if [`Flags::URG`] is set.
    urgent_pointer, set_urgent_pointer: u16 = field::URGENT_POINTER;
}

fn check(bytes: &[u8]) -> Result<(), PacketError> {
    const HEADER: &str = "TCP";
    expect_length(HEADER, bytes, HEADER_LENGTH_MIN)?;
    let offset = bytes.get(field::DATA_OFFSET.start).copied().unwrap_or_default();
    match usize::from(offset >> 4) * 4 {
        found if found < HEADER_LENGTH_MIN => {
            Err(PacketError::BadHeaderLength { header: HEADER, found, minimum: HEADER_LENGTH_MIN })
        }
        length => expect_length(HEADER, bytes, length),
    }
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the header length, options included, in bytes.
    pub fn header_length(&self) -> usize {
        let offset = self.bytes().get(field::DATA_OFFSET.start).copied().unwrap_or_default();
        usize::from(offset >> 4) * 4
    }

    /// Returns the control bits.
    pub fn flags(&self) -> Flags {
        Flags(self.bytes().get(field::FLAGS.start).copied().unwrap_or_default())
    }

    /// Returns the options.
    pub fn options(&self) -> &[u8] {
        self.bytes().get(HEADER_LENGTH_MIN..self.header_length()).unwrap_or_default()
    }

    /// Returns the bytes behind the header.
    pub fn payload(&self) -> &[u8] {
        self.bytes().get(self.header_length()..).unwrap_or_default()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Sets the control bits.
    pub fn set_flags(&mut self, flags: Flags) {
        if let Some(byte) = self.bytes_mut().get_mut(field::FLAGS.start) {
            *byte = flags.0;
        }
    }
}
