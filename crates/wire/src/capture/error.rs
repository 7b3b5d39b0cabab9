//! What can be wrong with a capture file.

use core::fmt;

use super::{BLOCK_LENGTH_MAX, INTERFACES_MAX, Magic, RECORD_LENGTH_MAX};

/// Why a capture cannot be read, or cannot be read any further.
///
/// `packet` is the number of the packet that could not be read, the first being 1; `offset` is
/// the byte offset in the (decompressed) file of the record or block in question. Records
/// before the error have been delivered and are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The file has no bytes at all.
    #[error("the file is empty; expected a pcap, pcapng or ERF capture")]
    Empty,

    /// The file begins like none of the known formats.
    #[error(
        "not a capture: it begins with {magic}; expected pcap (a1 b2 c3 d4, \
             d4 c3 b2 a1, a1 b2 3c 4d, 4d 3c b2 a1), pcapng (0a 0d 0d 0a) or ERF"
    )]
    UnknownMagic {
        /// Its first four bytes; those it does not have are zero.
        magic: Magic,
    },

    /// The file has a format that is known by name and not read.
    #[error("this is {name} (it begins with {magic}); expected pcap, pcapng or ERF: {remedy}")]
    ForeignFormat {
        /// The name of the format.
        name: &'static str,
        /// Its first four bytes.
        magic: Magic,
        /// What to do.
        remedy: &'static str,
    },

    /// The file ends inside its header.
    #[error(
        "the file ends inside its header: {found} bytes, expected at least {expected}; \
             it was cut short, capture or copy it again"
    )]
    TruncatedFileHeader {
        /// Bytes in the file.
        found: u64,
        /// Bytes that a header has.
        expected: u64,
    },

    /// The version is not one that this decoder reads.
    #[error(
        "byte {offset}: {format} version {major}.{minor}; expected {expected}: \
             convert it with: editcap -F pcap IN OUT"
    )]
    UnsupportedVersion {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where the file header or section begins.
        offset: u64,
        /// The version found.
        major: u16,
        /// The version found.
        minor: u16,
        /// The version that is read.
        expected: &'static str,
    },

    /// The file ends inside a packet.
    #[error(
        "packet {packet} at byte {offset}: the file ends after {found} of its {expected} \
             bytes; {}", what_is_good(.packet.saturating_sub(1))
    )]
    TruncatedRecord {
        /// The packet's number.
        packet: u64,
        /// Where its record begins.
        offset: u64,
        /// Bytes of the record that are there, record header included.
        found: u64,
        /// Bytes that the record needs, as far as is known.
        expected: u64,
    },

    /// A packet claims more bytes than any packet has.
    #[error(
        "packet {packet} at byte {offset}: captured length {length}, expected at most \
             {RECORD_LENGTH_MAX}; the file is corrupted from here on"
    )]
    RecordTooLong {
        /// The packet's number.
        packet: u64,
        /// Where its record begins.
        offset: u64,
        /// The length it claims.
        length: u32,
    },

    /// A record is shorter than its own headers.
    #[error(
        "packet {packet} at byte {offset}: record length {length}, expected at least {minimum}; \
             the file is corrupted from here on"
    )]
    RecordTooShort {
        /// The packet's number.
        packet: u64,
        /// Where its record begins.
        offset: u64,
        /// The length it claims.
        length: u32,
        /// Bytes that its headers have.
        minimum: u32,
    },

    /// A packet does not fit in its pcapng block.
    #[error(
        "packet {packet} at byte {offset}: captured length {captured}, but its block has \
             room for {room} bytes; the file is corrupted from here on"
    )]
    RecordExceedsBlock {
        /// The packet's number.
        packet: u64,
        /// Where its block begins.
        offset: u64,
        /// The length it claims.
        captured: u32,
        /// Bytes between the block's fixed fields and its end.
        room: u32,
    },

    /// The file ends inside a pcapng block that is not a packet.
    #[error(
        "byte {offset}: the file ends after {found} of the {expected} bytes of a block of \
             type {block_type:#010x}, {}; {}", Place(*.packets), what_is_good(*.packets)
    )]
    TruncatedBlock {
        /// Where the block begins.
        offset: u64,
        /// The block's type; zero where not even that is there.
        block_type: u32,
        /// Packets before it.
        packets: u64,
        /// Bytes of the block that are there.
        found: u64,
        /// Bytes that it needs, as far as is known.
        expected: u64,
    },

    /// The length of a pcapng block cannot be right.
    #[error(
        "byte {offset}: block of type {block_type:#010x} with a length of {length}; \
             expected a multiple of 4 from {minimum} to {BLOCK_LENGTH_MAX}, {}; the file is \
             corrupted from here on", Place(*.packets)
    )]
    BadBlockLength {
        /// Where the block begins.
        offset: u64,
        /// The block's type.
        block_type: u32,
        /// Packets before it.
        packets: u64,
        /// The length it claims.
        length: u32,
        /// The least that a block of this type has.
        minimum: u32,
    },

    /// The two lengths of a pcapng block differ.
    #[error(
        "byte {offset}: block of type {block_type:#010x} begins with length {length} and \
             ends with length {trailing}, expected the same, {}; the file is corrupted from \
             here on", Place(*.packets)
    )]
    TrailingLengthMismatch {
        /// Where the block begins.
        offset: u64,
        /// The block's type.
        block_type: u32,
        /// Packets before it.
        packets: u64,
        /// The length at its beginning.
        length: u32,
        /// The length at its end.
        trailing: u32,
    },

    /// The byte order of a pcapng section cannot be told.
    #[error(
        "byte {offset}: section with byte-order magic {magic}; expected 1a 2b 3c 4d or \
             4d 3c 2b 1a; the file is corrupted from here on"
    )]
    BadByteOrder {
        /// Where the section begins.
        offset: u64,
        /// The bytes found.
        magic: Magic,
    },

    /// A packet stands before any description of an interface.
    #[error(
        "packet {packet} at byte {offset}: no interface is described before it in its \
             section, so its link type is unknown; expected an interface description block"
    )]
    PacketBeforeInterface {
        /// The packet's number.
        packet: u64,
        /// Where its block begins.
        offset: u64,
    },

    /// A packet names an interface that its section does not describe.
    #[error("packet {packet} at byte {offset}: captured on interface {interface}, but its \
             section describes only {described} (0 to {})", described.saturating_sub(1))]
    UnknownInterface {
        /// The packet's number.
        packet: u64,
        /// Where its block begins.
        offset: u64,
        /// The interface it names.
        interface: u32,
        /// Interfaces described so far.
        described: u32,
    },

    /// A section describes more interfaces than are kept.
    #[error(
        "byte {offset}: one more than {INTERFACES_MAX} interfaces in one section; split \
             the file with: editcap -c"
    )]
    TooManyInterfaces {
        /// Where the block begins.
        offset: u64,
    },

    /// The resolution of an interface's clock is beyond what 64 bits can count.
    #[error(
        "byte {offset}: interface {interface} counts time in units of {base}^-{exponent} s; \
             expected at most {base}^-{maximum} s"
    )]
    AbsurdResolution {
        /// Where the interface description begins.
        offset: u64,
        /// The interface's number.
        interface: u32,
        /// 2 or 10.
        base: u8,
        /// The exponent found, without its sign.
        exponent: u8,
        /// The greatest that is read.
        maximum: u8,
    },

    /// An option of an interface description has an impossible length.
    #[error(
        "byte {offset}: option {code} of interface {interface} has a length of {length}, \
             expected {expected}"
    )]
    BadOption {
        /// Where the interface description begins.
        offset: u64,
        /// The interface's number.
        interface: u32,
        /// The option's code.
        code: u16,
        /// The length it claims.
        length: u16,
        /// What would be right.
        expected: &'static str,
    },
}

