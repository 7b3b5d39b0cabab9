//! What arrived at a port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistogramReport, Label};

/// What arrived.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReceiveReport {
    /// What received the frames; null where the sending port's backend did.
    pub backend: Option<Label>,
    /// Why that backend.
    pub backend_reason: Option<String>,
    /// Where arrivals were stamped; null where they were not timed.
    pub stamped: Option<Label>,
    /// Frames received.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// From the first arrival to the last, in seconds; null where arrivals were not timed.
    pub elapsed_s: Option<f64>,
    /// Frames a second: intervals between arrivals over the time they took.
    pub pps: Option<f64>,
    /// Layer-2 bits a second, with FCS.
    pub bps_l2: Option<f64>,
    /// Frames dropped because the receive buffer was full; not counted as lost.
    pub dropped: u64,
    /// Frames sent that did not arrive; null where that is not known for the port.
    pub lost: Option<u64>,
    /// Lost frames in percent of sent frames.
    pub loss_percent: Option<f64>,
    /// Frames that arrived beyond those sent: other hosts sent them. Always 0 with verification,
    /// which tells them apart.
    pub unexpected: Option<u64>,
    /// Frames without a signature of a measured flow: of other flows, of other hosts, damaged in
    /// the signature or cut before it; null where nothing was measured.
    pub unsigned: Option<u64>,
    /// Frames with the signature of a flow that should arrive at another port.
    pub wrong_port: Option<u64>,
    /// Received ARP and neighbour discovery frames.
    pub neighbour_packets: u64,
    /// What verification found; null where it was not asked for.
    pub verify: Option<VerifyReport>,
    /// Time between arrivals; null where not all were timed.
    pub gaps: Option<HistogramReport>,
    /// What `queues` are: `cpu` or `queue`; null where there are none.
    pub queue_kind: Option<Label>,
    /// Arrivals by CPU or queue.
    pub queues: Vec<QueueReport>,
    /// Error that stopped receiving.
    pub error: Option<String>,
}

/// Content and order of what arrived.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifyReport {
    /// Frames that arrived unchanged.
    pub intact: u64,
    /// Intact frames that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// Maximum reordering extent (RFC 4737 section 4.2).
    pub reordering_extent_max: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Received frames that match no sent frame.
    pub unexpected: u64,
    /// Frames not tracked because the table of outstanding frames was full.
    pub unverified: u64,
}

/// What arrived on one queue or CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueueReport {
    /// The CPU's or queue's number.
    pub queue: u32,
    /// Frames.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// From its first frame to its last, in seconds.
    pub elapsed_s: f64,
    /// Frames per second.
    pub pps: f64,
}
