//! Live table of an emulation: a line for each port and for each sampled flow.

use indicatif::ProgressBar;
use wirestorm_control::Snapshot;
use wirestorm_control::base::time::Duration;

use super::{latency, sampled_flows};
use crate::foreground::View;
use crate::number::{grouped, scaled};
use crate::terminal_width::{columns, row};
use crate::traffic::bar;

/// Maximum number of sampled flows shown for each port.
const FLOWS_MAX: usize = 10;

/// Live table on standard error. Hidden if standard error is not a terminal.
pub(super) struct Live {
    bar: ProgressBar,
    quiet: bool,
    duration: Duration,
    before: Snapshot,
}

impl Live {
    pub(super) fn new(quiet: bool, duration: Duration) -> Self {
        let bar = bar(quiet, duration);
        Self { bar, quiet, duration, before: Snapshot::default() }
    }

    fn show(&mut self, progress: &Snapshot) {
        let since = progress.elapsed.saturating_sub(self.before.elapsed).as_secs_f64();
        if self.bar.is_hidden() || since < 0.2 {
            return;
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
        let columns = columns();
        let mut text = String::new();
        let mut line = |name: &str, cells: [&str; 6]| {
            let [active, new, out, inward, again, failed] = cells;
            let cells = [(10, active), (9, new), (9, out), (9, inward), (11, again), (9, failed)];
            row(&mut text, columns, (14, name), &cells);
        };
        line("port", ["active", "new /s", "b/s out", "b/s in", "retransmits", "failed"]);
        for (index, port) in progress.ports.iter().enumerate() {
            let before = self.before.ports.get(index).map(|it| it.connections).unwrap_or_default();
            let (name, port) = (&port.name, &port.connections);
            let out = rate(port.sent_bytes, before.sent_bytes) * 8.0;
            let bits = rate(port.received_bytes, before.received_bytes) * 8.0;
            line(
                name,
                [
                    &grouped(port.active),
                    scaled(rate(port.established, before.established)).trim_end(),
                    scaled(out).trim_end(),
                    scaled(bits).trim_end(),
                    &grouped(port.retransmitted),
                    &grouped(port.failed),
                ],
            );
        }
        for probe in &progress.latency {
            latency::live(&mut text, columns, probe);
        }
        if progress.ports.iter().any(|port| !port.sampled.is_empty()) {
            sampled_flows::live_heads(&mut text, columns);
        }
        for port in &progress.ports {
            let shown = port.sampled.len().min(FLOWS_MAX);
            sampled_flows::live(&mut text, columns, &port.sampled[..shown]);
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
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}
