//! A port: what it sent, what it received, and what happened to frames on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::rate::Layer;

use super::{
    ConnectionsReport, FrameRate, HistogramReport, ImpairmentReport, Label, Rates, ReceiveReport,
    TemplateReport, TunnelsReport,
};

/// One port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PortReport {
    /// Its name in the plan; its interface where the plan has no names.
    pub name: String,
    /// Its interface, or the file that it wrote.
    pub interface: String,
    /// What carried the frames that it sent; null where it sent none.
    pub backend: Option<Label>,
    /// Why that backend.
    pub backend_reason: Option<String>,
    /// What it sent; null where it was not to send.
    pub tx: Option<TransmitReport>,
    /// What arrived; null where arrivals were not counted.
    pub rx: Option<ReceiveReport>,
    /// Connections of its clients and servers, and their UDP flows.
    pub connections: Option<ConnectionsReport>,
    /// The clients or servers of each template that it has.
    pub templates: Vec<TemplateReport>,
    /// What happened to the frames that it was to send on an impaired link.
    pub impairment: Option<ImpairmentReport>,
    /// What happened to frames in tunnels.
    pub tunnels: Option<TunnelsReport>,
    /// How often the interface was down.
    pub outages: u64,
    /// How long it was down, in seconds; 0 too where that was over before it was noticed.
    pub down_s: f64,
    /// CPU time of the worker of this port, in seconds; null where workers serve several ports.
    pub cpu_s: Option<f64>,
    /// CPU time that a program at the interface's ingress took on the CPUs of the senders, in
    /// seconds. Known where the kernel measures it (`sysctl kernel.bpf_stats_enabled=1`).
    pub ingress_cpu_s: Option<f64>,
}

/// What was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TransmitReport {
    /// Frames that left.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// How fast they left.
    #[serde(flatten)]
    pub rates: Rates,
    /// Bits a second of the frames without FCS, as tcpreplay counts them.
    pub bps_frames: f64,
    /// Frames that did not leave because a port refused them, those in `refused` included.
    pub failed: u64,
    /// Frames that were not given to a port, and why.
    pub refused: RefusedReport,
    /// Frames that left shorter than they were on the wire.
    pub truncated: u64,
    /// Attempts that were repeated because a queue was full or the interface busy.
    pub retried: RetriedReport,
    /// Frames that were not sent because they were late, still queued at an interruption, or the
    /// interface was down.
    pub unsent: u64,
    /// Flows of a replayed capture; null where they were not counted.
    pub flows: Option<ReplayFlows>,
    /// Where departures were stamped; null where several ports differ.
    pub stamped: Option<Label>,
    /// How departures kept to the schedule; null where all was sent as fast as it goes.
    pub departures: Option<DepartureReport>,
}

/// Flows: packets of one direction with equal addresses, ports, protocol and VLAN.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayFlows {
    /// Flows started.
    pub count: u64,
    /// Flows started per second.
    pub per_second: f64,
    /// Flows restarted after the expiry; included in `flows`.
    pub expired: u64,
    /// Packets that belong to a flow.
    pub flow_packets: u64,
    /// Packets that are not IP.
    pub non_flow_packets: u64,
    /// Packets with truncated or inconsistent headers.
    pub invalid_packets: u64,
}

/// Frames that no port could send.
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

/// Attempts that were repeated.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RetriedReport {
    /// The kernel had no buffers (`ENOBUFS`).
    pub no_buffers: u64,
    /// The interface was busy (`EAGAIN`).
    pub again: u64,
}

/// How departures kept to the schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DepartureReport {
    /// Where departures were timestamped.
    pub stamped: Label,
    /// Delay of the first frame after its planned time, in nanoseconds.
    pub start_delay_ns: u64,
    /// Total shift of the schedule after the start, in nanoseconds.
    pub shifted_ns: u64,
    /// Part of the shift that shorter gaps recovered, in nanoseconds.
    pub regained_ns: u64,
    /// Maximum lateness of a frame, in nanoseconds.
    pub lateness_max_ns: u64,
    /// Inter-departure times.
    pub gaps: HistogramReport,
    /// Absolute error of the inter-departure times.
    pub gap_errors: HistogramReport,
}

impl TransmitReport {
    /// Frames that a port's counters have as sent within so many seconds.
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
                again: counters.retried_again,
            },
            ..Self::default()
        }
    }
}

impl DepartureReport {
    /// The report of a record whose stamps were taken at `stamped`.
    pub fn new(record: &DepartureRecord, stamped: &'static str) -> Self {
        Self {
            stamped: stamped.into(),
            start_delay_ns: record.start_delay.as_nanos(),
            shifted_ns: record.shifted.as_nanos(),
            regained_ns: record.regained.as_nanos(),
            lateness_max_ns: record.lateness_max.as_nanos(),
            gaps: HistogramReport::new(&record.gaps),
            gap_errors: HistogramReport::new(&record.gap_errors),
        }
    }
}
