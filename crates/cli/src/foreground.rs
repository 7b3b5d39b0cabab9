//! Runs a plan in the foreground of a terminal.
//!
//! Signals control the run, a view shows its snapshots, and its verdict becomes the exit status.

use std::process::ExitCode;
use std::sync::Arc;

use wirestorm_control::result::RunResult;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{Delivery, Host, RunError, RunErrorKind, RunHandle, Snapshot, StartAt};

use crate::files::CommandLineFiles;
use crate::signals::Signals;
use crate::status;

/// Live output of a run on the terminal.
pub(crate) trait View {
    /// Shows the progress of the run.
    fn update(&mut self, snapshot: &Snapshot);

    /// Prints a line above the live output.
    fn line(&mut self, text: &str);

    /// Removes the live output from the terminal.
    fn finish(&mut self);
}

/// Error of a foreground run that has no result.
pub(crate) struct Failure {
    /// Error that ended the run.
    pub(crate) error: Arc<RunError>,
}

impl Failure {
    /// Returns the exit status for this error.
    pub(crate) fn status(&self) -> u8 {
        match self.error.kind() {
            RunErrorKind::Input => status::USAGE,
            RunErrorKind::Abandoned => status::INTERRUPTED,
            RunErrorKind::Defect => status::FAILED,
        }
    }

    /// Prints the error and returns its exit status.
    pub(crate) fn exit(&self) -> ExitCode {
        eprintln!("wirestorm: {}", self.error);
        ExitCode::from(self.status())
    }
}

/// Runs a plan to its end. `with_handle` can pass the handle to another source of commands.
///
/// # Errors
/// The run has no result, because of wrong input, an abandoned start or a defect.
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
    // The command line has no other run to synchronise with, so the run starts at once.
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
