//! Progress of a method on standard error: a line for each trial, and a bar for the current one.

use std::fmt::Write;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wirestorm_control::base::time::Duration;
use wirestorm_control::bench::{CompletedTrial, Observer, Phase, TrialLog};
use wirestorm_control::method::trial::{Length, TrialInput, TrialOutput};
use wirestorm_control::method::{collector, flow_exporter, ndr};
use wirestorm_control::{RunHandle, Snapshot};

use super::rfc9411;
use super::summary::duration;
use crate::foreground::Foreground;
use crate::number::{grouped, scaled, seconds};
use crate::signals::Signals;
use crate::traffic::shortened;

/// Progress of a method.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    current: Arc<Mutex<Current>>,
}

/// The current trial.
struct Current {
    /// Number, test, traffic and load.
    text: String,
    started: Instant,
    /// Time until the end of the method, when the trial started, in seconds.
    remaining_s: f64,
    /// Time of its traffic.
    duration: Duration,
    phase: Phase,
}

impl Current {
    /// Returns the text beside the bar. A narrow terminal cuts its end.
    fn message(&self) -> String {
        let phase = match self.phase {
            Phase::Learning => "learning  ",
            Phase::Traffic => "",
            Phase::Collecting => "collecting  ",
            Phase::Settling => "settling  ",
        };
        let left = (self.remaining_s - self.started.elapsed().as_secs_f64()).max(0.0);
        format!("{phase}{} left  {}", duration(left), self.text)
    }

