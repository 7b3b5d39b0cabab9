//! Piece of a capture with its index: the unit that the reader passes to the workers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_base::time::Instant;
use wirestorm_wire::capture::link::Conversion;
use wirestorm_wire::packet::ethernet;

use crate::sides::Side;

/// Properties of a record, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// Belongs to a flow: IPv4 or IPv6 with headers complete enough to identify it.
    pub const FLOW: Self = Self(1);
    /// First packet of its flow in this pass over the capture.
    pub const NEW_FLOW: Self = Self(1 << 1);
    /// With `NEW_FLOW`: the key was seen before, but was idle longer than the expiry.
    pub const AFTER_EXPIRY: Self = Self(1 << 2);
    /// Truncated or undecodable in the headers that identify a flow.
    pub const INVALID: Self = Self(1 << 3);
    /// Leaves through the second interface.
    pub const SECONDARY: Self = Self(1 << 4);
    /// Not sent: filtered by a packet list or a cache file or, with `INVALID`, not convertible to
    /// an Ethernet frame.
    pub const FILTERED: Self = Self(1 << 5);
    /// IPv6 rather than IPv4 at the network offset.
    pub const IPV6: Self = Self(1 << 6);

    /// Returns no properties: a frame that is not IP, for the first interface.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// Returns whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Record of a capture: location of its bytes in the chunk, and its parsed headers.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Capture time in ns since the Unix epoch.
    pub timestamp: Instant,
    /// Offset of the frame in [`Chunk::bytes`], behind the header of a link layer other than
    /// Ethernet.
    pub offset: u32,
    /// Captured bytes from `offset` on.
    pub captured_length: u32,
    /// Bytes on the wire from `offset` on, without FCS; more than captured if a snap length cut the
    /// packet.
    pub original_length: u32,
    /// Offset of the IP header from `offset`; valid only with `FLOW`.
    pub network_offset: u16,
    /// Offset of the transport header from `offset`; valid only with `FLOW`. Equals the network
    /// offset if the packet has none (a later fragment, a truncated packet).
    pub transport_offset: u16,
    /// EtherType of the Ethernet header to prepend; 0 if the record is an Ethernet frame.
    pub ethertype: u16,
    /// Index of the worker that sends it.
    pub worker: u16,
    /// Distance in bytes from the sender's Ethernet address to `offset`; 0 if unknown.
    pub source: u8,
    /// IP protocol number of the transport header; valid only with `FLOW`.
    pub protocol: u8,
    /// Other properties.
    pub flags: RecordFlags,
}

impl Record {
    /// Strips the link-layer header. The rest is an Ethernet frame, or the payload of one if
    /// `ethertype` is set.
    pub(super) fn convert(&mut self, conversion: &Conversion) {
        let strip = (conversion.strip as u32).min(self.captured_length);
        self.offset += strip;
        self.captured_length -= strip;
        self.original_length = self.original_length.saturating_sub(strip);
        self.ethertype = conversion.ethertype.unwrap_or(0);
        // The headers that hold an address have 16 and 20 bytes.
        self.source = conversion.source.map_or(0, |at| (conversion.strip - at) as u8);
    }

    /// Stores the side of the record.
    pub(super) fn set_side(&mut self, side: Side) {
        self.flags = match side {
            Side::Primary => self.flags,
            Side::Secondary => self.flags.with(RecordFlags::SECONDARY),
            Side::Excluded => self.flags.with(RecordFlags::FILTERED),
        };
    }

    /// Returns the end of the frame in [`Chunk::bytes`].
    pub const fn end(&self) -> usize {
        self.offset as usize + self.captured_length as usize
    }

    /// Returns the length of the Ethernet header to prepend.
    #[inline]
    pub const fn new_header_length(&self) -> usize {
        if self.ethertype == 0 { 0 } else { ethernet::HEADER_LENGTH }
    }

    /// Returns the length of the frame to send, before edits.
    #[inline]
    pub const fn frame_length(&self) -> usize {
        self.captured_length as usize + self.new_header_length()
    }
}

/// Piece of a capture with the index of its records. A record never spans two chunks.
#[derive(Debug, Default)]
pub struct Chunk {
    /// Bytes of the file, including record headers.
    pub bytes: Vec<u8>,
    /// Records in the order of sending.
    pub records: Vec<Record>,
    /// Index of the file, from 0.
    pub file: u32,
    /// Number of the first record in the file, from 1.
    pub first_record: u64,
    /// Whether this is the first chunk of its file: capture timing restarts.
    pub starts_file: bool,
    /// Number of this chunk, from 0, if it is kept for all passes.
    pub kept: Option<u32>,
}

impl Chunk {
    /// Returns the captured bytes of a record of this chunk.
    #[inline]
    pub fn data(&self, record: &Record) -> &[u8] {
        &self.bytes[record.offset as usize..record.end()]
    }

    /// Returns the sender's Ethernet address if the record's own link-layer header has one.
    #[inline]
    pub fn source(&self, record: &Record) -> Option<&[u8; 6]> {
        let at =
            record.offset.checked_sub(record.source.into()).filter(|at| *at != record.offset)?;
        self.bytes.get(at as usize..)?.first_chunk()
    }

    /// Clears the chunk and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }
}

/// Result of polling a feed.
#[derive(Debug)]
pub enum FeedItem {
    /// Next chunk.
    Chunk(Arc<Chunk>),
    /// One pass over all files is complete; the next pass follows.
    PassEnd,
    /// Nothing available: the reader is behind.
    Pending,
    /// All passes are complete, or the reader failed and reports the error elsewhere.
    End,
}

/// All chunks of a capture, in order, before the first pass.
#[derive(Clone, Debug)]
pub struct KeptChunks {
    /// Chunks of a pass.
    pub chunks: Arc<[Arc<Chunk>]>,
    /// Number of passes; `u64::MAX` for no limit.
    pub passes: u64,
}

/// Source of a worker's chunks. Every worker receives every chunk.
pub trait Feed {
    /// Returns the next chunk without blocking.
    fn next(&mut self) -> FeedItem;

    /// Returns all chunks if they are in memory and none was returned by [`Feed::next`].
    fn kept(&mut self) -> Option<KeptChunks> {
        None
    }
}
