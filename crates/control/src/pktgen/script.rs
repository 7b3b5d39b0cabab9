//! Run of a script: its devices, and a counter of arrivals.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_plan::pktgen::Script;
use wirestorm_plan::replay::ReceivePlan;

use super::progress::ScriptProgress;
use super::run::DeviceOptions;
use super::session::{Event, EventCallback, Session, StepError};
use super::shell::{ShellError, run_shell};
use crate::lifecycle::{Abandoned, Context};
use crate::receive::{Patience, RunReceiver};
use crate::result::{PortReport, RunResult, Target};
use crate::workers::OBSERVE_INTERVAL;

/// A pktgen script, and an interface to count arrivals on.
pub struct PktgenPlan {
    /// Name for messages.
    pub name: String,
    /// Script; `None` to only count arrivals.
    pub script: Option<ScriptSource>,
    /// Interface to count arrivals on.
    pub receive: Option<String>,
    /// Options for sending.
    pub options: DeviceOptions,
    /// Callback for events. Called on threads of the run.
    pub tell: EventCallback,
}

/// Source of a script.
pub enum ScriptSource {
    /// A parsed file of settings.
    Settings(Script),
    /// A program that uses the pktgen files in `/proc/net`.
    Program {
        /// Command to execute, with its output configured.
        command: Command,
        /// Parsed form, if the script is simple enough.
        readable: Option<Script>,
    },
}

/// Error of a script run that sent nothing.
#[derive(Debug, thiserror::Error)]
pub enum PktgenRunError {
    /// The receiver does not open.
    #[error("{0}")]
    Receive(String),
    /// The interfaces cannot be listed.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(String),
    /// A step of the script failed.
    #[error("{name}: {error}")]
    Step {
        /// Name of the script.
        name: String,
        /// Error of the step.
        error: Box<StepError>,
    },
    /// The script did not start.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// The run was stopped before it started.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
}

/// Runs a script on the calling supervisor thread.
///
/// # Errors
/// Fails if nothing was sent. Later errors are part of the result.
pub(crate) fn run(plan: PktgenPlan, context: &Arc<Context>) -> Result<RunResult, PktgenRunError> {
    let PktgenPlan { name, script, receive, options, tell } = plan;
    let tolerance_ppm = options.tolerance_ppm;
    let duration = options.duration;
    let open = |interface: String| {
        let plan = ReceivePlan { interface, verify: false };
        RunReceiver::open(&plan, false, context.shared_receivers()).map_err(PktgenRunError::Receive)
    };
    let arrivals = receive.map(open).transpose()?;
    let progress = Arc::new(ScriptProgress::new(arrivals.as_ref().map(RunReceiver::counters)));
    let session = Session::open(options, Arc::clone(context), tell, Arc::clone(&progress));
    let session = Arc::new(session.map_err(PktgenRunError::Interfaces)?);
    let start = context.wait_for_start()?;
    if let Some(at) = start.at {
        clock::wait_until(at);
    }
    let start = clock::now();
    progress.start(start);
    context.running(start);
    let has_script = script.is_some();
    let failure = match script {
        Some(script) => follow(&session, &name, script).err(),
        None => {
            wait(&progress, duration, start, context);
            None
        }
    };
    context.draining();
    let outcome = session.finish();
    let mut errors = outcome.errors;
    match failure {
        // Keep the results from before the error.
        Some(error) if !outcome.runs.is_empty() => errors.push(error.to_string()),
        Some(error) => return Err(error),
        None => {}
    }
    let devices = outcome.runs.iter().flat_map(|run| &run.devices);
    let sent = devices.map(|device| device.tx.packets).sum();
    let ports = arrivals.map(|arrivals| {
        let (interface, mut rx) = (arrivals.interface(), arrivals.finish(sent, Patience::NEAR).0);
        if !has_script {
            // Without a script the number of sent frames is unknown.
            (rx.lost, rx.loss_percent, rx.unexpected) = (None, None, None);
        }
        errors.extend(rx.error.clone());
        PortReport { name: interface.clone(), interface, rx: Some(rx), ..PortReport::default() }
    });
    let mut result = RunResult {
        plan: has_script.then_some(name).into_iter().collect(),
        target: Target {
            duration_s: (duration != Duration::MAX).then(|| duration.as_secs_f64()),
            tolerance_ppm,
            ..Target::default()
        },
        interrupted: outcome.interrupted || !has_script && context.controls().is_stopped(),
        device_runs: outcome.runs,
        ports: ports.into_iter().collect(),
        errors,
        notes: outcome.notes,
        ..context.result(Some(start))
    };
    result.achieved.tx.packets = sent;
    result.times.elapsed_s = clock::now().saturating_since(start).as_secs_f64();
    Ok(result)
}

/// Executes a script to its end.
fn follow(session: &Arc<Session>, name: &str, script: ScriptSource) -> Result<(), PktgenRunError> {
    let settings = |script: &Script| {
        let failed = |error| PktgenRunError::Step { name: name.to_owned(), error: Box::new(error) };
        session.follow(script).map_err(failed)
    };
    match script {
        ScriptSource::Settings(script) => settings(&script),
        ScriptSource::Program { command, readable } => match run_shell(session, command) {
            Ok(status) => {
                let signal = || status.signal().map_or(1, |signal| 128 + signal);
                // Exit statuses have 8 bits, signal numbers 7.
                match status.code().unwrap_or_else(signal) as u8 {
                    0 => {}
                    status => session.tell(&Event::ScriptFailed(status)),
                }
                Ok(())
            }
            Err(error) => match readable {
                // The parsed script contains all commands that a shell would execute.
                Some(script) if error.is_about_files() => {
                    let text = format!("executed without a shell: {error}");
                    session.tell(&Event::Note { device: name, text: &text });
                    settings(&script)
                }
                _ => Err(error.into()),
            },
        },
    }
}

/// Counts arrivals until the run stops or its duration is over.
fn wait(progress: &ScriptProgress, duration: Duration, start: Instant, context: &Context) {
    while !context.controls().is_stopped() {
        let elapsed = clock::now().saturating_since(start);
        let left = duration.saturating_sub(elapsed);
        if left == Duration::ZERO {
            return;
        }
        // Kernel counters cannot wake this thread and a stop is a flag, so poll both at the
        // snapshot interval.
        std::thread::sleep(OBSERVE_INTERVAL.min(StdDuration::from_nanos(left.as_nanos())));
        progress.publish(context, std::iter::empty());
    }
}
