//! Delays of a stream in segments of time, for clocks that are compared afterwards.
//!
//! The clocks of sender and receiver differ by an offset that drifts, so a histogram of a whole run
//! would smear. Each segment has a reference line, and a histogram of the deviations from it:
//!
//! ```text
//! delay ^        . .  jump: new segment
//!       |       ___________    delay = reference + slope * (arrival - start) + deviation
//!       |  . .  |
//!       | ______|
//!       +-------------------> arrival
//! ```
//!
//! The analysis moves each segment by the offset of its time. It can do so again with a better
//! estimate, since a segment depends on time stamps alone.

use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};

use super::distribution::Distribution;

/// Deviation that starts a new segment, in ns: so far beyond its line a histogram is too coarse.
const JUMP_NS: u64 = 100_000_000;

/// Segments that jumps may start within the length of a segment.
const JUMPS_MAX: u8 = 4;

/// Segments of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Length of a segment.
    pub length: Duration,
    /// Slope of the reference lines, in ns of delay for each 2^32 ns of time: the expected drift of
    /// the clocks.
    pub slope: i64,
    /// Number of segments after which the length doubles.
    pub count: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { length: Duration::from_secs(1), slope: 0, count: 1_024 }
    }
}

/// Delays of a segment of time.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First arrival.
    pub start: Instant,
    /// Last arrival.
    pub end: Instant,
    /// Delay of the reference line at the start, in ns.
    pub reference_ns: i64,
    /// Slope of the reference line; see [`SegmentOptions::slope`].
    pub slope: i64,
    /// Deviations from the reference line, in ns.
    pub deviations: Distribution,
}

/// Delays of a stream in segments of time.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    current: Option<Segment>,
    /// Arrival after which the current segment ends.
    until: Instant,
    options: SegmentOptions,
    /// Segments that jumps may still start until `until`.
    jumps_left: u8,
    closed: Vec<Segment>,
}

impl Segments {
    pub(super) fn new(options: SegmentOptions) -> Self {
        Self {
            current: None,
            until: Instant::ZERO,
            options,
            jumps_left: JUMPS_MAX,
            closed: Vec::new(),
        }
    }

    /// Records the delay of a frame.
    #[inline]
    pub(super) fn note(&mut self, delay_ns: i64, arrival: Instant) {
        if let Some(segment) = &mut self.current
            && arrival < self.until
        {
            let deviation = segment.deviation(delay_ns, arrival);
            if deviation.unsigned_abs() < JUMP_NS || self.jumps_left == 0 {
                segment.end = segment.end.max(arrival);
                return segment.deviations.record(deviation);
            }
        }
        self.begin(delay_ns, arrival);
    }

    /// Starts a segment with this delay as its reference.
    #[cold]
    fn begin(&mut self, delay_ns: i64, arrival: Instant) {
        self.closed.extend(self.current.take());
        if self.closed.len() >= self.options.count {
            let length = self.options.length;
            self.options.length = length.saturating_add(length);
            self.options.count = self.options.count.saturating_mul(2);
        }
        if arrival < self.until {
            self.jumps_left -= 1;
        } else {
            self.jumps_left = JUMPS_MAX;
            let length = self.options.length.max(Duration::from_nanos(1));
            self.until = arrival.saturating_add(length);
        }
        let mut deviations = Distribution::new();
        deviations.record(0);
        self.current = Some(Segment {
            start: arrival,
            end: arrival,
            reference_ns: delay_ns,
            slope: self.options.slope,
            deviations,
        });
    }

    /// Adds the segments of the same stream on another queue.
    pub(super) fn merge(&mut self, other: Self) {
        self.closed.extend(other.closed);
        self.closed.extend(other.current);
        self.closed.sort_by_key(|segment| segment.start);
    }

    /// Returns all segments. Those of one queue are in the order of their starts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.closed.iter().chain(&self.current)
    }
}

impl Segment {
    /// Returns the distance of a delay from the reference line.
    #[inline]
    fn deviation(&self, delay_ns: i64, arrival: Instant) -> i64 {
        delay_ns.wrapping_sub(self.line_at(arrival))
    }

