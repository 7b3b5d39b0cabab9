//! Access of a run to its host and its observers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock::{self, RealtimeOffset};

use super::run_state::RunState;
use super::snapshot::Snapshot;
use super::state::{Controls, StartAt, Supervised};
use crate::backend::{AF_PACKET, Backend};
use crate::files::Files;
use crate::host::{Access, Host, LeaseHolder, LeaseRequest};
use crate::port::{Interfaces, OpenError};
use crate::receive::{FrameClaim, SharedReceivers};
use crate::result::{RunResult, Verdict};

/// Access of a run's supervisor thread to the host and to the run's handles.
pub(crate) struct Context {
    pub(crate) host: Host,
    pub(crate) access: Access,
    /// Files that the plan names.
    pub(crate) files: Arc<dyn Files>,
    run: Arc<Supervised>,
}

/// The run was stopped before it started.
#[derive(Clone, Copy, Debug)]
pub struct Abandoned;

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run was stopped before it started")
    }
}

impl std::error::Error for Abandoned {}

impl Context {
    pub(crate) fn new(
        host: Host,
        access: Access,
        files: Arc<dyn Files>,
        run: Arc<Supervised>,
    ) -> Self {
        Self { host, access, files, run }
    }

    /// Returns the flags and commands that workers poll.
    pub(crate) fn controls(&self) -> &Controls {
        &self.run.controls
    }

    /// Returns the lease request of the run.
    pub(crate) fn lease_request(&self) -> LeaseRequest<'_> {
        let owner = self.run.owner().to_owned();
        let holder = LeaseHolder { run: Some(self.run.id()), owner };
        LeaseRequest { leases: self.host.leases(), access: self.access, holder }
    }

    /// Returns the receivers that this run shares with others; `None` with exclusive access.
    pub(crate) fn shared_receivers(&self) -> Option<&SharedReceivers> {
        self.is_shared().then(|| self.host.receivers())
    }

    /// Whether other runs may use the same interfaces at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.access == Access::Shared
    }

    /// Returns the backend for receiving. On shared interfaces only packet sockets let several runs
    /// receive the same frames.
    ///
    /// # Errors
    /// Fails if another backend is requested on shared interfaces.
    pub(crate) fn receiving_backend(&self, requested: Backend) -> Result<Backend, OpenError> {
        match requested {
            requested if !self.is_shared() => Ok(requested),
            Backend::Auto => Ok(Backend::One(&AF_PACKET)),
            Backend::One(backend) if backend.is_shared => Ok(requested),
            Backend::One(backend) => Err(OpenError::SharedBackend(backend.name)),
        }
    }

    /// Registers that the run receives the frames of shared interfaces, as long as the result
    /// exists.
    ///
    /// # Errors
    /// Fails if another run consumes them.
    pub(crate) fn need_frames(
        &self,
        interfaces: &Interfaces,
    ) -> Result<Vec<FrameClaim>, OpenError> {
        let links = interfaces.links.iter().filter(|_| self.is_shared());
        links.map(|(interface, _)| self.host.receivers().need(interface)).collect()
    }

    /// Publishes what the run waits for before it can start.
    pub(crate) fn wait_for(&self, text: String) {
        let state = Some(self.run.state());
        self.publish(Snapshot { state, waiting_for: Some(text), ..Snapshot::default() });
    }

    /// Marks the run as prepared and waits for the start, until shortly before its time.
    ///
    /// # Errors
    /// Fails if the run is stopped before the start.
    pub(crate) fn wait_for_start(&self) -> Result<Start, Abandoned> {
        /// Time before the start at which workers wake up to fill the queues of their ports.
        const AHEAD: Duration = Duration::from_millis(100);
        self.run.set_state(RunState::Prepared);
        let at = self.run.wait_for_start().ok_or(Abandoned)?;
        self.run.set_state(RunState::Armed);
        let at = match at {
            StartAt::Now => return Ok(Start { at: None }),
            StartAt::Monotonic(at) => at,
            StartAt::Realtime(nanos) => RealtimeOffset::read().to_monotonic(nanos),
        };
        loop {
            let left = at.saturating_sub(AHEAD).saturating_since(clock::now());
            if left == Duration::ZERO {
                return Ok(Start { at: Some(at) });
            }
            if self.run.wait_stopped(StdDuration::from_nanos(left.as_nanos())) {
                return Err(Abandoned);
            }
        }
    }

    /// Marks the run as running since `start`.
    pub(crate) fn running(&self, start: Instant) {
        self.controls().set_started(start);
        self.run.set_state(RunState::Running);
    }

    /// Marks a running run as draining: it sends nothing new.
    pub(crate) fn draining(&self) {
        if self.run.state() == RunState::Running {
            self.run.set_state(RunState::Draining);
        }
    }

    /// Publishes a snapshot with the current state.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let state = snapshot.state.or_else(|| Some(self.run.state()));
        self.run.publish(Snapshot { state, ..snapshot });
    }

    /// Returns a result with the parts of the envelope that are common to all kinds. `start`: start
    /// on the monotonic clock; `None` in virtual time.
    pub(crate) fn result(&self, start: Option<Instant>) -> RunResult {
        let interrupted = self.controls().is_stopped();
        RunResult { interrupted, ..RunResult::begun(self.run.kind(), start) }
    }
}

/// Start of the workers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Start time; `None` for as soon as they are ready.
    pub(crate) at: Option<Instant>,
}

/// Sets the verdict of a result whose other fields are complete.
pub(crate) fn with_verdict(mut result: RunResult) -> RunResult {
    result.verdict = Verdict::of(&result);
    result
}