    /// Returns the completed part of the traffic. A run whose plan has the durations does not know
    /// it.
    fn fraction(&self, snapshot: &Snapshot) -> f64 {
        let of_trial = || snapshot.elapsed.as_secs_f64() / self.duration.as_secs_f64().max(1e-9);
        snapshot.fraction.unwrap_or_else(of_trial).min(1.0)
    }
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::new(1_000);
        if quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{bar:6} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let current = Current {
            text: String::new(),
            started: Instant::now(),
            remaining_s: 0.0,
            duration: Duration::ZERO,
            phase: Phase::Traffic,
        };
        Self { bar, quiet, current: Arc::new(Mutex::new(current)) }
    }

    /// Returns the observer of trials on interfaces.
    pub(super) fn observer(&self, signals: &Signals, foreground: Rc<Foreground>) -> BarObserver {
        BarObserver {
            bar: self.bar.clone(),
            current: Arc::clone(&self.current),
            signals: signals.clone(),
            foreground,
        }
    }

    /// Shows how far the current trial is, which has run for a time.
    pub(crate) fn running(&self, elapsed: StdDuration) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.set_message(current.message());
        let fraction = elapsed.as_secs_f64() / current.duration.as_secs_f64().max(1e-9);
        self.bar.set_position((fraction.min(1.0) * 1e3) as u64);
        self.bar.tick();
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl TrialLog for Progress {
    fn started(&mut self, number: u32, input: &TrialInput, remaining_s: f64) {
        let current = Current {
            text: format!("trial {number} {}", described(input)),
            started: Instant::now(),
            remaining_s,
            duration: input.duration(),
            phase: Phase::Traffic,
        };
        self.bar.set_position(0);
        self.bar.set_message(current.message());
        self.bar.tick();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn completed(&mut self, trial: &CompletedTrial) -> Result<(), String> {
        if !self.quiet {
            self.line(&line(trial));
        }
        Ok(())
    }
}

/// Shows the progress of trials on interfaces.
pub(super) struct BarObserver {
    bar: ProgressBar,
    current: Arc<Mutex<Current>>,
    signals: Signals,
    foreground: Rc<Foreground>,
}

impl Observer for BarObserver {
    fn phase(&mut self, phase: Phase, handle: Option<&RunHandle>) {
        if let Some(handle) = handle {
            self.signals.command(handle);
            self.foreground.watch(handle);
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.phase = phase;
        self.bar.set_message(current.message());
        self.bar.tick();
    }

    fn progress(&mut self, phase: Phase, snapshot: &Snapshot) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.set_message(current.message());
        if phase == Phase::Traffic {
            self.bar.set_position((current.fraction(snapshot) * 1e3) as u64);
        }
        self.bar.tick();
    }
}

/// Returns test, traffic and load of a trial.
fn described(input: &TrialInput) -> String {
    let Some(offer) = input.offers.first() else { return input.test.clone() };
    let mut text = format!("{} {}", input.test, traffic_name(input));
    if let Some(size) = offer.frame_size {
        // Writing to a string does not fail.
        let _ = write!(text, " {size} B");
    }
    if let Some(step) = offer.steps.first() {
        let length = match step.length {
            Length::Time(_) => format!("{} s", seconds(input.duration().as_secs_f64())),
            Length::Units(units) => format!("{} frames", grouped(units)),
        };
        let load = match &input.connections {
            Some(connections) => rfc9411::load_text(connections.unit, step.load),
            None if ndr::is_connections(&offer.traffic) => format!("{}/s", grouped(step.load)),
            None if is_flows(input) => format!("{}flows/s", scaled(step.load as f64)),
            None if is_records(input) => format!("{}records/s", scaled(step.load as f64)),
            None => format!("{}pps", scaled(step.load as f64)),
        };
        let _ = write!(text, ", {load}, {length}");
    }
    text
}

fn is_flows(input: &TrialInput) -> bool {
    input.offers.iter().any(|offer| flow_exporter::is_traffic(&offer.traffic))
}

fn is_records(input: &TrialInput) -> bool {
    input.offers.iter().any(|offer| collector::is_traffic(&offer.traffic))
}

/// Returns the line of a completed trial, at most 80 columns wide.
fn line(trial: &CompletedTrial) -> String {
    let CompletedTrial { number, input, output, .. } = trial;
    if let Some(connections) = &input.connections {
        return rfc9411::line(*number, input, connections, output);
    }
    let offer = input.offers.first();
    let (traffic, size) = (traffic_name(input), offer.and_then(|it| it.frame_size));
    let size = size.map_or_else(String::new, |size| format!("{size} B"));
    let step = offer.and_then(|offer| offer.steps.first());
    let load = step.map_or(0, |step| step.load);
    let length = match step.map(|step| step.length) {
        Some(Length::Units(units)) => format!("{} fr", grouped(units)),
        _ => format!("{} s", seconds(input.duration().as_secs_f64())),
    };
    format!(
        "{number:>5}  {:<12} {traffic:<7} {size:>6} {:>11}/s {length:>14}  {}",
        input.test,
        grouped(load),
        loss(output)
    )
}

/// Returns the name of the traffic in seven columns, or that there are several.
fn traffic_name(input: &TrialInput) -> String {
    match input.offers.as_slice() {
        [] => String::new(),
        [offer] => shortened(&offer.traffic, 7),
        offers => format!("all {}", offers.len()),
    }
}

/// Returns the loss of a trial, and what the tester did not send.
fn loss(output: &TrialOutput) -> String {
    let total = output.first().total();
    if total.unsent() > 0 {
        let percent = total.unsent() as f64 * 100.0 / total.intended.max(1) as f64;
        return format!("unsent {percent:.2} %");
    }
    let retransmitted = output.segments.map_or(0.0, |segments| segments.retransmitted_ratio());
    match total.lost() {
        // Nothing counted what the collector stored.
        0 if output.collector.as_ref().is_some_and(|it| it.stored.is_none()) => "sent".into(),
        0 if retransmitted > 0.0 => format!("rexmit {:.3} %", retransmitted * 100.0),
        0 => "no loss".into(),
        lost => {
            let percent = lost as f64 * 100.0 / total.offered.max(1) as f64;
            if percent < 0.001 { format!("lost {lost}") } else { format!("loss {percent:.3} %") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(phase: Phase, seconds: u64) -> Current {
        Current {
            text: "trial 3 throughput".to_owned(),
            started: Instant::now() - std::time::Duration::from_secs(seconds),
            remaining_s: 60.9,
            duration: Duration::from_secs(20),
            phase,
        }
    }

    #[test]
    fn remaining_time_falls_during_a_trial() {
        assert!(at(Phase::Traffic, 0).message().ends_with("s left  trial 3 throughput"));
        let settling = at(Phase::Settling, 10).message();
        assert!(settling.starts_with("settling  5"), "{settling}");
        assert!(at(Phase::Traffic, 90).message().starts_with("0 s left"));
    }

    #[test]
    fn traffic_without_a_known_end_lasts_as_long_as_the_trial() {
        let trial = at(Phase::Traffic, 5);
        let elapsed =
            |seconds| Snapshot { elapsed: Duration::from_secs(seconds), ..<_>::default() };
        assert_eq!(trial.fraction(&elapsed(5)), 0.25);
        assert_eq!(trial.fraction(&elapsed(30)), 1.0);
        assert_eq!(trial.fraction(&Snapshot { fraction: Some(0.5), ..elapsed(5) }), 0.5);
    }
}
