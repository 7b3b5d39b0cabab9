//! One-way delay (RFC 7679) and its variation.
//!
//! A delay is the arrival minus the departure, each by its own clock. With different clocks it may
//! be negative; it is reported as is. Variations do not depend on the clock offset. For a
//! duplicated frame, the first arrival defines the delay.

use super::distribution::Distribution;

/// Delays of one stream.
#[derive(Clone, Debug, Default)]
pub struct DelayRecord {
    delays: Distribution,
    variation: PacketDelayVariation,
}

impl DelayRecord {
    /// Records a delay in ns.
    #[inline]
    pub fn note(&mut self, delay_ns: i64) {
        self.delays.record(delay_ns);
        self.variation.record(delay_ns);
    }

    /// Records the same delay in ns several times.
    pub fn note_many(&mut self, delay_ns: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.delays.record_many(delay_ns, count);
        self.variation.record(delay_ns);
        self.variation.distances.record_many(delay_ns - self.variation.base, count - 1);
    }

    /// Returns the one-way delays in ns.
    pub const fn delays(&self) -> &Distribution {
        &self.delays
    }

    /// Returns the packet delay variation.
    pub const fn variation(&self) -> &PacketDelayVariation {
        &self.variation
    }

    /// Adds another record.
    pub fn merge(&mut self, other: &Self) {
        self.delays.merge(&other.delays);
        self.variation.merge(&other.variation);
    }
}

/// Packet delay variation (RFC 5481 section 4.2): each delay minus the minimum delay.
///
/// The minimum is known only at the end. A histogram of absolute delays is too coarse: its error is
/// 1.6 % of the delay or of the clock offset. So delays are counted as distances from a base. The
/// base moves to the minimum whenever the minimum falls by more than twice its last fall, and
/// whenever the number of delays has doubled. This is rare, and percentiles are accurate to about 3
/// % of their distance from the base.
#[derive(Clone, Debug, Default)]
pub struct PacketDelayVariation {
    base: i64,
    distances: Distribution,
    /// How far a delay may fall below the base before the base moves.
    fall_max: i64,
}

impl PacketDelayVariation {
    #[inline]
    fn record(&mut self, delay_ns: i64) {
        let count = self.distances.count();
        if self.base - delay_ns > self.fall_max || count.is_power_of_two() || count == 0 {
            self.rebase(delay_ns);
        }
        self.distances.record(delay_ns - self.base);
    }

    /// Moves the base to the minimum delay, including `delay_ns`.
    #[cold]
    fn rebase(&mut self, delay_ns: i64) {
        let Some(min) = self.distances.min() else { return self.base = delay_ns };
        let fall = -min.min(delay_ns - self.base);
        if fall > self.fall_max {
            self.fall_max = 2 * fall;
        }
        self.move_base(-fall);
    }

    fn move_base(&mut self, distance: i64) {
        self.distances.subtract(distance);
        self.base += distance;
    }

    fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        if other.distances.count() > 0 {
            self.rebase(other.base);
            other.move_base(self.base - other.base);
            self.distances.merge(&other.distances);
        }
    }

    /// Returns the variation in ns that the fraction `quantile` (0 to 1) of all frames does not
    /// exceed; `None` if empty.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        Some(self.distances.quantile(quantile)? - self.distances.min()?)
    }

    /// Returns the exact maximum variation in ns; `None` if empty.
    pub fn max(&self) -> Option<i64> {
        Some(self.distances.max()? - self.distances.min()?)
    }

    /// Returns the exact mean variation in ns; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        Some(self.distances.mean()? - self.distances.min()? as f64)
    }
}

/// Interarrival jitter (RFC 3550 section 6.4.1), from the second frame on.
///
/// Each change of delay between successive arrivals moves the estimate by 1/16 of its difference
/// from the estimate. The estimate starts at zero and uses the integer arithmetic of appendix A.8
/// of the RFC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    /// 16 times the estimate, in ns.
    scaled_estimate: u64,
    /// Delay of the previous frame.
    last: Option<i64>,
}

impl Jitter {
    /// Records the delay in ns of the next arrival.
    #[inline]
    pub fn note(&mut self, delay_ns: i64) {
        if let Some(last) = self.last.replace(delay_ns) {
            let change = delay_ns.abs_diff(last);
            let decay = (self.scaled_estimate + 8) >> 4;
            self.scaled_estimate = (self.scaled_estimate + change).saturating_sub(decay);
        }
    }

