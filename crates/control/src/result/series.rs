//! Time series of the measurement of a flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_engine::measure::{Interval, Series};

/// Time series of a measurement, in intervals of equal length from the start of the run. Each list
/// has a value for each interval. Lists that an earlier version did not write are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeriesReport {
    /// Interval length in seconds.
    pub interval_s: f64,
    /// Frames received in each interval.
    pub packets: Vec<u64>,
    /// Bytes without FCS.
    pub bytes: Vec<u64>,
    /// Distinct frames received: without duplicates and frames outside the sequence window.
    #[serde(default)]
    pub received: Vec<u64>,
    /// Frames found missing in each interval that have not arrived since.
    pub missing: Vec<u64>,
    /// Duplicates: each additional copy (RFC 5560).
    #[serde(default)]
    pub duplicated: Vec<u64>,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    #[serde(default)]
    pub reordered: Vec<u64>,
    /// Maximum reordering extent in frames (RFC 4737 section 4.2); null without reordered frames.
    #[serde(default)]
    pub reordering_extent_max: Vec<Option<u64>>,
    /// Minimum delay of each interval in nanoseconds; null without arrivals.
    #[serde(default)]
    pub delay_min_ns: Vec<Option<i64>>,
    /// Mean delay of each interval in nanoseconds; null without arrivals.
    pub delay_mean_ns: Vec<Option<f64>>,
    /// Maximum delay of each interval in nanoseconds; null without arrivals.
    pub delay_max_ns: Vec<Option<i64>>,
    /// Maximum packet delay variation: maximum minus minimum delay of the interval (RFC 5481 section
    /// 4.2), in nanoseconds; null without arrivals. Clocks need no comparison. It contains their
    /// drift: 1 ns for each ppm and ms.
    #[serde(default)]
    pub pdv_max_ns: Vec<Option<i64>>,
    /// Number of inter-packet delay variations (RFC 5481 section 4.1). Each counts in the interval of
    /// the arrival that completes its pair of frames.
    #[serde(default)]
    pub ipdv_count: Vec<u64>,
    /// Mean of the absolute inter-packet delay variations in nanoseconds; null without values.
    #[serde(default)]
    pub ipdv_mean_ns: Vec<Option<f64>>,
    /// Maximum of the absolute inter-packet delay variations in nanoseconds; null without values.
    #[serde(default)]
    pub ipdv_max_ns: Vec<Option<u64>>,
    /// Maximum estimate of the interarrival jitter (RFC 3550 section 6.4.1) in nanoseconds; null
    /// without arrivals.
    #[serde(default)]
    pub jitter_ns: Vec<Option<u64>>,
}

impl From<&Series> for SeriesReport {
    fn from(series: &Series) -> Self {
        let rows = series.intervals().iter().map(Row::from).collect();
        Self::of_rows(series.length().as_secs_f64(), rows)
    }
}

