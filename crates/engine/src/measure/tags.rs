//! Counters of each stream by the VLAN tags of its frames on arrival.

use alloc::collections::BTreeMap;

use wirestorm_base::time::Instant;
use wirestorm_wire::packet::ethertype;

use super::sequence::{Sequence, SequenceCounters};
use super::signature::Signature;
use super::tally::Tally;

/// Maximum number of records: a record of a stream under one tag takes about 1 KB.
pub const TAG_RECORDS_MAX: usize = 1 << 16;

/// Window in frames below the highest arrival under a tag.
const WINDOW: usize = 64;

/// VLAN identifiers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VlanTags {
    /// No tag.
    None,
    /// One tag.
    One(u16),
    /// Two or more tags: the outermost and the next one.
    Two(u16, u16),
}

impl VlanTags {
    /// Parses the tags of an Ethernet frame (types 0x8100, 0x88a8, 0x9100), including priority
    /// tags.
    pub fn of(frame: &[u8]) -> Self {
        let id = |at: usize| {
            let [high, low, first, second] = *frame.get(at..)?.first_chunk()?;
            let is_tag = ethertype::is_vlan(u16::from_be_bytes([high, low]));
            is_tag.then(|| u16::from_be_bytes([first, second]) & 0xfff)
        };
        match (id(12), id(16)) {
            (None, _) => Self::None,
            (Some(only), None) => Self::One(only),
            (Some(outer), Some(inner)) => Self::Two(outer, inner),
        }
    }
}

/// Counters of a stream under the same tags.
#[derive(Clone, Debug)]
pub struct TagRecord {
    arrived: Tally,
    sequence: Sequence,
}

impl TagRecord {
    fn new() -> Self {
        Self { arrived: Tally::default(), sequence: Sequence::new(WINDOW) }
    }

    /// Returns the arrivals, including duplicates.
    pub const fn arrived(&self) -> Tally {
        self.arrived
    }

    /// Returns the sequence counters. Frames are numbered over the whole stream, so frames that
    /// arrived under other tags count as missing here.
    pub const fn counters(&self) -> &SequenceCounters {
        self.sequence.counters()
    }
}

/// Records of all streams of a receiver under all tags.
#[derive(Clone, Debug, Default)]
pub(super) struct TagRecords {
    /// Records by the stream's index in the receiver and the tags.
    records: BTreeMap<(usize, VlanTags), TagRecord>,
    /// Frames that arrived under new tags after the limit was reached.
    beyond: Tally,
}

impl TagRecords {
    pub(super) fn note(
        &mut self,
        place: usize,
        frame: &[u8],
        number: u64,
        bytes: usize,
        arrival: Instant,
    ) {
        let key = (place, VlanTags::of(frame));
        if self.records.len() >= TAG_RECORDS_MAX && !self.records.contains_key(&key) {
            return self.beyond.note(bytes);
        }
        let record = self.records.entry(key).or_insert_with(TagRecord::new);
        record.arrived.note(bytes);
        let number = record.sequence.unwrap(number, Signature::SEQUENCE_BITS);
        record.sequence.note(number, arrival);
    }

    pub(super) fn of(&self, place: usize) -> impl Iterator<Item = (VlanTags, &TagRecord)> {
        let last = VlanTags::Two(u16::MAX, u16::MAX);
        let records = self.records.range((place, VlanTags::None)..=(place, last));
        records.map(|((_, tags), record)| (*tags, record))
    }

    pub(super) const fn beyond(&self) -> Tally {
        self.beyond
    }
}
