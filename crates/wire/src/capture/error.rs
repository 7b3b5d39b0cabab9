//! Errors of the capture decoder.

use core::fmt;

use super::{BLOCK_LENGTH_MAX, INTERFACES_MAX, Magic, RECORD_LENGTH_MAX};

/// Error that stops the decoder.
///
/// `packet` is the number of the packet that could not be read, from 1. `offset` is the byte offset
/// of the record or block in the (decompressed) file. All records before the error are valid and
/// were delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The file has no bytes.
    #[error("the file is empty; expected a pcap, pcapng or ERF capture")]
    Empty,

    /// The file begins with no known magic number.
    #[error(
        "not a capture: it begins with {magic}; expected pcap (a1 b2 c3 d4, \
             d4 c3 b2 a1, a1 b2 3c 4d, 4d 3c b2 a1), pcapng (0a 0d 0d 0a) or ERF"
    )]
    UnknownMagic {
        /// First four bytes; missing ones are zero.
        magic: Magic,
    },

    /// The file has a known format that this crate does not read.
    #[error("this is {name} (it begins with {magic}); expected pcap, pcapng or ERF: {remedy}")]
    UnsupportedFormat {
        /// Name of the format.
        name: &'static str,
        /// First four bytes.
        magic: Magic,
        /// How to convert the file.
        remedy: &'static str,
    },

    /// The file ends within its header.
    #[error(
        "the file ends inside its header: {found} bytes, expected at least {expected}; \
             it was cut short, capture or copy it again"
    )]
    TruncatedFileHeader {
        /// Bytes in the file.
        found: u64,
        /// Length of the header.
        expected: u64,
    },

    /// The decoder does not read this version.
    #[error(
        "byte {offset}: {format} version {major}.{minor}; expected {expected}: \
             convert it with: editcap -F pcap IN OUT"
    )]
    UnsupportedVersion {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Offset of the file header or section.
        offset: u64,
        /// Major version found.
        major: u16,
        /// Minor version found.
        minor: u16,
        /// Supported versions.
        expected: &'static str,
    },

    /// The file ends within a packet.
    #[error(
        "packet {packet} at byte {offset}: the file ends after {found} of its {expected} \
             bytes; {}", recovery_advice(.packet.saturating_sub(1))
    )]
    TruncatedRecord {
        /// Packet number.
        packet: u64,
        /// Offset of its record.
        offset: u64,
        /// Available bytes of the record, record header included.
        found: u64,
        /// Length of the record, as far as known.
        expected: u64,
    },

    /// The captured length exceeds that of any packet.
    #[error(
        "packet {packet} at byte {offset}: captured length {length}, expected at most \
             {RECORD_LENGTH_MAX}; the file is corrupted from here on"
    )]
    RecordTooLong {
        /// Packet number.
        packet: u64,
        /// Offset of its record.
        offset: u64,
        /// Captured length.
        length: u32,
    },

    /// The record length is less than its headers.
    #[error(
        "packet {packet} at byte {offset}: record length {length}, expected at least {minimum}; \
             the file is corrupted from here on"
    )]
    RecordTooShort {
        /// Packet number.
        packet: u64,
        /// Offset of its record.
        offset: u64,
        /// Record length.
        length: u32,
        /// Length of the headers.
        minimum: u32,
    },

    /// The packet exceeds its pcapng block.
    #[error(
        "packet {packet} at byte {offset}: captured length {captured}, but its block has \
             room for {room} bytes; the file is corrupted from here on"
    )]
    RecordExceedsBlock {
        /// Packet number.
        packet: u64,
        /// Offset of its block.
        offset: u64,
        /// Captured length.
        captured: u32,
        /// Bytes between the block's fixed fields and its end.
        room: u32,
    },

    /// The file ends within a pcapng block that is not a packet.
    #[error(
        "byte {offset}: the file ends after {found} of the {expected} bytes of a block of \
             type {block_type:#010x}, {}; {}", FieldPosition(*.packets), recovery_advice(*.packets)
    )]
    TruncatedBlock {
        /// Offset of the block.
        offset: u64,
        /// Type of the block; zero if the type is missing too.
        block_type: u32,
        /// Number of packets before it.
        packets: u64,
        /// Available bytes of the block.
        found: u64,
        /// Length of the block, as far as known.
        expected: u64,
    },

    /// The length of a pcapng block is invalid.
    #[error(
        "byte {offset}: block of type {block_type:#010x} with a length of {length}; \
             expected a multiple of 4 from {minimum} to {BLOCK_LENGTH_MAX}, {}; the file is \
             corrupted from here on", FieldPosition(*.packets)
    )]
    BadBlockLength {
        /// Offset of the block.
        offset: u64,
        /// Type of the block.
        block_type: u32,
        /// Number of packets before it.
        packets: u64,
        /// Length in the block.
        length: u32,
        /// Minimum length of a block of this type.
        minimum: u32,
    },

    /// The two lengths of a pcapng block differ.
    #[error(
        "byte {offset}: block of type {block_type:#010x} begins with length {length} and \
             ends with length {trailing}, expected the same, {}; the file is corrupted from \
             here on", FieldPosition(*.packets)
    )]
    TrailingLengthMismatch {
        /// Offset of the block.
        offset: u64,
        /// Type of the block.
        block_type: u32,
        /// Number of packets before it.
        packets: u64,
        /// Length at the start.
        length: u32,
        /// Length at the end.
        trailing: u32,
    },

    /// The byte-order magic of a pcapng section is invalid.
    #[error(
        "byte {offset}: section with byte-order magic {magic}; expected 1a 2b 3c 4d or \
             4d 3c 2b 1a; the file is corrupted from here on"
    )]
    BadByteOrder {
        /// Offset of the section.
        offset: u64,
        /// Bytes found.
        magic: Magic,
    },

    /// A packet precedes all interface descriptions.
    #[error(
        "packet {packet} at byte {offset}: no interface is described before it in its \
             section, so its link type is unknown; expected an interface description block"
    )]
    PacketBeforeInterface {
        /// Packet number.
        packet: u64,
        /// Offset of its block.
        offset: u64,
    },

    /// A packet refers to an interface that its section does not describe.
    #[error("packet {packet} at byte {offset}: captured on interface {interface}, but its \
             section describes only {described} (0 to {})", described.saturating_sub(1))]
    UnknownInterface {
        /// Packet number.
        packet: u64,
        /// Offset of its block.
        offset: u64,
        /// Interface number.
        interface: u32,
        /// Number of interfaces described so far.
        described: u32,
    },

    /// A section describes too many interfaces.
    #[error(
        "byte {offset}: more than {INTERFACES_MAX} interfaces in one section; split \
             the file with: editcap -c"
    )]
    TooManyInterfaces {
        /// Offset of the block.
        offset: u64,
    },

    /// The timestamp resolution of an interface exceeds 64-bit counts.
    #[error(
        "byte {offset}: interface {interface} counts time in units of {base}^-{exponent} s; \
             expected at most {base}^-{maximum} s"
    )]
    UnsupportedResolution {
        /// Offset of the interface description.
        offset: u64,
        /// Interface number.
        interface: u32,
        /// 2 or 10.
        base: u8,
        /// Exponent found, without its sign.
        exponent: u8,
        /// Largest supported exponent.
        maximum: u8,
    },

    /// An option of an interface description has an invalid length.
    #[error(
        "byte {offset}: option {code} of interface {interface} has a length of {length}, \
             expected {expected}"
    )]
    BadOption {
        /// Offset of the interface description.
        offset: u64,
        /// Interface number.
        interface: u32,
        /// Option code.
        code: u16,
        /// Length of the option.
        length: u16,
        /// Expected length.
        expected: &'static str,
    },
}