impl SeriesReport {
    /// Merges the series of several receivers of a flow, whose intervals start at the same time.
    /// Returns `None` if one has no series, or if their lengths are not one length doubled.
    ///
    /// Counts are summed. A frame that arrived at one port is missing at the others, so `missing` has
    /// the frames that any port knew of and that had arrived at none. Delays have a value only if
    /// all ports with arrivals have one: the receivers of a flow on one machine share its clock,
    /// and those on others have no delays in their series until their clocks are compared. PDV of
    /// ports without delays is the largest of them, since an unknown offset lies between them.
    pub fn merged<'a>(parts: impl IntoIterator<Item = Option<&'a Self>>) -> Option<Self> {
        let parts: Vec<&Self> = parts.into_iter().collect::<Option<_>>()?;
        let interval_s = parts.iter().map(|part| part.interval_s).reduce(f64::max)?;
        let parts: Vec<Vec<Row>> =
            parts.iter().map(|part| part.rows_of_length(interval_s)).collect::<Option<_>>()?;
        let length = parts.iter().map(Vec::len).max()?;
        let mut rows = vec![Row::default(); length];
        for part in &parts {
            for (sum, row) in rows.iter_mut().zip(part) {
                *sum = sum.plus(row);
            }
        }
        for (row, missing) in rows.iter_mut().zip(missing(&parts, length)) {
            row.missing = missing;
        }
        Some(Self::of_rows(interval_s, rows))
    }

    /// Removes the delays, which have an unknown offset of two clocks. Their variation stays.
    pub fn remove_delays(&mut self) {
        self.delay_min_ns.fill(None);
        self.delay_mean_ns.fill(None);
        self.delay_max_ns.fill(None);
    }

    /// Returns the intervals, joined to intervals of this length. Returns `None` if doubling the
    /// length does not lead to it.
    fn rows_of_length(&self, interval_s: f64) -> Option<Vec<Row>> {
        let mut own_s = self.interval_s;
        let mut rows = self.rows();
        while own_s > 0.0 && own_s < interval_s * 0.75 {
            rows = rows
                .chunks(2)
                .map(|pair| pair.iter().fold(Row::default(), |sum, row| sum.plus(row)))
                .collect();
            own_s *= 2.0;
        }
        let is_equal = (own_s - interval_s).abs() <= interval_s * 1e-6;
        is_equal.then_some(rows)
    }

    fn rows(&self) -> Vec<Row> {
        fn at<T: Copy + Default>(values: &[T], place: usize) -> T {
            values.get(place).copied().unwrap_or_default()
        }
        let row = |place| Row {
            packets: at(&self.packets, place),
            bytes: at(&self.bytes, place),
            received: at(&self.received, place),
            missing: at(&self.missing, place),
            duplicated: at(&self.duplicated, place),
            reordered: at(&self.reordered, place),
            extent_max: at(&self.reordering_extent_max, place),
            delay_min: at(&self.delay_min_ns, place),
            delay_mean: at(&self.delay_mean_ns, place),
            delay_max: at(&self.delay_max_ns, place),
            pdv_max: at(&self.pdv_max_ns, place),
            ipdvs: at(&self.ipdv_count, place),
            ipdv_mean: at(&self.ipdv_mean_ns, place),
            ipdv_max: at(&self.ipdv_max_ns, place),
            jitter: at(&self.jitter_ns, place),
        };
        (0..self.packets.len()).map(row).collect()
    }

    fn of_rows(interval_s: f64, rows: Vec<Row>) -> Self {
        let mut report = Self { interval_s, ..Self::default() };
        for row in rows {
            report.packets.push(row.packets);
            report.bytes.push(row.bytes);
            report.received.push(row.received);
            report.missing.push(row.missing);
            report.duplicated.push(row.duplicated);
            report.reordered.push(row.reordered);
            report.reordering_extent_max.push(row.extent_max);
            report.delay_min_ns.push(row.delay_min);
            report.delay_mean_ns.push(row.delay_mean);
            report.delay_max_ns.push(row.delay_max);
            report.pdv_max_ns.push(row.pdv_max);
            report.ipdv_count.push(row.ipdvs);
            report.ipdv_mean_ns.push(row.ipdv_mean);
            report.ipdv_max_ns.push(row.ipdv_max);
            report.jitter_ns.push(row.jitter);
        }
        report
    }
}

/// Values of one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    packets: u64,
    bytes: u64,
    received: u64,
    missing: u64,
    duplicated: u64,
    reordered: u64,
    extent_max: Option<u64>,
    delay_min: Option<i64>,
    delay_mean: Option<f64>,
    delay_max: Option<i64>,
    pdv_max: Option<i64>,
    ipdvs: u64,
    ipdv_mean: Option<f64>,
    ipdv_max: Option<u64>,
    jitter: Option<u64>,
}

impl From<&Interval> for Row {
    fn from(interval: &Interval) -> Self {
        let has_delays = interval.delays > 0;
        Self {
            packets: interval.frames,
            bytes: interval.bytes,
            received: interval.delays,
            missing: interval.missing,
            duplicated: interval.duplicated,
            reordered: interval.reordered,
            extent_max: (interval.reordered > 0).then_some(interval.extent_max),
            delay_min: has_delays.then_some(interval.delay_ns_min),
            delay_mean: interval.delay_ns_mean(),
            delay_max: has_delays.then_some(interval.delay_ns_max),
            pdv_max: has_delays.then(|| interval.delay_ns_max - interval.delay_ns_min),
            ipdvs: interval.ipdvs,
            ipdv_mean: interval.ipdv_ns_mean(),
            ipdv_max: (interval.ipdvs > 0).then_some(interval.ipdv_ns_max),
            jitter: has_delays.then_some(interval.jitter_ns_max),
        }
    }
}

