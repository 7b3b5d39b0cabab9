//! `--stats`: prints a line of statistics at an interval, or after every pass.

use std::io::{self, Write};

use wirestorm_control::Snapshot;
use wirestorm_control::base::time::Duration;

use crate::number::{count_of, grouped, scaled, seconds};

/// Schedule of the statistics lines.
pub(super) struct Statistics {
    /// Zero means after every pass.
    interval: Duration,
    next: Duration,
}

impl Statistics {
    /// Creates a schedule with an interval in seconds. 0 means after every pass.
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
        // Number of the current pass, or of the pass that has just ended.
        let pass = progress.replay.passes + u64::from(!progress.pass_ended);
        while self.interval > Duration::ZERO && self.next <= progress.elapsed {
            self.next += self.interval;
        }
        let elapsed_s = progress.elapsed.as_secs_f64();
        let sent = &progress.transmitted;
        // Ignores write errors: a closed pipe does not stop the replay.
        let _ = writeln!(
            io::stdout(),
            "{} s: pass {}, {} ({}), {}pps, {}b/s, {} failed",
            seconds(elapsed_s),
            pass,
            count_of(sent.sent, "packet", "packets"),
            count_of(sent.sent_bytes, "byte", "bytes"),
            scaled(sent.sent as f64 / elapsed_s.max(1e-9)),
            scaled(sent.sent_bytes as f64 * 8.0 / elapsed_s.max(1e-9)),
            grouped(sent.failed),
        );
    }
}
