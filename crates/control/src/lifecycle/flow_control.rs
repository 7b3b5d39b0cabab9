//! Commands to the flows of a plan of streams.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_model::stream::Speed;

/// A command to a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowCommand {
    /// Hold. Frames that a port has ahead of their due times still leave.
    Pause,
    /// Go on where the flow was held.
    Resume,
    /// Begin, whether the flow has ended or never began.
    Start,
    /// End; the flow that it names as its next one does not start.
    Stop,
    /// Send at another speed.
    SetSpeed(Speed),
    /// Send at `numerator / denominator` of the plan's speed.
    Scale {
        /// Upper part of the factor.
        numerator: u64,
        /// Lower part of it, not 0.
        denominator: u64,
    },
}

/// The commands that the flows of a run were given.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    /// How many flows the plan has.
    flows: usize,
    given: Mutex<Vec<GivenCommand>>,
    /// How many were given: read by the workers at every iteration.
    count: AtomicUsize,
}

/// Commands take effect this much later than they are given, so that all workers know of them by
/// then: longer than a worker ever rests.
const NOTICE: Duration = Duration::from_millis(25);

/// A command, and when it takes effect.
#[derive(Clone, Debug)]
pub(crate) struct GivenCommand {
    pub(crate) at: Instant,
    /// The places of its flows in the plan.
    pub(crate) flows: Vec<usize>,
    pub(crate) command: FlowCommand,
}

impl FlowControl {
    pub(super) fn new(flows: usize) -> Self {
        Self { flows, ..Self::default() }
    }

    /// How many flows the plan has.
    pub(super) const fn flows(&self) -> usize {
        self.flows
    }

    /// Gives flows a command, by their places in the plan. It takes effect 25 ms later, at the same
    /// instant on all workers; or at the start of the run, if that is later.
    pub(crate) fn give(&self, flows: Vec<usize>, command: FlowCommand) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let at = clock::now().saturating_add(NOTICE);
        given.push(GivenCommand { at, flows, command });
        self.count.store(given.len(), Ordering::Release);
    }

    /// The flows that were given a command.
    pub(crate) fn changed_flows(&self) -> BTreeSet<usize> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.iter().flat_map(|given| &given.flows).copied().collect()
    }

    /// How many commands were given.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// The commands after the first `done`.
    pub(crate) fn after(&self, done: usize) -> Vec<GivenCommand> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given[done..].to_vec()
    }
}
