//! Live table of a link emulation: a line for each direction.

use indicatif::ProgressBar;
use wirestorm_control::Snapshot;
use wirestorm_control::base::time::Duration;

use crate::foreground::View;
use crate::number::{grouped, scaled};
use crate::terminal_width::{columns, row};
use crate::traffic::bar;

/// Live table on standard error. Hidden if standard error is not a terminal.
pub(super) struct Live {
    bar: ProgressBar,
    duration: Duration,
    before: Snapshot,
}

impl Live {
    pub(super) fn new(quiet: bool, duration: Duration) -> Self {
        Self { bar: bar(quiet, duration), duration, before: Snapshot::default() }
    }

    fn show(&mut self, progress: &Snapshot) {
        let since = progress.elapsed.saturating_sub(self.before.elapsed).as_secs_f64();
        if self.bar.is_hidden() || since < 0.2 {
            return;
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
        let columns = columns();
        let mut text = String::new();
        let mut line = |name: &str, [frames, bits, lost, full, held]: [&str; 5]| {
            let cells = [(12, frames), (12, bits), (12, lost), (12, full), (10, held)];
            row(&mut text, columns, (8, name), &cells);
        };
        line("", ["frames/s", "b/s", "lost", "queue full", "in flight"]);
        // The impairment of port B applies to the direction from A to B.
        for (name, port) in [("A to B", 1), ("B to A", 0)] {
            let of = |snapshot: &Snapshot| {
                snapshot.ports.get(port).and_then(|port| port.impairment).unwrap_or_default()
            };
            let (now, before) = (of(progress), of(&self.before));
            let bits = rate(now.delivered_bytes, before.delivered_bytes) * 8.0;
            line(
                name,
                [
                    scaled(rate(now.delivered, before.delivered)).trim_end(),
                    scaled(bits).trim_end(),
                    &grouped(now.lost),
                    &grouped(now.queue_dropped),
                    &grouped(now.held()),
                ],
            );
        }
        let part = progress.elapsed.as_secs_f64() / self.duration.as_secs_f64();
        self.bar.set_position((part.min(1.0) * 1e3) as u64);
        self.bar.set_message(text);
        self.bar.tick();
        self.before = progress.clone();
    }
}

impl View for Live {
    fn update(&mut self, snapshot: &Snapshot) {
        self.show(snapshot);
    }

    fn line(&mut self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}
