//! Measurements of one stream.

use alloc::boxed::Box;
use alloc::vec;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::stream::{Step, Stream};

use super::delay::{DelayRecord, Jitter};
use super::distribution::Distribution;
use super::segments::{Segment, SegmentOptions, Segments};
use super::sequence::{Arrived, Sequence, sign_extend};
use super::series::Series;
use super::signature::{FoundSignature, Signature};
use crate::stream::written;

/// Options of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasureOptions {
    /// Window in frames below the highest arrival; see [`Sequence::new`]. A stream takes about 20
    /// bytes for each frame of the window, which stay untouched while frames arrive in order, plus
    /// its intervals and histograms.
    pub window: usize,
    /// Maximum number of intervals in a stream's time series; 0 disables it.
    pub intervals_max: usize,
    /// Initial length of an interval.
    pub interval: Duration,
    /// Start of the measurement, by the clock of arrivals.
    pub started: Instant,
    /// Whether departures use the same clock as arrivals. If so, frames that left before the start
    /// are recognised as stale.
    pub same_clock: bool,
    /// Whether to count frames by their VLAN tags too. Default: no.
    pub per_vlan: bool,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            window: Sequence::WINDOW_DEFAULT,
            intervals_max: 256,
            interval: Duration::from_millis(10),
            started: Instant::ZERO,
            same_clock: true,
            per_vlan: false,
        }
    }
}

/// Stream to measure.
#[derive(Clone, Debug)]
pub struct MeasuredStream {
    /// Stream number in signatures.
    pub id: u32,
    /// Constant payload bytes to compare; `None` disables the comparison.
    pub payload: Option<PayloadCheck>,
    /// Set if frames leave by another clock than that of arrivals: delays are also recorded in
    /// segments of time.
    pub segments: Option<SegmentOptions>,
}

/// Payload bytes that all frames of a stream have in common.
#[derive(Clone, Debug)]
pub struct PayloadCheck {
    /// Successive words of eight bytes. The last one may reach into the signature, where its mask
    /// is zero.
    words: Box<[Word]>,
    /// Distance from the first of these bytes to the end of the signature.
    from_end: usize,
}

/// Word of eight bytes in native order.
#[derive(Clone, Copy, Debug)]
struct Word {
    mask: u64,
    /// Expected bits under the mask.
    expected: u64,
}

impl Word {
    /// Returns the bits that differ.
    #[inline]
    const fn differing(self, bytes: [u8; 8]) -> u64 {
        u64::from_ne_bytes(bytes) & self.mask ^ self.expected
    }
}

impl PayloadCheck {
    /// Compares the bits set in `mask` with those of `template`, which ends in the signature.
    /// Returns `None` if no bit before the signature is set.
    ///
    /// Bytes are located by their distance from the signature, so headers before them may change.
    /// Therefore all frames must be as long as the template.
    ///
    /// # Panics
    /// Panics if template and mask differ in length.
    pub fn new(template: &[u8], mask: &[u8]) -> Option<Self> {
        assert_eq!(template.len(), mask.len(), "a mask for each byte of the template");
        let compared = &mask[..mask.len().checked_sub(Signature::LENGTH)?];
        let first = compared.iter().position(|&bits| bits != 0)?;
        let last = compared.iter().rposition(|&bits| bits != 0)?;
        // A signature is longer than a word, so every word lies within the template.
        let words = (first..=last).step_by(8).map(|start| {
            let bits = |at: usize| if at <= last { mask[at] } else { 0 };
            let mask = core::array::from_fn(|at| bits(start + at));
            let expected = core::array::from_fn(|at| template[start + at] & mask[at]);
            Word { mask: u64::from_ne_bytes(mask), expected: u64::from_ne_bytes(expected) }
        });
        Some(Self { words: words.collect(), from_end: template.len() - first })
    }

