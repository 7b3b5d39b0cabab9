//! Work in a thread of its own, which Python's threads wait for, watch and ask.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::errors::run_error;

/// What such work and Python's threads tell each other: how far it is, and what came of it.
pub(crate) struct Shared<Progress, Done, Error> {
    state: Mutex<State<Progress, Done, Error>>,
    changed: Condvar,
}

/// How far work is.
pub(crate) struct State<Progress, Done, Error> {
    /// What it told last, `None` before it has begun.
    pub(crate) progress: Option<Progress>,
    /// What came of it, once it is over.
    pub(crate) outcome: Option<Result<Done, Failure<Error>>>,
}

/// Why nothing came of it.
pub(crate) enum Failure<Error> {
    /// It did not begin.
    NotBegun(Error),
    /// A defect: the words of a panic.
    Panic(String),
}

impl<Progress, Done, Error> Default for Shared<Progress, Done, Error> {
    fn default() -> Self {
        let state = Mutex::new(State { progress: None, outcome: None });
        Self { state, changed: Condvar::new() }
    }
}

impl<Progress, Done, Error> Shared<Progress, Done, Error>
where
    Progress: Send + 'static,
    Done: Send + 'static,
    Error: Send + 'static,
{
    /// Work that a thread does, which tells how far it is by [`Self::tell`].
    pub(crate) fn start(
        py: Python<'_>,
        work: impl FnOnce(&Self) -> Result<Done, Error> + Send + 'static,
    ) -> PyResult<Arc<Self>> {
        let shared = Arc::<Self>::default();
        let own = Arc::clone(&shared);
        // Not Python's thread: a run keeps its own off the CPUs of in-kernel senders.
        let spawned = std::thread::Builder::new().name("wirestorm-run".into()).spawn(move || {
            let outcome = match catch_unwind(AssertUnwindSafe(|| work(&own))) {
                Ok(outcome) => outcome.map_err(Failure::NotBegun),
                Err(panic) => Err(Failure::Panic(words(&*panic))),
            };
            own.change(|state| state.outcome = Some(outcome));
        });
        match spawned {
            Ok(_) => Ok(shared),
            Err(error) => Err(run_error(py, &format!("cannot start a thread: {error}"))),
        }
    }

    /// Tells how far it is.
    pub(crate) fn tell(&self, tell: impl FnOnce(&mut Option<Progress>)) {
        self.change(|state| tell(&mut state.progress));
    }

    /// Waits until it has begun, or is over.
    pub(crate) fn wait_started(&self, py: Python<'_>) {
        py.detach(|| self.wait(None, |it| it.progress.is_some() || it.outcome.is_some()));
    }

    /// Waits until it is over, at most so many seconds; returns whether it is.
    pub(crate) fn wait_done(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or_default());
        py.detach(|| self.wait(timeout, |state| state.outcome.is_some()))
    }

    /// How far it is.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<Progress, Done, Error>> {
        // A state is written in one step: a panic elsewhere leaves none half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State<Progress, Done, Error>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `is_so`, at most for `timeout`; returns whether it is.
    fn wait(
        &self,
        timeout: Option<Duration>,
        is_so: impl Fn(&State<Progress, Done, Error>) -> bool,
    ) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        while !is_so(&state) {
            state = match deadline.map(|it| it.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}

impl<Progress, Done: serde::Serialize, Error> State<Progress, Done, Error> {
    /// What came of it as JSON. Raises `RunError` where it has not ended, or what `not_begun` makes
    /// of why it did not begin.
    pub(crate) fn result(
        &self,
        py: Python<'_>,
        not_begun: impl FnOnce(Python<'_>, &Error) -> PyErr,
    ) -> PyResult<String> {
        match &self.outcome {
            None => Err(run_error(py, "the run has not ended: wait for it, or stop it")),
            Some(Err(Failure::NotBegun(error))) => Err(not_begun(py, error)),
            Some(Err(Failure::Panic(words))) => Err(run_error(py, words)),
            Some(Ok(result)) => written(py, serde_json::to_string(result)),
        }
    }
}

pub(crate) fn written(py: Python<'_>, document: serde_json::Result<String>) -> PyResult<String> {
    document.map_err(|error| run_error(py, &format!("the result is no JSON: {error}")))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a defect in wirestorm ended the run: {}", text.unwrap_or_default())
}
