//! Time series of one stream, in a bounded number of intervals.

use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};

/// Measurements of one interval. Several intervals combine by sum, minimum or maximum, so curves
/// can be smoothed afterwards. Fields that every frame needs are first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Interval {
    /// Frames that arrived, including duplicates.
    pub frames: u64,
    /// Bytes of these frames, without FCS.
    pub bytes: u64,
    /// Frames that were found missing in this interval and have not arrived since.
    pub missing: u64,
    /// Number of delays: first arrivals of a frame.
    pub delays: u64,
    /// Sum of the delays in ns.
    pub delay_ns_sum: i128,
    /// Minimum delay in ns; valid if `delays` is not 0.
    pub delay_ns_min: i64,
    /// Maximum delay in ns; valid if `delays` is not 0.
    pub delay_ns_max: i64,
    /// Sum of the absolute inter-packet delay variations (RFC 5481 section 4.1) in ns. A value
    /// counts at the arrival that completes its pair of frames.
    pub ipdv_ns_sum: u128,
    /// Number of inter-packet delay variations.
    pub ipdvs: u64,
    /// Maximum of the absolute inter-packet delay variations in ns; 0 without values.
    pub ipdv_ns_max: u64,
    /// Maximum estimate of the interarrival jitter (RFC 3550 section 6.4.1) in ns, of all first
    /// arrivals; 0 without them.
    pub jitter_ns_max: u64,
    /// Arrivals of frames that had arrived before (RFC 5560: each additional copy).
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent in frames (RFC 4737 section 4.2); 0 without reordered frames.
    pub extent_max: u64,
}

impl Interval {
    const EMPTY: Self = Self {
        frames: 0,
        bytes: 0,
        missing: 0,
        delays: 0,
        delay_ns_sum: 0,
        delay_ns_min: i64::MAX,
        delay_ns_max: i64::MIN,
        ipdv_ns_sum: 0,
        ipdvs: 0,
        ipdv_ns_max: 0,
        jitter_ns_max: 0,
        duplicated: 0,
        reordered: 0,
        extent_max: 0,
    };

    /// Returns the mean delay in ns; `None` if there are no delays.
    pub fn delay_ns_mean(&self) -> Option<f64> {
        (self.delays > 0).then(|| self.delay_ns_sum as f64 / self.delays as f64)
    }

    /// Returns the mean of the absolute inter-packet delay variations in ns; `None` if there are
    /// none.
    pub fn ipdv_ns_mean(&self) -> Option<f64> {
        (self.ipdvs > 0).then(|| self.ipdv_ns_sum as f64 / self.ipdvs as f64)
    }

    /// Records any arrival.
    #[inline]
    pub(super) fn note_frame(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    /// Records the delay of a first arrival, and the estimate of the jitter after it.
    #[inline]
    pub(super) fn note_delay(&mut self, delay_ns: i64, jitter_ns: u64) {
        self.delays += 1;
        self.delay_ns_sum += i128::from(delay_ns);
        // Few values are the highest or lowest so far: a branch is cheaper than a store.
        if delay_ns < self.delay_ns_min {
            self.delay_ns_min = delay_ns;
        }
        if delay_ns > self.delay_ns_max {
            self.delay_ns_max = delay_ns;
        }
        if jitter_ns > self.jitter_ns_max {
            self.jitter_ns_max = jitter_ns;
        }
    }

    /// Records an inter-packet delay variation.
    #[inline]
    pub(super) fn note_ipdv(&mut self, ipdv_ns: i64) {
        let distance = ipdv_ns.unsigned_abs();
        self.ipdvs += 1;
        self.ipdv_ns_sum += u128::from(distance);
        if distance > self.ipdv_ns_max {
            self.ipdv_ns_max = distance;
        }
    }

    /// Records that a frame arrived after one sent later.
    pub(super) fn note_reordered(&mut self, extent: u64) {
        self.reordered += 1;
        self.extent_max = self.extent_max.max(extent);
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            missing: self.missing + other.missing,
            delays: self.delays + other.delays,
            delay_ns_sum: self.delay_ns_sum + other.delay_ns_sum,
            delay_ns_min: self.delay_ns_min.min(other.delay_ns_min),
            delay_ns_max: self.delay_ns_max.max(other.delay_ns_max),
            ipdv_ns_sum: self.ipdv_ns_sum + other.ipdv_ns_sum,
            ipdvs: self.ipdvs + other.ipdvs,
            ipdv_ns_max: self.ipdv_ns_max.max(other.ipdv_ns_max),
            jitter_ns_max: self.jitter_ns_max.max(other.jitter_ns_max),
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            extent_max: self.extent_max.max(other.extent_max),
        }
    }
}

