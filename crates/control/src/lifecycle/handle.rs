//! A run as those see it who started it, watch it or command it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use super::command::{Command, CommandError};
use super::load_control::Detail;
use super::snapshot::{Delivery, Snapshot, Subscription};
use super::state::{RunOutcome, RunState, StartAt, Supervised};
use crate::result::{Kind, MeasuredReport, PortReport};

/// The number of a run in its process, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Why a run has no result.
#[derive(Debug)]
pub struct RunError {
    kind: RunErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

/// What stands in the way of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The plan, the options or the machine: the error names what, and what to do.
    Input,
    /// The run was stopped before it began.
    Abandoned,
    /// A defect of Wirestorm.
    Defect,
}

impl RunError {
    /// An error of a kind.
    pub(crate) fn new(kind: RunErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    /// What stands in the way.
    pub const fn kind(&self) -> RunErrorKind {
        self.kind
    }

    /// The error of a kind of runs, where it is of this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// A run. Clones are the same run; dropping them does not end it.
#[derive(Clone)]
pub struct RunHandle(Arc<Supervised>);

impl RunHandle {
    pub(crate) const fn new(run: Arc<Supervised>) -> Self {
        Self(run)
    }

    /// Its number in this process.
    pub fn id(&self) -> RunId {
        self.0.id()
    }

    /// What kind of run it is.
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Who started it, as its options name them.
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// How far it is.
    pub fn state(&self) -> RunState {
        self.0.state()
    }

    /// Commands it. Returns at once; workers follow within 25 ms.
    ///
    /// # Errors
    /// See [`CommandError`]; then nothing has changed.
    pub fn command(&self, command: Command) -> Result<(), CommandError> {
        self.0.command(command)
    }

    /// Starts it where it is prepared, or as soon as it is. A second call changes nothing.
    pub fn start(&self, at: StartAt) {
        self.0.start(at);
    }

    /// Ends it as soon as possible: [`Command::Stop`], which a run that is over does not mind.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Its snapshots from now on.
    pub fn subscribe(&self, delivery: Delivery) -> Subscription {
        self.0.subscribe(delivery)
    }

    /// Its last snapshot; `None` before the first.
    pub fn latest(&self) -> Option<Arc<Snapshot>> {
        self.0.latest()
    }

    /// Waits until it is prepared, running or over, for `timeout` at most; returns whether it is.
    pub fn wait_prepared(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, |state| state != RunState::Preparing)
    }

    /// Waits until it runs or is over, for `timeout` at most; returns whether it does.
    pub fn wait_running(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, |state| state >= RunState::Running)
    }

    /// Waits until it is over; its result.
    ///
    /// # Errors
    /// Where there is none.
    pub fn wait(&self) -> RunOutcome {
        loop {
            self.0.wait_until(None, RunState::is_over);
            // The outcome is written together with the state.
            if let Some(outcome) = self.0.outcome() {
                return outcome;
            }
        }
    }

    /// Waits until it is over, for `timeout` at most; returns whether it is.
    pub fn wait_over(&self, timeout: Option<StdDuration>) -> bool {
        self.0.wait_until(timeout, RunState::is_over)
    }

    /// Its result, or why it has none; `None` as long as it is not over.
    pub fn outcome(&self) -> Option<RunOutcome> {
        self.0.outcome()
    }

    /// What the ports of clients and servers have counted so far, in this detail; `None` of other
    /// kinds, before the start, and once it is over: then it is in the result. Waits for the
    /// answers of all ports' workers, 20 ms or so.
    pub fn port_reports(&self, detail: Detail) -> Option<Vec<PortReport>> {
        self.0.controls.load.reports(detail)
    }

    /// What was measured of a flow of streams so far, by its place in the plan, at each port where
    /// it should arrive; `None` before the start and once the run is over. The thread that receives
    /// answers, and fetches no frames while it does: 10 to 100 microseconds.
    pub fn measured(&self, flow: usize) -> Option<Vec<MeasuredReport>> {
        let live = self.0.controls.live()?;
        let is_over = self.state().is_over();
        (!is_over).then(|| live(flow))
    }

    /// Clients that are switched off.
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
