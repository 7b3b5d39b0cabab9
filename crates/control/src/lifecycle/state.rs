//! State of a run, shared by its threads and handles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::time::Instant;
use wirestorm_engine::measure::Distribution;
use wirestorm_io::clock;

use super::command::{Command, CommandError};
use super::error::{RunError, RunErrorKind};
use super::flow_control::{FlowCommand, FlowControl};
use super::id::RunId;
use super::load_control::LoadControl;
use super::run_state::RunState;
use super::snapshot::{Delivery, Snapshot, Subscribers, Subscription};
use crate::result::{Kind, MeasuredReport, Outcome, RunResult, TagReport};

/// Start time of a prepared run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// As soon as the threads are ready.
    #[default]
    Now,
    /// At a time of the monotonic clock; at once if it is in the past.
    Monotonic(Instant),
    /// At a wall clock time in nanoseconds since the Unix epoch; at once if it is in the past.
    Realtime(u64),
}

/// Outcome of a run: its result or its error.
pub type RunOutcome = Result<Arc<RunResult>, Arc<RunError>>;

/// Queries the measurement of flows during a run.
pub(crate) trait LiveQuery: Send + Sync {
    /// Returns the measurement of a flow so far at each receiving port, by index in the plan,
    /// without segments of delay that ended before `since`.
    fn measured(&self, flow: usize, since: Instant) -> Vec<MeasuredReport>;

    /// Returns the delays of the measured ones among some flows, all receiving ports together, by
    /// index in the plan.
    fn delays(&self, flows: &[usize]) -> BTreeMap<usize, Distribution>;

    /// Ends the comparison of the payload of flows, whose frames will change.
    fn stop_comparing(&self, flows: &[usize]);

    /// Returns the counters of flows by VLAN tag, of all receiving ports.
    fn tags(&self, flows: &[usize]) -> Vec<Vec<TagReport>>;
}

/// State that the supervisor thread and the handles of a run share.
pub(crate) struct Supervised {
    id: RunId,
    kind: Kind,
    owner: String,
    pub(crate) controls: Controls,
    status: Mutex<Status>,
    changed: Condvar,
    subscribers: Subscribers,
}

struct Status {
    state: RunState,
    start: Option<StartAt>,
    outcome: Option<RunOutcome>,
}

/// Flags and commands that the worker threads of a run poll.
#[derive(Default)]
pub(crate) struct Controls {
    /// Stop sending at once.
    pub(crate) stop: AtomicBool,
    /// Time at which the run stops by itself, in ns of the monotonic clock; 0 for never.
    deadline: AtomicU64,
    /// Pause sending while this is set.
    pub(crate) paused: AtomicBool,
    /// Commands to single flows of a plan.
    pub(crate) flows: FlowControl,
    /// Commands to the loads of clients.
    pub(crate) load: LoadControl,
    /// Start in ns of the monotonic clock; 0 if it is not known yet.
    started: AtomicU64,
    /// Number of workers that still send, plus one until the run has begun.
    senders: AtomicUsize,
    /// Whether a published snapshot has the final counters of all senders.
    has_final_counters: AtomicBool,
    /// Frames that ports of other machines have sent to each port of the plan; `None` while they
    /// send.
    sent_elsewhere: Mutex<Option<Vec<u64>>>,
    /// Query of the measurement so far.
    live: Mutex<Option<Arc<dyn LiveQuery>>>,
}

