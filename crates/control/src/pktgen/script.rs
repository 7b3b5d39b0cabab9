//! A script as a run: its devices, and what arrives meanwhile.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_plan::pktgen::Script;
use wirestorm_plan::replay::ReceivePlan;

use super::run::DeviceOptions;
use super::session::{Event, Session, StepError, Tell};
use super::shell::{ShellError, run_shell};
use crate::lifecycle::{Abandoned, Context, PortSnapshot, Snapshot};
use crate::receive::Arrivals;
use crate::result::{PortReport, RunResult, Target};
use crate::workers::OBSERVE_INTERVAL;

/// A script for pktgen, and what arrives while it runs.
pub struct PktgenPlan {
    /// Its name, for messages.
    pub name: String,
    /// The script; `None`: arrivals are counted alone.
    pub script: Option<ScriptSource>,
    /// Where arrivals are counted.
    pub receive: Option<String>,
    /// How devices send.
    pub options: DeviceOptions,
    /// Callback for events. Called on threads of the run.
    pub tell: Tell,
}

/// A script.
pub enum ScriptSource {
    /// A file of settings, which was read.
    Settings(Script),
    /// A program that finds the files of pktgen in its `/proc/net`.
    Program {
        /// How it starts. The command has its output.
        command: Command,
        /// What it does, where that was simple enough to be read too.
        readable: Option<Script>,
    },
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum PktgenRunError {
    /// The receiving end does not open.
    #[error("{0}")]
    Receive(String),
    /// The interfaces cannot be listed.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(String),
    /// The script's settings cannot be followed.
    #[error("{name}: {error}")]
    Step {
        /// The script.
        name: String,
        /// What is wrong.
        error: Box<StepError>,
    },
    /// The script did not start.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// The run was stopped before it began.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
}

/// Runs a script, as a run's supervisor thread does.
///
/// # Errors
/// Where nothing was sent. What goes wrong later is in the result.
pub(crate) fn run(plan: PktgenPlan, context: &Arc<Context>) -> Result<RunResult, PktgenRunError> {
    let PktgenPlan { name, script, receive, options, tell } = plan;
    let tolerance_ppm = options.tolerance_ppm;
    let duration = options.duration;
    let open = |interface: String| {
        let plan = ReceivePlan { interface, verify: false };
        Arrivals::open(&plan, false, context).map_err(PktgenRunError::Receive)
    };
    let arrivals = receive.map(open).transpose()?;
    let session = Session::open(options, Arc::clone(context), tell);
    let session = Arc::new(session.map_err(PktgenRunError::Interfaces)?);
    let start = context.wait_for_start()?;
    if let Some(at) = start.at {
        clock::wait_until(at);
    }
    let start = clock::now();
    context.running();
    let has_script = script.is_some();
    let failure = match script {
        Some(script) => follow(&session, &name, script).err(),
        None => {
            if let Some(arrivals) = &arrivals {
                wait(arrivals, duration, start, context);
            }
            None
        }
    };
    context.draining();
    let outcome = session.finish();
    let mut errors = outcome.errors;
    match failure {
        // What was measured before the script went wrong is in the result.
        Some(error) if !outcome.runs.is_empty() => errors.push(error.to_string()),
        Some(error) => return Err(error),
        None => {}
    }
    let devices = outcome.runs.iter().flat_map(|run| &run.devices);
    let sent = devices.map(|device| device.tx.packets).sum();
    let ports = arrivals.map(|arrivals| {
        let (interface, mut rx) = (arrivals.interface(), arrivals.finish(sent).0);
        if !has_script {
            // Nobody knows what was sent.
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

/// Follows a script to its end.
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
                // Exit statuses have eight bits, signals seven.
                match status.code().unwrap_or_else(signal) as u8 {
                    0 => {}
                    status => session.tell(&Event::ScriptFailed(status)),
                }
                Ok(())
            }
            Err(error) => match readable {
                // A shell would be given no other commands than these.
                Some(script) if error.is_about_files() => {
                    let text = format!("read without a shell: {error}");
                    session.tell(&Event::Note { device: name, text: &text });
                    settings(&script)
                }
                _ => Err(error.into()),
            },
        },
    }
}

/// Counts arrivals until the run is stopped or its time is over.
fn wait(arrivals: &Arrivals, duration: Duration, start: Instant, context: &Context) {
    let interface = arrivals.interface();
    while !context.controls().is_stopped() {
        let elapsed = clock::now().saturating_since(start);
        let left = duration.saturating_sub(elapsed);
        if left == Duration::ZERO {
            return;
        }
        // The counters in the kernel wake nobody, and a stop is a flag: both are looked at when a
        // snapshot is due.
        std::thread::sleep(OBSERVE_INTERVAL.min(StdDuration::from_nanos(left.as_nanos())));
        let mut port = PortSnapshot { name: interface.clone(), ..PortSnapshot::default() };
        port.interface.clone_from(&interface);
        port.received.received = arrivals.packets();
        context.publish(Snapshot { elapsed, ports: vec![port], ..Snapshot::default() });
    }
}
