//! Round-trip times of probes sent beside the load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DistributionReport, Label};

/// Probes from a port to one host: round-trip delays (RFC 2681).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyReport {
    /// Source port.
    pub port: String,
    /// Destination address.
    pub target: String,
    /// Probe protocol: `icmp` or `udp`.
    pub protocol: Label,
    /// UDP destination port.
    pub target_port: Option<u16>,
    /// Target rate in probes per second.
    pub rate_pps: f64,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// Probes not answered within 1 s.
    pub lost: u64,
    /// Duplicate replies.
    pub duplicated: u64,
    /// Replies reordered (RFC 4737).
    pub reordered: u64,
    /// Probes that could not be sent in time.
    pub unsent: u64,
    /// Round-trip time (RFC 2681).
    pub round_trip: DistributionReport,
    /// Interarrival jitter of round trips in nanoseconds (RFC 3550 section 6.4.1).
    pub jitter_ns: u64,
}
