//! Background runs for Python. Threads wait for them without holding the GIL.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use wirestorm_control::host::Access;
use wirestorm_control::run::{Options, Plan, Run};
use wirestorm_control::{
    Command, CommandError, Delivery, Host, RunError, RunHandle, RunState, Snapshot, StartAt,
    Subscription,
};

use crate::errors::{run_error, value_error};

/// Host of all runs in this process.
pub(crate) static HOST: LazyLock<Host> = LazyLock::new(Host::new);

/// A run that stops when no Python object refers to it.
pub(crate) struct Background {
    run: RunHandle,
    /// Subscription until the first snapshot in the state `Running`.
    starting: Mutex<Option<Subscription>>,
}

impl Background {
    /// Begins to prepare a run and returns at once. Also returns its snapshots from the first one.
    ///
    /// `is_shared` allows other runs on the same interfaces.
    pub(crate) fn begin(plan: Plan, is_shared: bool) -> (Self, Subscription) {
        let access = if is_shared { Access::Shared } else { Access::ByBackend };
        let options = Options { access, ..Options::default() };
        let (preparing, snapshots) = Run::begin_watched(plan, options, &HOST, Delivery::Latest);
        let run = preparing.handle();
        let starting = Mutex::new(Some(run.subscribe(Delivery::Latest)));
        (Self { run, starting }, snapshots)
    }

    /// Starts the run as soon as it is prepared.
    pub(crate) fn start(&self) {
        self.run.start(StartAt::Now);
    }

    /// Returns the handle of the run.
    pub(crate) fn handle(&self) -> &RunHandle {
        &self.run
    }

    /// Waits until the run has published its first counters, or is over.
    pub(crate) fn wait_started(&self, py: Python<'_>) {
        py.detach(|| {
            let starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(snapshots) = starting else {
                self.run.wait_running(None);
                return;
            };
            while snapshots.next().is_some_and(|snapshot| !has_started(&snapshot)) {}
        });
    }

    /// Returns the last snapshot. `None` before the first counters.
    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        self.run.latest().filter(|snapshot| has_started(snapshot))
    }

    /// Waits for the end of the run, at most `timeout_s` seconds. Returns whether it is over.
    pub(crate) fn wait_done(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or_default());
        py.detach(|| self.run.wait_over(timeout))
    }

    /// Sends a command to the run. A command after the end of the run has no effect.
    pub(crate) fn command(&self, command: Command) -> PyResult<()> {
        match self.run.command(command) {
            Ok(()) | Err(CommandError::Over { .. }) => Ok(()),
            Err(error) => Err(value_error(error.to_string())),
        }
    }

    /// Returns the result as JSON.
    ///
    /// Raises `RunError` if the run has not ended. If the run did not begin, `not_begun` converts
    /// its error.
    pub(crate) fn result(
        &self,
        py: Python<'_>,
        not_begun: impl FnOnce(Python<'_>, &Arc<RunError>) -> PyErr,
    ) -> PyResult<String> {
        match self.run.outcome() {
            None => Err(run_error(py, "the run has not ended; wait for it or stop it")),
            Some(Err(error)) => Err(not_begun(py, &error)),
            Some(Ok(result)) => to_json(py, serde_json::to_string(&*result)),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.run.stop();
    }
}

/// Returns whether a run sends or has sent. Earlier snapshots have no counters.
fn has_started(snapshot: &Snapshot) -> bool {
    snapshot.state.is_some_and(|state| state >= RunState::Running)
}

pub(crate) fn to_json(py: Python<'_>, document: serde_json::Result<String>) -> PyResult<String> {
    document.map_err(|error| run_error(py, &format!("cannot write the result as JSON: {error}")))
}
