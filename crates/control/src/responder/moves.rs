//! Neighbours that turn up at other Ethernet addresses while a run lasts: of a router that failed,
//! whose address another one has taken over.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use wirestorm_wire::packet::MacAddress;

/// A neighbour that is at another Ethernet address than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// The VLAN tags behind which it is.
    pub(crate) tags: Vec<u8>,
    /// Who.
    pub(crate) address: IpAddr,
    /// Where it was.
    pub(crate) from: MacAddress,
    /// Where it is.
    pub(crate) to: MacAddress,
    /// Whether nobody else is known where it was.
    pub(crate) was_alone: bool,
}

/// Those that the worker of a port is to be told of; no more than there are neighbours.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    are_there: AtomicBool,
    waiting: Mutex<BTreeMap<(Vec<u8>, IpAddr), Move>>,
}

impl Moves {
    /// A neighbour has moved.
    pub(super) fn add(&self, it: Move) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let told = waiting.entry((it.tags.clone(), it.address)).or_insert_with(|| it.clone());
        // Of one that has moved again nobody knows where it was meanwhile.
        told.to = it.to;
        self.are_there.store(true, Ordering::Release);
    }

    /// Those that have moved since this was asked last.
    #[inline]
    pub(crate) fn take(&self) -> Vec<Move> {
        if !self.are_there.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.are_there.store(false, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_twice_is_told_of_once() {
        let at = |last: u8| MacAddress([2, 0, 0, 0, 0, last]);
        let it = |last: u8, from, to| Move {
            tags: Vec::new(),
            address: IpAddr::from([10, 0, 0, last]),
            from: at(from),
            to: at(to),
            was_alone: true,
        };
        let moves = Moves::default();
        assert_eq!(moves.take(), []);
        moves.add(it(1, 1, 2));
        moves.add(it(2, 7, 8));
        moves.add(it(1, 2, 3));
        assert_eq!(moves.take(), [it(1, 1, 3), it(2, 7, 8)]);
        assert_eq!(moves.take(), []);
    }
}
