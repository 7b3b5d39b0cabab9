//! Runs plans in the foreground of a terminal.
//!
//! Signals control the run, a view shows its snapshots, and its verdict becomes the exit status.

use std::process::ExitCode;
use std::sync::Arc;

use wirestorm_control::result::RunResult;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{Delivery, Host, RunError, RunErrorKind, RunHandle, Snapshot, StartAt};
use wirestorm_serve::MetricsServer;

use crate::files::CommandLineFiles;
use crate::metrics::MetricsFlags;
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

/// The runs of a command, with the server of their metrics.
pub(crate) struct Foreground {
    host: Host,
    metrics: Option<MetricsServer>,
}

impl Foreground {
    /// Starts the server of the metrics, if the flags ask for one.
    ///
    /// # Errors
    /// A message about the address and port.
    pub(crate) fn open(flags: MetricsFlags) -> Result<Self, String> {
        let host = Host::new();
        let start = |address| {
            let server = MetricsServer::start(address, &host);
            let server = server.map_err(|error| format!("--metrics: {error}"))?;
            if address.port() == 0 {
                eprintln!("wirestorm: metrics at http://{}/metrics", server.address());
            }
            Ok::<_, String>(server)
        };
        let metrics = flags.metrics.map(start).transpose()?;
        Ok(Self { host, metrics })
    }

    /// Returns the host of all runs.
    pub(crate) const fn host(&self) -> &Host {
        &self.host
    }

    /// Adds a run to the metrics, if they are served.
    pub(crate) fn watch(&self, run: &RunHandle) {
        if let Some(metrics) = &self.metrics {
            metrics.watch(run);
        }
    }

    /// Runs a plan to its end. `with_handle` can pass the handle to another source of commands.
    ///
    /// # Errors
    /// The run has no result, because of wrong input, an abandoned start or a defect.
    pub(crate) fn run(
        &self,
        plan: Plan,
        source: String,
        view: &mut impl View,
        signals: &Signals,
        with_handle: impl FnOnce(&RunHandle),
    ) -> Result<Arc<RunResult>, Failure> {
        let options = Options { source, files: CommandLineFiles::shared(), ..Options::default() };
        let (preparing, snapshots) = Run::begin_watched(plan, options, &self.host, Delivery::Every);
        let handle = preparing.handle();
        self.watch(&handle);
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
}
