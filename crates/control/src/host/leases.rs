//! Leases of interfaces by runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use wirestorm_io::lock::{self as io, InterfaceLock};
use wirestorm_io::namespace::InterfaceName;

use super::holder::LeaseHolder;
use crate::port::OpenError;

/// Sharing of a run's interfaces with other runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// A run that only sends, with packet sockets, shares an interface with similar runs of all
    /// processes. Other backends, and clients and servers, use the interface exclusively.
    #[default]
    ByBackend,
    /// Runs of the same host that also use this setting may use the same interfaces.
    Shared,
}

/// Sharing that the holder of an interface allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Exclusive use.
    Exclusive,
    /// Shared with runs of this host that also allow it.
    Shared,
    /// Shared with runs of any process that also allow it.
    SharedWithProcesses,
    /// Reserved for runs of the same owner, which use it as if it were free.
    Reserved,
}

impl Claim {
    const fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::SharedWithProcesses)
    }
}

/// Lease of an interface; dropping it releases the interface.
pub struct Lease {
    held: Arc<LeasedInterface>,
    id: u64,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.held.holders().retain(|holder| holder.id != self.id);
    }
}

/// A leased interface. The lock excludes other processes, or shares with them, until the last lease
/// is dropped.
struct LeasedInterface {
    interface: InterfaceName,
    /// Interface index. An interface that was removed and created again has another index.
    index: u32,
    holders: Mutex<Vec<HolderEntry>>,
    /// Access mode of `_lock`.
    lock_access: io::Access,
    _lock: InterfaceLock,
}

struct HolderEntry {
    /// ID of the lease.
    id: u64,
    claim: Claim,
    holder: LeaseHolder,
}

impl HolderEntry {
    /// Returns whether a new holder may use the interface beside this one.
    fn allows(&self, claim: Claim, holder: &LeaseHolder) -> bool {
        if self.claim == Claim::Reserved || claim == Claim::Reserved {
            return self.holder.owner == holder.owner;
        }
        self.claim.is_shared() && claim.is_shared()
    }
}

impl LeasedInterface {
    fn holders(&self) -> MutexGuard<'_, Vec<HolderEntry>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leased interfaces of a host.
#[derive(Default)]
pub(crate) struct Leases(Mutex<State>);

#[derive(Default)]
struct State {
    held: Vec<Weak<LeasedInterface>>,
    next_id: u64,
}

/// Request for the interfaces of a run: its holder and the sharing it allows.
pub(crate) struct LeaseRequest<'a> {
    pub(crate) leases: &'a Leases,
    pub(crate) access: Access,
    pub(crate) holder: LeaseHolder,
}

impl LeaseRequest<'_> {
    /// Leases an interface. `is_shared`: the run's backend allows other senders.
    ///
    /// # Errors
    /// Fails if another run or process holds the interface.
    pub(crate) fn take(
        &self,
        interface: &InterfaceName,
        index: u32,
        is_shared: bool,
    ) -> Result<Lease, OpenError> {
        let claim = match self.access {
            Access::Shared => Claim::Shared,
            Access::ByBackend if is_shared => Claim::SharedWithProcesses,
            Access::ByBackend => Claim::Exclusive,
        };
        self.leases.take(interface, index, claim, self.holder.clone())
    }
}

