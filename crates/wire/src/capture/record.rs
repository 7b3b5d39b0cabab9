//! A packet of a capture, as it is read.

use core::ops::Range;

use wirestorm_base::time::Instant;

use super::LinkType;

/// What a capture says of one packet beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    /// When it was captured, in nanoseconds since the Unix epoch. The epoch itself where the
    /// file does not say (simple packet blocks of pcapng).
    pub timestamp: Instant,
    /// Bytes in the file, at most [`RECORD_LENGTH_MAX`](super::RECORD_LENGTH_MAX).
    pub captured_length: u32,
    /// Bytes on the wire; never less than `captured_length`.
    pub original_length: u32,
    /// What the bytes begin with.
    pub link_type: LinkType,
    /// The interface's number in its pcapng section; zero in pcap.
    pub interface: u32,
}

/// What one step of a [`Decoder`](super::Decoder) came to. `consumed` bytes at the beginning of the input are
/// done with: the next input begins behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet.
    Record {
        /// What the capture says of it.
        record: RecordHeader,
        /// Where its bytes are in the input of this step.
        data: Range<usize>,
        /// Bytes of the input that are done with, those of `data` included.
        consumed: usize,
    },
    /// Something that is not a packet.
    Skipped {
        /// Bytes of the input that are done with; at least one.
        consumed: usize,
    },
    /// The input is too short to go on.
    NeedMore {
        /// Bytes that the next input needs to have, the present ones included. Never more than
        /// [`BLOCK_LENGTH_MAX`](super::BLOCK_LENGTH_MAX), and for pcap never more than
        /// [`RECORD_LENGTH_MAX`](super::RECORD_LENGTH_MAX) and 16.
        at_least: usize,
    },
    /// The file ended where it may end.
    End,
}
