//! Rows of a histogram of delays: ranges, and the frames of each flow in them.

use std::collections::BTreeMap;

use wirestorm_api::delays::FlowDelays;

use crate::number::nanoseconds;
use crate::traffic::HistogramLine;

/// A range of delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Ends of the range in nanoseconds.
    from: i64,
    to: i64,
    /// Frames of each flow.
    pub(crate) counts: Vec<u64>,
}

impl Row {
    /// Returns the ends of the range as text.
    pub(crate) fn range(&self) -> String {
        format!("{} - {}", nanoseconds(self.from as f64), nanoseconds(self.to as f64))
    }

    /// Returns the frames of all flows.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Returns the ranges with frames, in ascending order: in at most `rows_max` rows if powers of two
/// are few enough.
pub(crate) fn rows(lines: &[HistogramLine], rows_max: usize) -> Vec<Row> {
    let fine = rows_of(lines, |start| (start, FlowDelays::bucket_end(start)));
    if fine.len() <= rows_max { fine } else { rows_of(lines, power_of_two) }
}

/// Returns the power of two next to zero of a delay, and the next one.
fn power_of_two(start: i64) -> (i64, i64) {
    let size = start.unsigned_abs();
    let from = if size == 0 { 0 } else { 1_i64 << (63 - size.leading_zeros()).min(61) };
    let to = (2 * from).max(1);
    if start < 0 { (-from, -to) } else { (from, to) }
}

fn rows_of(lines: &[HistogramLine], range: impl Fn(i64) -> (i64, i64)) -> Vec<Row> {
    let mut rows: BTreeMap<(i64, i64), Vec<u64>> = BTreeMap::new();
    for (flow, line) in lines.iter().enumerate() {
        for (&start, &count) in &line.counts {
            let counts = rows.entry(range(start)).or_insert_with(|| vec![0; lines.len()]);
            counts[flow] += count;
        }
    }
    rows.into_iter().map(|((from, to), counts)| Row { from, to, counts }).collect()
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
        let shown = |rows: Vec<Row>| {
            rows.iter().map(|row| (row.range(), row.counts.clone())).collect::<Vec<_>>()
        };
        let fine = [
            ("1.02 us - 1.28 us".to_owned(), vec![5, 0]),
            ("1.28 us - 1.54 us".to_owned(), vec![7, 1]),
            ("2.05 us - 2.56 us".to_owned(), vec![0, 2]),
        ];
        assert_eq!(shown(rows(&lines, 3)), fine);
        let coarse = [
            ("1.02 us - 2.05 us".to_owned(), vec![12, 1]),
            ("2.05 us - 4.10 us".to_owned(), vec![0, 2]),
        ];
        assert_eq!(shown(rows(&lines, 2)), coarse);
        assert_eq!([0, 1, -5].map(power_of_two), [(0, 1), (1, 2), (-4, -8)]);
    }

    #[test]
    fn bar_is_never_empty_for_a_frame() {
        assert_eq!([0, 1, 50, 100].map(|value| bar(value, 100, 4)), ["", "█", "██", "████"]);
    }
}