    /// Returns the estimate in ns; zero before the second frame.
    pub const fn nanoseconds(&self) -> u64 {
        self.scaled_estimate >> 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn jitter_of(delays: &[i64]) -> u64 {
        let mut jitter = Jitter::default();
        delays.iter().for_each(|&delay| jitter.note(delay));
        jitter.nanoseconds()
    }

    fn noted(delays: impl IntoIterator<Item = i64>) -> DelayRecord {
        let mut record = DelayRecord::default();
        delays.into_iter().for_each(|delay| record.note(delay));
        record
    }

    #[test]
    fn constant_delay_has_no_jitter() {
        assert_eq!(jitter_of(&[]), 0);
        assert_eq!(jitter_of(&[1_000_000_000]), 0);
        assert_eq!(jitter_of(&[1_000_000_000; 20]), 0);
        assert_eq!(jitter_of(&[-5_000; 20]), 0);
    }

    #[test]
    fn jitter_moves_by_a_sixteenth_and_converges() {
        assert_eq!(jitter_of(&[0, 1_600]), 100);
        // 100 + (1600 - 100) / 16.
        assert_eq!(jitter_of(&[0, 1_600, 0]), 193);
        let alternating: Vec<_> = (0..1_000).map(|n| n % 2 * 1_600).collect();
        assert!(jitter_of(&alternating).abs_diff(1_600) < 2);
        // With the rounding of the RFC, the scaled estimate for 1 ns does not exceed 8.
        let least: Vec<_> = (0..1_000).map(|n| n % 2).collect();
        assert_eq!(jitter_of(&least), 0);
    }

    #[test]
    fn negative_delays_are_recorded() {
        let record = noted([-3_000, -1_000, 2_000]);
        assert_eq!(record.delays().min(), Some(-3_000));
        assert_eq!(record.variation().max(), Some(5_000));
        assert_eq!(record.variation().mean(), Some(7_000.0 / 3.0));
    }

    /// Asserts that all percentiles of the variation are accurate to 1/`parts` of the true value.
    fn assert_variation(delays: &[i64], parts: i64) {
        let record = noted(delays.iter().copied());
        let mut sorted = delays.to_vec();
        sorted.sort_unstable();
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = (quantile * sorted.len() as f64).ceil() as usize;
            let truth = sorted[rank - 1] - sorted[0];
            let found = record.variation().quantile(quantile).unwrap();
            assert!((found - truth).abs() <= truth / parts + 1, "{quantile}: {found}, {truth}");
        }
    }

    #[test]
    fn variations_are_accurate_for_any_clock_offset() {
        for offset in [0, 10_000_000, -3_600_000_000_000, 1 << 46] {
            let delays: Vec<_> = (0..10_000).map(|n| offset + n * 7_919 % 2_003).collect();
            assert_variation(&delays, 30);
        }
    }

    #[test]
    fn slow_start_does_not_reduce_accuracy() {
        let start = (0..100).map(|n| 50_000_000 - n);
        let delays: Vec<_> = start.chain((0..100_000).map(|n| 10_000 + n * 31 % 1_009)).collect();
        assert_variation(&delays, 30);
    }

    #[test]
    fn two_slow_starts_do_not_reduce_accuracy() {
        let start = [1_000_000_000; 3].into_iter().chain([1_000_000; 100]);
        let delays: Vec<_> = start.chain((0..200_000).map(|n| 10_000 + n * 31 % 1_009)).collect();
        let record = noted(delays);
        for (quantile, truth) in [(0.1, 101), (0.5, 504), (0.9, 908)] {
            let found = record.variation().quantile(quantile).unwrap();
            assert!((found - truth).abs() <= truth / 30 + 1, "{quantile}: {found}, {truth}");
        }
    }

    #[test]
    fn base_follows_a_drift() {
        // The drift is 1 ms in total: a fixed base would cause an error of 3 % of that.
        let delays: Vec<_> = (0..100_000).map(|n| 5_000_000 - 10 * n + n % 7).collect();
        let variation = noted(delays).variation;
        for (quantile, truth) in [(0.01, 10_000), (0.1, 100_000), (0.5, 500_000), (0.9, 900_000)] {
            let found = variation.quantile(quantile).unwrap();
            assert!((found - truth).abs() <= 10_000 + truth / 30, "{quantile}: {found}, {truth}");
        }
    }

    #[test]
    fn merged_record_equals_a_common_one() {
        let parts = [1_000_000..1_001_000, 999_000..1_000_500, 1_100_000..1_106_000];
        let mut merged = DelayRecord::default();
        parts.iter().for_each(|part| merged.merge(&noted(part.clone())));
        merged.merge(&DelayRecord::default());
        let both = noted(parts.into_iter().flatten());
        assert_eq!(merged.delays().mean(), both.delays().mean());
        assert_eq!(merged.variation().max(), both.variation().max());
        let median = |record: &DelayRecord| record.variation().quantile(0.5).unwrap();
        assert!((median(&merged) - median(&both)).abs() < 103_000 / 30);
    }
}