/// Intervals of equal length from an origin on.
///
/// When they run out, pairs of intervals are joined and the length doubles, so at least half of
/// them are always in use.
#[derive(Clone, Debug)]
pub struct Series {
    origin: Instant,
    /// Length of an interval in ns.
    length: u64,
    /// Interval used last, stored outside `intervals` for fast access; its index, and its start in
    /// ns from the origin.
    current: Interval,
    place: usize,
    start: u64,
    /// All intervals up to the last busy one; the entry at `place` is outdated.
    intervals: Vec<Interval>,
    intervals_max: usize,
}

impl Series {
    /// Creates a series of at most `intervals_max` intervals (an even number, at least 2) with the
    /// initial length `length` (at least 1 ns). Events before the origin count in the first
    /// interval.
    pub fn new(origin: Instant, length: Duration, intervals_max: usize) -> Self {
        let intervals_max = intervals_max.max(2).next_multiple_of(2);
        Self {
            origin,
            length: length.as_nanos().max(1),
            current: Interval::EMPTY,
            place: 0,
            start: 0,
            intervals: Vec::with_capacity(intervals_max),
            intervals_max,
        }
    }

    /// Returns the start of the first interval.
    pub const fn origin(&self) -> Instant {
        self.origin
    }

    /// Returns the current length of an interval.
    pub const fn length(&self) -> Duration {
        Duration::from_nanos(self.length)
    }

