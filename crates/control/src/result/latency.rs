//! Round-trip times of probes beside the load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DistributionReport, Label};

/// Questions of a port to one host: round-trip delays (RFC 2681).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyReport {
    /// The port that asked.
    pub port: String,
    /// Who was asked.
    pub target: String,
    /// By what: `icmp`, echo requests, or `udp`, datagrams that are sent back.
    pub protocol: Label,
    /// At which port, by UDP.
    pub target_port: Option<u16>,
    /// How often a second it was to be.
    pub rate_pps: f64,
    /// Questions sent.
    pub sent: u64,
    /// Questions that were answered.
    pub received: u64,
    /// Questions that were not answered, within a second at the end.
    pub lost: u64,
    /// Answers beyond the first to a question.
    pub duplicated: u64,
    /// Answers that came after one to a later question (RFC 4737).
    pub reordered: u64,
    /// Questions left out, as they could not be sent when they were due or not long after.
    pub unsent: u64,
    /// From a question to its answer.
    pub round_trip: DistributionReport,
    /// Interarrival jitter of round trips in nanoseconds (RFC 3550 section 6.4.1).
    pub jitter_ns: u64,
}