impl Row {
    /// Returns the values of two intervals, or of two receivers in the same interval.
    fn plus(&self, other: &Self) -> Self {
        // A side without arrivals adds nothing; one with arrivals but no delays makes them unknown.
        let is_known = [self, other].iter().all(|it| it.received == 0 || it.delay_min.is_some());
        let delay_min = least(self.delay_min, other.delay_min).filter(|_| is_known);
        let delay_max = self.delay_max.max(other.delay_max).filter(|_| is_known);
        let delay_mean =
            mean([(self.received, self.delay_mean), (other.received, other.delay_mean)]);
        let range = delay_max.zip(delay_min).map(|(max, min)| max.saturating_sub(min));
        Self {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
            received: self.received.saturating_add(other.received),
            missing: self.missing.saturating_add(other.missing),
            duplicated: self.duplicated.saturating_add(other.duplicated),
            reordered: self.reordered.saturating_add(other.reordered),
            extent_max: self.extent_max.max(other.extent_max),
            delay_min,
            delay_mean: delay_mean.filter(|_| is_known),
            delay_max,
            pdv_max: range.or(self.pdv_max.max(other.pdv_max)),
            ipdvs: self.ipdvs.saturating_add(other.ipdvs),
            ipdv_mean: mean([(self.ipdvs, self.ipdv_mean), (other.ipdvs, other.ipdv_mean)]),
            ipdv_max: self.ipdv_max.max(other.ipdv_max),
            jitter: self.jitter.max(other.jitter),
        }
    }
}