    /// Compares the constant bytes of a stream's frames from byte `start` of the template on.
    /// Returns `None` if there are none, or if frames differ in length.
    ///
    /// # Panics
    /// Panics if the stream's program writes beyond its template: plans are validated before.
    pub fn of_stream(stream: &Stream, start: usize) -> Option<Self> {
        let steps = &stream.program.steps;
        if steps.iter().any(|step| matches!(step, Step::Length { .. })) {
            return None;
        }
        let mut mask = vec![0xff; stream.template.len()];
        mask.get_mut(..start)?.fill(0);
        steps.iter().filter_map(written).for_each(|range| mask[range].fill(0));
        Self::new(&stream.template, &mask)
    }

    /// Returns whether a frame, up to the end of its signature, has these bytes. A shorter frame is
    /// compared as far as it reaches.
    #[inline]
    pub fn matches(&self, frame: &[u8]) -> bool {
        let Some(start) = frame.len().checked_sub(self.from_end) else {
            return self.matches_shorter(frame);
        };
        let (words, _) = frame[start..].as_chunks();
        let pairs = words.iter().zip(&self.words);
        pairs.fold(0, |all, (bytes, word)| all | word.differing(*bytes)) == 0
    }

    /// Like [`Self::matches`], for a frame without the first bytes to compare.
    #[cold]
    fn matches_shorter(&self, frame: &[u8]) -> bool {
        let missing = self.from_end - frame.len();
        self.words.iter().enumerate().all(|(place, word)| {
            let byte =
                |at: usize| (8 * place + at).checked_sub(missing).and_then(|at| frame.get(at));
            let bytes = core::array::from_fn(|at| byte(at).copied().unwrap_or(0));
            let there = core::array::from_fn(|at| if byte(at).is_some() { 0xff } else { 0 });
            word.differing(bytes) & u64::from_ne_bytes(there) == 0
        })
    }
}

/// Counters that do not depend on the order of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Frames with the stream's signature or mark, including duplicates.
    pub frames: u64,
    /// Their bytes on the wire, without FCS.
    pub bytes: u64,
    /// Frames whose payload differs from the constant bytes. They count as arrived; RFC 7680 would
    /// count them as lost.
    pub corrupt: u64,
    /// Frames with the stream's signature that left before the measurement started; counted nowhere
    /// else.
    pub stale: u64,
    /// Arrival of the first frame.
    pub first: Option<Instant>,
    /// Arrival of the last frame.
    pub last: Option<Instant>,
}

impl Tallies {
    #[inline]
    fn note(&mut self, bytes: usize, arrival: Instant) {
        self.frames += 1;
        self.bytes += bytes as u64;
        self.first.get_or_insert(arrival);
        self.last = Some(arrival);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.corrupt += other.corrupt;
        self.stale += other.stale;
        let both = |mine: Option<Instant>, theirs: Option<Instant>| mine.zip(theirs);
        self.first = both(self.first, other.first)
            .map(|(mine, theirs)| mine.min(theirs))
            .or(self.first)
            .or(other.first);
        self.last = self.last.max(other.last);
    }
}

/// Times of gaps: places where frames are missing between two arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapTimes {
    /// Arrival after the last gap.
    pub last: Option<Instant>,
    /// Longest time from the arrival before a gap to the one after it.
    pub longest: Duration,
}

impl GapTimes {
    fn note(&mut self, before: Option<Instant>, after: Instant) {
        self.last = Some(after);
        let length = before.map_or(Duration::ZERO, |before| after.saturating_since(before));
        self.longest = self.longest.max(length);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.last = self.last.max(other.last);
        self.longest = self.longest.max(other.longest);
    }
}

/// Measurements that depend on the order of arrival. Fields that every frame needs are first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct OrderMeasurements {
    ipdv: Distribution,
    jitter: Jitter,
    /// Delay of the frame with the highest number.
    highest_delay: i64,
    series: Option<Series>,
    sequence: Sequence,
    gaps: GapTimes,
    /// Delays by frame number within the window, for frames next to a missing one.
    delays: Box<[i64]>,
}

