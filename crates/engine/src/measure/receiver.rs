//! Receiving side of a measurement: assigns frames to the records of their streams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wirestorm_base::port::{PortError, Receive, Received};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::stream::FrameBits;
use wirestorm_wire::mark;

use super::signature::{Signature, find};
use super::stream::{MeasureOptions, MeasuredStream, StreamRecord};
use super::tags::{TagRecord, TagRecords, VlanTags};
use super::tally::Tally;
use super::values::{ValueRecord, ValueRecords};

/// Maximum number of frames to receive at once.
const BATCH: usize = 64;

/// Measures the streams that arrive on a port.
///
/// A receiver may drain several queues, one after the other. Frames of a stream that is spread over
/// them then have the order of reception, not of arrival. Alternatively use a receiver for each
/// queue and [merge](Self::merge) them at the end.
#[derive(Debug)]
pub struct Receiver {
    /// Lowest stream number.
    first: u32,
    /// Indices into `records` by stream number minus `first`.
    places: Box<[u32]>,
    records: Vec<StreamRecord>,
    /// Indices into `records` by mark number; empty if no stream has a mark.
    marks: Box<[u32]>,
    unknown: Tally,
    foreign: Tally,
    /// Records by parts of frames, if enabled.
    parts: Option<Box<Parts>>,
    batch: Vec<Received>,
    looked: Option<Instant>,
    pause_max: Duration,
}

/// Records by VLAN tag, and by the values of bits.
#[derive(Debug, Default)]
struct Parts {
    tags: Option<TagRecords>,
    values: ValueRecords,
}

/// Index of a stream that is not measured.
const NOT_MEASURED: u32 = u32::MAX;

impl Receiver {
    /// Creates a receiver for these streams. Later it allocates only when the histogram of a stream
    /// grows, see [`Distribution`](super::Distribution). Its table of streams takes 4 bytes for
    /// every number from the lowest to the highest one.
    ///
    /// # Panics
    /// Panics if two streams have the same number, or a number exceeds [`Signature::STREAM_BITS`]
    /// bits: plans assign the numbers.
    pub fn new(streams: Vec<MeasuredStream>, options: &MeasureOptions) -> Self {
        let ids = || streams.iter().map(|stream| stream.id);
        let first = ids().min().unwrap_or(0);
        let end = ids().max().map_or(first, |last| last.saturating_add(1));
        assert!(end <= 1 << Signature::STREAM_BITS, "stream {} is beyond 24 bits", end - 1);
        let mut places = vec![NOT_MEASURED; (end - first) as usize].into_boxed_slice();
        for (place, id) in ids().enumerate() {
            let before = core::mem::replace(&mut places[(id - first) as usize], place as u32);
            assert_eq!(before, NOT_MEASURED, "two streams with number {id}");
        }
        Self {
            first,
            places,
            records: streams.into_iter().map(|stream| StreamRecord::new(stream, options)).collect(),
            marks: Box::default(),
            unknown: Tally::default(),
            foreign: Tally::default(),
            parts: options.per_vlan.then(|| {
                let tags = Some(TagRecords::default());
                Box::new(Parts { tags, values: ValueRecords::default() })
            }),
            batch: Vec::with_capacity(BATCH),
            looked: None,
            pause_max: Duration::ZERO,
        }
    }

    /// Returns the index of a stream in `records`, or `NOT_MEASURED`.
    #[inline]
    fn place(&self, stream: u32) -> u32 {
        let place = stream.wrapping_sub(self.first);
        self.places.get(place as usize).copied().unwrap_or(NOT_MEASURED)
    }

    /// Counts a stream by the mark with the stream's number in its frames instead of a signature;
    /// see [`wirestorm_wire::mark`]. Returns whether the stream is measured here and its number is
    /// a valid mark.
    pub fn count_by_mark(&mut self, stream: u32) -> bool {
        let place = self.place(stream);
        let Some(record) = self.records.get_mut(place as usize) else { return false };
        if stream >= u32::from(mark::COUNT) {
            return false;
        }
        if self.marks.is_empty() {
            self.marks = vec![NOT_MEASURED; usize::from(mark::COUNT)].into();
        }
        self.marks[stream as usize] = place;
        record.disable_order();
        true
    }

    /// Counts a stream by the values of bits of its frames, too; has no effect on a stream that is
    /// not measured here, or that has no signature.
    pub fn count_by_values(&mut self, stream: u32, bits: Arc<[FrameBits]>) {
        let place = self.place(stream);
        if place != NOT_MEASURED {
            self.parts.get_or_insert_default().values.add(place as usize, bits);
        }
    }

    /// Returns whether frames with this mark are counted here.
    pub fn counts(&self, mark: u16) -> bool {
        self.marks.get(usize::from(mark)).is_some_and(|&place| place != NOT_MEASURED)
    }

    /// Receives up to 64 frames from a port at the time `now`; returns the number. The port has no
    /// more frames if it is less than 64.
    ///
    /// # Errors
    /// Returns an error if the interface fails. The measurements so far stay valid.
    pub fn receive(&mut self, now: Instant, port: &mut impl Receive) -> Result<usize, PortError> {
        let looked = self.looked.replace(now).unwrap_or(now);
        self.pause_max = self.pause_max.max(now.saturating_since(looked));
        let mut batch = core::mem::take(&mut self.batch);
        let outcome = port.receive(BATCH, &mut batch);
        for received in batch.drain(..) {
            self.note(port.frame(&received), received.original_length, received.arrival);
            port.release(received);
        }
        self.batch = batch;
        outcome
    }