fn least(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// Returns the mean of two means of `(number of values, mean)`.
fn mean(parts: [(u64, Option<f64>); 2]) -> Option<f64> {
    let known = || parts.iter().filter_map(|&(count, mean)| Some((count as f64, mean?)));
    let count: f64 = known().map(|(count, _)| count).sum();
    let sum: f64 = known().map(|(count, mean)| count * mean).sum();
    (count > 0.0).then(|| sum / count)
}

/// Returns the frames that were found missing in each interval and have not arrived since at any of
/// several receivers.
///
/// A receiver knows of the frames that it received and of those missing below them. Of all frames
/// that the one ahead knows of, those that arrived nowhere are missing. Frames on the way are too,
/// until they arrive: so only those count that are still missing in all later intervals.
fn missing(parts: &[Vec<Row>], length: usize) -> Vec<u64> {
    let mut known = vec![0_u64; parts.len()];
    let mut arrived = 0_u64;
    let mut open = Vec::with_capacity(length);
    for place in 0..length {
        for (part, known) in parts.iter().zip(&mut known) {
            let Some(row) = part.get(place) else { continue };
            *known = known.saturating_add(row.received).saturating_add(row.missing);
            arrived = arrived.saturating_add(row.received);
        }
        let ahead = known.iter().copied().max().unwrap_or(0);
        open.push(ahead.saturating_sub(arrived));
    }
    let mut least = u64::MAX;
    for open in open.iter_mut().rev() {
        least = least.min(*open);
        *open = least;
    }
    let before = std::iter::once(0).chain(open.iter().copied());
    open.iter().zip(before).map(|(open, before)| open - before).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a series of one interval for each `(received, missing)`, without delays.
    fn counts(interval_s: f64, of_intervals: &[(u64, u64)]) -> SeriesReport {
        let row = |&(received, missing): &(u64, u64)| Row {
            packets: received,
            received,
            missing,
            ..Row::default()
        };
        SeriesReport::of_rows(interval_s, of_intervals.iter().map(row).collect())
    }

    fn of_row(row: Row) -> SeriesReport {
        SeriesReport::of_rows(1.0, vec![row])
    }

    fn with_delays(received: u64, min: i64, mean: f64, max: i64) -> Row {
        Row {
            packets: received,
            received,
            delay_min: Some(min),
            delay_mean: Some(mean),
            delay_max: Some(max),
            pdv_max: Some(max - min),
            ..Row::default()
        }
    }

    fn merged(parts: &[&SeriesReport]) -> SeriesReport {
        SeriesReport::merged(parts.iter().map(|part| Some(*part))).expect("a series")
    }

    #[test]
    fn results_of_earlier_versions_are_read() {
        let earlier = json!({
            "interval_s": 0.5, "packets": [4, 0], "bytes": [240, 0], "missing": [1, 0],
            "delay_mean_ns": [1.5, null], "delay_max_ns": [2, null],
        });
        let series: SeriesReport = serde_json::from_value(earlier).expect("a series");
        assert_eq!((series.packets.len(), series.delay_max_ns[0]), (2, Some(2)));
        assert!(series.jitter_ns.is_empty() && series.duplicated.is_empty());
        assert_eq!(merged(&[&series, &series]).packets, [8, 0]);
    }

    #[test]
    fn frames_are_missing_in_a_total_if_they_arrived_nowhere() {
        // 100 frames in each interval, which alternate between the ports; 5 and then 2 are lost.
        // The second port notices the first loss an interval later.
        let left = counts(1.0, &[(48, 52), (50, 50), (49, 51), (0, 0)]);
        let right = counts(1.0, &[(47, 48), (48, 52), (49, 49), (0, 0)]);
        let total = merged(&[&left, &right]);
        assert_eq!(total.received, [95, 98, 98, 0]);
        assert_eq!(total.missing, [5, 2, 2, 0]);
        // A frame of the first interval arrives in the second one.
        let late = [counts(1.0, &[(5, 5), (6, 4)]), counts(1.0, &[(4, 5), (5, 5)])];
        assert_eq!(merged(&[&late[0], &late[1]]).missing, [0, 0]);
        // All ports receive all frames, as with multicast.
        let all = counts(1.0, &[(10, 0), (9, 1)]);
        assert_eq!(merged(&[&all, &all]).missing, [0, 0]);
    }

    #[test]
    fn shorter_intervals_are_joined_first() {
        let fine = counts(0.5, &[(1, 0), (2, 0), (4, 0)]);
        let total = merged(&[&fine, &counts(1.0, &[(10, 0)])]);
        assert_eq!((total.interval_s, total.received), (1.0, vec![13, 4]));
        let third = counts(1.0 / 3.0, &[(1, 0)]);
        let other = counts(1.0, &[(1, 0)]);
        assert_eq!(SeriesReport::merged([Some(&third), Some(&other)]), None);
        assert_eq!(SeriesReport::merged([Some(&other), None]), None);
        assert_eq!(SeriesReport::merged([]), None);
    }

    #[test]
    fn delays_of_ports_with_one_clock_are_merged() {
        let few = of_row(with_delays(1, -5, -5.0, -5));
        let many = of_row(with_delays(3, 10, 15.0, 30));
        let idle = of_row(Row::default());
        let total = merged(&[&few, &many, &idle]);
        assert_eq!(total.delay_min_ns, [Some(-5)]);
        assert_eq!(total.delay_mean_ns, [Some(10.0)]);
        assert_eq!((total.delay_max_ns, total.pdv_max_ns), (vec![Some(30)], vec![Some(35)]));
    }

    #[test]
    fn port_without_delays_leaves_their_variation_alone() {
        let near = of_row(with_delays(1, -5, -5.0, 10));
        let mut far = of_row(with_delays(3, 1_000, 1_005.0, 1_010));
        far.remove_delays();
        assert_eq!(far.pdv_max_ns, [Some(10)]);
        for total in [merged(&[&near, &far]), merged(&[&far, &near])] {
            assert_eq!(total.delay_min_ns, [None]);
            assert_eq!((total.delay_mean_ns, total.delay_max_ns), (vec![None], vec![None]));
            assert_eq!(total.pdv_max_ns, [Some(15)]);
        }
    }

    #[test]
    fn variation_duplicates_and_reordering_are_merged() {
        let one = Row {
            duplicated: 1,
            reordered: 2,
            extent_max: Some(3),
            ipdvs: 1,
            ipdv_mean: Some(8.0),
            ipdv_max: Some(8),
            jitter: Some(7),
            ..Row::default()
        };
        let other = Row { duplicated: 4, ipdvs: 3, ipdv_mean: Some(4.0), ipdv_max: Some(9), ..one };
        let other = Row { reordered: 0, extent_max: None, jitter: Some(1), ..other };
        let total = merged(&[&of_row(one), &of_row(other)]);
        assert_eq!((total.duplicated, total.reordered), (vec![5], vec![2]));
        assert_eq!(total.reordering_extent_max, [Some(3)]);
        assert_eq!((total.ipdv_count, total.ipdv_mean_ns), (vec![4], vec![Some(5.0)]));
        assert_eq!((total.ipdv_max_ns, total.jitter_ns), (vec![Some(9)], vec![Some(7)]));
    }
}
