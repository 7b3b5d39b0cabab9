//! `--stats`: a line of statistics every so often, or after every pass.

use std::io::{self, Write};

use wirestorm_control::Snapshot;
use wirestorm_control::base::time::Duration;

use crate::number::{grouped, scaled, seconds, several};

/// When the next line is due.
pub(super) struct Statistics {
    /// Zero: after every pass.
    interval: Duration,
    next: Duration,
}

impl Statistics {
    /// A line every so many seconds; 0: after every pass.
    pub(super) fn every(interval_s: u64) -> Self {
        let interval = Duration::from_secs(interval_s);
        Self { interval, next: interval }
    }

    /// Prints a line if one is due.
    pub(super) fn update(&mut self, progress: &Snapshot) {
        let is_due = if self.interval == Duration::ZERO {
            progress.pass_ended
        } else {
            progress.elapsed >= self.next
        };
        if !is_due {
            return;
        }
        // A pass that goes on, or the one that has ended.
        let pass = progress.replay.passes + u64::from(!progress.pass_ended);
        while self.interval > Duration::ZERO && self.next <= progress.elapsed {
            self.next += self.interval;
        }
        let elapsed_s = progress.elapsed.as_secs_f64();
        let sent = &progress.transmitted;
        // A reader that has gone stops no replay.
        let _ = writeln!(
            io::stdout(),
            "{} s: pass {}, {} ({}), {}pps, {}b/s, {} failed",
            seconds(elapsed_s),
            pass,
            several(sent.sent, "packet", "packets"),
            several(sent.sent_bytes, "byte", "bytes"),
            scaled(sent.sent as f64 / elapsed_s.max(1e-9)),
            scaled(sent.sent_bytes as f64 * 8.0 / elapsed_s.max(1e-9)),
            grouped(sent.failed),
        );
    }
}
