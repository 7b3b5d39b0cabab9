//! Time series of one stream, in a bounded number of intervals.

use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};

/// Measurements of one interval. Several intervals combine by sum, minimum or maximum, so curves
/// can be smoothed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub delay_ns_sum: i64,
    /// Minimum delay in ns; valid if `delays` is not 0.
    pub delay_ns_min: i64,
    /// Maximum delay in ns; valid if `delays` is not 0.
    pub delay_ns_max: i64,
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
    };

    /// Returns the mean delay in ns; `None` if there are no delays.
    pub fn delay_ns_mean(&self) -> Option<f64> {
        (self.delays > 0).then(|| self.delay_ns_sum as f64 / self.delays as f64)
    }

    /// Records a delay.
    #[inline]
    pub(super) fn note_delay(&mut self, delay_ns: i64) {
        self.delays += 1;
        // Delays are below 2^48 ns, but the sum of many may overflow.
        self.delay_ns_sum = self.delay_ns_sum.saturating_add(delay_ns);
        self.delay_ns_min = self.delay_ns_min.min(delay_ns);
        self.delay_ns_max = self.delay_ns_max.max(delay_ns);
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            missing: self.missing + other.missing,
            delays: self.delays + other.delays,
            delay_ns_sum: self.delay_ns_sum.saturating_add(other.delay_ns_sum),
            delay_ns_min: self.delay_ns_min.min(other.delay_ns_min),
            delay_ns_max: self.delay_ns_max.max(other.delay_ns_max),
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
        series.at(at(0)).note_delay(-4);
        series.at(at(1)).note_delay(10);
        series.at(at(2)).note_delay(7);
        let intervals = series.intervals();
        let [first, second] = intervals.as_slice() else { panic!("two intervals") };
        assert_eq!((first.delay_ns_min, first.delay_ns_max), (-4, 10));
        assert_eq!(first.delay_ns_mean(), Some(3.0));
        assert_eq!(second.delay_ns_mean(), Some(7.0));
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
