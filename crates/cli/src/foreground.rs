//! A run in the foreground of a terminal: signals command it, snapshots are shown, and its verdict
//! becomes the exit status.

use std::process::ExitCode;
use std::sync::Arc;

use wirestorm_control::result::RunResult;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{Delivery, Host, RunError, RunErrorKind, RunHandle, Snapshot, StartAt};

use crate::files::CommandLineFiles;
use crate::signals::Signals;
use crate::status;

/// What moves on the terminal while a run goes on.
pub(crate) trait View {
    /// Shows how far the run has come.
    fn update(&mut self, snapshot: &Snapshot);

    /// Shows a line above what moves.
    fn line(&mut self, text: &str);

    /// Takes it off the terminal.
    fn finish(&mut self);
}

/// Why a run in the foreground has no result.
pub(crate) struct Failure {
    /// The error.
    pub(crate) error: Arc<RunError>,
}

impl Failure {
    /// The exit status that reports it.
    pub(crate) fn status(&self) -> u8 {
        match self.error.kind() {
            RunErrorKind::Input => status::USAGE,
            RunErrorKind::Abandoned => status::INTERRUPTED,
            RunErrorKind::Defect => status::FAILED,
        }
    }

    /// Prints the error; the exit status that reports it.
    pub(crate) fn exit(&self) -> ExitCode {
        eprintln!("wirestorm: {}", self.error);
        ExitCode::from(self.status())
    }
}

/// Runs a plan to its end; `with_handle` may pass the handle on to a source of commands.
///
/// # Errors
/// Where the run has no result.
pub(crate) fn run(
    plan: Plan,
    source: String,
    view: &mut impl View,
    signals: &Signals,
    with_handle: impl FnOnce(&RunHandle),
) -> Result<Arc<RunResult>, Failure> {
    let host = Host::new();
    let options = Options { source, files: CommandLineFiles::shared(), ..Options::default() };
    let (preparing, snapshots) = Run::begin_watched(plan, options, &host, Delivery::Every);
    let handle = preparing.handle();
    signals.command(&handle);
    with_handle(&handle);
    // The start is asked for now: nothing else has to be ready.
    handle.start(StartAt::Now);
    while let Some(snapshot) = snapshots.next() {
        if let Some(text) = &snapshot.waiting_for {
            view.line(&format!("wirestorm: {text}"));
        } else {
            view.update(&snapshot);
        }
    }
    view.finish();
    handle.wait().map_err(|error| Failure { error })
}
