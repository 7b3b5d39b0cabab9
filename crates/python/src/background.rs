//! Runs as Python's threads see them, which wait for them without Python's lock.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pyo3::prelude::*;
use wirestorm_control::host::Access;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{Command, CommandError, Host, RunError, RunHandle, StartAt, Subscription};

use crate::errors::{run_error, value_error};

/// The host of all runs of this process.
pub(crate) static HOST: LazyLock<Host> = LazyLock::new(Host::new);

/// A run that ends when nothing of Python's refers to it any more.
pub(crate) struct Background(RunHandle);

impl Background {
    /// Begins to prepare a run, and returns at once; `is_shared`: beside other runs on the same
    /// interfaces. Its snapshots come from the first on.
    pub(crate) fn begin(plan: Plan, is_shared: bool) -> (Self, Subscription) {
        let access = if is_shared { Access::Shared } else { Access::ByBackend };
        let options = Options { access, ..Options::default() };
        let (preparing, snapshots) =
            Run::begin_watched(plan, options, &HOST, wirestorm_control::Delivery::Latest);
        (Self(preparing.handle()), snapshots)
    }

    /// Lets it start as soon as it is prepared.
    pub(crate) fn start(&self) {
        self.0.start(StartAt::Now);
    }

    /// The run.
    pub(crate) fn handle(&self) -> &RunHandle {
        &self.0
    }

    /// Waits until it runs, or is over.
    pub(crate) fn wait_started(&self, py: Python<'_>) {
        py.detach(|| self.0.wait_running(None));
    }

    /// Waits until it is over, for so many seconds at most; returns whether it is.
    pub(crate) fn wait_done(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or_default());
        py.detach(|| self.0.wait_over(timeout))
    }

    /// Commands it. What comes after its end has no effect.
    pub(crate) fn command(&self, command: Command) -> PyResult<()> {
        match self.0.command(command) {
            Ok(()) | Err(CommandError::Over { .. }) => Ok(()),
            Err(error) => Err(value_error(error.to_string())),
        }
    }

    /// Its result as JSON. Raises `RunError` where it has not ended, or what `not_begun` makes of why
    /// it did not begin.
    pub(crate) fn result(
        &self,
        py: Python<'_>,
        not_begun: impl FnOnce(Python<'_>, &Arc<RunError>) -> PyErr,
    ) -> PyResult<String> {
        match self.0.outcome() {
            None => Err(run_error(py, "the run has not ended: wait for it, or stop it")),
            Some(Err(error)) => Err(not_begun(py, &error)),
            Some(Ok(result)) => written(py, serde_json::to_string(&*result)),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.stop();
    }
}

pub(crate) fn written(py: Python<'_>, document: serde_json::Result<String>) -> PyResult<String> {
    document.map_err(|error| run_error(py, &format!("the result is no JSON: {error}")))
}