    /// Returns all intervals up to the last busy one.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut intervals = self.intervals.clone();
        if let Some(current) = intervals.get_mut(self.place) {
            *current = self.current;
        }
        intervals
    }

    /// Returns the interval of an instant.
    #[inline]
    pub(super) fn at(&mut self, instant: Instant) -> &mut Interval {
        let since = instant.saturating_since(self.origin).as_nanos();
        let is_current = since.checked_sub(self.start).is_some_and(|within| within < self.length);
        if !is_current || self.intervals.is_empty() {
            self.seek(since);
        }
        &mut self.current
    }

    #[cold]
    fn seek(&mut self, since: u64) {
        self.store_current();
        while since / self.length >= self.intervals_max as u64 {
            self.halve();
        }
        let place = (since / self.length) as usize;
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, Interval::EMPTY);
        }
        self.load_current(place);
    }

    /// Stores the current interval in `intervals`.
    fn store_current(&mut self) {
        if let Some(interval) = self.intervals.get_mut(self.place) {
            *interval = self.current;
        }
    }

    /// Loads the current interval from `intervals`.
    fn load_current(&mut self, place: usize) {
        self.current = self.intervals.get(place).copied().unwrap_or(Interval::EMPTY);
        self.place = place;
        self.start = place as u64 * self.length;
    }

    /// Adds the series of another part of the stream, which must have the same origin and initial
    /// length.
    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        other.store_current();
        self.store_current();
        while self.length < other.length {
            self.halve();
        }
        while other.length < self.length {
            other.halve();
        }
        let intervals = self.intervals.len().max(other.intervals.len());
        self.intervals.resize(intervals, Interval::EMPTY);
        for (sum, interval) in self.intervals.iter_mut().zip(&other.intervals) {
            *sum = sum.plus(interval);
        }
        self.load_current(self.place);
    }

    /// Joins pairs of intervals; the current one must be stored before.
    fn halve(&mut self) {
        let halved = self.intervals.len().div_ceil(2);
        for place in 0..halved {
            let second = self.intervals.get(2 * place + 1).unwrap_or(&Interval::EMPTY);
            self.intervals[place] = self.intervals[2 * place].plus(second);
        }
        self.intervals.truncate(halved);
        // Two intervals cover all of time before this can overflow.
        self.length = self.length.saturating_mul(2);
        self.load_current(self.place / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(series: &Series) -> Vec<u64> {
        series.intervals().iter().map(|interval| interval.frames).collect()
    }

    fn at(nanoseconds: u64) -> Instant {
        Instant::from_nanos(nanoseconds)
    }

    #[test]
    fn interval_length_doubles_when_intervals_run_out() {
        let mut series = Series::new(at(100), Duration::from_nanos(10), 4);
        for since in [0, 9, 10, 29, 39] {
            series.at(at(100 + since)).frames += 1;
        }
        assert_eq!(frames(&series), [2, 1, 1, 1]);
        series.at(at(140)).frames += 1;
        assert_eq!(
            (frames(&series), series.length()),
            (alloc::vec![3, 2, 1], Duration::from_nanos(20))
        );
        series.at(at(100)).frames += 1;
        assert_eq!(frames(&series), [4, 2, 1]);
        series.at(at(100 + 1_000)).frames += 1;
        assert_eq!(series.length(), Duration::from_nanos(320));
        assert_eq!(frames(&series), [7, 0, 0, 1]);
    }

    #[test]
    fn events_before_the_origin_count_in_the_first_interval() {
        let mut series = Series::new(at(100), Duration::from_nanos(10), 4);
        series.at(at(125)).frames += 1;
        series.at(at(3)).frames += 1;
        assert_eq!(frames(&series), [1, 0, 1]);
    }

    #[test]
    fn joined_intervals_combine_their_delays() {
        let mut series = Series::new(at(0), Duration::from_nanos(1), 2);
        series.at(at(0)).note_delay(-4, 3);
        series.at(at(1)).note_delay(10, 2);
        series.at(at(2)).note_delay(7, 1);
        let intervals = series.intervals();
        let [first, second] = intervals.as_slice() else { panic!("two intervals") };
        assert_eq!((first.delay_ns_min, first.delay_ns_max), (-4, 10));
        assert_eq!(first.delay_ns_mean(), Some(3.0));
        assert_eq!(second.delay_ns_mean(), Some(7.0));
        assert_eq!((first.jitter_ns_max, second.jitter_ns_max), (3, 1));
    }

    #[test]
    fn joined_intervals_combine_variation_duplicates_and_reordering() {
        let mut series = Series::new(at(0), Duration::from_nanos(1), 2);
        series.at(at(0)).note_ipdv(-8);
        series.at(at(0)).note_reordered(2);
        series.at(at(1)).note_ipdv(3);
        series.at(at(1)).note_ipdv(1);
        series.at(at(1)).note_reordered(5);
        series.at(at(1)).duplicated += 1;
        series.at(at(0)).duplicated += 2;
        series.at(at(2)).note_frame(60);
        let intervals = series.intervals();
        let [first, second] = intervals.as_slice() else { panic!("two intervals") };
        assert_eq!((first.ipdvs, first.ipdv_ns_mean(), first.ipdv_ns_max), (3, Some(4.0), 8));
        assert_eq!((first.reordered, first.extent_max, first.duplicated), (2, 5, 3));
        assert_eq!(*second, Interval { frames: 1, bytes: 60, ..Interval::EMPTY });
        assert_eq!(second.ipdv_ns_mean(), None);
    }

    #[test]
    fn sums_of_the_largest_values_do_not_overflow() {
        let mut interval = Interval::EMPTY;
        for _ in 0..4 {
            interval.note_delay(i64::MIN, u64::MAX);
            interval.note_ipdv(i64::MIN);
        }
        let sum = interval.plus(&interval);
        assert_eq!(sum.delay_ns_mean(), Some(i64::MIN as f64));
        assert_eq!(sum.ipdv_ns_mean(), Some(i64::MIN.unsigned_abs() as f64));
    }

    #[test]
    fn series_extends_to_the_maximum_instant() {
        let mut series = Series::new(Instant::ZERO, Duration::ZERO, 0);
        series.at(Instant::ZERO).frames += 1;
        series.at(Instant::MAX).frames += 1;
        assert_eq!(frames(&series), [1, 1]);
    }

    #[test]
    fn last_interval_does_not_wrap_around() {
        let mut series = Series::new(Instant::ZERO, Duration::from_nanos(5), 8);
        series.at(at(512)).frames += 1;
        series.at(Instant::MAX).frames += 1;
        series.at(at(512)).frames += 1;
        assert_eq!(frames(&series), [2, 0, 0, 0, 0, 0, 1]);
    }
}