impl Leases {
    /// Leases an interface.
    ///
    /// # Errors
    /// Fails if another run or process holds the interface.
    pub(crate) fn take(
        &self,
        interface: &InterfaceName,
        index: u32,
        claim: Claim,
        holder: LeaseHolder,
    ) -> Result<Lease, OpenError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.held.retain(|held| held.strong_count() > 0);
        let id = state.next_id;
        state.next_id += 1;
        let known = state.held.iter().filter_map(Weak::upgrade);
        let known = known.into_iter().find(|it| it.interface == *interface && it.index == index);
        if let Some(held) = known {
            let mut holders = held.holders();
            // A reservation must exclude other processes, but a shared lock does not.
            let is_shared_by_all =
                claim == Claim::Reserved && held.lock_access == io::Access::Shared;
            let other =
                holders.iter().find(|other| is_shared_by_all || !other.allows(claim, &holder));
            if let Some(other) = other {
                let holder = other.holder.clone();
                return Err(OpenError::Leased { interface: interface.clone(), holder });
            }
            holders.push(HolderEntry { id, claim, holder });
            drop(holders);
            return Ok(Lease { held, id });
        }
        let is_locked = match claim {
            Claim::SharedWithProcesses => io::Access::Shared,
            Claim::Exclusive | Claim::Shared | Claim::Reserved => io::Access::Exclusive,
        };
        let held = Arc::new(LeasedInterface {
            interface: interface.clone(),
            index,
            holders: Mutex::new(vec![HolderEntry { id, claim, holder }]),
            lock_access: is_locked,
            _lock: InterfaceLock::acquire(interface, is_locked)?,
        });
        state.held.push(Arc::downgrade(&held));
        Ok(Lease { held, id })
    }

    /// Returns the current holders of an interface.
    pub(crate) fn holders(&self, interface: &InterfaceName) -> Vec<LeaseHolder> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = state.held.iter().filter_map(Weak::upgrade);
        let of_it: Vec<_> = held.filter(|held| held.interface == *interface).collect();
        let holders = |held: &Arc<LeasedInterface>| -> Vec<_> {
            held.holders().iter().map(|entry| entry.holder.clone()).collect()
        };
        of_it.iter().flat_map(holders).collect()
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_io::link::Link;
    use wirestorm_testkit::net::Lab;
    use wirestorm_testkit::require::require_root;

    use super::*;

    fn holder(owner: &str) -> LeaseHolder {
        LeaseHolder { run: None, owner: owner.into() }
    }

    #[test]
    fn interface_is_shared_only_if_both_holders_allow_it() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let interface: InterfaceName = lab.a.port().parse().unwrap();
        let index = Link::open(&interface).unwrap().index;
        let leases = Leases::default();
        let take = |claim, owner: &str| leases.take(&interface, index, claim, holder(owner));
        let first = take(Claim::Shared, "ada").unwrap();
        let second = take(Claim::SharedWithProcesses, "bob").unwrap();
        assert_eq!(leases.holders(&interface), [holder("ada"), holder("bob")]);
        let refused = take(Claim::Exclusive, "eve").unwrap_err().to_string();
        assert!(refused.contains("a lease of ada"), "{refused}");
        drop(first);
        assert_eq!(leases.holders(&interface), [holder("bob")]);
        assert!(take(Claim::Exclusive, "eve").is_err());
        drop(second);
        let alone = take(Claim::Exclusive, "eve").unwrap();
        assert!(take(Claim::Shared, "ada").is_err());
        // Another host of this process conflicts like another process.
        let elsewhere =
            |claim| Leases::default().take(&interface, index, claim, holder("")).map(drop);
        assert!(elsewhere(Claim::Shared).is_err());
        drop(alone);
        assert!(leases.holders(&interface).is_empty());
        let shared = take(Claim::SharedWithProcesses, "ada").unwrap();
        elsewhere(Claim::SharedWithProcesses).unwrap();
        assert!(elsewhere(Claim::Exclusive).is_err());
        drop(shared);
        elsewhere(Claim::Exclusive).unwrap();
    }

    #[test]
    fn reservation_excludes_others_and_admits_runs_of_its_owner() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let interface: InterfaceName = lab.a.port().parse().unwrap();
        let index = Link::open(&interface).unwrap().index;
        let leases = Leases::default();
        let take = |claim, owner: &str| leases.take(&interface, index, claim, holder(owner));
        let elsewhere =
            || Leases::default().take(&interface, index, Claim::Exclusive, holder("ada"));
        let first = take(Claim::Reserved, "ada").unwrap();
        let second = take(Claim::Reserved, "ada").unwrap();
        assert!(take(Claim::Reserved, "bob").is_err());
        assert!(take(Claim::Exclusive, "bob").is_err());
        assert!(elsewhere().is_err());
        let run = take(Claim::Exclusive, "ada").unwrap();
        assert!(take(Claim::SharedWithProcesses, "ada").is_err(), "a second run");
        drop((first, second));
        assert!(elsewhere().is_err(), "the run goes on without a reservation");
        drop(run);
        elsewhere().unwrap();
        // A run that shares with all processes prevents a reservation.
        let run = take(Claim::SharedWithProcesses, "ada").unwrap();
        assert!(take(Claim::Reserved, "ada").is_err());
        drop(run);
        take(Claim::Reserved, "ada").unwrap();
    }
}