/// Where something stands among the packets: behind so many.
struct Place(u64);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("before the first packet"),
            packets => write!(f, "after packet {packets}"),
        }
    }
}

/// What to do with a file that was cut behind so many whole packets.
const fn what_is_good(packets: u64) -> &'static str {
    match packets {
        0 => "there is no whole packet before it: capture or copy the file again",
        1 => "the packet before it is good, and alone in OUT after: editcap IN OUT",
        _ => "the packets before it are good, and alone in OUT after: editcap IN OUT",
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_cut_file_promises_only_the_packets_that_are_whole() {
        let record = |packet| {
            CaptureError::TruncatedRecord { packet, offset: 24, found: 20, expected: 76 }
                .to_string()
        };
        assert_eq!(
            record(1),
            "packet 1 at byte 24: the file ends after 20 of its 76 bytes; there is no whole \
             packet before it: capture or copy the file again"
        );
        assert!(record(2).contains("the packet before it is good"), "{}", record(2));
        assert!(record(3).contains("the packets before it are good"), "{}", record(3));
        let block = |packets| {
            let (offset, found, expected) = (28, 8, 20);
            CaptureError::TruncatedBlock { offset, block_type: 1, packets, found, expected }
                .to_string()
        };
        assert!(block(0).contains("before the first packet; there is no whole"), "{}", block(0));
        assert!(block(1).contains("after packet 1; the packet before it is"), "{}", block(1));
    }
}
