//! Which run has which interface.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use wirestorm_io::lock::{self as io, InterfaceLock};
use wirestorm_io::namespace::InterfaceName;

use crate::lifecycle::RunId;
use crate::port::OpenError;

/// With which other runs a run shares its interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// What sends by packet sockets alone shares an interface with others that do, in this process
    /// and in others. Every other backend, and clients and servers, have it to themselves.
    #[default]
    ByBackend,
    /// Other runs of the same host may use the same interfaces, if they ask for this as well.
    Shared,
}

/// What a holder of an interface allows to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody else uses it.
    Alone,
    /// Runs of this host use it that allow the same.
    Shared,
    /// Runs of any process use it that allow the same.
    SharedByAll,
    /// Runs of the same owner use it as if it were free.
    Reserved,
}

impl Claim {
    const fn is_shared(self) -> bool {
        matches!(self, Self::Shared | Self::SharedByAll)
    }
}

/// Who has an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The run; `None`: a lease without one.
    pub run: Option<RunId>,
    /// Who started the run, or asked for the lease.
    pub owner: String,
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.run, self.owner.as_str()) {
            (Some(run), "") => write!(f, "run {run}"),
            (Some(run), owner) => write!(f, "run {run} of {owner}"),
            (None, "") => f.write_str("a lease without a run"),
            (None, owner) => write!(f, "a lease of {owner}"),
        }
    }
}

/// The right to use an interface, until it is dropped.
pub struct Lease {
    held: Arc<Held>,
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

/// An interface that somebody has. Other processes stay away, or share it, until the last lease
/// is gone.
struct Held {
    interface: InterfaceName,
    /// Its index: an interface that was removed and made again is another one.
    index: u32,
    holders: Mutex<Vec<HolderEntry>>,
    /// What `_lock` allows to other processes.
    is_locked: io::Access,
    _lock: InterfaceLock,
}

struct HolderEntry {
    /// That of the lease.
    id: u64,
    claim: Claim,
    holder: LeaseHolder,
}

impl HolderEntry {
    /// Whether this holder and a new one use the interface at the same time.
    fn allows(&self, claim: Claim, holder: &LeaseHolder) -> bool {
        if self.claim == Claim::Reserved || claim == Claim::Reserved {
            return self.holder.owner == holder.owner;
        }
        self.claim.is_shared() && claim.is_shared()
    }
}

impl Held {
    fn holders(&self) -> MutexGuard<'_, Vec<HolderEntry>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The interfaces that runs and reservations of a host have.
#[derive(Default)]
pub(crate) struct Leases(Mutex<State>);

#[derive(Default)]
struct State {
    held: Vec<Weak<Held>>,
    next_id: u64,
}

/// Who asks for the interfaces of a run, and whether they share them.
pub(crate) struct LeaseRequest<'a> {
    pub(crate) leases: &'a Leases,
    pub(crate) access: Access,
    pub(crate) holder: LeaseHolder,
}

impl LeaseRequest<'_> {
    /// Takes an interface; `is_shared`: others send beside the run's backend.
    ///
    /// # Errors
    /// Where another run or process has it.
    pub(crate) fn take(
        &self,
        interface: &InterfaceName,
        index: u32,
        is_shared: bool,
    ) -> Result<Lease, OpenError> {
        let claim = match self.access {
            Access::Shared => Claim::Shared,
            Access::ByBackend if is_shared => Claim::SharedByAll,
            Access::ByBackend => Claim::Alone,
        };
        self.leases.take(interface, index, claim, self.holder.clone())
    }
}

impl Leases {
    /// Takes an interface.
    ///
    /// # Errors
    /// Where another run or process has it.
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
            // A reservation keeps other processes away, which a lock that they share does not.
            let is_shared_by_all = claim == Claim::Reserved && held.is_locked == io::Access::Shared;
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
            Claim::SharedByAll => io::Access::Shared,
            Claim::Alone | Claim::Shared | Claim::Reserved => io::Access::Exclusive,
        };
        let held = Arc::new(Held {
            interface: interface.clone(),
            index,
            holders: Mutex::new(vec![HolderEntry { id, claim, holder }]),
            is_locked,
            _lock: InterfaceLock::acquire(interface, is_locked)?,
        });
        state.held.push(Arc::downgrade(&held));
        Ok(Lease { held, id })
    }

    /// Who has an interface now.
    pub(crate) fn holders(&self, interface: &InterfaceName) -> Vec<LeaseHolder> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = state.held.iter().filter_map(Weak::upgrade);
        let of_it: Vec<_> = held.filter(|held| held.interface == *interface).collect();
        let holders = |held: &Arc<Held>| -> Vec<_> {
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
    fn an_interface_is_shared_only_where_both_sides_allow_it() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let interface: InterfaceName = lab.a.port().parse().unwrap();
        let index = Link::open(&interface).unwrap().index;
        let leases = Leases::default();
        let take = |claim, owner: &str| leases.take(&interface, index, claim, holder(owner));
        let first = take(Claim::Shared, "ada").unwrap();
        let second = take(Claim::SharedByAll, "bob").unwrap();
        assert_eq!(leases.holders(&interface), [holder("ada"), holder("bob")]);
        let refused = take(Claim::Alone, "eve").unwrap_err().to_string();
        assert!(refused.contains("a lease of ada"), "{refused}");
        drop(first);
        assert_eq!(leases.holders(&interface), [holder("bob")]);
        assert!(take(Claim::Alone, "eve").is_err());
        drop(second);
        let alone = take(Claim::Alone, "eve").unwrap();
        assert!(take(Claim::Shared, "ada").is_err());
        // Another host of this process excludes itself as another process does.
        let elsewhere =
            |claim| Leases::default().take(&interface, index, claim, holder("")).map(drop);
        assert!(elsewhere(Claim::Shared).is_err());
        drop(alone);
        assert!(leases.holders(&interface).is_empty());
        let shared = take(Claim::SharedByAll, "ada").unwrap();
        elsewhere(Claim::SharedByAll).unwrap();
        assert!(elsewhere(Claim::Alone).is_err());
        drop(shared);
        elsewhere(Claim::Alone).unwrap();
    }

    #[test]
    fn a_reservation_keeps_others_away_and_lets_runs_of_its_owner_start() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let interface: InterfaceName = lab.a.port().parse().unwrap();
        let index = Link::open(&interface).unwrap().index;
        let leases = Leases::default();
        let take = |claim, owner: &str| leases.take(&interface, index, claim, holder(owner));
        let elsewhere = || Leases::default().take(&interface, index, Claim::Alone, holder("ada"));
        let first = take(Claim::Reserved, "ada").unwrap();
        let second = take(Claim::Reserved, "ada").unwrap();
        assert!(take(Claim::Reserved, "bob").is_err());
        assert!(take(Claim::Alone, "bob").is_err());
        assert!(elsewhere().is_err());
        let run = take(Claim::Alone, "ada").unwrap();
        assert!(take(Claim::SharedByAll, "ada").is_err(), "a second run");
        drop((first, second));
        assert!(elsewhere().is_err(), "the run goes on without a reservation");
        drop(run);
        elsewhere().unwrap();
        // Others may come where the interface is shared with all.
        let run = take(Claim::SharedByAll, "ada").unwrap();
        assert!(take(Claim::Reserved, "ada").is_err());
        drop(run);
        take(Claim::Reserved, "ada").unwrap();
    }
}
