//! One connection with its program.

use wirestorm_wire::flow::FlowKey;

use super::table::Keyed;
use crate::program::Run;
use crate::tcp::connection::Connection;

/// One end of a connection, and how far its program is.
#[derive(Debug)]
pub(super) struct Flow {
    /// From the peer to us.
    pub(super) key: FlowKey,
    pub(super) connection: Connection,
    pub(super) run: Run,
    /// When the wheel calls it, in ms, where it does.
    pub(super) called_at: u32,
    /// When it began, in microseconds modulo 2^32.
    pub(super) began_at: u32,
    /// The header below IP of what it sends.
    pub(super) link: u32,
    pub(super) template: u16,
    /// Whether it waits to be served.
    pub(super) is_pending: bool,
    pub(super) marks: FlowMarks,
}

/// Bits that a flow remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowMarks(u8);

impl FlowMarks {
    /// The wheel calls it.
    pub(super) const CALLED: Self = Self(1 << 0);
    /// Data has arrived.
    pub(super) const ANSWERED: Self = Self(1 << 1);
    /// It is counted as being in TIME-WAIT.
    pub(super) const WAITING: Self = Self(1 << 2);
    /// Its program goes on in another flow.
    pub(super) const REPLACED: Self = Self(1 << 3);

    #[inline]
    pub(super) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    #[inline]
    pub(super) const fn clear(&mut self, mark: Self) {
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
