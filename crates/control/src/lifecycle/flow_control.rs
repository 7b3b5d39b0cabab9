//! Commands to flows of a plan of streams.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock;
use wirestorm_model::stream::{Speed, Stream};

use super::command::CommandError;

/// A command to a flow.
#[derive(Clone, Debug, PartialEq)]
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
    /// Change template, program and trailer to those of this stream, such as frames of another size.
    /// Everything else stays: numbers of frames, sequence, speed, and addresses that the run has
    /// resolved.
    SetFrames(Arc<Stream>),
}

/// Commands given to the flows of a run.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    /// Number of flows in the plan.
    flows: usize,
    /// Length of the longest frame that each flow may change to, known once the run is prepared.
    frame_lengths_max: OnceLock<Vec<usize>>,
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
    /// Flows whose frames changed.
    with_new_frames: BTreeSet<usize>,
    /// Flows that a command paused and no later one resumed or stopped.
    paused: BTreeSet<usize>,
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

    /// Sets the number of workers that execute the commands.
    pub(crate) fn set_workers(&self, workers: usize) {
        self.given().executed = vec![0; workers];
    }

    /// Sets the length of the longest frame that each flow may change to.
    pub(crate) fn set_frame_lengths_max(&self, lengths_max: Vec<usize>) {
        // A run is prepared once.
        let _ = self.frame_lengths_max.set(lengths_max);
    }

    /// Checks a command to flows, by index in the plan.
    ///
    /// # Errors
    /// There is no such flow, or new frames are too long for its port or come before the run is
    /// prepared.
    pub(super) fn check(&self, flows: &[usize], command: &FlowCommand) -> Result<(), CommandError> {
        if let Some(&found) = flows.iter().find(|flow| **flow >= self.flows) {
            return Err(CommandError::NoFlow { found, flows: self.flows });
        }
        let FlowCommand::SetFrames(stream) = command else { return Ok(()) };
        let lengths_max = self.frame_lengths_max.get().ok_or(CommandError::NotPrepared)?;
        let length = stream.template.len();
        let mut of_flows = flows.iter().filter_map(|flow| lengths_max.get(*flow).copied());
        match of_flows.find(|length_max| length > *length_max) {
            Some(length_max) => Err(CommandError::LongFrames { length, length_max }),
            None => Ok(()),
        }
    }

    /// Gives a command to flows, by index in the plan. It takes effect after 25 ms or at the start
    /// of the run, whichever is later, at the same instant on all workers. [`check`](Self::check) has
    /// accepted it.
    pub(super) fn give(&self, flows: Vec<usize>, command: FlowCommand) {
        let mut given = self.given();
        given.changed.extend(&flows);
        match &command {
            FlowCommand::Pause => given.paused.extend(&flows),
            FlowCommand::Resume | FlowCommand::Stop => {
                for flow in &flows {
                    given.paused.remove(flow);
                }
            }
            FlowCommand::SetFrames(_) => given.with_new_frames.extend(&flows),
            // They do not end a pause.
            FlowCommand::Start
            | FlowCommand::SetSpeed(_)
            | FlowCommand::Scale { .. }
            | FlowCommand::SetMembers(_) => {}
        }
        let at = clock::now().saturating_add(NOTICE);
        given.pending.push_back(PendingCommand { at, flows, command });
        self.count.store(given.finished + given.pending.len(), Ordering::Release);
    }

    /// Returns the flows that received a command.
    pub(crate) fn changed_flows(&self) -> BTreeSet<usize> {
        self.given().changed.clone()
    }

    /// Returns the flows whose frames changed.
    pub(crate) fn flows_with_new_frames(&self) -> BTreeSet<usize> {
        self.given().with_new_frames.clone()
    }

    /// Returns the flows that a command paused and no later one resumed or stopped.
    pub(crate) fn paused_flows(&self) -> BTreeSet<usize> {
        self.given().paused.clone()
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
    use wirestorm_model::stream::{Program, Transmission};

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

    #[test]
    fn frames_that_do_not_fit_are_refused() {
        let control = FlowControl::new(3);
        let stream = |length: usize| {
            let speed = Speed::Max;
            FlowCommand::SetFrames(Arc::new(Stream {
                name: String::new(),
                template: vec![0; length],
                program: Program::default(),
                transmission: Transmission::continuous(speed),
                is_measured: false,
                trailer: 0,
                is_marked: false,
                member: None,
            }))
        };
        let check = |flows: &[usize], length| control.check(flows, &stream(length));
        assert_eq!(check(&[0], 60), Err(CommandError::NotPrepared));
        control.set_frame_lengths_max(vec![9_018, 1_518, 9_018]);
        assert_eq!(check(&[0, 2], 9_018), Ok(()));
        let long = CommandError::LongFrames { length: 1_519, length_max: 1_518 };
        assert_eq!(check(&[0, 1], 1_519), Err(long));
        assert_eq!(check(&[3], 60), Err(CommandError::NoFlow { found: 3, flows: 3 }));
    }

    #[test]
    fn pause_of_a_flow_ends_with_resume_or_stop_alone() {
        let control = FlowControl::new(4);
        control.give(vec![0, 1, 2], FlowCommand::Pause);
        control.give(vec![0, 3], FlowCommand::Start);
        control.give(vec![1], FlowCommand::Resume);
        control.give(vec![2, 3], FlowCommand::Stop);
        assert_eq!(control.paused_flows(), BTreeSet::from([0]));
    }
}
