//! One connection with its program.

use wirestorm_wire::flow::FlowKey;

use super::super::table::Keyed;
use crate::program::Run;
use crate::tcp::connection::Connection;

/// One end of a connection, and how far its program is.
#[derive(Debug)]
pub(in crate::endpoint) struct Flow {
    /// From the peer to us.
    pub(in crate::endpoint) key: FlowKey,
    pub(in crate::endpoint) connection: Connection,
    pub(in crate::endpoint) run: Run,
    /// When the wheel calls it, in ms, where it does.
    pub(in crate::endpoint) called_at: u32,
    /// When it began, in microseconds modulo 2^32.
    pub(in crate::endpoint) began_at: u32,
    /// The header below IP of what it sends.
    pub(in crate::endpoint) link: u32,
    pub(in crate::endpoint) template: u16,
    /// Whether it waits to be served.
    pub(in crate::endpoint) is_pending: bool,
    pub(in crate::endpoint) marks: FlowMarks,
}

/// Bits that a flow remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::endpoint) struct FlowMarks(u8);

impl FlowMarks {
    /// The wheel calls it.
    pub(in crate::endpoint) const CALLED: Self = Self(1 << 0);
    /// Data has arrived.
    pub(in crate::endpoint) const ANSWERED: Self = Self(1 << 1);
    /// It is counted as being in TIME-WAIT.
    pub(in crate::endpoint) const WAITING: Self = Self(1 << 2);
    /// Its program goes on in another flow.
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

// An idle flow is to take 256 bytes with its part of the table and the wheel: docs/design/stack.md.
const _: () = assert!(size_of::<Option<Flow>>() <= 232);
