//! A run on a server, followed in the foreground.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirestorm_api::client::{Client, ClientError};
use wirestorm_api::error::ErrorCode;
use wirestorm_api::run::{
    CommandRequest, PlanSource, RunOptions, RunRequest, RunState, RunSummary,
};
use wirestorm_api::upload::UploadError;
use wirestorm_control::result::RunResult;

use crate::foreground::View;
use crate::report::Output;
use crate::signals::Signals;
use crate::status;

/// Interval of live counters.
const INTERVAL: Duration = Duration::from_millis(250);
/// Time without a connection after which the command gives up. The run continues.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before the next attempt to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// A plan for a server, from the command line.
pub(crate) struct RemotePlan<'a> {
    /// The plan.
    pub(crate) source: PlanSource,
    /// File of the plan: names in the plan are relative to its folder.
    pub(crate) file: &'a Path,
    /// Name of the run in the history.
    pub(crate) name: Option<String>,
    /// Interfaces of the plan's ports.
    pub(crate) ports: BTreeMap<String, String>,
    /// Options.
    pub(crate) options: RunOptions,
}

/// Error of a run on a server: its message and the exit status.
struct RemoteError {
    message: String,
    status: u8,
}

impl RemoteError {
    fn usage(message: impl ToString) -> Self {
        Self { message: message.to_string(), status: status::USAGE }
    }

    fn failed(message: impl ToString) -> Self {
        Self { message: message.to_string(), status: status::FAILED }
    }
}

/// Runs a plan on a server, shows its progress until it is over, and prints its result. Signals stop
/// the run; without this command it would continue. `with_run` gets the ID once the run exists.
pub(crate) fn run_and_print(
    client: &Client,
    plan: RemotePlan<'_>,
    mut view: impl View,
    json: Option<&Path>,
    with_run: impl FnOnce(&str) -> Result<(), String>,
    show: impl FnOnce(&RunResult, &mut Output) -> Result<(), String>,
) -> ExitCode {
    let signals = Signals::catch();
    let stop = signals.stop_flag();
    let finish = || {
        let mut output = Output::open(json).map_err(RemoteError::usage)?;
        let (run, result) = run(client, plan, &mut view, &stop, with_run)?;
        show(&result, &mut output).map_err(RemoteError::failed)?;
        eprintln!("saved on {} as {}", client.server(), run.id);
        Ok::<u8, RemoteError>(result.verdict.outcome.exit_status())
    };
    match finish() {
        Ok(status) => ExitCode::from(status),
        Err(RemoteError { message, status }) => {
            eprintln!("wirestorm: {message}");
            ExitCode::from(status)
        }
    }
}

fn run(
    client: &Client,
    plan: RemotePlan<'_>,
    view: &mut impl View,
    stop: &AtomicBool,
    with_run: impl FnOnce(&str) -> Result<(), String>,
) -> Result<(RunSummary, RunResult), RemoteError> {
    let run = create(client, plan, view)?;
    with_run(&run.id).map_err(RemoteError::usage)?;
    follow(client, &run.id, view, stop)?;
    let run = client.run(&run.id).map_err(RemoteError::failed)?;
    let result = client.result(&run.id).map_err(|error| match error.code() {
        // Stopped before it measured anything, or a defect.
        Some(ErrorCode::Conflict) => RemoteError {
            message: run.message.clone().unwrap_or_else(|| error.to_string()),
            status: match run.state {
                RunState::Interrupted => status::INTERRUPTED,
                _ => status::FAILED,
            },
        },
        _ => RemoteError::failed(error),
    })?;
    Ok((run, result))
}

/// Creates the run. Uploads the files that the plan names and the server does not have.
fn create(
    client: &Client,
    plan: RemotePlan<'_>,
    view: &mut impl View,
) -> Result<RunSummary, RemoteError> {
    let folder = plan.file.parent().unwrap_or(Path::new(""));
    let request = RunRequest {
        plan: plan.source,
        name: plan.name,
        ports: plan.ports,
        options: plan.options,
        files: BTreeMap::new(),
        start: Default::default(),
        when_lease_ends: Default::default(),
        shared: false,
        command: std::env::args().collect(),
    };
    let mut notice = |line: &str| view.line(&format!("wirestorm: {line}"));
    client.create_run_with_files(request, folder, &mut notice).map_err(|error| match error {
        UploadError::Client(error) => RemoteError::usage(error.in_plan(plan.file)),
        UploadError::TooMany => {
            RemoteError::usage(format!("{}: {}", plan.file.display(), UploadError::TooMany))
        }
        error => RemoteError::usage(error),
    })
}

/// Shows the live counters of a run until it is over.
fn follow(
    client: &Client,
    id: &str,
    view: &mut impl View,
    stop: &AtomicBool,
) -> Result<(), RemoteError> {
    let (mut heard, mut is_stopped, mut waited_for) = (Instant::now(), false, None);
    loop {
        let mut broken = None;
        match client.follow(id, INTERVAL) {
            Ok(events) => {
                for event in events {
                    let progress = match event {
                        Ok(progress) => progress,
                        Err(error) => {
                            broken = Some(error);
                            break;
                        }
                    };
                    heard = Instant::now();
                    if stop.load(Ordering::Relaxed) && !is_stopped {
                        is_stopped = true;
                        match client.command(id, &CommandRequest::Stop) {
                            // It ended by itself.
                            Err(error) if error.code() == Some(ErrorCode::Conflict) => {}
                            Err(error) => return Err(RemoteError::failed(error)),
                            Ok(_) => {}
                        }
                    }
                    if progress.waiting_for.is_some() {
                        if progress.waiting_for != waited_for
                            && let Some(text) = &progress.waiting_for
                        {
                            view.line(&format!("wirestorm: {text}"));
                        }
                        waited_for = progress.waiting_for;
                    } else {
                        view.update(&progress.snapshot());
                    }
                    if progress.state.is_over() {
                        view.finish();
                        return Ok(());
                    }
                }
            }
            Err(error @ ClientError::Connection { .. }) => broken = Some(error),
            Err(error) => {
                view.finish();
                return Err(RemoteError::failed(error));
            }
        }
        if stop.load(Ordering::Relaxed) && is_stopped || heard.elapsed() > PATIENCE {
            view.finish();
            let reason = broken.map_or_else(|| "the stream ended".to_owned(), |it| it.to_string());
            return Err(RemoteError::failed(format!(
                "{reason}; run {id} continues on the server, which saves its result"
            )));
        }
        std::thread::sleep(RECONNECT_PAUSE);
    }
}

/// Returns the bindings of ports from `NAME=INTERFACE`.
pub(crate) fn bindings(bindings: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut ports = BTreeMap::new();
    for binding in bindings {
        let Some((name, interface)) = binding.split_once('=') else {
            return Err(format!("--port {binding:?}: expected NAME=INTERFACE"));
        };
        if ports.insert(name.to_owned(), interface.to_owned()).is_some() {
            return Err(format!("--port {binding:?}: {name} is already bound"));
        }
    }
    Ok(ports)
}