impl Controls {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.is_past_deadline()
    }

    fn is_past_deadline(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let is_past = deadline != 0 && clock::now().as_nanos() >= deadline;
        if is_past {
            self.stop.store(true, Ordering::Relaxed);
        }
        is_past
    }

    /// Notes the start, which the result has too.
    pub(crate) fn set_started(&self, at: Instant) {
        self.started.store(at.as_nanos(), Ordering::Release);
    }

    /// Sets the number of workers that send.
    pub(crate) fn set_senders(&self, workers: usize) {
        self.senders.store(workers, Ordering::Release);
    }

    /// Notes that a worker has sent everything and published its counters.
    pub(crate) fn sender_ended(&self) {
        self.senders.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether all workers have sent everything and published their counters.
    pub(crate) fn senders_ended(&self) -> bool {
        self.senders.load(Ordering::Acquire) == 0
    }

    /// Notes that a snapshot with the final counters of all senders is published.
    pub(crate) fn publish_final_counters(&self) {
        self.has_final_counters.store(true, Ordering::Release);
    }

    pub(crate) fn set_deadline(&self, at: Instant) {
        self.deadline.store(at.as_nanos().max(1), Ordering::Relaxed);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Returns the frames that ports of other machines have sent to each port of the plan; `None`
    /// while they send.
    pub(crate) fn sent_elsewhere(&self) -> Option<Vec<u64>> {
        self.sent_elsewhere.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn live(&self) -> Option<Arc<dyn LiveQuery>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_live(&self, live: Arc<dyn LiveQuery>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = Some(live);
    }
}

impl Supervised {
    pub(crate) fn new(id: RunId, kind: Kind, owner: String, flows: usize) -> Self {
        let senders = AtomicUsize::new(1);
        let controls = Controls { flows: FlowControl::new(flows), senders, ..Controls::default() };
        let status = Status { state: RunState::Preparing, start: None, outcome: None };
        Self {
            id,
            kind,
            owner,
            controls,
            status: Mutex::new(status),
            changed: Condvar::new(),
            subscribers: Subscribers::default(),
        }
    }

    pub(crate) const fn id(&self) -> RunId {
        self.id
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn state(&self) -> RunState {
        self.lock().state
    }

    pub(crate) fn started(&self) -> Option<Instant> {
        let started = self.controls.started.load(Ordering::Acquire);
        (started > 0).then_some(Instant::from_nanos(started))
    }

    pub(crate) fn has_sent_all(&self) -> bool {
        let has_final_counters = self.controls.has_final_counters.load(Ordering::Acquire);
        match self.state() {
            RunState::Running => has_final_counters,
            state => state == RunState::Draining || state.is_over(),
        }
    }

    pub(crate) fn set_deadline(&self, at: Instant) {
        self.controls.set_deadline(at);
    }

    pub(crate) fn outcome(&self) -> Option<RunOutcome> {
        self.lock().outcome.clone()
    }

    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        self.subscribers.latest()
    }

    pub(crate) fn subscribe(&self, delivery: Delivery) -> Subscription {
        let subscription = self.subscribers.add(delivery);
        if self.state().is_over() {
            self.subscribers.close();
        }
        subscription
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
        self.subscribers.publish(snapshot);
    }

    /// Requests the start. A second call has no effect.
    pub(crate) fn start(&self, at: StartAt) {
        self.change(|status| {
            status.start.get_or_insert(at);
        });
    }

    /// Stops the run as soon as possible.
    pub(crate) fn stop(&self) {
        self.controls.stop.store(true, Ordering::Relaxed);
        // Wake threads that wait for the start.
        self.change(|_| ());
    }

    pub(crate) fn set_state(&self, state: RunState) {
        self.change(|status| status.state = state);
    }

    /// Sets the outcome and the final state, and closes the subscriptions.
    pub(crate) fn end(&self, outcome: RunOutcome) {
        let state = match &outcome {
            Ok(result) if result.verdict.outcome == Outcome::Failed => RunState::Failed,
            Ok(result) if result.interrupted => RunState::Interrupted,
            Ok(_) => RunState::Finished,
            Err(error) if error.kind() == RunErrorKind::Abandoned => RunState::Interrupted,
            Err(_) => RunState::Failed,
        };
        self.change(|status| {
            status.state = state;
            status.outcome = Some(outcome);
        });
        self.subscribers.close();
    }

    /// Waits for the start request and returns its time; `None` if the run is stopped first.
    pub(crate) fn wait_for_start(&self) -> Option<StartAt> {
        let mut status = self.lock();
        loop {
            if self.controls.is_stopped() {
                return None;
            }
            if let Some(at) = status.start {
                return Some(at);
            }
            status = self.changed.wait(status).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for at most `timeout` until the run is stopped. Returns whether it is.
    pub(crate) fn wait_stopped(&self, timeout: StdDuration) -> bool {
        let is_running = |_: &mut Status| !self.controls.is_stopped();
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, is_running);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.controls.is_stopped()
    }

    /// Waits for at most `timeout` until `is_reached` holds for the state. Returns whether it does.
    pub(crate) fn wait_until(
        &self,
        timeout: Option<StdDuration>,
        is_reached: impl Fn(RunState) -> bool,
    ) -> bool {
        let deadline = timeout.and_then(|timeout| StdInstant::now().checked_add(timeout));
        let mut status = self.lock();
        while !is_reached(status.state) {
            let left = deadline.map(|it| it.saturating_duration_since(StdInstant::now()));
            status = match left {
                None => self.changed.wait(status).unwrap_or_else(PoisonError::into_inner),
                Some(StdDuration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(status, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Executes a command.
    pub(crate) fn command(&self, command: Command) -> Result<(), CommandError> {
        let state = self.state();
        if state.is_over() {
            return Err(CommandError::Over { state: state.name() });
        }
        self.carry_out(command)
    }

    fn carry_out(&self, command: Command) -> Result<(), CommandError> {
        let (kind, name) = (self.kind(), command.name());
        let known = Command::of_kind(kind);
        if !known.contains(&name) {
            let commands = known.join(", ");
            return Err(CommandError::Unsupported { kind: kind.name(), command: name, commands });
        }
        let controls = &self.controls;
        match command {
            Command::Stop => self.stop(),
            Command::Pause | Command::Resume => {
                controls.paused.store(command == Command::Pause, Ordering::Relaxed);
            }
            Command::Flows { flows, command } => {
                controls.flows.check(&flows, &command)?;
                if let (FlowCommand::SetFrames(_), Some(live)) = (&command, controls.live()) {
                    live.stop_comparing(&flows);
                }
                controls.flows.give(flows, command);
            }
            Command::SentElsewhere { frames } => {
                let mut sent = controls.sent_elsewhere.lock();
                **sent.as_mut().unwrap_or_else(|poisoned| poisoned.get_mut()) = Some(frames);
            }
            Command::EndLoad => controls.load.end_load(),
            Command::ScaleLoad(factor) => controls.load.set_load(factor),
            Command::Clients { ranges, on } => {
                if !controls.load.switch_clients(&ranges, on) {
                    return Err(CommandError::TooManyRanges);
                }
            }
            Command::Tunnels(tunnels) => controls.load.change_tunnels(&tunnels)?,
        }
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        // Updates happen in one step, so a panic of another thread leaves the status consistent.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
