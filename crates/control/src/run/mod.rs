//! Preparation and start of runs of all kinds.
//!
//! ```text
//! Run::prepare(plan, options, &host) ──> Prepared ──start(at)──> RunHandle ──wait──> RunResult
//!                     │                                             │ command, subscribe
//!           supervisor thread: opens ports, waits for the start, runs workers, reports
//! ```
//!
//! Only [`Run::prepare`] blocks the caller, until the run is prepared. Nothing here pins the
//! caller's thread, prints, reads standard input or catches signals.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration as StdDuration;

use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::replay::ReplayPlan;
use wirestorm_plan::traffic::TrafficPlan;

use crate::backend::Backend;
use crate::emulation::{self, EmulationError, EmulationOptions};
use crate::files::{Files, HostFiles};
use crate::host::{Access, Host};
use crate::impair::{self, ImpairError, ImpairOptions};
use crate::lifecycle::{
    Context, Delivery, RunError, RunErrorKind, RunHandle, StartAt, Subscription, Supervised,
    with_verdict,
};
use crate::pktgen::{self, PktgenPlan, PktgenRunError};
use crate::replay::{self, Callbacks, ReplayError};
use crate::result::{Kind, RunResult};
use crate::traffic::{self, StreamOptions, TrafficError};

/// Plan of a run.
pub enum Plan {
    /// Replays captures.
    Replay {
        /// Captures, timing, edits and target.
        plan: Box<ReplayPlan>,
        /// Backend that sends and receives frames.
        backend: Backend,
        /// Callbacks of the caller.
        hooks: Callbacks,
    },
    /// Sends the flows of a plan.
    Streams {
        /// Flows and ports.
        plan: Arc<TrafficPlan>,
        /// Options for sending.
        options: StreamOptions,
    },
    /// Emulates the clients and servers of a plan.
    Emulation {
        /// Templates and ports.
        plan: Arc<EmulationPlan>,
        /// Options for the emulation.
        options: EmulationOptions,
    },
    /// Joins two interfaces by an impaired link.
    Impair(ImpairOptions),
    /// Runs a pktgen script.
    Pktgen(PktgenPlan),
}

impl Plan {
    /// Returns the kind of the run.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Replay { .. } => Kind::Replay,
            Self::Streams { .. } => Kind::Streams,
            Self::Emulation { .. } => Kind::Emulation,
            Self::Impair(_) => Kind::Impair,
            Self::Pktgen(_) => Kind::Pktgen,
        }
    }

    /// Returns the number of flows that commands can address.
    fn flows(&self) -> usize {
        match self {
            Self::Streams { plan, .. } => plan.flows.len(),
            _ => 0,
        }
    }
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether other runs may use the same interfaces at the same time.
    pub access: Access,
    /// Owner, shown to other users of the same interfaces; may be empty.
    pub owner: String,
    /// Plan file, for the result; empty if there is none.
    pub source: String,
    /// Files that the plan names. The default reads and writes those of this machine; a plan from
    /// elsewhere gets [`AttachedFiles`](crate::files::AttachedFiles).
    pub files: Arc<dyn Files>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access: Access::default(),
            owner: String::new(),
            source: String::new(),
            files: Arc::new(HostFiles),
        }
    }
}

/// Prepares runs.
pub struct Run;

impl Run {
    /// Opens everything that a plan needs, and waits until that is done. Sends only ARP and
    /// neighbour discovery. If a neighbour does not answer, this takes up to 10 s.
    ///
    /// # Errors
    /// Fails if the plan, its options or the machine do not allow the run.
    pub fn prepare(plan: Plan, options: Options, host: &Host) -> Result<Prepared, Arc<RunError>> {
        Self::begin(plan, options, host).wait()
    }

    /// Starts to prepare a run and returns at once.
    pub fn begin(plan: Plan, options: Options, host: &Host) -> Preparing {
        Self::begin_watched(plan, options, host, Delivery::Latest).0
    }

