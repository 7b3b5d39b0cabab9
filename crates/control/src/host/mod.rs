//! The machine as its runs share it.
//!
//! ```text
//! Host ── leases      which run has which interface, alone or with others
//!      ├─ cpus        which CPUs in-kernel senders keep for themselves
//!      ├─ receivers   one receiving end for each interface, however many runs look at it
//!      ├─ stream ids  no two runs send signatures with the same stream id
//!      └─ registry    which runs there are, and those that ended last
//! ```

mod cpus;
mod leases;
mod registry;
mod stream_ids;

use std::fmt;
use std::sync::Arc;

pub(crate) use cpus::CpuPlan;
pub use cpus::{allowed, restrict_to};
pub(crate) use leases::LeaseRequest;
pub use leases::{Access, Lease, LeaseHolder};
pub(crate) use stream_ids::{RunStreamIds, StreamIds};

use crate::lifecycle::{RunHandle, RunId, RunState};
use crate::port::OpenError;
use crate::receive::SharedReceivers;
use crate::result::Kind;
use cpus::Cpus;
use leases::{Claim, Leases};
use registry::Registry;

/// What the runs of one process share. Cheap to clone: clones are the same host.
///
/// A process needs one. Runs that are prepared with different hosts do not know of each other, as
/// runs of different processes do not: they exclude each other by the locks of interfaces alone.
#[derive(Clone, Default)]
pub struct Host(Arc<Shared>);

#[derive(Default)]
struct Shared {
    leases: Leases,
    cpus: Cpus,
    receivers: SharedReceivers,
    stream_ids: StreamIds,
    registry: Registry,
}

/// A run as the registry lists it.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Its number in this process, from 1.
    pub id: RunId,
    /// What kind of run it is.
    pub kind: Kind,
    /// Who started it, as its options name them.
    pub owner: String,
    /// How far it is.
    pub state: RunState,
}

impl Host {
    /// A host without runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every run that has not ended, and the last [`Self::ENDED_RUNS_MAX`] that have, in the order
    /// in which they were prepared.
    pub fn runs(&self) -> Vec<RunEntry> {
        self.0.registry.entries()
    }

    /// How many runs that have ended stay in the registry.
    pub const ENDED_RUNS_MAX: usize = 64;

    /// The run with this number; `None` where there is none any more.
    pub fn run(&self, id: RunId) -> Option<RunHandle> {
        self.0.registry.handle(id)
    }

    /// Keeps other processes, and runs of other owners, away from an interface until the lease is
    /// dropped. Runs of the same owner start there as if it were free.
    ///
    /// # Errors
    /// Where the interface does not exist, or somebody else has it.
    pub fn reserve(&self, interface: &str, owner: &str) -> Result<Lease, OpenError> {
        let interface = interface.parse()?;
        let index = wirestorm_io::link::Link::open(&interface)?.index;
        let holder = LeaseHolder { run: None, owner: owner.to_owned() };
        self.0.leases.take(&interface, index, Claim::Reserved, holder)
    }

    /// Who has an interface now.
    pub fn holders(&self, interface: &str) -> Vec<LeaseHolder> {
        let Ok(interface) = interface.parse() else { return Vec::new() };
        self.0.leases.holders(&interface)
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.0.leases
    }

    pub(crate) fn cpus(&self) -> &Cpus {
        &self.0.cpus
    }

    pub(crate) fn receivers(&self) -> &SharedReceivers {
        &self.0.receivers
    }

    pub(crate) fn stream_ids(&self) -> &StreamIds {
        &self.0.stream_ids
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("runs", &self.runs()).finish_non_exhaustive()
    }
}
