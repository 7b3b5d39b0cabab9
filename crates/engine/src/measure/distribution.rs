//! Distribution of signed durations: count, minimum, maximum, mean and percentiles.

use alloc::boxed::Box;
use alloc::vec;

use wirestorm_base::histogram::{BUCKETS, SUB_BUCKET_BITS, bucket_of, bucket_start};

/// Distribution of signed nanoseconds.
///
/// Count, minimum, mean and maximum are exact. Percentiles are those of the empirical distribution
/// (RFC 2330 section 11.3), within 1.6 % of their distance from zero. Values are counted in the
/// buckets of [`wirestorm_base::histogram`], separately by sign. Values beyond 18 minutes share the
/// last bucket.
///
/// It uses 256 bytes for each power of two between the minimum and the maximum, at most 18 KiB. It
/// allocates for a value outside the current range, at most 72 times.
#[derive(Clone, Debug)]
pub struct Distribution {
    count: u64,
    min: i64,
    max: i64,
    /// Index of the first count; a multiple of `SUB_BUCKETS`.
    first: usize,
    /// Counts by bucket, in ascending order of values; the index of zero is `ZERO`.
    counts: Box<[u64]>,
    sum: i128,
}

const ZERO: usize = BUCKETS;

/// Buckets of one power of two, the unit of allocation.
const SUB_BUCKETS: usize = 1 << SUB_BUCKET_BITS;

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// Creates an empty distribution.
    pub fn new() -> Self {
        Self { count: 0, min: i64::MAX, max: i64::MIN, first: 0, counts: Box::default(), sum: 0 }
    }

    /// Records a value.
    #[inline]
    pub fn record(&mut self, nanoseconds: i64) {
        let place = place_of(nanoseconds);
        match self.counts.get_mut(place.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add_beyond(place, 1),
        }
        self.count += 1;
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.sum += i128::from(nanoseconds);
    }

    /// Records a value several times.
    pub fn record_many(&mut self, nanoseconds: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.add_beyond(place_of(nanoseconds), count);
        self.count += count;
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.sum += i128::from(nanoseconds) * i128::from(count);
    }

    /// Adds a count at an index that may lie outside the allocated range.
    #[cold]
    fn add_beyond(&mut self, place: usize, count: u64) {
        let block = place / SUB_BUCKETS * SUB_BUCKETS;
        if self.counts.is_empty() {
            self.first = block;
        }
        let first = self.first.min(block);
        let end = (self.first + self.counts.len()).max(block + SUB_BUCKETS);
        if end - first > self.counts.len() {
            let mut counts = vec![0; end - first];
            counts[self.first - first..][..self.counts.len()].copy_from_slice(&self.counts);
            (self.first, self.counts) = (first, counts.into());
        }
        self.counts[place - self.first] += count;
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Self) {
        for (place, count) in other.places() {
            self.add_beyond(place, count);
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Returns the number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the minimum in ns; `None` if empty.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the maximum in ns; `None` if empty.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the arithmetic mean in ns; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the lowest value in ns that the fraction `quantile` (0 to 1) of all values does not
    /// exceed; `None` if empty.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        // Ranks go from one to the number of values.
        let rank = libm::ceil(quantile * self.count as f64).max(1.0) as u64;
        let rank = rank.min(self.count);
        let mut seen = 0;
        let (place, _) = self.places().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        Some(middle(place).clamp(self.min, self.max))
    }

    /// Returns the middle of each used bucket in ns and its count, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.places().map(|(place, count)| (middle(place), count))
    }

    /// Returns the index of each used bucket and its count, in ascending order.
    fn places(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        counts.map(|(index, &count)| (self.first + index, count))
    }

    /// Subtracts `nanoseconds` from every recorded value. Counts move by the middles of their
    /// buckets.
    pub(super) fn subtract(&mut self, nanoseconds: i64) {
        if self.count == 0 || nanoseconds == 0 {
            return;
        }
        let before = core::mem::take(self);
        for (place, count) in before.places() {
            self.add_beyond(place_of(middle(place).saturating_sub(nanoseconds)), count);
        }
        self.count = before.count;
        self.min = before.min.saturating_sub(nanoseconds);
        self.max = before.max.saturating_sub(nanoseconds);
        self.sum = before.sum - i128::from(nanoseconds) * i128::from(before.count);
    }
}

#[inline]
fn place_of(nanoseconds: i64) -> usize {
    let bucket = bucket_of(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { ZERO - bucket } else { ZERO + bucket }
}

/// Returns the middle of the values that are counted at `place`.
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
    fn quantiles_match_the_empirical_ones_within_half_a_bucket() {
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
    fn quantiles_are_exact_in_exact_buckets() {
        // RFC 2330 section 11.3: of -2, 7, 7, 4, 18, -5 the 50th percentile is 4, the 95th 18.
        let found = of([-2, 7, 7, 4, 18, -5]);
        assert_eq!(found.quantile(0.0), Some(-5));
        assert_eq!(found.quantile(0.5), Some(4));
        assert_eq!(found.quantile(0.95), Some(18));
        assert_eq!(found.quantile(1.0), Some(18));
        assert_eq!(of([1_000_000]).quantile(0.5), Some(1_000_000));
    }

    #[test]
    fn values_beyond_the_last_bucket_are_counted() {
        let found = of([i64::MIN, i64::MAX, i64::MAX]);
        assert_eq!(found.quantile(0.0), Some(-middle(2 * BUCKETS - 1)));
        assert_eq!(of([i64::MAX]).quantile(0.5), Some(i64::MAX));
        assert_eq!(found.count(), 3);
    }

    #[test]
    fn merged_distribution_equals_a_common_one() {
        let mut one = of([-7, 3]);
        one.merge(&of([500]));
        one.merge(&of([]));
        let both = of([-7, 3, 500]);
        assert!(one.buckets().eq(both.buckets()));
        assert_eq!((one.min(), one.max(), one.mean()), (both.min(), both.max(), both.mean()));
    }

    #[test]
    fn subtraction_shifts_all_values() {
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
