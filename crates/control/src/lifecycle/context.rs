//! What a run of any kind has of the machine and of those who watch it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::clock::{self, RealtimeOffset};

use super::snapshot::Snapshot;
use super::state::{Controls, RunState, StartAt, Supervised};
use crate::backend::{AF_PACKET, Backend};
use crate::files::Files;
use crate::host::{Access, Host, LeaseHolder, LeaseRequest};
use crate::port::{Interfaces, OpenError};
use crate::receive::Need;
use crate::result::{HostFacts, RunResult, SCHEMA, Times, Verdict};

/// A run's way to its host and to its handles. The supervisor thread of a run has one.
pub(crate) struct Context {
    pub(crate) host: Host,
    pub(crate) access: Access,
    /// Files that the plan names.
    pub(crate) files: Arc<dyn Files>,
    run: Arc<Supervised>,
}

/// The run was stopped before it began.
#[derive(Clone, Copy, Debug)]
pub struct Abandoned;

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run was stopped before it began")
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

    /// What the workers look at.
    pub(crate) fn controls(&self) -> &Controls {
        &self.run.controls
    }

    /// How the run asks for interfaces.
    pub(crate) fn lease_request(&self) -> LeaseRequest<'_> {
        let owner = self.run.owner().to_owned();
        let holder = LeaseHolder { run: Some(self.run.id()), owner };
        LeaseRequest { leases: self.host.leases(), access: self.access, holder }
    }

    /// Whether other runs may use the same interfaces at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.access == Access::Shared
    }

    /// What carries frames in both directions, where `asked` is asked for: several runs receive the
    /// same frames by packet sockets alone.
    ///
    /// # Errors
    /// Where another backend is asked for on shared interfaces.
    pub(crate) fn receiving_backend(&self, asked: Backend) -> Result<Backend, OpenError> {
        match asked {
            asked if !self.is_shared() => Ok(asked),
            Backend::Auto => Ok(Backend::One(&AF_PACKET)),
            Backend::One(backend) if backend.is_shared => Ok(asked),
            Backend::One(backend) => Err(OpenError::SharedBackend(backend.name)),
        }
    }

    /// Has the frames that arrive at shared interfaces left to this run, as long as the answer lives.
    ///
    /// # Errors
    /// Where another run takes them.
    pub(crate) fn need_frames(&self, interfaces: &Interfaces) -> Result<Vec<Need>, OpenError> {
        let links = interfaces.links.iter().filter(|_| self.is_shared());
        links.map(|(interface, _)| self.host.receivers().need(interface)).collect()
    }

    /// Tells those who watch what the run waits for before it can start.
    pub(crate) fn wait_for(&self, text: String) {
        let state = Some(self.run.state());
        self.publish(Snapshot { state, waiting_for: Some(text), ..Snapshot::default() });
    }

    /// Everything is open: waits for the start, and until shortly before its time.
    ///
    /// # Errors
    /// Where the run is stopped before that.
    pub(crate) fn wait_for_start(&self) -> Result<Start, Abandoned> {
        /// How long before a start workers are woken: they fill their ports' queues ahead.
        const AHEAD: Duration = Duration::from_millis(20);
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

    /// The run sends from now on.
    pub(crate) fn running(&self) {
        self.run.set_state(RunState::Running);
    }

    /// Nothing new is sent from now on.
    pub(crate) fn draining(&self) {
        if self.run.state() == RunState::Running {
            self.run.set_state(RunState::Draining);
        }
    }

    /// Tells those who watch how far the run is.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let state = snapshot.state.or_else(|| Some(self.run.state()));
        self.run.publish(Snapshot { state, ..snapshot });
    }

    /// The beginning of a result: all of the envelope that is the same for every kind. `start`: of
    /// the monotonic clock; `None` in virtual time.
    pub(crate) fn result(&self, start: Option<Instant>) -> RunResult {
        let started = start.map(|start| RealtimeOffset::read().to_realtime_nanos(start));
        RunResult {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kind: self.run.kind(),
            times: Times { started_unix_ns: started, ..Times::default() },
            host: HostFacts::read(),
            interrupted: self.controls().is_stopped(),
            ..RunResult::default()
        }
    }
}

/// When the workers of a run begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// At this instant; `None`: as soon as they are ready.
    pub(crate) at: Option<Instant>,
}

/// Fills in the verdict of a result that is complete otherwise.
pub(crate) fn judged(mut result: RunResult) -> RunResult {
    result.verdict = Verdict::of(&result);
    result
}
