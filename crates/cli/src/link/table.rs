//! What went over a link as people read it: at most 80 columns.

use std::fmt::{self, Display, Formatter};

use wirestorm_control::bridge::{DirectionReport, LinkResult};

use crate::number::{grouped, nanoseconds_or_none, scaled, seconds};
use crate::traffic::shortened;
use crate::wrap::wrapped;

/// Shows a result.
pub(super) struct Table<'a>(pub(super) &'a LinkResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        let ended = if result.interrupted { "interrupted after" } else { "done in" };
        writeln!(f, "{ended} {} s, seed {}", seconds(result.elapsed_s), result.seed)?;
        writeln!(f)?;
        let line =
            |f: &mut Formatter<'_>, what: &str, value: &dyn Fn(&DirectionReport) -> String| {
                write!(f, "{what:<38}")?;
                for direction in &result.directions {
                    write!(f, " {:>20}", value(direction))?;
                }
                writeln!(f)
            };
        line(f, "from", &|it| shortened(&it.from, 20))?;
        line(f, "to", &|it| shortened(&it.to, 20))?;
        line(f, "frames in", &|it| grouped(it.entered))?;
        line(f, "frames out", &|it| grouped(it.delivered))?;
        line(f, "out, b/s", &|it| {
            let rate = it.delivered_bytes as f64 * 8.0 / result.elapsed_s.max(1e-9);
            scaled(rate).trim_end().to_owned()
        })?;
        type Count = fn(&DirectionReport) -> u64;
        let counts: [(&str, Count); 10] = [
            ("  lost", |it| it.lost),
            ("  dropped: the queue was full", |it| it.queue_dropped),
            ("  duplicated", |it| it.duplicated),
            ("  corrupted", |it| it.corrupted),
            ("  reordered", |it| it.reordered),
            ("  still on the link in the end", |it| it.held),
            ("  dropped: too many held (--held-max)", |it| it.no_room),
            ("  left out: too long or too short", |it| it.unfit),
            ("  that the interface refused", |it| it.failed),
            ("  missed: no room for them", |it| it.missed),
        ];
        for (what, count) in counts {
            if result.directions.iter().any(|it| count(it) > 0) {
                line(f, what, &|it| grouped(count(it)))?;
            }
        }
        if result.directions.iter().any(|it| it.delivered > 0) {
            line(f, "later than asked, median", &|it| nanoseconds_or_none(it.lateness.p50_ns))?;
            line(f, "later than asked, 99 %", &|it| nanoseconds_or_none(it.lateness.p99_ns))?;
            line(f, "later than asked, most", &|it| nanoseconds_or_none(it.lateness.max_ns))?;
        }
        writeln!(f)?;
        for direction in &result.directions {
            let head = format!("{} by {}: ", direction.from, direction.backend);
            writeln!(f, "{}", wrapped(&head, &direction.why))?;
        }
        if result.directions.iter().any(|it| it.unfit > 0) {
            let text = "hosts on virtual interfaces send long frames unless told otherwise: \
                        ethtool -K INTERFACE tx off tso off gso off gro off";
            writeln!(f, "{}", wrapped("note      ", text))?;
        }
        for note in &result.notes {
            writeln!(f, "{}", wrapped("note      ", note))?;
        }
        for error in &result.errors {
            writeln!(f, "{}", wrapped("error     ", error))?;
        }
        Ok(())
    }
}
