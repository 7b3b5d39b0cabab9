//! What runs share that go on at the same time on the same ports.

use std::fmt;

use super::numbers::TakenNumbers;
use crate::port::SharedLocks;
use crate::receive::SharedEnds;

/// Lets several runs of one process send and receive on the same interfaces at the same time:
/// those that are given the same one of these.
#[derive(Default)]
pub struct SharedPorts {
    pub(crate) locks: SharedLocks,
    pub(super) ends: SharedEnds,
    pub(super) numbers: TakenNumbers,
}

impl fmt::Debug for SharedPorts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { locks, ends: _, numbers } = self;
        let mut shown = formatter.debug_struct("SharedPorts");
        shown.field("locks", locks).field("numbers", numbers).finish_non_exhaustive()
    }
}