impl OrderMeasurements {
    fn new(options: &MeasureOptions) -> Self {
        let sequence = Sequence::new(options.window);
        let series = (options.intervals_max > 0)
            .then(|| Series::new(options.started, options.interval, options.intervals_max));
        Self {
            highest_delay: 0,
            delays: vec![0; sequence.window()].into(),
            sequence,
            gaps: GapTimes::default(),
            jitter: Jitter::default(),
            ipdv: Distribution::new(),
            series,
        }
    }

    /// Returns loss, duplication and reordering.
    pub const fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Returns the times of gaps. Frames that arrive later than those after them form gaps too.
    pub const fn gaps(&self) -> GapTimes {
        self.gaps
    }

    /// Returns the interarrival jitter.
    pub const fn jitter(&self) -> &Jitter {
        &self.jitter
    }

    /// Returns the inter-packet delay variation in ns (RFC 5481 section 4.1). It is the delay of
    /// each frame minus that of the frame sent before it, if both arrived within the window.
    pub const fn ipdv(&self) -> &Distribution {
        &self.ipdv
    }

    /// Returns the time series, if enabled.
    pub const fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    /// Records an arrival; returns whether it is the first of its frame, as far as known. `before`
    /// is the arrival before it.
    #[inline]
    fn note(
        &mut self,
        number: u64,
        delay_ns: i64,
        bytes: usize,
        before: Option<Instant>,
        arrival: Instant,
    ) -> bool {
        let skipped = match self.sequence.note(number, arrival) {
            Arrived::InOrder { skipped } => skipped,
            arrived => return self.note_out_of_order(arrived, number, delay_ns, bytes, arrival),
        };
        self.jitter.note(delay_ns);
        let delay_before = core::mem::replace(&mut self.highest_delay, delay_ns);
        let ipdv_ns = (skipped == 0 && number > 0).then(|| delay_ns - delay_before);
        if let Some(ipdv_ns) = ipdv_ns {
            self.ipdv.record(ipdv_ns);
        } else if skipped > 0 {
            self.gaps.note(before, arrival);
            self.keep_around_gap(number, skipped, delay_before);
        }
        let Some(series) = &mut self.series else { return true };
        let interval = series.at(arrival);
        interval.note_frame(bytes);
        interval.missing += skipped;
        interval.note_delay(delay_ns, self.jitter.nanoseconds());
        if let Some(ipdv_ns) = ipdv_ns {
            interval.note_ipdv(ipdv_ns);
        }
        true
    }

    /// Records an arrival below the highest number; returns whether it is the first of its frame.
    #[cold]
    fn note_out_of_order(
        &mut self,
        arrived: Arrived,
        number: u64,
        delay_ns: i64,
        bytes: usize,
        arrival: Instant,
    ) -> bool {
        let Arrived::Reordered { extent, missed_at } = arrived else {
            if let Some(series) = &mut self.series {
                let interval = series.at(arrival);
                interval.note_frame(bytes);
                interval.duplicated += u64::from(arrived == Arrived::Duplicate);
            }
            return false;
        };
        self.jitter.note(delay_ns);
        let ipdvs_ns = self.late_ipdv(number, delay_ns);
        ipdvs_ns.into_iter().flatten().for_each(|ipdv_ns| self.ipdv.record(ipdv_ns));
        if let Some(series) = &mut self.series {
            series.at(missed_at).missing -= 1;
            let interval = series.at(arrival);
            interval.note_frame(bytes);
            interval.note_delay(delay_ns, self.jitter.nanoseconds());
            interval.note_reordered(extent);
            ipdvs_ns.into_iter().flatten().for_each(|ipdv_ns| interval.note_ipdv(ipdv_ns));
        }
        true
    }

    /// Stores the delays of the frames next to a gap: `number`, and the one before the gap.
    #[cold]
    fn keep_around_gap(&mut self, number: u64, skipped: u64, delay_before: i64) {
        if let Some(highest) = (number - skipped).checked_sub(1) {
            self.keep(highest, delay_before);
        }
        // Written last: after a gap larger than the window both have the same position.
        self.keep(number, self.highest_delay);
    }

