//! Departure statistics of a port: gap errors and lateness of its frames.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{DepartureReport, HistogramReport};

use crate::number::{nanoseconds, nanoseconds_or_none};
use crate::wrap::wrapped;

/// Prints the deviation of departure gaps from the target and the shifts of the schedule.
///
/// The second field is the indentation in columns.
pub(crate) struct DepartureLines<'a>(pub(crate) &'a DepartureReport, pub(crate) usize);

/// Upper bounds of the histogram's bars, in ns; the last bar has none.
const BOUNDS: [u64; 6] = [100, 1_000, 10_000, 100_000, 1_000_000, u64::MAX];

impl Display for DepartureLines<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(departures, indent) = *self;
        let errors = &departures.gap_errors;
        let mut line = |what: &str, text: &str| {
            writeln!(f, "{}", wrapped(&format!("{:indent$}{what:<10}", ""), text))
        };
        let gaps = format!(
            "off by {} (median), {} (p99), {} (max), stamped in {}",
            nanoseconds_or_none(errors.p50_ns),
            nanoseconds_or_none(errors.p99_ns),
            nanoseconds_or_none(errors.max_ns),
            departures.timestamp_point,
        );
        line("gaps", &gaps)?;
        if errors.count > 0 {
            line("", &shares(errors))?;
        }
        if departures.schedule_shift_ns > 0 {
            let late = format!(
                "schedule delayed by {} in total, {} recovered; latest frame {} late",
                nanoseconds(departures.schedule_shift_ns),
                nanoseconds(departures.recovered_ns),
                nanoseconds(departures.lateness_max_ns),
            );
            line("late", &late)?;
        }
        Ok(())
    }
}

/// Returns the share of the gaps between each bound and the bound before it.
fn shares(errors: &HistogramReport) -> String {
    let mut counts = [0_u64; BOUNDS.len()];
    for (start, count) in &errors.buckets {
        let place = BOUNDS.iter().position(|bound| start < bound).unwrap_or(BOUNDS.len() - 1);
        counts[place] += count;
    }
    let names = ["<100ns", "<1us", "<10us", "<100us", "<1ms", "more"];
    let share = |count: u64| count as f64 * 100.0 / errors.count as f64;
    let parts = names.iter().zip(counts).map(|(name, count)| match share(count) {
        0.0 => format!("{name} 0"),
        part if part < 0.01 => format!("{name} <0.01%"),
        part => format!("{name} {part:.2}%"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_most_80_columns() {
        let buckets =
            vec![(0, 9_000), (200, 9_000), (2_000, 9_000), (20_000, 9_000), (200_000, 9_000)];
        let gap_errors = HistogramReport { count: 45_000, buckets, ..HistogramReport::default() };
        let departures = DepartureReport {
            timestamp_point: "xdp".into(),
            start_delay_ns: 0,
            schedule_shift_ns: 238_680_000,
            recovered_ns: 238_680_000,
            lateness_max_ns: 11_080_000,
            gaps: HistogramReport::default(),
            gap_errors,
        };
        let shown = DepartureLines(&departures, 2).to_string();
        assert!(shown.lines().count() > 3 && shown.lines().all(|line| line.len() <= 80), "{shown}");
    }

    #[test]
    fn each_gap_counts_in_one_share() {
        let buckets = vec![(0, 9_000), (96, 899), (1_024, 100), (2_097_152, 1)];
        let errors = HistogramReport { count: 10_000, buckets, ..HistogramReport::default() };
        let expected = "<100ns 98.99%, <1us 0, <10us 1.00%, <100us 0, <1ms 0, more 0.01%";
        assert_eq!(shares(&errors), expected);
    }
}
