//! What a stream does to its template for each frame.

use alloc::vec::Vec;
use core::ops::Range;

use super::variable::Variable;

/// Variables, and what is done with them, in this order, for every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The values that change.
    pub variables: Vec<Variable>,
    /// What is written where. Lengths and checksums come last, so that they see the rest.
    pub steps: Vec<Step>,
}

/// One thing done to a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Writes a variable.
    Write(Write),
    /// Makes the frame as long as a variable says, in bytes without FCS; at most as long as the
    /// template, and at least 14.
    Length {
        /// Its index.
        variable: usize,
    },
    /// Writes the length of the frame less `less` as 16 bits in network order: what IP and UDP
    /// headers hold.
    WriteLength {
        /// Where.
        offset: usize,
        /// Bytes of the frame that do not count.
        less: usize,
    },
    /// Makes a checksum right.
    Checksum(Checksum),
    /// Makes a checksum wrong in every frame: as if the sum were one more, or all bits of the CRC
    /// inverted.
    WrongChecksum(Checksum),
}

impl Step {
    /// The bytes of the frame that it writes; none for a length of the frame itself.
    pub fn target(&self) -> Range<usize> {
        match self {
            Self::Write(write) => write.target(),
            Self::Length { .. } => 0..0,
            Self::WriteLength { offset, .. } => *offset..offset + 2,
            Self::Checksum(sum) | Self::WrongChecksum(sum) => sum.target(),
        }
    }
}

/// A variable's way into the frame: `field = (field & !mask) | ((value + add) << shift & mask)`,
/// with `shift` to the right where it is negative.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// The variable's index.
    pub variable: usize,
    /// Where the field begins.
    pub offset: usize,
    /// Bytes of the field, 1 to 16.
    pub width: usize,
    /// What is added to the value before; wraps.
    pub add: u128,
    /// By how much the sum is moved to the left, or to the right where negative.
    pub shift: i32,
    /// The bits of the field that are written.
    pub mask: u128,
    /// The order of its bytes.
    pub order: ByteOrder,
}

impl Write {
    /// The bytes of its field.
    pub const fn target(&self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.width)
    }

    /// Writes a value to a frame, as the definition reads; nothing where the field is not all in
    /// it.
    pub fn put(&self, value: u128, frame: &mut [u8]) {
        let Some(field) = frame.get_mut(self.target()) else { return };
        let is_little = self.order == ByteOrder::Little;
        if is_little {
            field.reverse();
        }
        let old = field.iter().fold(0, |old, byte| old << 8 | u128::from(*byte));
        let value = value.wrapping_add(self.add);
        let distance = self.shift.unsigned_abs();
        let shifted = match self.shift {
            0.. => value.checked_shl(distance),
            _ => value.checked_shr(distance),
        };
        let new = old & !self.mask | shifted.unwrap_or(0) & self.mask;
        for (byte, new) in field.iter_mut().rev().zip(new.to_le_bytes()) {
            *byte = new;
        }
        if is_little {
            field.reverse();
        }
    }
}

/// The order of the bytes of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByteOrder {
    /// The most significant first, as in all Internet protocols.
    #[default]
    Network,
    /// The least significant first.
    Little,
}

/// A checksum to be made right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checksum {
    /// Of 16 bits (RFC 1071): over `start` to `end` and a pseudo header.
    Internet {
        /// Where it stands.
        offset: usize,
        /// The first byte that it covers.
        start: usize,
        /// The byte behind the last one; `None`: the end of the frame.
        end: Option<usize>,
        /// What it covers beside.
        pseudo_header: PseudoHeader,
        /// Whether a result of zero is written as all ones, because zero means that there is none
        /// (UDP, RFC 768).
        never_zero: bool,
    },
    /// SCTP's CRC32c over `start` to the end of the frame (RFC 9260 appendix A).
    Crc32c {
        /// Where it stands.
        offset: usize,
        /// The first byte that it covers.
        start: usize,
    },
}

impl Checksum {
    /// Where it is written.
    pub const fn target(&self) -> Range<usize> {
        match *self {
            Self::Internet { offset, .. } => offset..offset + 2,
            Self::Crc32c { offset, .. } => offset..offset + 4,
        }
    }
}

/// What a transport checksum covers beside its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PseudoHeader {
    /// Nothing.
    None,
    /// That of IPv4 with the header at this offset.
    Ipv4 {
        /// Where the header begins.
        header: usize,
        /// The protocol number.
        protocol: u8,
    },
    /// That of IPv6 with the fixed header at this offset.
    Ipv6 {
        /// Where the header begins.
        header: usize,
        /// The protocol number behind all extension headers.
        protocol: u8,
    },
}
