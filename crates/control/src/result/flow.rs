//! Reports on flows of a plan of streams and on their measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DistributionReport, Label, OneWayReport, Rates, SegmentReport, SeriesReport, TotalReport,
    VariationReport,
};

/// Result of one flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowReport {
    /// Name in the plan.
    pub name: String,
    /// Port that sends the flow.
    pub tx: String,
    /// Ports that receive the flow.
    pub rx: Vec<String>,
    /// Frames sent.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Frames dropped because they were late.
    pub unsent: u64,
    /// Frames that the in-kernel sender made without work of the process; null with other backends.
    pub made_in_kernel: Option<u64>,
    /// Why the process made the other frames for the in-kernel sender; null if there are none.
    pub made_by_process: Option<String>,
    /// Transmit rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Target rate in frames per second; null for top speed or a bit rate.
    pub target_pps: Option<f64>,
    /// Target rate in bit/s; null for top speed or a frame rate.
    pub target_bps: Option<f64>,
    /// Layer of `target_bps`: `frames`, `l2` or `l1`.
    pub target_layer: Option<Label>,
    /// Relative rate error in parts per million; only for continuous flows without commands.
    pub rate_error_ppm: Option<f64>,
    /// Lost frames; null if the flow is not measured.
    pub lost: Option<u64>,
    /// Lost frames in percent of sent frames.
    pub loss_percent: Option<f64>,
    /// Measurement of each receiving port.
    pub measured: Vec<MeasuredReport>,
    /// Measurements of all receiving ports together; null with a single one.
    pub total: Option<TotalReport>,
}

/// Measurement of a flow at one receiving port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasuredReport {
    /// Port name in the plan.
    pub port: String,
    /// Distinct frames received.
    pub received: u64,
    /// Bytes received without FCS, duplicates included.
    pub received_bytes: u64,
    /// Frames before the last received one that have not arrived.
    pub missing: u64,
    /// Loss periods (RFC 3357).
    pub gaps: u64,
    /// Longest time between two arrivals with missing frames between them, in seconds; null without
    /// gaps.
    pub gap_max_s: Option<f64>,
    /// Time from the first arrival to the arrival after the last gap, in seconds; null without gaps.
    pub last_gap_s: Option<f64>,
    /// Duplicates (RFC 5560).
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent in frames (RFC 4737 section 4.2).
    pub reordering_extent_max: u64,
    /// n-reordered frames for each n from 1 (RFC 4737 section 5); TCP treats n = 3 as loss.
    pub n_reordered: Vec<u64>,
    /// Frames outside the sequence window: late or duplicate.
    pub too_late: u64,
    /// Frames with a changed payload; null if payloads were not compared.
    pub corrupt: Option<u64>,
    /// Frames of an earlier run; counted nowhere else.
    pub stale: u64,
    /// Received frames per second.
    pub pps: f64,
    /// One-way delay.
    pub delay: DistributionReport,
    /// Packet delay variation: delay minus the minimum delay (RFC 5481 section 4.2).
    pub pdv: VariationReport,
    /// Inter-packet delay variation: difference to the previous frame's delay (RFC 5481 section
    /// 4.1).
    pub ipdv: DistributionReport,
    /// Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); maximum of all workers.
    pub jitter_ns: u64,
    /// Time series.
    pub series: Option<SeriesReport>,
    /// One-way delay from another machine, with compared clocks; null if the sender is on this
    /// machine. `delay`, `pdv` and the delays of `series` have the offset of the clocks then.
    pub one_way: Option<OneWayReport>,
    /// Raw delays of a flow from another machine.
    pub segments: Vec<SegmentReport>,
    /// Received frames for each VLAN.
    pub tags: Vec<TagReport>,
    /// Received frames by the values of their bits, for flows of Open Traffic Generator with metric
    /// tags.
    pub values: Vec<ValuesReport>,
}

/// Frames of a flow with the same values in the bits that the plan counts by; duplicates included.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ValuesReport {
    /// Values in the order of the plan, in hexadecimal.
    pub values: Vec<String>,
    /// Frames received.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Arrival of the first frame in nanoseconds since the Unix epoch.
    pub first_unix_ns: u64,
    /// Arrival of the last frame in nanoseconds since the Unix epoch.
    pub last_unix_ns: u64,
    /// Shortest one-way delay in nanoseconds.
    pub delay_min_ns: i64,
    /// Mean one-way delay in nanoseconds.
    pub delay_mean_ns: f64,
    /// Longest one-way delay in nanoseconds.
    pub delay_max_ns: i64,
}

/// Frames of a flow that arrived with the same VLAN tags. Sequence numbers run through the whole
/// flow, so frames that arrived with other tags count as `missing` here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TagReport {
    /// VLAN IDs, outer first; empty for untagged frames.
    pub vlans: Vec<u16>,
    /// Frames received, duplicates included.
    pub packets: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Frames before the last one in this VLAN that did not arrive in it.
    pub missing: u64,
    /// Loss periods.
    pub gaps: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Frames more than 64 frames late: late or duplicate.
    pub too_late: u64,
}
