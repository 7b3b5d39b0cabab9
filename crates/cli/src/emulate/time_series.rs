//! Time series of connections: at most 12 lines, whatever the run's length.

use std::fmt::{self, Formatter};

use wirestorm_control::result::FlowSeries;

use super::port::Port;
use crate::number::brief;
use crate::traffic::shortened;

/// Maximum number of lines in a table.
const LINES_MAX: usize = 12;

/// Prints the series of up to two ports side by side, each line with several intervals.
///
/// Prints nothing for a run of a single interval.
pub(super) fn table(f: &mut Formatter<'_>, ports: &[Port<'_>]) -> fmt::Result {
    let intervals =
        ports.iter().map(|port| port.connections.series.opened.len()).max().unwrap_or(0);
    if intervals < 2 {
        return Ok(());
    }
    let together = intervals.div_ceil(LINES_MAX);
    write!(f, "\n{:<8}", "time, s")?;
    for port in ports {
        write!(f, " {:>35}", shortened(port.name(), 35))?;
    }
    write!(f, "\n{:<8}", "")?;
    for _ in ports {
        row(f, ["new /s", "active", "failed", "b/s out", "b/s in"].map(str::to_owned))?;
    }
    writeln!(f)?;
    for first in (0..intervals).step_by(together) {
        let interval = ports.first().map_or(0.0, |port| port.connections.series.interval_s);
        write!(f, "{:<8}", from(first, interval))?;
        for port in ports {
            cells(f, &port.connections.series, first, together)?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Prints the cells of one port.
fn row(f: &mut Formatter<'_>, cells: [String; 5]) -> fmt::Result {
    let [opened, held, failed, out, into] = cells;
    write!(f, " {opened:>6} {held:>6} {failed:>6} {out:>7} {into:>6}")
}

/// Formats the start of an interval, with the decimals that the interval needs, at most three.
fn from(place: usize, interval: f64) -> String {
    let decimals = (0..3).find(|places| {
        let scaled = interval * f64::from(10_u32.pow(*places));
        (scaled - scaled.round()).abs() < 1e-6
    });
    format!("{:.*}", decimals.unwrap_or(3) as usize, place as f64 * interval)
}

/// Prints the cells of `count` intervals from `first`.
fn cells(f: &mut Formatter<'_>, series: &FlowSeries, first: usize, count: usize) -> fmt::Result {
    let end = (first + count).min(series.opened.len());
    // One port can end before the other.
    if first >= end {
        return row(f, ["-"; 5].map(str::to_owned));
    }
    let sum = |values: &[u64]| values[first..end].iter().sum::<u64>() as f64;
    let total = (end - first) as f64 * series.interval_s;
    let shorter =
        if end == series.opened.len() { series.interval_s - series.last_interval_s } else { 0.0 };
    let seconds = (total - shorter).max(1e-9);
    row(
        f,
        [
            brief(sum(&series.opened) / seconds),
            brief(series.concurrent[end - 1] as f64),
            brief(sum(&series.failed)),
            brief(sum(&series.sent_bytes) * 8.0 / seconds),
            brief(sum(&series.received_bytes) * 8.0 / seconds),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_start_with_the_time_of_their_interval() {
        assert_eq!(from(3, 1.0), "3");
        assert_eq!(from(3, 0.25), "0.75");
        assert_eq!(from(1, 0.1), "0.1");
        assert_eq!(from(2, 0.000_5), "0.001");
    }
}
