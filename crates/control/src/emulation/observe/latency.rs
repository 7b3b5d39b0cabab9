//! Reports of the latency probes.

use std::sync::{Arc, Mutex};

use crate::responder::{ProbeRecord, ProbeTarget};
use crate::result::LatencyReport;

/// Latency probe of a port, and its shared results.
pub(in crate::emulation) struct LatencyProbe {
    /// Name of the sending port.
    pub(in crate::emulation) port: String,
    pub(in crate::emulation) target: ProbeTarget,
    pub(in crate::emulation) record: Arc<Mutex<ProbeRecord>>,
}

impl LatencyProbe {
    /// Returns the results so far; `None` if the prober thread panicked.
    pub(in crate::emulation) fn report(&self) -> Option<LatencyReport> {
        let record = self.record.lock().ok()?;
        Some(LatencyReport {
            port: self.port.clone(),
            target: self.target.target.to_string(),
            protocol: if self.target.port.is_some() { "udp" } else { "icmp" }.into(),
            target_port: self.target.port,
            rate_pps: self.target.rate.per_second(),
            sent: record.sent,
            received: record.received,
            lost: record.sent - record.received,
            duplicated: record.duplicated,
            reordered: record.reordered,
            unsent: record.unsent,
            round_trip: (&record.delays).into(),
            jitter_ns: record.jitter.nanoseconds(),
        })
    }
}