    /// Records a frame that arrived and was `original_length` bytes long on the wire, without FCS.
    #[inline]
    pub fn note(&mut self, frame: &[u8], original_length: usize, arrival: Instant) {
        let Some(found) = find(frame) else {
            return self.note_unsigned(frame, original_length, arrival);
        };
        let place = self.place(found.signature.stream);
        let Some(record) = self.records.get_mut(place as usize) else {
            return self.foreign.note(original_length);
        };
        let is_counted = record.note(frame, found, original_length, arrival);
        if self.parts.is_some() && is_counted {
            self.note_parts(place as usize, frame, found.signature, original_length, arrival);
        }
    }

    #[inline(never)]
    fn note_parts(
        &mut self,
        place: usize,
        frame: &[u8],
        signature: Signature,
        original_length: usize,
        arrival: Instant,
    ) {
        let Some(parts) = &mut self.parts else { return };
        if let Some(tags) = &mut parts.tags {
            tags.note(place, frame, signature.sequence, original_length, arrival);
        }
        if parts.values.counts(place) {
            let delay_ns = self.records[place].delay_ns(signature.departure, arrival);
            parts.values.note(place, frame, original_length, delay_ns, arrival);
        }
    }

    /// Records a frame without a signature, which may have a mark.
    #[inline(never)]
    fn note_unsigned(&mut self, frame: &[u8], original_length: usize, arrival: Instant) {
        let number = if self.marks.is_empty() { None } else { mark::read(frame) };
        let place = number.and_then(|number| self.marks.get(usize::from(number)));
        match place.and_then(|&place| self.records.get_mut(place as usize)) {
            Some(record) => record.count(original_length, arrival),
            None => self.unknown.note(original_length),
        }
    }

    /// Returns whether a stream with this number is measured here.
    pub fn measures(&self, stream: u32) -> bool {
        self.place(stream) != NOT_MEASURED
    }

    /// Returns the records, in the order of the streams passed to [`Self::new`].
    pub fn records(&self) -> &[StreamRecord] {
        &self.records
    }

    /// Returns the counters by VLAN tag of the stream at this index of [`Self::records`]; empty if
    /// [`MeasureOptions::per_vlan`] is off.
    pub fn tags(&self, record: usize) -> impl Iterator<Item = (VlanTags, &TagRecord)> {
        let tags = self.parts.as_ref().and_then(|parts| parts.tags.as_ref());
        tags.into_iter().flat_map(move |tags| tags.of(record))
    }

    /// Ends the comparison of the payload of the stream at this index of [`Self::records`]: its frames
    /// will differ. Frames that differed before remain counted.
    ///
    /// # Panics
    /// Panics if there is no such stream.
    pub fn stop_comparing(&mut self, record: usize) {
        self.records[record].stop_comparing();
    }

    /// Returns the counters by values of the stream at this index of [`Self::records`], in the order
    /// of the values; empty without [`Self::count_by_values`].
    pub fn values(&self, record: usize) -> impl Iterator<Item = (&[u128], &ValueRecord)> {
        self.parts.iter().flat_map(move |parts| parts.values.of(record))
    }

    /// Returns the frames of measured streams whose tags or values were not recorded, because
    /// [`TAG_RECORDS_MAX`](super::TAG_RECORDS_MAX) was reached, or they were too short.
    pub fn beyond_tags(&self) -> Tally {
        let Some(parts) = &self.parts else { return Tally::default() };
        let mut beyond = parts.values.beyond();
        beyond.merge(parts.tags.as_ref().map_or_else(Tally::default, TagRecords::beyond));
        beyond
    }

    /// Returns the frames without a signature or mark: other traffic, or damaged or truncated
    /// frames.
    pub const fn unknown(&self) -> Tally {
        self.unknown
    }

    /// Returns the frames with the signature of a stream that is not measured on this port.
    pub const fn foreign(&self) -> Tally {
        self.foreign
    }

    /// Returns the longest time between two calls of [`Self::receive`]. If the port stamps arrivals
    /// in this process, timestamps may be too late by this much.
    pub const fn pause_max(&self) -> Duration {
        self.pause_max
    }

    /// Adds another receiver of the same streams on another queue of the port; see
    /// [`StreamRecord::merge`] for the limits if a stream arrived on both.
    ///
    /// # Panics
    /// Panics if the other receiver has other streams, or if either counts by VLAN tag or by values: the order
    /// of frames of two queues is unknown.
    pub fn merge(&mut self, other: Self) {
        assert_eq!(
            (self.first, &self.places),
            (other.first, &other.places),
            "receivers of the same streams"
        );
        assert!(self.parts.is_none() && other.parts.is_none(), "receivers that count by tags");
        for (mine, theirs) in self.records.iter_mut().zip(other.records) {
            mine.merge(theirs);
        }
        self.unknown.merge(other.unknown);
        if self.marks.is_empty() {
            self.marks = other.marks;
        }
        self.foreign.merge(other.foreign);
        self.pause_max = self.pause_max.max(other.pause_max);
    }
}
