//! Distribution of delays: exact count, minimum, mean and maximum, and buckets for percentiles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of delays in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Minimum; 0 if empty.
    pub min_ns: i64,
    /// Arithmetic mean; 0 if empty.
    pub mean_ns: f64,
    /// Maximum; 0 if empty.
    pub max_ns: i64,
    /// Lower bound and count of each non-empty bucket, ascending.
    pub buckets: Vec<(i64, u64)>,
}

impl Distribution {
    /// Creates a distribution of equal values.
    pub fn of(value_ns: i64, count: u64) -> Self {
        let mean_ns = value_ns as f64;
        let (min_ns, max_ns) = (value_ns, value_ns);
        Self { count, min_ns, mean_ns, max_ns, buckets: vec![(value_ns, count)] }
    }

    /// Returns the lowest bucket that the fraction `quantile` (0 to 1) of all values does not
    /// exceed (RFC 2330 section 11.3); `None` if empty.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        if self.count == 0 {
            return None;
        }
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        if rank >= self.count {
            return Some(self.max_ns);
        }
        let mut seen = 0;
        let bucket = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        bucket.map(|(start, _)| (*start).clamp(self.min_ns, self.max_ns))
    }

    /// Returns the fraction of values above a limit, by the lower bounds of the buckets; 0 if empty.
    pub fn fraction_above(&self, limit_ns: i64) -> f64 {
        if self.max_ns <= limit_ns {
            return 0.0;
        }
        let above = self.buckets.iter().filter(|(start, _)| *start > limit_ns);
        above.map(|(_, count)| count).sum::<u64>() as f64 / self.count.max(1) as f64
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            other.clone_into(self);
            return;
        }
        let sum = self.mean_ns * self.count as f64 + other.mean_ns * other.count as f64;
        self.count += other.count;
        self.mean_ns = sum / self.count as f64;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let mut buckets: Vec<(i64, u64)> = Vec::new();
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_unstable();
        for &(start, count) in &self.buckets {
            match buckets.last_mut() {
                Some(last) if last.0 == start => last.1 += count,
                _ => buckets.push((start, count)),
            }
        }
        self.buckets = buckets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_keeps_counts_mean_and_order() {
        let mut sum = Distribution::of(100, 3);
        sum.merge(&Distribution::of(20, 1));
        sum.merge(&Distribution::default());
        sum.merge(&Distribution::of(100, 4));
        assert_eq!((sum.count, sum.min_ns, sum.max_ns), (8, 20, 100));
        assert_eq!(sum.mean_ns, 90.0);
        assert_eq!(sum.buckets, [(20, 1), (100, 7)]);
    }

    #[test]
    fn quantiles_are_those_of_the_empirical_distribution() {
        let mut values = Distribution::of(10, 50);
        values.merge(&Distribution::of(30, 49));
        values.merge(&Distribution::of(70, 1));
        assert_eq!(values.quantile(0.5), Some(10));
        assert_eq!(values.quantile(0.51), Some(30));
        assert_eq!(values.quantile(0.99), Some(30));
        assert_eq!(values.quantile(1.0), Some(70));
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn fraction_above_a_limit_counts_later_values() {
        let mut values = Distribution::of(10, 98);
        values.merge(&Distribution::of(30, 2));
        assert_eq!((values.fraction_above(9), values.fraction_above(10)), (1.0, 0.02));
        assert_eq!(
            (values.fraction_above(30), Distribution::default().fraction_above(0)),
            (0.0, 0.0)
        );
    }
}
