//! The unit that travels from the reader to the workers: a piece of a capture and its index.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_base::time::Instant;
use wirestorm_wire::capture::link::Conversion;
use wirestorm_wire::packet::ethernet;

use crate::sides::Side;

/// Facts about a record, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// Belongs to a flow: IPv4 or IPv6, headers whole enough to tell which.
    pub const FLOW: Self = Self(1);
    /// The first packet of its flow in this pass over the capture.
    pub const NEW_FLOW: Self = Self(1 << 1);
    /// With `NEW_FLOW`: its key was seen before, but had been idle for longer than the expiry.
    pub const AFTER_EXPIRY: Self = Self(1 << 2);
    /// Truncated or undecodable where a flow's addresses should be.
    pub const INVALID: Self = Self(1 << 3);
    /// Leaves through the second interface.
    pub const SECONDARY: Self = Self(1 << 4);
    /// Not to be sent: left out by a packet list or a cache file or, with `INVALID`, because it
    /// cannot become an Ethernet frame.
    pub const LEFT_OUT: Self = Self(1 << 5);
    /// IPv6 rather than IPv4 at the network offset.
    pub const IPV6: Self = Self(1 << 6);

    /// No fact at all: a frame that is not IP, for the first interface.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// Whether all of `other`'s bits are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One record of a capture: where its bytes are in the chunk, and what is known of them.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Capture time: ns since the Unix epoch.
    pub timestamp: Instant,
    /// Start of the record's bytes in [`Chunk::bytes`], behind the header of a link layer that is
    /// not Ethernet.
    pub offset: u32,
    /// Bytes captured from there.
    pub captured_length: u32,
    /// Bytes on the wire from there, without FCS; more than captured where a snap length cut them.
    pub original_length: u32,
    /// Start of the IP header from `offset`; meaningful with `FLOW` only.
    pub network_offset: u16,
    /// Start of the transport header; meaningful with `FLOW` only, equal to the network offset
    /// where the packet has none (a later fragment, a truncated packet).
    pub transport_offset: u16,
    /// What the Ethernet header that is put in front has to say; 0 for a record that is an
    /// Ethernet frame already.
    pub ethertype: u16,
    /// The worker that sends it.
    pub worker: u16,
    /// How many bytes before `offset` the sender's Ethernet address is; 0 where it is not known.
    pub source: u8,
    /// IP protocol number of the transport header; meaningful with `FLOW` only.
    pub protocol: u8,
    /// What else is known.
    pub flags: RecordFlags,
}

impl Record {
    /// Makes it the record of an Ethernet frame, or of what follows the header of one.
    pub(super) fn convert(&mut self, conversion: &Conversion) {
        let strip = (conversion.strip as u32).min(self.captured_length);
        self.offset += strip;
        self.captured_length -= strip;
        self.original_length = self.original_length.saturating_sub(strip);
        self.ethertype = conversion.ethertype.unwrap_or(0);
        // The headers that hold an address have 16 and 20 bytes.
        self.source = conversion.source.map_or(0, |at| (conversion.strip - at) as u8);
    }

    /// Notes the side it belongs to.
    pub(super) fn set_side(&mut self, side: Side) {
        self.flags = match side {
            Side::Primary => self.flags,
            Side::Secondary => self.flags.with(RecordFlags::SECONDARY),
            Side::LeaveOut => self.flags.with(RecordFlags::LEFT_OUT),
        };
    }

    /// Where its bytes end in [`Chunk::bytes`].
    pub const fn end(&self) -> usize {
        self.offset as usize + self.captured_length as usize
    }

    /// Bytes of the Ethernet header that its frame gets in front of its own bytes.
    #[inline]
    pub const fn new_header_length(&self) -> usize {
        if self.ethertype == 0 { 0 } else { ethernet::HEADER_LENGTH }
    }

    /// Bytes of the frame that is sent for it.
    #[inline]
    pub const fn frame_length(&self) -> usize {
        self.captured_length as usize + self.new_header_length()
    }
}

/// A piece of a capture with the index of its records. Records lie whole in one chunk.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The file's bytes, headers of records included.
    pub bytes: Vec<u8>,
    /// Its records in the order they are sent.
    pub records: Vec<Record>,
    /// Which of the files it comes from, from 0.
    pub file: u32,
    /// The number in the file of its first record, from 1.
    pub first_record: u64,
    /// Whether it is the first of its file: capture timing starts anew.
    pub starts_file: bool,
    /// For chunks that come again in every pass: the number of this one, from 0.
    pub kept: Option<u32>,
}

impl Chunk {
    /// The captured bytes of a record of this chunk.
    #[inline]
    pub fn data(&self, record: &Record) -> &[u8] {
        &self.bytes[record.offset as usize..record.end()]
    }

    /// The sender's Ethernet address, for a record whose own header of another link layer has it.
    #[inline]
    pub fn source(&self, record: &Record) -> Option<&[u8; 6]> {
        let at =
            record.offset.checked_sub(record.source.into()).filter(|at| *at != record.offset)?;
        self.bytes.get(at as usize..)?.first_chunk()
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }
}

/// What a feed has for a worker.
#[derive(Debug)]
pub enum Fed {
    /// The next piece.
    Chunk(Arc<Chunk>),
    /// All files were passed once; the next pass follows.
    PassEnd,
    /// Nothing yet: the reader is behind.
    Pending,
    /// All passes are done, or the reader failed, which it reports elsewhere.
    End,
}

/// Where a worker gets its chunks from. Every worker gets every chunk.
pub trait Feed {
    /// The next chunk, without waiting for it.
    fn next(&mut self) -> Fed;
}