/// Position among the packets, as the number of packets before it.
struct FieldPosition(u64);

impl fmt::Display for FieldPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("before the first packet"),
            packets => write!(f, "after packet {packets}"),
        }
    }
}

/// Returns the advice for a file that was truncated behind `packets` complete packets.
const fn recovery_advice(packets: u64) -> &'static str {
    match packets {
        0 => "no complete packet precedes it: capture or copy the file again",
        1 => "the packet before it is good; save it with: editcap IN OUT",
        _ => "the packets before it are good; save them with: editcap IN OUT",
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn truncation_errors_count_only_complete_packets() {
        let record = |packet| {
            CaptureError::TruncatedRecord { packet, offset: 24, found: 20, expected: 76 }
                .to_string()
        };
        assert_eq!(
            record(1),
            "packet 1 at byte 24: the file ends after 20 of its 76 bytes; no complete packet \
             precedes it: capture or copy the file again"
        );
        assert!(record(2).contains("the packet before it is good"), "{}", record(2));
        assert!(record(3).contains("the packets before it are good"), "{}", record(3));
        let block = |packets| {
            let (offset, found, expected) = (28, 8, 20);
            CaptureError::TruncatedBlock { offset, block_type: 1, packets, found, expected }
                .to_string()
        };
        assert!(block(0).contains("before the first packet; no complete packet"), "{}", block(0));
        assert!(block(1).contains("after packet 1; the packet before it is"), "{}", block(1));
    }
}
