//! Progress line of a replay.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirestorm_control::Snapshot;
use wirestorm_control::base::rate::Layer;

use crate::number::scaled;
use crate::terminal_width::{columns, fit_beside_bar};

/// Steps of the bar, fine enough for an ETA.
const STEPS: u64 = 10_000;

/// Progress bar, or a spinner if the end is unknown. Hidden if standard error is not a terminal.
pub(super) struct ProgressLine {
    bar: ProgressBar,
    before: Snapshot,
}

impl ProgressLine {
    /// Creates a line. It becomes a bar when a snapshot has the fraction of the run.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::new(STEPS);
        if quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(style("{spinner} {elapsed} {msg}"));
        Self { bar, before: Snapshot::default() }
    }

    /// Shows the progress of the run.
    pub(super) fn update(&mut self, progress: &Snapshot) {
        if self.bar.is_hidden() {
            return;
        }
        let since = progress.elapsed.saturating_sub(self.before.elapsed).as_secs_f64();
        if since < 0.05 {
            return;
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
        let pps = rate(progress.transmitted.sent, self.before.transmitted.sent);
        let bytes = rate(progress.transmitted.sent_bytes, self.before.transmitted.sent_bytes);
        let flows = rate(progress.replay.flows, self.before.replay.flows);
        let bits = |layer: Layer| (bytes + pps * layer.overhead() as f64) * 8.0;
        if let Some(fraction) = progress.fraction {
            self.bar.set_style(style("{bar:16} {percent:>3}% ETA {eta:>3} {msg}"));
            self.bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        let parts = [
            format!("{}pps", scaled(pps)),
            format!("{}b/s L1", scaled(bits(Layer::Wire))),
            format!("{}b/s L2", scaled(bits(Layer::FrameWithFcs))),
            format!("{}flows/s", scaled(flows)),
        ];
        self.bar.set_message(fit_beside_bar(columns(), &parts));
        self.bar.tick();
        self.before = progress.clone();
    }

    /// Hides the line while `print` runs.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Removes the line.
    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
