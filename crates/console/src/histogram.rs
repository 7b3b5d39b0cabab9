//! Rows of a histogram of delays: ranges, and the frames of each flow in them.

use std::collections::BTreeMap;

use wirestorm_api::delays::FlowDelays;

use crate::number::nanoseconds;
use crate::traffic::HistogramLine;

/// A range of delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Ends of the range in nanoseconds.
    low: i64,
    high: i64,
    /// Frames of all flows.
    pub(crate) total: u64,
    /// Frames of each shown flow.
    pub(crate) counts: Vec<u64>,
}

impl Row {
    /// Returns the ends of the range as text.
    pub(crate) fn range(&self) -> String {
        format!("{} to {}", nanoseconds(self.low as f64), nanoseconds(self.high as f64))
    }
}

/// Returns the ranges with frames, in ascending order: in at most `rows_max` rows if powers of two
/// are few enough. `total`: frames of all flows in each range; `shown`: some of these flows.
pub(crate) fn rows(
    total: &BTreeMap<i64, u64>,
    shown: &[HistogramLine],
    rows_max: usize,
) -> Vec<Row> {
    let fine = rows_of(total, shown, |start| (start, FlowDelays::bucket_end(start)));
    if fine.len() <= rows_max { fine } else { rows_of(total, shown, power_of_two) }
}

/// Returns the power of two next to zero of a delay, and the next one.
fn power_of_two(start: i64) -> (i64, i64) {
    let size = start.unsigned_abs();
    let from = if size == 0 { 0 } else { 1_i64 << (63 - size.leading_zeros()).min(61) };
    let to = (2 * from).max(1);
    if start < 0 { (-from, -to) } else { (from, to) }
}

fn rows_of(
    total: &BTreeMap<i64, u64>,
    shown: &[HistogramLine],
    range: impl Fn(i64) -> (i64, i64),
) -> Vec<Row> {
    // The end next to zero of a negative range is the greater one.
    let ends = |start| match range(start) {
        (from, to) if from > to => (to, from),
        ends => ends,
    };
    let mut rows: BTreeMap<(i64, i64), Row> = BTreeMap::new();
    for (&start, &count) in total {
        let (low, high) = ends(start);
        let empty = || Row { low, high, total: 0, counts: vec![0; shown.len()] };
        rows.entry((low, high)).or_insert_with(empty).total += count;
    }
    for (flow, line) in shown.iter().enumerate() {
        for (&start, count) in &line.counts {
            if let Some(row) = rows.get_mut(&ends(start)) {
                row.counts[flow] += count;
            }
        }
    }
    rows.into_values().collect()
}

/// Draws a share of the greatest value as a bar; a value above 0 has at least one cell.
pub(crate) fn bar(value: u64, most: u64, columns: usize) -> String {
    let cells = value as f64 / most.max(1) as f64 * columns as f64;
    "█".repeat(if value == 0 { 0 } else { (cells.round() as usize).clamp(1, columns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, counts: &[(i64, u64)]) -> HistogramLine {
        HistogramLine { name: name.into(), counts: counts.iter().copied().collect() }
    }

    #[test]
    fn ranges_become_powers_of_two_if_they_need_too_many_rows() {
        let lines = [line("a", &[(1_024, 5), (1_280, 7)]), line("b", &[(1_280, 1), (2_048, 2)])];
        // A third flow is not shown.
        let total = BTreeMap::from([(1_024, 6), (1_280, 8), (2_048, 2)]);
        let shown = |rows: Vec<Row>| {
            let cells = |row: &Row| (row.range(), row.total, row.counts.clone());
            rows.iter().map(cells).collect::<Vec<_>>()
        };
        let fine = [
            ("1.02 us to 1.28 us".to_owned(), 6, vec![5, 0]),
            ("1.28 us to 1.54 us".to_owned(), 8, vec![7, 1]),
            ("2.05 us to 2.56 us".to_owned(), 2, vec![0, 2]),
        ];
        assert_eq!(shown(rows(&total, &lines, 3)), fine);
        let coarse = [
            ("1.02 us to 2.05 us".to_owned(), 14, vec![12, 1]),
            ("2.05 us to 4.10 us".to_owned(), 2, vec![0, 2]),
        ];
        assert_eq!(shown(rows(&total, &lines, 2)), coarse);
        assert_eq!([0, 1, -5].map(power_of_two), [(0, 1), (1, 2), (-4, -8)]);
    }

    #[test]
    fn negative_ranges_ascend_to_zero() {
        let total = BTreeMap::from([(-1_024, 1), (-1_280, 2), (-1, 3), (0, 4), (4, 5)]);
        let ranges = |rows_max| {
            let rows = rows(&total, &[], rows_max);
            rows.iter().map(|row| (row.range(), row.total)).collect::<Vec<_>>()
        };
        let of = |range: &str, total| (range.to_owned(), total);
        let fine = [
            of("-1.54 us to -1.28 us", 2),
            of("-1.28 us to -1.02 us", 1),
            of("-2 ns to -1 ns", 3),
            of("0 ns to 1 ns", 4),
            of("4 ns to 5 ns", 5),
        ];
        assert_eq!(ranges(5), fine);
        assert_eq!(ranges(4)[0], of("-2.05 us to -1.02 us", 3));
    }

    #[test]
    fn bar_is_never_empty_for_a_frame() {
        assert_eq!([0, 1, 50, 100].map(|value| bar(value, 100, 4)), ["", "█", "██", "████"]);
    }
}
