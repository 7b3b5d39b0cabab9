//! Interaction of flows: requests of programs, and events of flows.

use wirestorm_wire::flow::FlowKey;

use crate::program::FlowRequest;

/// Slot of a flow in the table of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FlowSlot {
    Tcp(u32),
    Udp(u32),
}

/// Request of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    /// Requesting flow. Its key tells whether the slot still holds that flow when the request is
    /// handled.
    pub(super) parent: FlowSlot,
    pub(super) key: FlowKey,
    /// Template of the requesting flow.
    pub(super) template: u16,
    pub(super) kind: FlowRequest,
}

/// Event of a flow that others may wait for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The flow was removed.
    Gone {
        place: FlowSlot,
        /// Whether it has failed.
        has_failed: bool,
    },
    /// A connection was served.
    Served {
        place: u32,
        /// Whether it entered TIME-WAIT.
        is_over: bool,
    },
}
