//! Report of a port: transmit and receive counters, connections, impairments and tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::rate::Layer;

use super::{
    ConnectionsReport, FrameRate, HistogramReport, ImpairmentReport, Label, Rates, ReceiveReport,
    TemplateReport, TunnelsReport,
};

/// Result of one port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PortReport {
    /// Port name in the plan, or the interface if the plan has no port names.
    pub name: String,
    /// Interface, or the file that the port wrote.
    pub interface: String,
    /// Backend that sent the frames; null if the port sent none.
    pub backend: Option<Label>,
    /// Reason for the choice of the backend.
    pub backend_reason: Option<String>,
    /// Transmit counters; null if the port does not send.
    pub tx: Option<TransmitReport>,
    /// Receive counters; null if arrivals were not counted.
    pub rx: Option<ReceiveReport>,
    /// Connections and UDP flows of the port's clients and servers.
    pub connections: Option<ConnectionsReport>,
    /// Results of each template on this port.
    pub templates: Vec<TemplateReport>,
    /// Counters of the impaired link in front of the port.
    pub impairment: Option<ImpairmentReport>,
    /// Tunnel counters.
    pub tunnels: Option<TunnelsReport>,
    /// Number of times that the interface went down.
    pub outages: u64,
    /// Time that the interface was down, in seconds. Outages too short to observe count 0 s.
    pub down_s: f64,
    /// CPU time of the worker of this port, in seconds; null where workers serve several ports.
    pub cpu_s: Option<f64>,
    /// CPU time that the ingress program took on the CPUs of the senders, in seconds; null unless
    /// `sysctl kernel.bpf_stats_enabled=1`.
    pub ingress_cpu_s: Option<f64>,
}

/// Transmit counters and rates.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TransmitReport {
    /// Frames sent.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Transmit rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Bit rate of frames without FCS, as tcpreplay reports it.
    pub bps_frames: f64,
    /// Frames that the port failed to send, including those in `refused`.
    pub failed: u64,
    /// Frames that were not given to the port, by reason.
    pub refused: RefusedReport,
    /// Frames sent shorter than their original length.
    pub truncated: u64,
    /// Repeated send attempts, by reason.
    pub retried: RetriedReport,
    /// Frames not sent: too late, still queued at a stop, or the interface was down.
    pub unsent: u64,
    /// Flows of a replayed capture; null if they were not counted.
    pub flows: Option<ReplayFlows>,
    /// Where departures were timestamped; null if the ports differ.
    pub timestamp_point: Option<Label>,
    /// Schedule accuracy; null at top speed.
    pub departures: Option<DepartureReport>,
}

/// Flow counts of a replay. A flow is the packets of one direction with the same addresses, ports,
/// protocol and VLAN.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayFlows {
    /// Flows started.
    pub count: u64,
    /// Flows started per second.
    pub per_second: f64,
    /// Flows restarted after the expiry; included in `count`.
    pub expired: u64,
    /// Packets that belong to a flow.
    pub flow_packets: u64,
    /// Packets that are not IP.
    pub non_flow_packets: u64,
    /// Packets with truncated or inconsistent headers.
    pub invalid_packets: u64,
}

/// Frames that the port cannot send, by reason.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RefusedReport {
    /// Longer than the interface supports.
    pub too_long: u64,
    /// Length of the longest of them, in bytes.
    pub too_long_max: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// Link type without conversion to Ethernet.
    pub unconvertible: u64,
}

/// Repeated send attempts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RetriedReport {
    /// The kernel had no buffers (`ENOBUFS`).
    pub no_buffers: u64,
    /// The interface was busy (`EAGAIN`).
    pub busy: u64,
}

/// Accuracy of departures relative to the schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DepartureReport {
    /// Where departures were timestamped.
    pub timestamp_point: Label,
    /// Delay of the first frame after its planned time, in nanoseconds.
    pub start_delay_ns: u64,
    /// Total shift of the schedule after the start, in nanoseconds.
    pub schedule_shift_ns: u64,
    /// Part of the shift that shorter gaps recovered, in nanoseconds.
    pub recovered_ns: u64,
    /// Maximum lateness of a frame, in nanoseconds.
    pub lateness_max_ns: u64,
    /// Inter-departure times.
    pub gaps: HistogramReport,
    /// Absolute error of the inter-departure times.
    pub gap_errors: HistogramReport,
}

impl TransmitReport {
    /// Builds a report from a port's counters, with rates over `seconds`.
    pub fn over(counters: &TransmitCounters, seconds: f64) -> Self {
        let rate = FrameRate::over(counters.sent, counters.sent_bytes, seconds);
        Self {
            packets: counters.sent,
            bytes: counters.sent_bytes,
            rates: rate.into(),
            bps_frames: rate.bits_per_second(Layer::Frame),
            failed: counters.failed,
            unsent: counters.unsent,
            retried: RetriedReport {
                no_buffers: counters.retried_no_buffers,
                busy: counters.retried_again,
            },
            ..Self::default()
        }
    }
}

impl DepartureReport {
    /// Builds a report from `record`; `stamped` names the point where timestamps were taken.
    pub fn new(record: &DepartureRecord, stamped: &'static str) -> Self {
        Self {
            timestamp_point: stamped.into(),
            start_delay_ns: record.start_delay.as_nanos(),
            schedule_shift_ns: record.shifted.as_nanos(),
            recovered_ns: record.recovered.as_nanos(),
            lateness_max_ns: record.lateness_max.as_nanos(),
            gaps: HistogramReport::new(&record.gaps),
            gap_errors: HistogramReport::new(&record.gap_errors),
        }
    }
}
