//! Commands to flows of a plan of streams.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    pending: Mutex<Vec<PendingCommand>>,
    /// Number of commands given. Workers read it at each iteration.
    count: AtomicUsize,
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

    /// Gives a command to flows, by index in the plan. It takes effect after 25 ms or at the start
    /// of the run, whichever is later, at the same instant on all workers.
    pub(crate) fn give(&self, flows: Vec<usize>, command: FlowCommand) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clock::now().saturating_add(NOTICE);
        pending.push(PendingCommand { at, flows, command });
        self.count.store(pending.len(), Ordering::Release);
    }

    /// Returns the flows that received a command.
    pub(crate) fn changed_flows(&self) -> BTreeSet<usize> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.iter().flat_map(|it| &it.flows).copied().collect()
    }

    /// Returns the number of commands given.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the commands after the first `done`.
    pub(crate) fn after(&self, done: usize) -> Vec<PendingCommand> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending[done..].to_vec()
    }
}
