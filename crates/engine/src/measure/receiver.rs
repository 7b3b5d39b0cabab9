//! The receiving side of a measurement: frames go to the records of their streams.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use wirestorm_base::port::{PortError, Receive, Received};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::mark;

use super::signature::{Signature, find};
use super::stream::{MeasureOptions, MeasuredStream, StreamRecord};
use super::tags::{TagRecord, TagRecords, VlanTags};
use super::tally::Tally;

/// Frames that are fetched at once.
const BATCH: usize = 64;

/// Measures the streams that arrive on a port.
///
/// One receiver may drain several queues, one after the other: then frames of a stream that is
/// spread over them are in the order in which they were fetched, not in which they arrived. A
/// receiver for each queue can be [merged](Self::merge) in the end.
#[derive(Debug)]
pub struct Receiver {
    /// Places in `records`, by the streams' numbers.
    places: Box<[u32]>,
    records: Vec<StreamRecord>,
    /// Places in `records`, by the numbers of marks; empty where no stream has one.
    marks: Box<[u32]>,
    unknown: Tally,
    foreign: Tally,
    /// Where frames are counted by their tags too.
    tags: Option<TagRecords>,
    batch: Vec<Received>,
    looked: Option<Instant>,
    pause_max: Duration,
}

/// The place of what is not measured.
const NOWHERE: u32 = u32::MAX;

impl Receiver {
    /// A receiver that measures these streams. It allocates again only where the histograms of a
    /// stream have to reach further, see [`Distribution`](super::Distribution). Its table of
    /// streams has 4 bytes for every number up to the highest one.
    ///
    /// # Panics
    /// Where two streams have the same number, or one has more than
    /// [`Signature::STREAM_BITS`] bits: plans number their streams.
    pub fn new(streams: Vec<MeasuredStream>, options: &MeasureOptions) -> Self {
        let numbers = streams.iter().map(|stream| stream.id as usize + 1).max().unwrap_or(0);
        assert!(numbers <= 1 << Signature::STREAM_BITS, "stream {} is beyond 24 bits", numbers - 1);
        let mut places = vec![NOWHERE; numbers].into_boxed_slice();
        for (place, stream) in streams.iter().enumerate() {
            let before = core::mem::replace(&mut places[stream.id as usize], place as u32);
            assert_eq!(before, NOWHERE, "two streams with number {}", stream.id);
        }
        Self {
            places,
            records: streams.into_iter().map(|stream| StreamRecord::new(stream, options)).collect(),
            marks: Box::default(),
            unknown: Tally::default(),
            foreign: Tally::default(),
            tags: options.per_vlan.then(TagRecords::default),
            batch: Vec::with_capacity(BATCH),
            looked: None,
            pause_max: Duration::ZERO,
        }
    }

    /// Counts a stream by the mark in its frames that has the stream's number, in place of a
    /// signature: see [`wirestorm_wire::mark`]. Returns whether it has that number here, and there
    /// is such a mark.
    pub fn count_marked(&mut self, stream: u32) -> bool {
        let place = self.places.get(stream as usize).copied().unwrap_or(NOWHERE);
        let Some(record) = self.records.get_mut(place as usize) else { return false };
        if stream >= u32::from(mark::COUNT) {
            return false;
        }
        if self.marks.is_empty() {
            self.marks = vec![NOWHERE; usize::from(mark::COUNT)].into();
        }
        self.marks[stream as usize] = place;
        record.has_no_order();
        true
    }

    /// Whether frames with the mark of this number are counted here.
    pub fn counts(&self, mark: u16) -> bool {
        self.marks.get(usize::from(mark)).is_some_and(|&place| place != NOWHERE)
    }

    /// Takes a batch of frames from a port at the time `now`; returns how many. None are left
    /// where they are fewer than asked for, which are 64.
    ///
    /// # Errors
    /// When the interface does not work any more. What was measured stays valid.
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

    /// Notes a frame that arrived, and was `original_length` bytes long on the wire, without FCS.
    #[inline]
    pub fn note(&mut self, frame: &[u8], original_length: usize, arrival: Instant) {
        let Some(found) = find(frame) else {
            return self.note_unsigned(frame, original_length, arrival);
        };
        let place = self.places.get(found.signature.stream as usize).copied().unwrap_or(NOWHERE);
        let Some(record) = self.records.get_mut(place as usize) else {
            return self.foreign.note(original_length);
        };
        let is_counted = record.note(frame, found, original_length, arrival);
        if let Some(tags) = &mut self.tags
            && is_counted
        {
            let number = found.signature.sequence;
            tags.note(place as usize, frame, number, original_length, arrival);
        }
    }

    /// Notes a frame without a signature, which may have a mark.
    #[inline(never)]
    fn note_unsigned(&mut self, frame: &[u8], original_length: usize, arrival: Instant) {
        let number = if self.marks.is_empty() { None } else { mark::read(frame) };
        let place = number.and_then(|number| self.marks.get(usize::from(number)));
        match place.and_then(|&place| self.records.get_mut(place as usize)) {
            Some(record) => record.count(original_length, arrival),
            None => self.unknown.note(original_length),
        }
    }

    /// Whether a stream of this number is measured here.
    pub fn measures(&self, stream: u32) -> bool {
        self.places.get(stream as usize).is_some_and(|&place| place != NOWHERE)
    }

    /// What was measured, in the order in which the streams were given.
    pub fn records(&self) -> &[StreamRecord] {
        &self.records
    }

    /// What arrived under each tag of the stream with this place in [`Self::records`]; nothing
    /// where that was not asked for.
    pub fn tags(&self, record: usize) -> impl Iterator<Item = (VlanTags, &TagRecord)> {
        self.tags.iter().flat_map(move |tags| tags.of(record))
    }

    /// Frames of measured streams whose tags were not told apart any more, because
    /// [`TAG_RECORDS_MAX`](super::TAG_RECORDS_MAX) was reached.
    pub fn beyond_tags(&self) -> Tally {
        self.tags.as_ref().map_or_else(Tally::default, TagRecords::beyond)
    }

    /// Frames without a signature or a mark: of others, damaged in it, or cut before it.
    pub const fn unknown(&self) -> Tally {
        self.unknown
    }

    /// Frames with the signature of a stream that is not measured here: gone astray.
    pub const fn foreign(&self) -> Tally {
        self.foreign
    }

    /// The longest time for which nobody looked whether frames had arrived. By so much arrivals
    /// may be stamped too late where the port stamps them in this process.
    pub const fn pause_max(&self) -> Duration {
        self.pause_max
    }

    /// Adds what another receiver measured of the same streams on another queue of the port; see
    /// [`StreamRecord::merge`] for what is lost where a stream arrived on both.
    ///
    /// # Panics
    /// Where it was made for other streams, or either counts by tags: the order under a tag is not
    /// known of two queues.
    pub fn merge(&mut self, other: Self) {
        assert_eq!(self.places, other.places, "receivers of the same streams");
        assert!(self.tags.is_none() && other.tags.is_none(), "receivers that count by tags");
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
