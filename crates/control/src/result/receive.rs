//! Report of the receiving side of a port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistogramReport, Label};

/// Receive counters and rates.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReceiveReport {
    /// Backend that received the frames; null if it is the backend of the sending port.
    pub backend: Option<Label>,
    /// Reason for the choice of the backend.
    pub backend_reason: Option<String>,
    /// Where arrivals were timestamped; null without timestamps.
    pub timestamp_point: Option<Label>,
    /// Frames received.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Time from the first to the last arrival in seconds; null without timestamps.
    pub elapsed_s: Option<f64>,
    /// Frames per second: intervals between arrivals divided by `elapsed_s`.
    pub pps: Option<f64>,
    /// Layer-2 bit rate in bit/s (with FCS).
    pub bps_l2: Option<f64>,
    /// Frames dropped because the receive buffer was full; not counted as lost.
    pub dropped: u64,
    /// Frames sent that did not arrive; null if unknown for the port.
    pub lost: Option<u64>,
    /// Lost frames in percent of sent frames.
    pub loss_percent: Option<f64>,
    /// Frames received in excess of those sent, from other hosts. Always 0 with verification, which
    /// identifies them.
    pub unexpected: Option<u64>,
    /// Frames without the signature of a measured flow: other flows, other hosts, or a damaged or
    /// truncated signature. Null without measurement.
    pub no_signature: Option<u64>,
    /// Frames with the signature of a flow of another port.
    pub wrong_port: Option<u64>,
    /// Received ARP and neighbour discovery frames.
    pub neighbour_packets: u64,
    /// Verification counters; null without verification.
    pub verify: Option<VerifyReport>,
    /// Inter-arrival times; null unless all arrivals were timed.
    pub gaps: Option<HistogramReport>,
    /// Meaning of `queues`: `cpu` or `queue`; null without entries.
    pub queue_kind: Option<Label>,
    /// Arrivals by CPU or queue.
    pub queues: Vec<QueueReport>,
    /// Error that stopped receiving.
    pub error: Option<String>,
}

/// Verification of the content and order of received frames.
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

/// Receive counters of one queue or CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueueReport {
    /// Number of the CPU or queue.
    pub queue: u32,
    /// Frames received.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Time from the first to the last frame in seconds.
    pub elapsed_s: f64,
    /// Frames per second.
    pub pps: f64,
}
