//! Changes that a stream makes to its template for each frame.

use alloc::vec::Vec;
use core::ops::Range;

use super::variable::Variable;

/// Variables and the steps that use them, executed in this order for every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Variables.
    pub variables: Vec<Variable>,
    /// Steps. Lengths and checksums come last, so that they cover the other changes.
    pub steps: Vec<Step>,
}

/// One change of a frame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Writes a variable to a field.
    Write(Write),
    /// Sets the frame length to a variable, in bytes without FCS. The length is at least 14 and at
    /// most that of the template.
    Length {
        /// Index of the variable.
        variable: usize,
    },
    /// Writes the frame length minus `less` as 16 bits in network order, as in IP and UDP headers.
    WriteLength {
        /// Offset of the field.
        offset: usize,
        /// Bytes of the frame to subtract.
        less: usize,
    },
    /// Computes and writes a checksum.
    Checksum(Checksum),
    /// Writes a wrong checksum to every frame: the sum plus one, or the inverted CRC.
    WrongChecksum(Checksum),
}

impl Step {
    /// Returns the bytes of the frame that the step writes; empty for [`Step::Length`].
    pub fn target(&self) -> Range<usize> {
        match self {
            Self::Write(write) => write.target(),
            Self::Length { .. } => 0..0,
            Self::WriteLength { offset, .. } => *offset..offset + 2,
            Self::Checksum(sum) | Self::WrongChecksum(sum) => sum.target(),
        }
    }
}

/// A write of a variable to a field: `field = (field & !mask) | ((value + add) << shift & mask)`. A
/// negative `shift` shifts right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// Index of the variable.
    pub variable: usize,
    /// Offset of the field.
    pub offset: usize,
    /// Width of the field in bytes, 1 to 16.
    pub width: usize,
    /// Addend; wraps.
    pub add: u128,
    /// Left shift of the sum; negative shifts right.
    pub shift: i32,
    /// Bits of the field to write.
    pub mask: u128,
    /// Byte order of the field.
    pub order: ByteOrder,
}

impl Write {
    /// Returns the bytes of the field.
    pub const fn target(&self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.width)
    }

    /// Writes a value to a frame, as the type defines it. Does nothing if the field exceeds the
    /// frame.
    pub fn apply(&self, value: u128, frame: &mut [u8]) {
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

/// Byte order of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByteOrder {
    /// Most significant byte first, as in all Internet protocols.
    #[default]
    Network,
    /// Least significant byte first.
    Little,
}

/// A checksum to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checksum {
    /// Internet checksum (RFC 1071): 16 bits over `start` to `end` and a pseudo-header.
    Internet {
        /// Offset of the checksum.
        offset: usize,
        /// Offset of the first covered byte.
        start: usize,
        /// Offset behind the last covered byte; `None` means the end of the frame.
        end: Option<usize>,
        /// Pseudo-header that the checksum covers too.
        pseudo_header: PseudoHeader,
        /// Whether to write all ones instead of zero, since zero means no checksum (UDP, RFC 768).
        never_zero: bool,
    },
    /// SCTP's CRC32c from `start` to the end of the frame (RFC 9260 appendix A).
    Crc32c {
        /// Offset of the checksum.
        offset: usize,
        /// Offset of the first covered byte.
        start: usize,
    },
}

impl Checksum {
    /// Returns the bytes of the checksum.
    pub const fn target(&self) -> Range<usize> {
        match *self {
            Self::Internet { offset, .. } => offset..offset + 2,
            Self::Crc32c { offset, .. } => offset..offset + 4,
        }
    }
}

/// Pseudo-header of a transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PseudoHeader {
    /// No pseudo-header.
    None,
    /// The IPv4 pseudo-header.
    Ipv4 {
        /// Offset of the IP header.
        header: usize,
        /// Protocol number.
        protocol: u8,
    },
    /// The IPv6 pseudo-header.
    Ipv6 {
        /// Offset of the IP header.
        header: usize,
        /// Protocol number behind all extension headers.
        protocol: u8,
    },
}
