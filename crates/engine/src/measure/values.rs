//! Counters of each stream by the values of bits of its frames.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wirestorm_base::time::Instant;
use wirestorm_model::stream::FrameBits;

use super::tags::TAG_RECORDS_MAX;
use super::tally::Tally;

/// Counters of the frames of a stream with the same values, duplicates included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRecord {
    /// Frames that arrived.
    pub arrived: Tally,
    /// Arrival of the first frame.
    pub first: Instant,
    /// Arrival of the last frame.
    pub last: Instant,
    /// Shortest delay in nanoseconds.
    pub delay_min_ns: i64,
    /// Longest delay in nanoseconds.
    pub delay_max_ns: i64,
    /// Sum of all delays in nanoseconds.
    pub delay_sum_ns: i128,
}

impl ValueRecord {
    const fn new(delay_ns: i64, arrival: Instant) -> Self {
        Self {
            arrived: Tally { frames: 0, bytes: 0 },
            first: arrival,
            last: arrival,
            delay_min_ns: delay_ns,
            delay_max_ns: delay_ns,
            delay_sum_ns: 0,
        }
    }

    fn note(&mut self, bytes: usize, delay_ns: i64, arrival: Instant) {
        self.arrived.note(bytes);
        self.last = arrival;
        self.delay_min_ns = self.delay_min_ns.min(delay_ns);
        self.delay_max_ns = self.delay_max_ns.max(delay_ns);
        self.delay_sum_ns += i128::from(delay_ns);
    }

    /// Adds the counters of other frames with the same values.
    pub fn merge(&mut self, other: &Self) {
        self.arrived.merge(other.arrived);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.delay_min_ns = self.delay_min_ns.min(other.delay_min_ns);
        self.delay_max_ns = self.delay_max_ns.max(other.delay_max_ns);
        self.delay_sum_ns += other.delay_sum_ns;
    }
}

/// Counters of all frames of a port by values, whatever stream they belong to.
#[derive(Clone, Debug)]
pub struct ValueCounter {
    bits: Arc<[FrameBits]>,
    records: ValueRecords,
}

impl ValueCounter {
    /// Counts frames by the values of these bits.
    pub fn new(bits: Vec<FrameBits>) -> Self {
        let bits: Arc<[FrameBits]> = bits.into();
        let mut records = ValueRecords::default();
        records.add(0, Arc::clone(&bits));
        Self { bits, records }
    }

    /// Records a frame that was `original_length` bytes long on the wire, without FCS.
    pub fn note(&mut self, frame: &[u8], original_length: usize, arrival: Instant) {
        self.records.note(0, frame, original_length, 0, arrival);
    }

    /// Returns the counters in the order of the values. Their delays are 0.
    pub fn records(&self) -> impl Iterator<Item = (&[u128], &ValueRecord)> {
        self.records.of(0)
    }

    /// Returns the frames that no record counts: those that are too short for the bits, and those
    /// with new values after [`TAG_RECORDS_MAX`] records.
    pub const fn beyond(&self) -> Tally {
        self.records.beyond()
    }

    /// Sets all counters to zero.
    pub fn clear(&mut self) {
        *self = Self::new(self.bits.to_vec());
    }
}

/// Records of the streams of a receiver by values.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueRecords {
    /// Bits and records of each stream, by its index in the receiver.
    streams: Vec<Option<StreamValues>>,
    /// Number of records of all streams.
    count: usize,
    /// Frames with new values after the limit was reached, or too short for the bits.
    beyond: Tally,
    /// Values of the current frame.
    key: Vec<u128>,
}

#[derive(Clone, Debug)]
struct StreamValues {
    bits: Arc<[FrameBits]>,
    records: BTreeMap<Box<[u128]>, ValueRecord>,
}

impl ValueRecords {
    /// Counts the stream at an index of the receiver by the values of these bits.
    pub(super) fn add(&mut self, place: usize, bits: Arc<[FrameBits]>) {
        if self.streams.len() <= place {
            self.streams.resize(place + 1, None);
        }
        self.streams[place] = Some(StreamValues { bits, records: BTreeMap::new() });
    }

    /// Returns whether the stream at an index is counted by values.
    pub(super) fn counts(&self, place: usize) -> bool {
        matches!(self.streams.get(place), Some(Some(_)))
    }

    pub(super) fn note(
        &mut self,
        place: usize,
        frame: &[u8],
        bytes: usize,
        delay_ns: i64,
        arrival: Instant,
    ) {
        let Some(Some(stream)) = self.streams.get_mut(place) else { return };
        self.key.clear();
        self.key.extend(stream.bits.iter().map_while(|bits| bits.read(frame)));
        if self.key.len() < stream.bits.len() {
            return self.beyond.note(bytes);
        }
        if let Some(record) = stream.records.get_mut(&self.key[..]) {
            return record.note(bytes, delay_ns, arrival);
        }
        if self.count >= TAG_RECORDS_MAX {
            return self.beyond.note(bytes);
        }
        self.count += 1;
        let mut record = ValueRecord::new(delay_ns, arrival);
        record.note(bytes, delay_ns, arrival);
        stream.records.insert(self.key[..].into(), record);
    }

    pub(super) fn of(&self, place: usize) -> impl Iterator<Item = (&[u128], &ValueRecord)> {
        let stream = self.streams.get(place).and_then(Option::as_ref);
        stream.into_iter().flat_map(|it| &it.records).map(|(values, record)| (&**values, record))
    }

    pub(super) const fn beyond(&self) -> Tally {
        self.beyond
    }
}
