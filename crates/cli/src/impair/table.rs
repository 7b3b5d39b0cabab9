//! Result table of a link emulation, at most 80 columns wide.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::result::{HistogramReport, ImpairmentReport, PortReport, RunResult};

use crate::number::{grouped, nanoseconds_or_none, scaled, seconds};
use crate::report::verdict;
use crate::traffic::shortened;
use crate::wrap::wrapped;

/// Displays a result as a table.
pub(crate) struct Table<'a>(pub(crate) &'a RunResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        let seed = result.target.seed.unwrap_or_default();
        writeln!(f, "{ended} {} s, seed {seed}", seconds(result.times.elapsed_s))?;
        // The port that sends a direction's frames holds its counters.
        let directions = result.ports.iter().rev().filter_map(|to| {
            let from = to.impairment.as_ref()?.from_port.as_ref()?;
            let from = result.ports.iter().find(|port| port.name == *from)?;
            Some(Direction { from, to, impairment: to.impairment.as_ref()? })
        });
        let directions: Vec<Direction<'_>> = directions.collect();
        writeln!(f)?;
        let line = |f: &mut Formatter<'_>, what: &str, value: &dyn Fn(&Direction<'_>) -> String| {
            write!(f, "{what:<38}")?;
            for direction in &directions {
                write!(f, " {:>20}", value(direction))?;
            }
            writeln!(f)
        };
        line(f, "from", &|it| shortened(&it.from.name, 20))?;
        line(f, "to", &|it| shortened(&it.to.name, 20))?;
        line(f, "frames in", &|it| grouped(it.impairment.entered))?;
        line(f, "frames out", &|it| grouped(it.impairment.delivered))?;
        line(f, "out, b/s", &|it| {
            let rate =
                it.impairment.delivered_bytes as f64 * 8.0 / result.times.elapsed_s.max(1e-9);
            scaled(rate).trim_end().to_owned()
        })?;
        type Count = fn(&Direction<'_>) -> u64;
        let counts: [(&str, Count); 10] = [
            ("  lost", |it| it.impairment.lost),
            ("  dropped: the queue was full", |it| it.impairment.queue_dropped),
            ("  duplicated", |it| it.impairment.duplicated),
            ("  corrupted", |it| it.impairment.corrupted),
            ("  reordered", |it| it.impairment.reordered),
            ("  held at the end", |it| it.impairment.in_flight),
            ("  dropped: buffer full (--buffer-frames)", |it| it.impairment.delay_buffer_full),
            ("  dropped: too long or too short", |it| it.impairment.invalid_length),
            ("  failed to send", |it| it.to.tx.as_ref().map_or(0, |tx| tx.failed)),
            ("  dropped: receiver full", |it| it.from.rx.as_ref().map_or(0, |rx| rx.dropped)),
        ];
        for (what, count) in counts {
            if directions.iter().any(|it| count(it) > 0) {
                line(f, what, &|it| grouped(count(it)))?;
            }
        }
        if directions.iter().any(|it| it.impairment.delivered > 0) {
            line(f, "added delay, median", &|it| nanoseconds_or_none(it.lateness(|it| it.p50_ns)))?;
            line(f, "added delay, 99 %", &|it| nanoseconds_or_none(it.lateness(|it| it.p99_ns)))?;
            line(f, "added delay, maximum", &|it| {
                nanoseconds_or_none(it.lateness(|it| it.max_ns))
            })?;
        }
        writeln!(f)?;
        for port in &result.ports {
            let backend = port.backend.as_deref().unwrap_or("-");
            let reason = port.backend_reason.as_deref().unwrap_or_default();
            writeln!(f, "{}", wrapped(&format!("{} by {backend}: ", port.name), reason))?;
        }
        if directions.iter().any(|it| it.impairment.invalid_length > 0) {
            let text = "hosts on virtual interfaces send frames above the MTU; switch this off: \
                        ethtool -K INTERFACE tx off tso off gso off gro off";
            writeln!(f, "{}", wrapped("note      ", text))?;
        }
        for note in &result.notes {
            writeln!(f, "{}", wrapped("note      ", note))?;
        }
        for error in &result.errors {
            writeln!(f, "{}", wrapped("error     ", error))?;
        }
        verdict(f, result)
    }
}

/// One direction between the two ports.
struct Direction<'a> {
    from: &'a PortReport,
    to: &'a PortReport,
    impairment: &'a ImpairmentReport,
}

impl Direction<'_> {
    fn lateness(&self, value: fn(&HistogramReport) -> Option<u64>) -> Option<u64> {
        self.impairment.lateness.as_ref().and_then(value)
    }
}
