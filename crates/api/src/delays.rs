//! Live delays of measured flows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Delays of a measured flow since the start of the run, all receiving ports together.
///
/// A histogram has at most 4 buckets for each power of two, about 30 for delays of one microsecond
/// to 100 microseconds, and 312 for all delays from -18 minutes to 18 minutes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowDelays {
    /// Median in nanoseconds, within 1.6 %; null without arrivals.
    pub p50_ns: Option<i64>,
    /// Delay in nanoseconds that 99 % of the frames do not exceed, within 1.6 %; null without
    /// arrivals.
    pub p99_ns: Option<i64>,
    /// Frames in each range of delays, in ascending order: the end of the range next to zero in
    /// nanoseconds, and the number of frames. The range reaches to a quarter of the next power of
    /// two beyond: 1,024 to 1,280, 1,280 to 1,536, and so on. Empty ranges are left out.
    pub histogram: Vec<(i64, u64)>,
}

/// Log2 of the number of buckets in one power of two.
const SUB_BUCKET_BITS: u32 = 2;

impl FlowDelays {
    /// Most flows of a document with delays.
    pub const FLOWS_MAX: usize = 64;

    /// Creates the delays from values in nanoseconds and their counts, in any order.
    pub fn new(values: impl IntoIterator<Item = (i64, u64)>) -> Self {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for (value, count) in values.into_iter().filter(|(_, count)| *count > 0) {
            *counts.entry(value).or_default() += count;
        }
        let mut histogram: Vec<(i64, u64)> = Vec::new();
        for (&value, &count) in &counts {
            let start = Self::bucket_start(value);
            match histogram.last_mut() {
                Some((last, sum)) if *last == start => *sum += count,
                _ => histogram.push((start, count)),
            }
        }
        Self { p50_ns: quantile(&counts, 0.5), p99_ns: quantile(&counts, 0.99), histogram }
    }

    /// Returns the end next to zero of the range of a delay.
    pub const fn bucket_start(nanoseconds: i64) -> i64 {
        let size = nanoseconds.unsigned_abs();
        let exponent = 63 - (size | 1).leading_zeros();
        let shift = exponent.saturating_sub(SUB_BUCKET_BITS);
        let start = (size >> shift) << shift;
        if nanoseconds < 0 { (start as i64).wrapping_neg() } else { start as i64 }
    }

    /// Returns the other end of the range that begins at `start`.
    pub const fn bucket_end(start: i64) -> i64 {
        let exponent = 63 - (start.unsigned_abs() | 1).leading_zeros();
        let width = 1_i64 << exponent.saturating_sub(SUB_BUCKET_BITS);
        if start < 0 { start.saturating_sub(width) } else { start.saturating_add(width) }
    }
}

/// Returns the least value that the share `quantile` of all values does not exceed.
fn quantile(counts: &BTreeMap<i64, u64>, quantile: f64) -> Option<i64> {
    let total: u64 = counts.values().sum();
    let rank = ((quantile * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    let mut values = counts.iter();
    values
        .find(|(_, count)| {
            seen += **count;
            seen >= rank
        })
        .map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_touch_and_have_a_quarter_of_a_power_of_two() {
        let mut start = 4;
        let mut count = 0;
        while start < 1 << 40 {
            let end = FlowDelays::bucket_end(start);
            assert_eq!([start, end - 1].map(FlowDelays::bucket_start), [start; 2]);
            assert_eq!(FlowDelays::bucket_start(end), end);
            (start, count) = (end, count + 1);
        }
        assert_eq!(count, 4 * 38);
        assert_eq!([1_024, 1_280].map(FlowDelays::bucket_end), [1_280, 1_536]);
        assert_eq!([0, 1, 3, -1, -1_279].map(FlowDelays::bucket_start), [0, 1, 3, -1, -1_024]);
        assert_eq!(FlowDelays::bucket_end(-1_024), -1_280);
        assert_eq!([i64::MIN, i64::MAX].map(FlowDelays::bucket_start), [i64::MIN, 7 << 60]);
    }

    #[test]
    fn values_of_several_ports_are_summed_and_sorted() {
        let delays = FlowDelays::new([(1_100, 90), (3_000, 9), (1_030, 0), (1_100, 5), (-5, 1)]);
        assert_eq!(delays.histogram, [(-5, 1), (1_024, 95), (2_560, 9)]);
        assert_eq!((delays.p50_ns, delays.p99_ns), (Some(1_100), Some(3_000)));
        assert_eq!(FlowDelays::new([]), FlowDelays::default());
    }
}
