//! Registry of runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::lifecycle::{RunHandle, RunId, RunState, Supervised};
use crate::result::Kind;

/// Number of ended runs that the registry keeps. A result takes 25 KB for each measured flow.
pub(super) const ENDED_RUNS_MAX: usize = 16;

/// Entry of a run in the registry.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Number of the run in this process, from 1.
    pub id: RunId,
    /// Kind of the run.
    pub kind: Kind,
    /// Owner, from the options of the run.
    pub owner: String,
    /// State of the run.
    pub state: RunState,
}

/// Runs of a host, by number.
#[derive(Default)]
pub(crate) struct Registry(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    runs: BTreeMap<RunId, Arc<Supervised>>,
}

impl Registry {
    /// Adds the run that `make` creates for the next number. Removes the oldest ended runs beyond
    /// the limit.
    pub(crate) fn add(&self, make: impl FnOnce(RunId) -> Supervised) -> Arc<Supervised> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.last += 1;
        let id = RunId(state.last);
        let run = Arc::new(make(id));
        let ended = state.runs.iter().filter(|(_, run)| run.state().is_over());
        let ended: Vec<RunId> = ended.map(|(id, _)| *id).collect();
        let excess = (ended.len() + 1).saturating_sub(ENDED_RUNS_MAX);
        for id in &ended[..excess] {
            state.runs.remove(id);
        }
        state.runs.insert(id, Arc::clone(&run));
        run
    }

    pub(crate) fn handle(&self, id: RunId) -> Option<RunHandle> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.runs.get(&id).map(|run| RunHandle::new(Arc::clone(run)))
    }

    pub(crate) fn entries(&self) -> Vec<RunEntry> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |(id, run): (&RunId, &Arc<Supervised>)| RunEntry {
            id: *id,
            kind: run.kind(),
            owner: run.owner().to_owned(),
            state: run.state(),
        };
        state.runs.iter().map(entry).collect()
    }
}
