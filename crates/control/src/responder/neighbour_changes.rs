//! Changes of neighbours' Ethernet addresses during a run: for example, a standby router takes over
//! the address of a router that failed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use wirestorm_wire::packet::MacAddress;

/// Change of a neighbour's Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeighbourChange {
    /// VLAN tags of the neighbour's network.
    pub(crate) tags: Vec<u8>,
    /// IP address of the neighbour.
    pub(crate) address: IpAddr,
    /// Previous Ethernet address.
    pub(crate) from: MacAddress,
    /// New Ethernet address.
    pub(crate) to: MacAddress,
    /// Whether no other known neighbour uses the previous Ethernet address.
    pub(crate) was_alone: bool,
}

/// Pending changes for the worker of a port; at most one for each neighbour.
#[derive(Debug, Default)]
pub(crate) struct NeighbourChanges {
    has_pending: AtomicBool,
    waiting: Mutex<BTreeMap<(Vec<u8>, IpAddr), NeighbourChange>>,
}

impl NeighbourChanges {
    /// Adds a change.
    pub(super) fn add(&self, it: NeighbourChange) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let change = waiting.entry((it.tags.clone(), it.address)).or_insert_with(|| it.clone());
        // The worker never saw an intermediate address, so keep the first `from` and the last `to`.
        change.to = it.to;
        self.has_pending.store(true, Ordering::Release);
    }

    /// Returns the changes since the last call.
    #[inline]
    pub(crate) fn take(&self) -> Vec<NeighbourChange> {
        if !self.has_pending.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.has_pending.store(false, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_of_a_neighbour_merge() {
        let at = |last: u8| MacAddress([2, 0, 0, 0, 0, last]);
        let it = |last: u8, from, to| NeighbourChange {
            tags: Vec::new(),
            address: IpAddr::from([10, 0, 0, last]),
            from: at(from),
            to: at(to),
            was_alone: true,
        };
        let moves = NeighbourChanges::default();
        assert_eq!(moves.take(), []);
        moves.add(it(1, 1, 2));
        moves.add(it(2, 7, 8));
        moves.add(it(1, 2, 3));
        assert_eq!(moves.take(), [it(1, 1, 3), it(2, 7, 8)]);
        assert_eq!(moves.take(), []);
    }
}
