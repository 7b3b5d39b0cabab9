//! Live table of flows: a line for each flow, and one for their sum.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirestorm_control::Snapshot;
use wirestorm_control::base::rate::Layer;
use wirestorm_control::base::time::Duration;

use crate::foreground::View;
use crate::number::{scaled, signed_nanoseconds};
use crate::terminal_width::{columns, fit_beside_bar, row};

/// Maximum number of flows with a line, so that the table fits any terminal.
const FLOWS_MAX: usize = 15;

/// Live table on standard error. Hidden if standard error is not a terminal.
pub(crate) struct Live {
    bar: ProgressBar,
    duration: Duration,
    names: Vec<String>,
    is_measured: bool,
    before: Snapshot,
}

/// Creates the bar beside a live table's first line: a progress bar, or a spinner if the run has no
/// end.
///
/// Hidden with `quiet` or if standard error is not a terminal.
pub(crate) fn bar(quiet: bool, duration: Duration) -> ProgressBar {
    let bar = ProgressBar::new(1_000);
    if quiet || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = if duration == Duration::MAX {
        "{spinner} {elapsed} {msg}"
    } else {
        "{bar:16} {percent:>3}% ETA {eta:>3} {msg}"
    };
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

impl Live {
    /// `names`: names of the flows, or none if the first snapshot tells them. `is_measured`:
    /// whether any is measured.
    pub(crate) fn new(
        names: Vec<String>,
        is_measured: bool,
        quiet: bool,
        duration: Duration,
    ) -> Self {
        let bar = bar(quiet, duration);
        Self { bar, duration, names, is_measured, before: Snapshot::default() }
    }

    fn show(&mut self, progress: &Snapshot) {
        let since = progress.elapsed.saturating_sub(self.before.elapsed).as_secs_f64();
        if self.bar.is_hidden() || since < 0.2 {
            return;
        }
        if self.names.is_empty() {
            self.names = progress.flows.iter().map(|flow| flow.name.to_string()).collect();
        }
        self.is_measured |= progress.flows.iter().any(|flow| flow.received.is_some());
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
        let pps = rate(progress.transmitted.sent, self.before.transmitted.sent);
        let bytes = rate(progress.transmitted.sent_bytes, self.before.transmitted.sent_bytes);
        let bits = |layer: Layer| (bytes + pps * layer.overhead() as f64) * 8.0;
        let part = progress.elapsed.as_secs_f64() / self.duration.as_secs_f64();
        let columns = columns();
        let parts = [
            format!("{}pps", scaled(pps)),
            format!("{}b/s L1", scaled(bits(Layer::Wire))),
            format!("{}b/s L2", scaled(bits(Layer::FrameWithFcs))),
        ];
        let mut text = fit_beside_bar(columns, &parts);
        if self.names.len() > 1 || self.is_measured {
            text += &self.table(columns, progress, &rate);
        }
        self.bar.set_position((part.min(1.0) * 1e3) as u64);
        self.bar.set_message(text);
        self.bar.tick();
        self.before = progress.clone();
    }

    fn table(&self, columns: usize, progress: &Snapshot, rate: &dyn Fn(u64, u64) -> f64) -> String {
        let mut text = String::new();
        let mut line = |name: &str, cells: &[&str]| {
            let cells: Vec<_> = cells.iter().map(|cell| (10, *cell)).collect();
            row(&mut text, columns, (22, name), &cells);
        };
        let heads = ["tx pps", "b/s L1", "rx pps", "reordered", "delay"];
        line("flow", if self.is_measured { &heads } else { &heads[..2] });
        for (index, name) in self.names.iter().enumerate().take(FLOWS_MAX) {
            let flow = progress.flows.get(index).cloned().unwrap_or_default();
            let flow_before = self.before.flows.get(index).cloned().unwrap_or_default();
            let (sent, before) = (flow.sent, flow_before.sent);
            let pps = rate(sent.frames, before.frames);
            let bytes = rate(sent.bytes, before.bytes);
            let bits = (bytes + pps * Layer::Wire.overhead() as f64) * 8.0;
            let (sent, bits) = (scaled(pps), scaled(bits));
            let mut cells = vec![sent.trim_end(), bits.trim_end()];
            let received = flow.received.unwrap_or_default();
            let arrived;
            if let Some(delay) = received.delay_mean_ns {
                let before = flow_before.received.unwrap_or_default();
                let pps = rate(received.frames, before.frames);
                arrived = [
                    scaled(pps).trim_end().to_owned(),
                    received.reordered.to_string(),
                    signed_nanoseconds(delay.round() as i64),
                ];
                cells.extend(arrived.iter().map(String::as_str));
            }
            line(name, &cells);
        }
        if let Some(more) = self.names.len().checked_sub(FLOWS_MAX).filter(|more| *more > 0) {
            line(&format!("{more} more"), &[]);
        }
        text
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