    /// Returns the delay of the reference line at a time, in ns.
    #[inline]
    pub fn line_at(&self, arrival: Instant) -> i64 {
        let since = arrival.saturating_since(self.start).as_nanos();
        let rise = (i128::from(since) * i128::from(self.slope)) >> 32;
        self.reference_ns.saturating_add(rise as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn segments(options: SegmentOptions, delays: impl Iterator<Item = (u64, i64)>) -> Vec<Segment> {
        let mut segments = Segments::new(options);
        delays.for_each(|(at, delay)| segments.note(delay, Instant::from_nanos(at)));
        segments.iter().cloned().collect()
    }

    #[test]
    fn each_segment_has_its_own_reference() {
        // The far clock is an hour ahead and drifts by 50 ppm.
        let at = |number: u64| (number * 1_000_000, 3_600_000_000_000 + 50 * number as i64);
        let segments = segments(SegmentOptions::default(), (0..3_000).map(at));
        assert_eq!(segments.len(), 3);
        for (number, segment) in segments.iter().enumerate() {
            assert_eq!(segment.start, Instant::from_nanos(number as u64 * SECOND));
            assert_eq!(segment.reference_ns, 3_600_000_000_000 + 50_000 * number as i64);
            assert_eq!(segment.deviations.count(), 1_000);
            assert_eq!(segment.deviations.max(), Some(999 * 50));
        }
    }

    #[test]
    fn known_drift_does_not_smear() {
        let slope = (50e-6 * (1_u64 << 32) as f64) as i64;
        let options = SegmentOptions { slope, length: Duration::from_secs(100), count: 8 };
        let at = |number: u64| (number * 1_000_000, -7_000 + 50 * number as i64);
        let [segment] = &segments(options, (0..60_000).map(at))[..] else { panic!() };
        // The slope has 32 bits.
        assert!(segment.deviations.max().unwrap().abs() <= 20, "{segment:?}");
        assert!(segment.deviations.min().unwrap().abs() <= 20, "{segment:?}");
        let end = Instant::from_nanos(59_999 * 1_000_000);
        assert_eq!(
            (segment.end, segment.line_at(end).abs_diff(-7_000 + 59_999 * 50) <= 20),
            (end, true)
        );
    }

    #[test]
    fn jump_starts_a_segment_but_not_for_each_frame() {
        let step = (0..1_000)
            .map(|number: u64| (number * 1_000_000, if number < 500 { 10 } else { SECOND as i64 }));
        let [before, after] = &segments(SegmentOptions::default(), step)[..] else { panic!() };
        assert_eq!((before.deviations.count(), after.deviations.count()), (500, 500));
        assert_eq!((after.deviations.min(), after.deviations.max()), (Some(0), Some(0)));
        let alternating = (0..10_000).map(|number: u64| {
            (number * 100_000, if number.is_multiple_of(2) { 0 } else { SECOND as i64 })
        });
        let segments = segments(SegmentOptions::default(), alternating);
        assert_eq!(segments.len(), 1 + usize::from(JUMPS_MAX));
        let count: u64 = segments.iter().map(|segment| segment.deviations.count()).sum();
        assert_eq!(count, 10_000);
    }

    #[test]
    fn length_doubles_when_there_are_many_segments() {
        let options =
            SegmentOptions { length: Duration::from_nanos(10), count: 4, ..Default::default() };
        let segments = segments(options, (0..1_000).map(|at| (at, 5)));
        // 4 of 10 ns, 4 of 20 ns, 8 of 40 ns, and part of 16 of 80 ns.
        assert_eq!(segments.len(), 4 + 4 + 8 + 7);
        let count: u64 = segments.iter().map(|segment| segment.deviations.count()).sum();
        assert_eq!(count, 1_000);
    }

    #[test]
    fn extreme_delays_are_recorded() {
        let extreme = [i64::MIN, i64::MAX, 0, -1, 1 << 47, -(1 << 47)];
        let delays = extreme.iter().enumerate().map(|(at, delay)| (at as u64, *delay));
        let segments = segments(SegmentOptions { slope: i64::MAX, ..Default::default() }, delays);
        let count: u64 = segments.iter().map(|segment| segment.deviations.count()).sum();
        assert_eq!(count, 6);
    }
}
