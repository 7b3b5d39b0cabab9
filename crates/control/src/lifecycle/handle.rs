//! Handles to runs: watch, command and wait.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::time::Instant;
use wirestorm_engine::measure::Distribution;

use super::checkpoint;
use super::command::{Command, CommandError};
use super::id::RunId;
use super::load_control::Detail;
use super::run_state::RunState;
use super::snapshot::{Delivery, Snapshot, Subscription};
use super::state::{RunOutcome, StartAt, Supervised};
use crate::result::{Kind, MeasuredReport, PortReport, RunResult, TagReport};

/// Handle to a run. Clones refer to the same run; dropping them does not end it.
#[derive(Clone)]
pub struct RunHandle(Arc<Supervised>);

impl RunHandle {
    pub(crate) const fn new(run: Arc<Supervised>) -> Self {
        Self(run)
    }

    /// Returns the number of the run in this process.
    pub fn id(&self) -> RunId {
        self.0.id()
    }

    /// Returns the kind of the run.
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Returns the owner, from the options of the run.
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// Returns the state of the run.
    pub fn state(&self) -> RunState {
        self.0.state()
    }

    /// Executes a command. Returns at once; workers follow within 25 ms.
    ///
    /// # Errors
    /// See [`CommandError`]. A failed command changes nothing.
    pub fn command(&self, command: Command) -> Result<(), CommandError> {
        self.0.command(command)
    }

    /// Starts the run as soon as it is prepared. A second call has no effect.
    pub fn start(&self, at: StartAt) {
        self.0.start(at);
    }

    /// Stops the run as soon as possible, like [`Command::Stop`]. Has no effect on an ended run.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Returns the start of the run on the monotonic clock; `None` before it.
    pub fn started(&self) -> Option<Instant> {
        self.0.started()
    }

    /// Returns whether all frames of a plan of streams are sent and counted in the latest snapshot,
    /// or the run is over. Arrivals may follow, and the run may wait for ports of other machines.
    pub fn has_sent_all(&self) -> bool {
        self.0.has_sent_all()
    }

    /// Sets the time at which the run stops by itself; a later call moves it. The threads that send
    /// check it, so they need no other thread to stop in time.
    pub fn set_deadline(&self, at: Instant) {
        self.0.set_deadline(at);
    }

    /// Subscribes to the snapshots from now on.
    pub fn subscribe(&self, delivery: Delivery) -> Subscription {
        self.0.subscribe(delivery)
    }

    /// Returns the last snapshot; `None` before the first one.
    pub fn latest(&self) -> Option<Arc<Snapshot>> {
        self.0.latest()
    }

    /// Waits until the state differs from `state`, and returns it. Returns at once if the run is
    /// over.
    pub fn wait_change(&self, state: RunState) -> RunState {
        self.0.wait_until(None, |now| now != state || now.is_over());
        self.state()
    }

    /// Waits for at most `timeout` until the run is prepared, running or over. Returns whether it
    /// is.
    pub fn wait_prepared(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, |state| state != RunState::Preparing)
    }

    /// Waits for at most `timeout` until the run is running or over. Returns whether it is.
    pub fn wait_running(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, |state| state >= RunState::Running)
    }

    /// Waits for the end of the run and returns its result.
    ///
    /// # Errors
    /// Returns the error of a run without a result.
    pub fn wait(&self) -> RunOutcome {
        loop {
            self.0.wait_until(None, RunState::is_over);
            // The outcome is set together with the state.
            if let Some(outcome) = self.0.outcome() {
                return outcome;
            }
        }
    }

    /// Waits for at most `timeout` until the run is over. Returns whether it is.
    pub fn wait_over(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, RunState::is_over)
    }

    /// Returns the result or the error of the run; `None` until it is over.
    pub fn outcome(&self) -> Option<RunOutcome> {
        self.0.outcome()
    }

    /// Returns the current counters of the ports of clients and servers. `None` for other kinds,
    /// before the start, and after the end, when the result contains them. Waits for the workers of
    /// all ports, about 20 ms.
    pub fn port_reports(&self, detail: Detail) -> Option<Vec<PortReport>> {
        self.0.controls.load.reports(detail)
    }

    /// Returns the measurement of a flow so far at each receiving port, by index in the plan.
    /// `None` before the start and after the end. The receiver thread prepares the answer and
    /// fetches no frames for 10 to 100 microseconds.
    pub fn measured(&self, flow: usize) -> Option<Vec<MeasuredReport>> {
        let live = self.0.controls.live()?;
        let is_over = self.state().is_over();
        (!is_over).then(|| live.measured(flow, Instant::ZERO))
    }

    /// Returns what the run has measured so far, as an interrupted result; `None` before the start
    /// and after the end. It takes the measurements of the flows in `flows`, by index in the plan,
    /// without segments of delay that ended before `since`; the receiver thread needs 10 to 100
    /// microseconds for each. Of other flows it has no measurement.
    pub fn checkpoint(&self, flows: Range<usize>, since: Instant) -> Option<RunResult> {
        checkpoint::of_run(&self.0, flows, since)
    }

    /// Returns the delays so far of the measured ones among some flows, by index in the plan. Empty
    /// before the start and after the end. The receiver thread copies the distributions and fetches
    /// no frames meanwhile: about 1 microsecond for each flow.
    pub fn delays(&self, flows: &[usize]) -> BTreeMap<usize, Distribution> {
        let Some(live) = self.0.controls.live() else { return BTreeMap::new() };
        if self.state().is_over() { BTreeMap::new() } else { live.delays(flows) }
    }

    /// Returns whether the whole run is paused. Flows that are paused on their own do not count.
    pub fn is_paused(&self) -> bool {
        self.0.controls.is_paused() && !self.state().is_over()
    }

    /// Returns the flows that a command paused and no later one resumed or stopped, by index in the
    /// plan. Flows that the plan starts paused are not among them. Empty after the end.
    pub fn paused_flows(&self) -> BTreeSet<usize> {
        if self.state().is_over() { BTreeSet::new() } else { self.0.controls.flows.paused_flows() }
    }

    /// Returns the counters of flows by VLAN tag so far, of all receiving ports, by indices in the
    /// plan; empty for a flow whose frames do not count by tag. `None` before the start and after
    /// the end. Asks each receiver once.
    pub fn tags(&self, flows: &[usize]) -> Option<Vec<Vec<TagReport>>> {
        let live = self.0.controls.live()?;
        let is_over = self.state().is_over();
        (!is_over).then(|| live.tags(flows))
    }

    /// Returns the disabled clients.
    pub fn clients_off(&self) -> Arc<wirestorm_stack::endpoint::AddressSet> {
        self.0.controls.load.clients_off()
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RunHandle");
        shown.field("id", &self.id()).field("kind", &self.kind()).field("state", &self.state());
        shown.finish_non_exhaustive()
    }
}
