//! Commands to flows of a plan of streams.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_model::stream::Speed;

/// A command to a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowCommand {
    /// Pause. Frames already queued in a port still leave.
    Pause,
    /// Continue where the flow was paused.
    Resume,
    /// Start, whether the flow has ended or never started.
    Start,
    /// Stop. The flow's `next` flow does not start.
    Stop,
    /// Change the speed.
    SetSpeed(Speed),
    /// Change the speed to `numerator / denominator` of the plan's speed.
    Scale {
        /// Numerator of the factor.
        numerator: u64,
        /// Denominator of the factor; not 0.
        denominator: u64,
    },
    /// Change the members of the link aggregation group that may send: bit `n` stands for member `n`.
    SetMembers(u64),
}

/// Commands given to the flows of a run.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    /// Number of flows in the plan.
    flows: usize,
    given: Mutex<Given>,
    /// Number of commands given. Workers read it at each iteration.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Given {
    /// Commands that a worker has yet to execute.
    pending: VecDeque<PendingCommand>,
    /// Number of commands that all workers have executed.
    finished: usize,
    /// Number of commands that each worker has executed; empty before the workers are known.
    executed: Vec<usize>,
    /// Flows that received a command.
    changed: BTreeSet<usize>,
}

/// Delay of commands, so that all workers have seen a command when it takes effect. It exceeds the
/// longest wait of a worker.
const NOTICE: Duration = Duration::from_millis(25);

/// A command and the time when it takes effect.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    pub(crate) at: Instant,
    /// Indices of the flows in the plan.
    pub(crate) flows: Vec<usize>,
    pub(crate) command: FlowCommand,
}

impl FlowControl {
    pub(super) fn new(flows: usize) -> Self {
        Self { flows, ..Self::default() }
    }

    /// Number of flows in the plan.
    pub(super) const fn flows(&self) -> usize {
        self.flows
    }

    /// Sets the number of workers that execute the commands.
    pub(crate) fn set_workers(&self, workers: usize) {
        self.given().executed = vec![0; workers];
    }

    /// Gives a command to flows, by index in the plan. It takes effect after 25 ms or at the start
    /// of the run, whichever is later, at the same instant on all workers.
    pub(crate) fn give(&self, flows: Vec<usize>, command: FlowCommand) {
        let mut given = self.given();
        given.changed.extend(&flows);
        let at = clock::now().saturating_add(NOTICE);
        given.pending.push_back(PendingCommand { at, flows, command });
        self.count.store(given.finished + given.pending.len(), Ordering::Release);
    }

    /// Returns the flows that received a command.
    pub(crate) fn changed_flows(&self) -> BTreeSet<usize> {
        self.given().changed.clone()
    }

    /// Returns the number of commands given.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the commands after the first `executed`, which a worker has executed. Forgets those
    /// that all workers have executed.
    pub(crate) fn after(&self, worker: usize, executed: usize) -> Vec<PendingCommand> {
        let mut given = self.given();
        if let Some(of_worker) = given.executed.get_mut(worker) {
            *of_worker = executed;
        }
        let finished = given.executed.iter().copied().min().unwrap_or_default();
        let forgotten = finished.saturating_sub(given.finished).min(given.pending.len());
        given.pending.drain(..forgotten);
        given.finished += forgotten;
        let skipped = executed.saturating_sub(given.finished);
        given.pending.iter().skip(skipped).cloned().collect()
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_all_workers_have_executed_are_forgotten() {
        let control = FlowControl::new(3);
        control.give(vec![0], FlowCommand::Pause);
        control.set_workers(2);
        control.give(vec![2], FlowCommand::Resume);
        assert_eq!(control.after(0, 0).len(), 2);
        assert_eq!(control.after(0, 2).len(), 0);
        assert_eq!(control.after(1, 1)[0].flows, [2], "the other worker is behind");
        assert_eq!(control.given().pending.len(), 1);
        control.give(vec![2], FlowCommand::Pause);
        assert_eq!(control.after(1, 2)[0].command, FlowCommand::Pause);
        assert_eq!(control.after(0, 3).len(), 0);
        assert_eq!((control.count(), control.given().pending.len()), (3, 1));
        assert_eq!(control.changed_flows(), BTreeSet::from([0, 2]));
    }
}
