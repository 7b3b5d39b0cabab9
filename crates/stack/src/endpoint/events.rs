//! What flows have to do with each other: what their programs ask for, and what has become of them.

use wirestorm_wire::flow::FlowKey;

use crate::program::Wish;

/// The place of a flow in the table of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Tcp(u32),
    Udp(u32),
}

/// What a program asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Who asks, as whose key will tell: what is asked for comes a little later.
    pub(super) parent: Place,
    pub(super) key: FlowKey,
    /// The template of who asks.
    pub(super) template: u16,
    pub(super) wish: Wish,
}

/// What has become of a flow that others may wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// It is gone.
    Gone {
        place: Place,
        /// Whether it has failed.
        has_failed: bool,
    },
    /// A connection has gone on.
    Served {
        place: u32,
        /// Whether it is in TIME-WAIT since.
        is_over: bool,
    },
}
