//! Signed durations: their count, extremes, mean and percentiles.

use alloc::boxed::Box;
use alloc::vec;

use wirestorm_base::histogram::{BUCKETS, bucket_of, bucket_start};

/// The distribution of signed nanoseconds, in a fixed amount of memory (18 KiB).
///
/// Count, minimum, mean and maximum are exact. Percentiles are those of the empirical distribution
/// (RFC 2330 section 11.3) within 1.6 % of their distance from zero: values are counted in the
/// buckets of [`wirestorm_base::histogram`], once for each sign. Beyond 18 minutes they are only
/// known to be there.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Ascending by value, zero at `ZERO`; the first one is never used.
    counts: Box<[u64]>,
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
}

const ZERO: usize = BUCKETS;

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// One of nothing; the only allocation it ever makes.
    pub fn new() -> Self {
        let counts = vec![0; 2 * BUCKETS].into();
        Self { counts, count: 0, min: i64::MAX, max: i64::MIN, sum: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, nanoseconds: i64) {
        self.counts[place_of(nanoseconds)] += 1;
        self.count += 1;
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.sum += i128::from(nanoseconds);
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// How many values were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The least value in ns; `None` of nothing.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest value in ns; `None` of nothing.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// The arithmetic mean in ns; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least value in ns that `quantile` (0 to 1) of all values do not exceed; `None` of
    /// nothing.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        // The highest rank is the number of values, the lowest one.
        let rank = libm::ceil(quantile * self.count as f64).max(1.0) as u64;
        let rank = rank.min(self.count);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank && seen > 0
        })?;
        Some(middle(place).clamp(self.min, self.max))
    }

    /// What was counted: the middle of a bucket in ns and its count, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        counted.map(|(place, &count)| (middle(place), count))
    }

    /// Takes `nanoseconds` from every value that was counted. Counts move by the middles of their
    /// buckets.
    pub(super) fn subtract(&mut self, nanoseconds: i64) {
        if self.count == 0 || nanoseconds == 0 {
            return;
        }
        // Counts that move away from the end at which this begins find their new bucket emptied.
        let move_count = |counts: &mut [u64], place: usize| {
            let count = core::mem::take(&mut counts[place]);
            if count > 0 {
                counts[place_of(middle(place).saturating_sub(nanoseconds))] += count;
            }
        };
        if nanoseconds > 0 {
            (0..2 * BUCKETS).for_each(|place| move_count(&mut self.counts, place));
        } else {
            (0..2 * BUCKETS).rev().for_each(|place| move_count(&mut self.counts, place));
        }
        self.min = self.min.saturating_sub(nanoseconds);
        self.max = self.max.saturating_sub(nanoseconds);
        self.sum -= i128::from(nanoseconds) * i128::from(self.count);
    }
}

#[inline]
fn place_of(nanoseconds: i64) -> usize {
    let bucket = bucket_of(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { ZERO - bucket } else { ZERO + bucket }
}

/// The value in the middle of those that are counted at `place`.
fn middle(place: usize) -> i64 {
    let bucket = place.abs_diff(ZERO).min(BUCKETS - 1);
    let start = bucket_start(bucket) as i64;
    let last = if bucket + 1 < BUCKETS { bucket_start(bucket + 1) as i64 - 1 } else { start };
    let middle = start + (last - start) / 2;
    if place < ZERO { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = i64>) -> Distribution {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.record(value));
        distribution
    }

    #[test]
    fn extremes_and_mean_are_exact() {
        let found = of([-1_000_003, 5, 1_000_000]);
        assert_eq!((found.min(), found.max()), (Some(-1_000_003), Some(1_000_000)));
        assert_eq!(found.mean(), Some(2.0 / 3.0));
        let none = of([]);
        assert_eq!((none.min(), none.max(), none.quantile(0.5)), (None, None, None));
        assert!(none.mean().is_none());
    }

    #[test]
    fn quantiles_are_the_empirical_ones_within_half_a_bucket() {
        let found = of(-3_000..7_000);
        for (quantile, truth) in [
            (0.0, -3_000_i64),
            (0.1, -2_001),
            (0.3, -1),
            (0.5, 1_999),
            (0.9999, 6_998),
            (1.0, 6_999),
        ] {
            let value = found.quantile(quantile).unwrap();
            let allowed = truth.abs() / 62 + 1;
            assert!((value - truth).abs() <= allowed, "{quantile}: {value} for {truth}");
        }
    }

    #[test]
    fn few_values_have_exact_quantiles_where_buckets_do() {
        // RFC 2330 section 11.3: of -2, 7, 7, 4, 18, -5 the 50th percentile is 4, the 95th 18.
        let found = of([-2, 7, 7, 4, 18, -5]);
        assert_eq!(found.quantile(0.0), Some(-5));
        assert_eq!(found.quantile(0.5), Some(4));
        assert_eq!(found.quantile(0.95), Some(18));
        assert_eq!(found.quantile(1.0), Some(18));
        assert_eq!(of([1_000_000]).quantile(0.5), Some(1_000_000));
    }

    #[test]
    fn what_is_beyond_all_buckets_does_not_break_it() {
        let found = of([i64::MIN, i64::MAX, i64::MAX]);
        assert_eq!(found.quantile(0.0), Some(-middle(2 * BUCKETS - 1)));
        assert_eq!(of([i64::MAX]).quantile(0.5), Some(i64::MAX));
        assert_eq!(found.count(), 3);
    }

    #[test]
    fn merging_is_counting_together() {
        let mut one = of([-7, 3]);
        one.merge(&of([500]));
        one.merge(&of([]));
        let both = of([-7, 3, 500]);
        assert!(one.buckets().eq(both.buckets()));
        assert_eq!((one.min(), one.max(), one.mean()), (both.min(), both.max(), both.mean()));
    }

    #[test]
    fn subtracting_moves_everything() {
        for distance in [-40, -1, 1, 9, 1_000_000] {
            let mut found = of([-20, 0, 3, 15]);
            found.subtract(distance);
            assert_eq!(found.count(), 4);
            assert_eq!((found.min(), found.max()), (Some(-20 - distance), Some(15 - distance)));
            for (quantile, value) in [(0.25, -20), (0.5, 0), (0.75, 3), (1.0, 15)] {
                let truth = value - distance;
                let off = found.quantile(quantile).unwrap() - truth;
                assert!(off.abs() <= truth.abs() / 62 + 1, "{value} - {distance}: off by {off}");
            }
        }
    }
}