    /// Starts to prepare a run and returns at once, with a subscription to all its snapshots.
    pub fn begin_watched(
        plan: Plan,
        options: Options,
        host: &Host,
        delivery: Delivery,
    ) -> (Preparing, Subscription) {
        let Options { access, owner, source, files } = options;
        let (kind, flows) = (plan.kind(), plan.flows());
        let run = host.registry().add(|id| Supervised::new(id, kind, owner, flows));
        let snapshots = run.subscribe(delivery);
        let context = Arc::new(Context::new(host.clone(), access, files, Arc::clone(&run)));
        let supervised = Arc::clone(&run);
        let name = format!("run-{}", run.id());
        let spawned = std::thread::Builder::new().name(name).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| supervise(plan, &source, &context)));
            let outcome = outcome.unwrap_or_else(|panic| Err(defect(&*panic)));
            // Release the leases before the state shows that the run is over.
            drop(context);
            supervised.end(outcome.map(Arc::new).map_err(Arc::new));
        });
        if let Err(error) = spawned {
            let error = format!("cannot start a thread: {error}");
            run.end(Err(Arc::new(RunError::new(RunErrorKind::Input, error))));
        }
        (Preparing(RunHandle::new(run)), snapshots)
    }
}

/// A run that is being prepared.
#[derive(Debug)]
pub struct Preparing(RunHandle);

impl Preparing {
    /// Returns a handle to watch or stop the run.
    pub fn handle(&self) -> RunHandle {
        self.0.clone()
    }

    /// Waits until the run is prepared.
    ///
    /// # Errors
    /// Fails if the preparation fails.
    pub fn wait(self) -> Result<Prepared, Arc<RunError>> {
        self.0.wait_prepared(None);
        match self.0.outcome() {
            Some(Err(error)) => Err(error),
            _ => Ok(Prepared(Some(self.0))),
        }
    }

    /// Waits for at most `timeout`. Returns `Ok(Err(self))` after a timeout.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_within(
        self,
        timeout: StdDuration,
    ) -> Result<Result<Prepared, Self>, Arc<RunError>> {
        match self.0.wait_prepared(Some(timeout)) {
            true => self.wait().map(Ok),
            false => Ok(Err(self)),
        }
    }
}

/// A prepared run. Dropping it stops the run.
#[derive(Debug)]
pub struct Prepared(Option<RunHandle>);

impl Prepared {
    /// Starts the run; returns at once.
    pub fn start(mut self, at: StartAt) -> RunHandle {
        match self.0.take() {
            Some(handle) => {
                handle.start(at);
                handle
            }
            None => unreachable!("a prepared run starts once"),
        }
    }

    /// Returns a handle to watch or stop the run.
    pub fn handle(&self) -> Option<RunHandle> {
        self.0.clone()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.stop();
        }
    }
}

/// Runs a plan on the calling thread, from the preparation to the result.
fn supervise(plan: Plan, source: &str, context: &Arc<Context>) -> Result<RunResult, RunError> {
    let result = match plan {
        Plan::Replay { plan, backend, hooks } => {
            replay::run(&plan, backend, hooks, context).map_err(RunError::from)
        }
        Plan::Streams { plan, options } => {
            traffic::run(&plan, &options, context).map_err(RunError::from)
        }
        Plan::Emulation { plan, options } => {
            emulation::run(&plan, &options, context).map_err(RunError::from)
        }
        Plan::Impair(options) => impair::run(&options, context).map_err(RunError::from),
        Plan::Pktgen(plan) => pktgen::run(plan, context).map_err(RunError::from),
    };
    let mut result = result?;
    if result.plan.is_empty() && !source.is_empty() {
        result.plan.push(source.to_owned());
    }
    Ok(with_verdict(result))
}

/// Converts a panic to an error.
fn defect(panic: &(dyn Any + Send)) -> RunError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    RunError::new(RunErrorKind::Defect, format!("a defect in wirestorm ended the run: {text}"))
}

/// Implements the conversion to [`RunError`] for the error types of all kinds of runs.
macro_rules! run_errors {
    ($($error:ident),+) => {
        $(impl From<$error> for RunError {
            fn from(error: $error) -> Self {
                let kind = match &error {
                    $error::Abandoned(_) => RunErrorKind::Abandoned,
                    _ => RunErrorKind::Input,
                };
                Self::new(kind, error)
            }
        })+
    };
}

run_errors!(ReplayError, TrafficError, EmulationError, ImpairError, PktgenRunError);
