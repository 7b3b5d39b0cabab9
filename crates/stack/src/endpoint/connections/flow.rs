//! A connection with its program.

use wirestorm_wire::flow::FlowKey;

use super::super::table::Keyed;
use crate::program::Run;
use crate::tcp::connection::Connection;

/// One end of a connection, with its program.
#[derive(Debug)]
pub(in crate::endpoint) struct Flow {
    /// Key of packets from the peer to us.
    pub(in crate::endpoint) key: FlowKey,
    pub(in crate::endpoint) connection: Connection,
    pub(in crate::endpoint) run: Run,
    /// Time of the next timer call in ms, if `CALLED` is set.
    pub(in crate::endpoint) timer_at: u32,
    /// Start in microseconds, modulo 2^32.
    pub(in crate::endpoint) began_at: u32,
    /// Slot of the link header of sent frames.
    pub(in crate::endpoint) link: u32,
    pub(in crate::endpoint) template: u16,
    /// Whether the flow is in the queue of flows to serve.
    pub(in crate::endpoint) is_pending: bool,
    pub(in crate::endpoint) marks: FlowFlags,
}

/// Flags of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::endpoint) struct FlowFlags(u8);

impl FlowFlags {
    /// The timer wheel has an entry.
    pub(in crate::endpoint) const TIMER_SET: Self = Self(1 << 0);
    /// Data has arrived.
    pub(in crate::endpoint) const ANSWERED: Self = Self(1 << 1);
    /// The flow is counted as in TIME-WAIT.
    pub(in crate::endpoint) const WAITING: Self = Self(1 << 2);
    /// The program continues in another flow.
    pub(in crate::endpoint) const REPLACED: Self = Self(1 << 3);

    #[inline]
    pub(in crate::endpoint) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline]
    pub(in crate::endpoint) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    #[inline]
    pub(in crate::endpoint) const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }
}

impl Keyed for Flow {
    fn key(&self) -> &FlowKey {
        &self.key
    }
}

// An idle flow must fit 256 bytes with its parts of the table and the wheel: docs/design/stack.md.
const _: () = assert!(size_of::<Option<Flow>>() <= 232);