    /// Returns the variations that a frame completes which was missing: from the frame before it
    /// and to the one after it. Their delays were kept.
    fn late_ipdv(&mut self, number: u64, delay_ns: i64) -> [Option<i64>; 2] {
        let place = self.keep(number, delay_ns);
        let mask = self.delays.len() - 1;
        let from_before = (number > 0 && self.sequence.has_arrived(number - 1))
            .then(|| delay_ns - self.delays[place.wrapping_sub(1) & mask]);
        let to_next = self
            .sequence
            .has_arrived(number + 1)
            .then(|| self.delays[(place + 1) & mask] - delay_ns);
        [from_before, to_next]
    }

    /// Stores a frame's delay; returns its index.
    fn keep(&mut self, number: u64, delay_ns: i64) -> usize {
        let place = number as usize & (self.delays.len() - 1);
        self.delays[place] = delay_ns;
        place
    }
}

/// Measurements of one stream. Fields that every frame needs are first, in as few cache lines as
/// possible.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct StreamRecord {
    tallies: Tallies,
    /// A delay in ns close to the others. Departures are known modulo 2^48 ns, so delays are too.
    delay_near: Option<i64>,
    /// Earliest departure of this run, if the clocks are the same.
    departure_min: Option<Instant>,
    payload: Option<PayloadCheck>,
    id: u32,
    delay: DelayRecord,
    ordered: Option<OrderMeasurements>,
    segments: Option<Box<Segments>>,
}

impl StreamRecord {
    /// Creates an empty record of a stream.
    pub fn new(stream: MeasuredStream, options: &MeasureOptions) -> Self {
        let same_clock = options.same_clock && stream.segments.is_none();
        Self {
            id: stream.id,
            payload: stream.payload,
            departure_min: same_clock.then_some(options.started),
            tallies: Tallies::default(),
            delay: DelayRecord::default(),
            ordered: Some(OrderMeasurements::new(options)),
            delay_near: same_clock.then_some(0),
            segments: stream.segments.map(|options| Box::new(Segments::new(options))),
        }
    }

    /// Returns the stream number.
    pub const fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn stop_comparing(&mut self) {
        self.payload = None;
    }

    /// Returns the counters that do not depend on the order of frames.
    pub const fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// Returns one-way delay and packet delay variation.
    pub const fn delay(&self) -> &DelayRecord {
        &self.delay
    }

