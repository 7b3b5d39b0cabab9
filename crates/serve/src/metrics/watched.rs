//! The runs whose metrics a server has.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wirestorm_control::{Host, RunHandle};

use super::RUNS_MAX;

/// Runs in the order in which they were added: at most [`RUNS_MAX`], of which at most
/// [`Host::ENDED_RUNS_MAX`] have ended.
#[derive(Debug, Default)]
pub(crate) struct WatchedRuns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    runs: VecDeque<RunHandle>,
    omitted: u64,
}

impl WatchedRuns {
    /// Adds a run. Beyond a limit it replaces the oldest run that has ended; if there is none, it is
    /// omitted.
    pub(crate) fn add(&self, run: RunHandle) {
        let mut state = self.lock();
        if state.runs.iter().any(|known| known.id() == run.id()) {
            return;
        }
        let is_over = |run: &RunHandle| run.state().is_over();
        let ended = state.runs.iter().filter(|run| is_over(run)).count();
        if state.runs.len() >= RUNS_MAX || ended >= Host::ENDED_RUNS_MAX {
            match state.runs.iter().position(is_over) {
                Some(oldest) => drop(state.runs.remove(oldest)),
                None => {
                    state.omitted += 1;
                    return;
                }
            }
        }
        state.runs.push_back(run);
    }

    /// Returns the runs, and the number of omitted ones.
    pub(super) fn read(&self) -> (Vec<RunHandle>, u64) {
        let state = self.lock();
        (state.runs.iter().cloned().collect(), state.omitted)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
