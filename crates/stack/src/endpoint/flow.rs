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
    pub(super) is_called: bool,
    /// When it began, in microseconds modulo 2^32.
    pub(super) began_at: u32,
    /// Whether any data has arrived.
    pub(super) is_answered: bool,
    pub(super) template: u16,
    pub(super) link: u16,
    /// Whether it waits to be served.
    pub(super) is_pending: bool,
    /// Whether it is counted as being in TIME-WAIT.
    pub(super) is_waiting: bool,
}

impl Keyed for Flow {
    fn key(&self) -> &FlowKey {
        &self.key
    }
}

// An idle flow is to take 256 bytes with its part of the table and the wheel: docs/design/stack.md.
const _: () = assert!(size_of::<Option<Flow>>() <= 232);
