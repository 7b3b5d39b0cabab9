//! Round-trip times of latency probes, at most 80 columns wide.

use std::fmt::{self, Formatter, Write};

use wirestorm_control::result::LatencyReport;

use crate::number::{grouped, nanoseconds, scaled, signed_nanoseconds};
use crate::terminal_width::row;
use crate::traffic::clipped;

/// Appends a line for a probe to the live table.
pub(super) fn live(text: &mut String, columns: usize, probe: &LatencyReport) {
    let trips = &probe.round_trip;
    let time = |value: Option<i64>| value.map_or("-".to_owned(), signed_nanoseconds);
    let cells = [
        format!("median {:>9},", time(trips.p50_ns)),
        format!("99 % {:>9},", time(trips.p99_ns)),
        format!("answers {:>9}", grouped(probe.received)),
    ];
    let cells = cells.each_ref().map(|cell| (0, cell.as_str()));
    row(text, columns, (30, &format!("{} to {}", probe.port, probe.target)), &cells);
}

/// Prints two lines for each probe: source, target and rate, then the measurements.
pub(super) fn table(f: &mut Formatter<'_>, probes: &[LatencyReport]) -> fmt::Result {
    if probes.is_empty() {
        return Ok(());
    }
    let row = |f: &mut Formatter<'_>, cells: [String; 8]| {
        let [sent, lost, rest @ ..] = cells;
        write!(f, "  {sent:>10} {lost:>6}")?;
        rest.iter().try_for_each(|cell| write!(f, " {cell:>9}"))?;
        writeln!(f)
    };
    writeln!(f, "\nlatency (round trip)")?;
    let heads = ["sent", "lost", "min", "mean", "median", "99 %", "max", "jitter"];
    row(f, heads.map(str::to_owned))?;
    for probe in probes {
        writeln!(f, "{}", clipped(&described(probe), 80))?;
        let trips = &probe.round_trip;
        let time = |value: Option<i64>| value.map_or("-".to_owned(), signed_nanoseconds);
        row(
            f,
            [
                grouped(probe.sent),
                grouped(probe.lost),
                time(trips.min_ns),
                time(trips.mean_ns.map(|mean| mean.round() as i64)),
                time(trips.p50_ns),
                time(trips.p99_ns),
                time(trips.max_ns),
                nanoseconds(probe.jitter_ns),
            ],
        )?;
    }
    Ok(())
}

/// Describes a probe: source, target, protocol, rate and reordered replies.
fn described(probe: &LatencyReport) -> String {
    let by = probe.target_port.map_or("ICMP".to_owned(), |port| format!("UDP port {port}"));
    let rate = scaled(probe.rate_pps);
    let mut text = format!("  {} to {}, {by}, {}/s", probe.port, probe.target, rate.trim_end());
    if probe.reordered > 0 {
        // Writing to a string does not fail.
        let _ = write!(text, ", {} out of order", grouped(probe.reordered));
    }
    text
}
