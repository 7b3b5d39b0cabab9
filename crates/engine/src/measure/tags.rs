//! What arrived of each stream under the VLAN tags that its frames had on arrival.

use alloc::collections::BTreeMap;

use wirestorm_base::time::Instant;
use wirestorm_wire::packet::ethertype;

use super::sequence::{Sequence, SequenceCounters};
use super::signature::Signature;
use super::tally::Tally;

/// Records that there are at most: those of a stream under one tag take about a kilobyte.
pub const TAG_RECORDS_MAX: usize = 1 << 16;

/// Frames below the highest that arrived under a tag for which it is known whether they did.
const WINDOW: usize = 64;

/// The VLANs that a frame is in, by its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VlanTags {
    /// It has no tag.
    None,
    /// One tag.
    One(u16),
    /// Two tags or more: the outermost, and the next one.
    Two(u16, u16),
}

impl VlanTags {
    /// The tags of an Ethernet frame (types 0x8100, 0x88a8, 0x9100), priority tags included.
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

/// What arrived of a stream under the same tags.
#[derive(Clone, Debug)]
pub struct TagRecord {
    arrived: Tally,
    sequence: Sequence,
}

impl TagRecord {
    fn new() -> Self {
        Self { arrived: Tally::default(), sequence: Sequence::new(WINDOW) }
    }

    /// Arrivals, repeats included.
    pub const fn arrived(&self) -> Tally {
        self.arrived
    }

    /// Their order. Frames are numbered through the whole stream, so that those which arrived
    /// under other tags are missing here.
    pub const fn counters(&self) -> &SequenceCounters {
        self.sequence.counters()
    }
}

/// The records of all streams of a receiver under all tags.
#[derive(Clone, Debug, Default)]
pub(super) struct TagRecords {
    /// By the stream's place in the receiver, and the tags.
    records: BTreeMap<(usize, VlanTags), TagRecord>,
    /// What came when there were as many as there may be.
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
