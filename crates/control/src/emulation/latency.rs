//! What probes beside the load found out.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::rate::Rate;

use crate::host::ProbeRecord;
use crate::traffic::DistributionReport;

/// Echo requests of a port to one host: round-trip delays (RFC 2681).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyReport {
    /// The port that asked.
    pub port: String,
    /// Who was asked.
    pub target: String,
    /// How often a second it was to be.
    pub rate_pps: f64,
    /// Requests sent.
    pub sent: u64,
    /// Requests that were answered.
    pub received: u64,
    /// Requests that were not answered, within a second at the end.
    pub lost: u64,
    /// Answers beyond the first to a request.
    pub duplicated: u64,
    /// Requests left out, as they could not be sent when they were due or not long after.
    pub unsent: u64,
    /// From a request to its answer.
    pub round_trip: DistributionReport,
    /// Interarrival jitter of round trips in nanoseconds (RFC 3550 section 6.4.1).
    pub jitter_ns: u64,
}

/// Who asks whom, and where what is found out can be looked at.
pub(super) struct Probe {
    pub(super) port: String,
    pub(super) target: IpAddr,
    pub(super) rate: Rate,
    pub(super) record: Arc<Mutex<ProbeRecord>>,
}

impl Probe {
    /// What was found out so far.
    pub(super) fn report(&self) -> Option<LatencyReport> {
        let record = self.record.lock().ok()?;
        Some(LatencyReport {
            port: self.port.clone(),
            target: self.target.to_string(),
            rate_pps: self.rate.per_second(),
            sent: record.sent,
            received: record.received,
            lost: record.sent - record.received,
            duplicated: record.duplicated,
            unsent: record.unsent,
            round_trip: (&record.delays).into(),
            jitter_ns: record.jitter.nanoseconds(),
        })
    }
}
