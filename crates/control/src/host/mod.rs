//! State that all runs of a process share.
//!
//! ```text
//! Host ── leases      interfaces held by each run, exclusively or shared
//!      ├─ cpus        CPUs reserved for in-kernel senders
//!      ├─ receivers   one receiver for each interface, shared by all runs
//!      ├─ stream ids  unique stream IDs for the signatures of all runs
//!      └─ registry    active runs, and the last runs that ended
//! ```

mod cpus;
mod holder;
mod leases;
mod registry;
mod stream_ids;

use std::fmt;
use std::sync::Arc;

pub(crate) use cpus::CpuPlan;
pub use cpus::OffReservedCpus;
pub use holder::LeaseHolder;
pub(crate) use leases::LeaseRequest;
pub use leases::{Access, Lease};
pub use registry::RunEntry;
pub(crate) use stream_ids::{RunStreamIds, StreamIds};

use crate::lifecycle::{RunHandle, RunId};
use crate::port::OpenError;
pub use crate::receive::FrameClaim;
use crate::receive::SharedReceivers;
use cpus::Cpus;
use leases::{Claim, Leases};
use registry::Registry;

/// State shared by the runs of one process. Clones refer to the same host.
///
/// A process needs one host. Runs prepared with different hosts do not know each other, like runs
/// of different processes. Only the interface locks exclude them from each other.
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

impl Host {
    /// Creates a host without runs. Its CPUs are those that the calling thread may use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the host of another node on the same machine: it shares the reserved CPUs with this one,
    /// and nothing else.
    pub fn of_other_node(&self) -> Self {
        Self(Arc::new(Shared { cpus: self.0.cpus.clone(), ..Shared::default() }))
    }

    /// Returns all active runs and the last [`Self::ENDED_RUNS_MAX`] that ended, in the order of
    /// their preparation.
    pub fn runs(&self) -> Vec<RunEntry> {
        self.0.registry.entries()
    }

    /// Number of ended runs that the registry keeps.
    pub const ENDED_RUNS_MAX: usize = registry::ENDED_RUNS_MAX;

    /// Returns the run with this number; `None` if the registry does not contain it.
    pub fn run(&self, id: RunId) -> Option<RunHandle> {
        self.0.registry.handle(id)
    }

    /// Reserves an interface for `owner` until the lease is dropped. Other processes and runs of
    /// other owners cannot use it. Runs of the same owner use it as if it were free.
    ///
    /// # Errors
    /// Fails if the interface does not exist, or another owner or process holds it.
    pub fn reserve(&self, interface: &str, owner: &str) -> Result<Lease, OpenError> {
        let interface = interface.parse()?;
        let index = wirestorm_io::link::Link::open_basic(&interface)?.index;
        let holder = LeaseHolder { run: None, owner: owner.to_owned() };
        self.0.leases.take(&interface, index, Claim::Reserved, holder)
    }

    /// Returns the current holders of an interface.
    pub fn holders(&self, interface: &str) -> Vec<LeaseHolder> {
        let Ok(interface) = interface.parse() else { return Vec::new() };
        self.0.leases.holders(&interface)
    }

    /// Claims the frames that arrive on an interface for a packet socket beside the runs, as long as
    /// the claim lives: runs with shared access that start later receive with packet sockets too.
    ///
    /// # Errors
    /// Fails if the name is not valid, or a run with shared access consumes the frames already.
    pub fn claim_frames(&self, interface: &str) -> Result<FrameClaim, OpenError> {
        self.0.receivers.need(&interface.parse()?)
    }

    /// Keeps the calling thread off the CPUs that runs reserve for in-kernel senders, as long as the
    /// guard lives. It may use all other CPUs of the host, whichever it had before. For threads beside
    /// the runs, such as that of a server.
    pub fn keep_off_reserved_cpus(&self) -> OffReservedCpus {
        self.0.cpus.keep_off()
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