    /// Returns the delays in segments of time, in the order of their starts; empty unless
    /// [`MeasuredStream::segments`] is set.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().flat_map(|segments| segments.iter())
    }

    /// Returns the measurements that depend on order. `None` for a stream that is counted by its
    /// mark, and after a merge of records of several queues on which the stream arrived.
    pub const fn ordered(&self) -> Option<&OrderMeasurements> {
        self.ordered.as_ref()
    }

    /// Disables the measurements that depend on order.
    pub(super) fn disable_order(&mut self) {
        self.ordered = None;
    }

    /// Counts a frame of this stream that has a mark and no signature.
    pub(super) fn count(&mut self, original_length: usize, arrival: Instant) {
        self.tallies.note(original_length, arrival);
    }

    /// Records a frame of this stream, which was `original_length` bytes long on the wire. Returns
    /// whether it counts; stale frames do not.
    ///
    /// # Panics
    /// Panics if `found` lies beyond the frame.
    #[inline]
    pub fn note(
        &mut self,
        frame: &[u8],
        found: FoundSignature,
        original_length: usize,
        arrival: Instant,
    ) -> bool {
        let FoundSignature { signature, end } = found;
        let delay_ns = self.delay_ns(signature.departure, arrival);
        if self.is_stale(delay_ns, arrival) {
            self.tallies.stale += 1;
            return false;
        }
        let before = self.tallies.last;
        self.tallies.note(original_length, arrival);
        if let Some(payload) = &self.payload {
            self.tallies.corrupt += u64::from(!payload.matches(&frame[..end]));
        }
        let Some(ordered) = &mut self.ordered else { return true };
        let number = ordered.sequence.unwrap(signature.sequence, Signature::SEQUENCE_BITS);
        if ordered.note(number, delay_ns, original_length, before, arrival) {
            self.delay.note(delay_ns);
            if let Some(segments) = &mut self.segments {
                segments.note(delay_ns, arrival);
            }
        }
        true
    }

    #[inline]
    pub(super) fn delay_ns(&mut self, departure: u64, arrival: Instant) -> i64 {
        let apart = arrival.as_nanos().wrapping_sub(departure);
        let bits = Signature::DEPARTURE_BITS;
        let near = *self.delay_near.get_or_insert_with(|| sign_extend(apart, bits));
        near + sign_extend(apart.wrapping_sub(near as u64), bits)
    }

    /// Returns whether a frame left before the measurement started.
    #[inline]
    fn is_stale(&self, delay_ns: i64, arrival: Instant) -> bool {
        self.departure_min.is_some_and(|started| {
            let since = arrival.saturating_since(started).as_nanos();
            u64::try_from(delay_ns).is_ok_and(|delay| delay > since)
        })
    }

    /// Adds the record of the same stream on another queue.
    ///
    /// If the stream arrived on one of them only, nothing is lost. If it arrived on both, each
    /// queue misses the frames of the other, and the order between the queues is unknown. Then only
    /// tallies and delays remain: duplicates on different queues count as separate frames, and
    /// neither loss nor duplication is known. To measure such a stream, drain its queues with one
    /// receiver.
    pub fn merge(&mut self, other: Self) {
        if other.tallies.frames == 0 {
            self.tallies.stale += other.tallies.stale;
        } else if self.tallies.frames == 0 {
            let stale = self.tallies.stale;
            *self = other;
            self.tallies.stale += stale;
        } else {
            self.tallies.merge(&other.tallies);
            self.delay.merge(&other.delay);
            self.ordered = None;
            if let (Some(mine), Some(theirs)) = (&mut self.segments, other.segments) {
                mine.merge(*theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Interval;
    use alloc::vec::Vec;

    const OPTIONS: MeasureOptions = MeasureOptions {
        window: 64,
        intervals_max: 8,
        interval: Duration::from_nanos(100),
        started: Instant::ZERO,
        same_clock: true,
        per_vlan: false,
    };

    fn record(options: MeasureOptions) -> StreamRecord {
        StreamRecord::new(MeasuredStream { id: 1, payload: None, segments: None }, &options)
    }

    /// Records frames of 60 bytes, given as (number, departure, arrival).
    fn note(record: &mut StreamRecord, frames: &[(u64, u64, u64)]) {
        for &(sequence, departure, arrival) in frames {
            let signature = Signature { stream: 1, sequence, departure };
            let found = FoundSignature { signature, end: 60 };
            record.note(&[0; 60], found, 60, Instant::from_nanos(arrival));
        }
    }

    #[test]
    fn gaps_have_their_longest_time_and_their_last_arrival() {
        let ordered = |frames: &[(u64, u64, u64)]| noted(frames).ordered().unwrap().gaps();
        assert_eq!(ordered(&[(0, 0, 5), (1, 10, 500)]), GapTimes::default());
        let gaps = ordered(&[(0, 0, 5), (1, 10, 12), (4, 40, 92), (5, 50, 93), (7, 60, 99)]);
        let expected =
            GapTimes { last: Some(Instant::from_nanos(99)), longest: Duration::from_nanos(80) };
        assert_eq!(gaps, expected);
    }

    fn noted(frames: &[(u64, u64, u64)]) -> StreamRecord {
        let mut record = record(OPTIONS);
        note(&mut record, frames);
        record
    }

    #[test]
    fn rfc_4737_section_7_1_delay_variation_with_one_packet_reordered() {
        // Milliseconds of the RFC, used as nanoseconds; the RFC numbers frames from 1.
        let order = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10];
        let frames = order.map(|number: u64| {
            let sent = 20 * (number - 1);
            (number - 1, sent, sent + if number == 4 { 150 } else { 68 })
        });
        let record = noted(&frames);
        let ipdv = record.ordered().unwrap().ipdv();
        assert_eq!((ipdv.count(), ipdv.min(), ipdv.max()), (9, Some(-82), Some(82)));
        assert_eq!(ipdv.quantile(0.5), Some(0));
    }

    #[test]
    fn ipdv_needs_both_frames() {
        let record = noted(&[(0, 0, 5), (1, 10, 17), (3, 30, 31), (3, 30, 99)]);
        let ipdv = record.ordered().unwrap().ipdv();
        assert_eq!((ipdv.count(), ipdv.min()), (1, Some(2)));
        assert_eq!(record.delay().delays().count(), 3, "a duplicate has no delay");
    }

    #[test]
    fn missing_frames_count_in_their_interval_until_they_arrive() {
        let record = noted(&[(0, 0, 10), (4, 40, 150), (5, 50, 160), (2, 20, 350)]);
        let series = record.ordered().unwrap().series().unwrap();
        let missing: Vec<_> = series.intervals().iter().map(|interval| interval.missing).collect();
        assert_eq!(missing, [0, 2, 0, 0]);
        assert_eq!(series.intervals()[3].delay_ns_mean(), Some(330.0));
        let last = series.intervals()[3];
        assert_eq!((last.frames, last.bytes), (1, 60));
    }

    fn intervals(record: &StreamRecord) -> Vec<Interval> {
        record.ordered().unwrap().series().unwrap().intervals()
    }

    #[test]
    fn duplicates_and_reordering_count_in_the_interval_of_their_arrival() {
        let record = noted(&[
            (0, 0, 10),
            (3, 30, 40),
            (4, 40, 50),
            (1, 10, 120),
            (2, 20, 130),
            (3, 30, 140),
            (5, 50, 210),
            (5, 50, 310),
            (0, 0, 320),
        ]);
        let counts: Vec<_> = intervals(&record)
            .iter()
            .map(|it| (it.frames, it.delays, it.duplicated, it.reordered, it.extent_max))
            .collect();
        let expected = [(3, 3, 0, 0, 0), (3, 2, 1, 2, 3), (1, 1, 0, 0, 0), (2, 0, 2, 0, 0)];
        assert_eq!(counts, expected);
        let counters = record.ordered().unwrap().sequence().counters();
        assert_eq!((counters.duplicated, counters.reordered, counters.extent_max), (3, 2, 3));
    }

    #[test]
    fn variation_counts_at_the_arrival_that_completes_it() {
        // Delays of 10, 14, 12, 110, 20 and 25.
        let record = noted(&[
            (0, 0, 10),
            (1, 10, 24),
            (3, 30, 42),
            (2, 20, 130),
            (4, 140, 160),
            (4, 140, 170),
            (5, 180, 205),
        ]);
        let found: Vec<_> = intervals(&record)
            .iter()
            .map(|it| (it.ipdvs, it.ipdv_ns_mean(), it.ipdv_ns_max))
            .collect();
        // From 0 to 1; from 1 to 2, 2 to 3 and 3 to 4; from 4 to 5.
        let second = (96.0 + 98.0 + 8.0) / 3.0;
        assert_eq!(found, [(1, Some(4.0), 4), (3, Some(second), 98), (1, Some(5.0), 5)]);
        assert_eq!(record.ordered().unwrap().ipdv().count(), 5);
    }

    #[test]
    fn intervals_have_the_highest_estimate_of_the_jitter() {
        // The change of 1600 ns moves the estimate to 100 ns, from where it decays.
        let late = |number: u64| (number, 10 * number, 10 * number + 1_700);
        let frames: Vec<_> = [(0, 0, 100)].into_iter().chain((1..40).map(late)).collect();
        let record = noted(&frames);
        // The length has doubled twice.
        let found: Vec<_> = intervals(&record).iter().map(|it| it.jitter_ns_max).collect();
        assert_eq!(found[..5], [0, 0, 0, 0, 100]);
        let last = record.ordered().unwrap().jitter().nanoseconds();
        assert!((last..100).contains(&found[5]) && last > 0, "{last}: {found:?}");
    }

    #[test]
    fn departures_are_unwrapped() {
        let mut late = record(MeasureOptions { started: Instant::from_nanos(1 << 50), ..OPTIONS });
        let now = (1 << 50) + 1_000;
        note(&mut late, &[(0, 900, now), (1, 2_000, now)]);
        assert_eq!(late.delay().delays().min(), Some(-1_000));
        assert_eq!(late.delay().delays().max(), Some(100));
    }

    #[test]
    fn delays_do_not_wrap_with_different_clocks() {
        // 39.1 hours, half of 2^48 ns.
        let half = 1_u64 << 47;
        let mut record = record(MeasureOptions { same_clock: false, ..OPTIONS });
        note(&mut record, &[(0, 10, half + 9), (1, 10, half + 11), (2, 10, half + 8)]);
        let delays = record.delay().delays();
        assert_eq!(delays.max().unwrap() - delays.min().unwrap(), 3);
    }

    #[test]
    fn frames_that_left_before_the_start_are_stale() {
        let started = Instant::from_nanos(1_000);
        let mut record = record(MeasureOptions { started, ..OPTIONS });
        note(&mut record, &[(700, 999, 1_010), (0, 1_000, 1_020)]);
        let tallies = record.tallies();
        assert_eq!((tallies.stale, tallies.frames), (1, 1));
        let counters = record.ordered().unwrap().sequence().counters();
        assert_eq!((counters.received, counters.missing), (1, 0));
    }

    #[test]
    fn payload_is_compared_by_distance_from_the_signature() {
        let template: Vec<u8> = (0..80).collect();
        let mut mask = [0; 80];
        mask[40..60].fill(0xff);
        mask[50] = 0x0f;
        let check = PayloadCheck::new(&template, &mask).unwrap();
        assert!(check.matches(&template));
        assert!(check.matches(&[&[9; 8][..], &template].concat()), "longer headers");
        assert!(check.matches(&template[45..]), "a shorter frame");
        assert!(check.matches(&[]));
        for at in 0..80 {
            let mut changed = template.clone();
            changed[at] ^= 0x80;
            assert_eq!(check.matches(&changed), mask[at] & 0x80 == 0, "byte {at}");
        }
        assert!(PayloadCheck::new(&template, &[0; 80]).is_none());
        let mut signature_only = [0; 80];
        signature_only[62..].fill(0xff);
        assert!(PayloadCheck::new(&template, &signature_only).is_none());
        assert!(PayloadCheck::new(&[1; 10], &[0xff; 10]).is_none());
    }

    #[test]
    fn merge_keeps_everything_if_one_queue_had_the_stream() {
        let mut idle = record(OPTIONS);
        idle.merge(noted(&[(0, 0, 5), (2, 20, 25)]));
        idle.merge(record(OPTIONS));
        assert_eq!(idle.ordered().unwrap().sequence().counters().missing, 1);
        assert_eq!(idle.tallies().frames, 2);
    }

    #[test]
    fn merge_drops_loss_if_both_queues_had_the_stream() {
        let mut even = noted(&[(0, 0, 5), (2, 20, 25)]);
        even.merge(noted(&[(1, 10, 18), (3, 30, 35)]));
        assert!(even.ordered().is_none());
        let Tallies { frames, bytes, first, last, .. } = *even.tallies();
        assert_eq!((frames, bytes), (4, 240));
        let at = |nanoseconds| Some(Instant::from_nanos(nanoseconds));
        assert_eq!((first, last), (at(5), at(35)));
        assert_eq!(even.delay().delays().max(), Some(8));
        assert_eq!(even.delay().variation().max(), Some(3));
    }
}
