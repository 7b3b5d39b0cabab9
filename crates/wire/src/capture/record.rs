//! Records of a capture.

use core::ops::Range;

use wirestorm_base::time::Instant;

use super::LinkType;

/// Metadata of a captured packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// Capture time in nanoseconds since the Unix epoch; 0 if the file has no time (simple packet
    /// blocks of pcapng).
    pub timestamp: Instant,
    /// Captured bytes, at most [`RECORD_LENGTH_MAX`](super::RECORD_LENGTH_MAX).
    pub captured_length: u32,
    /// Bytes on the wire; never less than `captured_length`.
    pub original_length: u32,
    /// Link type of the bytes.
    pub link_type: LinkType,
    /// Interface number in the pcapng section; zero in pcap.
    pub interface: u32,
}

/// Result of a step of a [`Decoder`](super::Decoder). The next input begins `consumed` bytes behind
/// the start of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet.
    Record {
        /// Metadata of the packet.
        record: RecordHeader,
        /// Range of its bytes in the input of this step.
        data: Range<usize>,
        /// Bytes to remove from the input, `data` included.
        consumed: usize,
    },
    /// Something that is not a packet.
    Skipped {
        /// Bytes to remove from the input; at least one.
        consumed: usize,
    },
    /// The input is too short.
    NeedMore {
        /// Minimum length of the next input, present bytes included. At most
        /// [`BLOCK_LENGTH_MAX`](super::BLOCK_LENGTH_MAX), and for pcap at most
        /// [`RECORD_LENGTH_MAX`](super::RECORD_LENGTH_MAX) + 24.
        at_least: usize,
    },
    /// The file ended at a record boundary.
    End,
}
