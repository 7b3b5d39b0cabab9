//! Runs as Python's threads see them, which wait for them without Python's lock.

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

/// The host of all runs of this process.
pub(crate) static HOST: LazyLock<Host> = LazyLock::new(Host::new);

/// A run that ends when nothing of Python's refers to it any more.
pub(crate) struct Background {
    run: RunHandle,
    /// Its snapshots until the first one that it publishes while it sends.
    starting: Mutex<Option<Subscription>>,
}

impl Background {
    /// Begins to prepare a run, and returns at once; `is_shared`: beside other runs on the same
    /// interfaces. Its snapshots come from the first on.
    pub(crate) fn begin(plan: Plan, is_shared: bool) -> (Self, Subscription) {
        let access = if is_shared { Access::Shared } else { Access::ByBackend };
        let options = Options { access, ..Options::default() };
        let (preparing, snapshots) = Run::begin_watched(plan, options, &HOST, Delivery::Latest);
        let run = preparing.handle();
        let starting = Mutex::new(Some(run.subscribe(Delivery::Latest)));
        (Self { run, starting }, snapshots)
    }

    /// Lets it start as soon as it is prepared.
    pub(crate) fn start(&self) {
        self.run.start(StartAt::Now);
    }

    /// The run.
    pub(crate) fn handle(&self) -> &RunHandle {
        &self.run
    }

    /// Waits until it runs and has published its first counters, or is over.
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

    /// How far it has come; `None` before it has published its first counters.
    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        self.run.latest().filter(|snapshot| has_started(snapshot))
    }

    /// Waits until it is over, for so many seconds at most; returns whether it is.
    pub(crate) fn wait_done(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or_default());
        py.detach(|| self.run.wait_over(timeout))
    }

    /// Commands it. What comes after its end has no effect.
    pub(crate) fn command(&self, command: Command) -> PyResult<()> {
        match self.run.command(command) {
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
        match self.run.outcome() {
            None => Err(run_error(py, "the run has not ended: wait for it, or stop it")),
            Some(Err(error)) => Err(not_begun(py, &error)),
            Some(Ok(result)) => written(py, serde_json::to_string(&*result)),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.run.stop();
    }
}

/// Whether a run sends, or did: what it publishes before has no counters.
fn has_started(snapshot: &Snapshot) -> bool {
    snapshot.state.is_some_and(|state| state >= RunState::Running)
}

pub(crate) fn written(py: Python<'_>, document: serde_json::Result<String>) -> PyResult<String> {
    document.map_err(|error| run_error(py, &format!("the result is no JSON: {error}")))
}
