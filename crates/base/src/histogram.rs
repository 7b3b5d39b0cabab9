//! A histogram of durations with a bounded relative error, in a fixed amount of memory.
//!
//! The buckets are log-linear: values below 32 have one bucket each. Above, each power of two is
//! divided into 32 equal buckets, so a bucket is at most 1/32 (3.2 %) wide. The layout is public
//! because the in-kernel sender uses it too (`bpf/histogram.h` in the io crate).

use alloc::boxed::Box;
use alloc::vec;

use crate::time::Duration;

/// Log2 of the number of buckets in one power of two.
pub const SUB_BUCKET_BITS: u32 = 5;
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;

/// Number of buckets. They cover 0 to 2^40 - 1 ns (18 minutes); the last one counts longer values.
pub const BUCKETS: usize = ((40 - SUB_BUCKET_BITS as usize) + 1) << SUB_BUCKET_BITS;

/// Returns the bucket that counts `value`.
#[inline]
pub const fn bucket_of(value: u64) -> usize {
    if value < SUB_BUCKETS {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros();
    let shift = exponent - SUB_BUCKET_BITS;
    let bucket = ((shift as u64 + 1) << SUB_BUCKET_BITS) + ((value >> shift) - SUB_BUCKETS);
    if bucket < BUCKETS as u64 { bucket as usize } else { BUCKETS - 1 }
}

/// Returns the smallest value that `bucket` counts.
pub const fn bucket_start(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let shift = (bucket >> SUB_BUCKET_BITS) - 1;
    (SUB_BUCKETS + (bucket & (SUB_BUCKETS - 1))) << shift
}

/// Returns the greatest value that `bucket` counts; the last bucket has no upper bound.
const fn bucket_last(bucket: usize) -> u64 {
    if bucket + 1 < BUCKETS { bucket_start(bucket + 1) - 1 } else { u64::MAX }
}

/// Counts of durations, in nanoseconds, by [`bucket_of`].
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Creates an empty histogram. This is its only allocation.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice(), count: 0, max: 0 }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.counts[bucket_of(value.as_nanos())] += 1;
        self.count += 1;
        self.max = self.max.max(value.as_nanos());
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Adds `count` values to `bucket`, for values that were counted elsewhere in the same layout.
    pub fn add_bucket(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = bucket.min(BUCKETS - 1);
        self.counts[bucket] += count;
        self.count += count;
        self.max = self.max.max(bucket_start(bucket));
    }

    /// Raises the maximum to `value`, for a maximum that was kept elsewhere.
    pub fn note_max(&mut self, value: Duration) {
        self.max = self.max.max(value.as_nanos());
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the largest value, exactly.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Returns a value that at least the share `quantile` (0 to 1) of all values do not exceed. The
    /// result is the least such value or up to 3.2 % more (the bucket's end), but never above the
    /// largest value. `None` if the histogram is empty.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let share = quantile.clamp(0.0, 1.0) * self.count as f64;
        // Rounded up, and at least 1.
        let floor = share as u64;
        let rank = (floor + u64::from((floor as f64) < share)).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(Duration::from_nanos(bucket_last(bucket).min(self.max)));
            }
        }
        Some(self.max())
    }

    /// Returns the start and count of each bucket that is not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(bucket, &count)| (Duration::from_nanos(bucket_start(bucket)), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_starts_where_the_one_before_ends() {
        for bucket in 1..BUCKETS {
            let start = bucket_start(bucket);
            assert_eq!(bucket_of(start), bucket);
            assert_eq!(bucket_of(start - 1), bucket - 1);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth() {
        let mut histogram = Histogram::new();
        for value in 1..=10_000 {
            histogram.record(Duration::from_nanos(value));
        }
        for (quantile, truth) in [(0.0, 1.0), (0.5, 5_000.0), (0.99, 9_900.0), (1.0, 10_000.0)] {
            let value = histogram.quantile(quantile).unwrap().as_nanos() as f64;
            assert!(value >= truth && value <= truth * (1.0 + 1.0 / 32.0), "{quantile}: {value}");
        }
        assert_eq!(histogram.max(), Duration::from_nanos(10_000));
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    #[test]
    fn quantiles_are_between_the_least_and_the_greatest_value() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|it| histogram.record(Duration::from_nanos(*it)));
            move |quantile| histogram.quantile(quantile).unwrap().as_nanos()
        };
        let one = of(&[500_010_000]);
        assert_eq!([0.0, 0.5, 0.999, 1.0].map(one), [500_010_000; 4]);
        // The value 9 covers nine of ten values: enough for 0.9, but not for 0.91.
        let ten = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 1_000_000]);
        assert_eq!([0.1, 0.5, 0.9, 0.91, 0.99].map(ten), [1, 5, 9, 1_000_000, 1_000_000]);
        let long = of(&[u64::MAX - 5]);
        assert_eq!(long(0.5), u64::MAX - 5);
    }

    #[test]
    fn merging_adds_counts() {
        let mut one = Histogram::new();
        one.record(Duration::from_nanos(7));
        let mut other = Histogram::new();
        other.record(Duration::from_micros(3));
        other.add_bucket(bucket_of(7), 2);
        one.merge(&other);
        assert_eq!(one.count(), 4);
        assert_eq!(one.max(), Duration::from_micros(3));
        assert_eq!(one.buckets().next(), Some((Duration::from_nanos(7), 3)));
    }
}
