//! Flows of a plan of streams, and what was measured of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_engine::measure::Series;

use super::{DistributionReport, Label, Rates, VariationReport};

/// One flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowReport {
    /// Its name in the plan.
    pub name: String,
    /// The port that it left.
    pub tx: String,
    /// The ports where it should arrive.
    pub rx: Vec<String>,
    /// Frames given to the port.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames left out because they were late.
    pub unsent: u64,
    /// How fast they went.
    #[serde(flatten)]
    pub rates: Rates,
    /// Frames a second that were asked for; null where it was as fast as it goes, or bits.
    pub target_pps: Option<f64>,
    /// Bits a second that were asked for; none where it was as fast as it goes, or frames.
    pub target_bps: Option<f64>,
    /// What `target_bps` counts: `frames`, `l2` or `l1`.
    pub target_layer: Option<Label>,
    /// How far the rate was from what was asked, in millionths; for continuous flows that were not
    /// told something else while they were sent.
    pub rate_error_ppm: Option<f64>,
    /// Frames that left and arrived nowhere; none where the flow is not measured.
    pub lost: Option<u64>,
    /// The same in hundredths of what left.
    pub loss_percent: Option<f64>,
    /// What was measured on each port where it should arrive.
    pub measured: Vec<MeasuredReport>,
}

/// What was measured of a flow on one port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasuredReport {
    /// The port's name in the plan.
    pub port: String,
    /// Frames of the flow that arrived, each counted once.
    pub received: u64,
    /// Bytes without FCS of all its arrivals, further copies included.
    pub received_bytes: u64,
    /// Frames below the last one that arrived which have not come. At the end those are lost that
    /// would have come behind it, too.
    pub missing: u64,
    /// How often frames were left out: arrivals beyond the one expected next.
    pub gaps: u64,
    /// Arrivals of a frame beyond its first one (RFC 5560).
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// The greatest reordering extent, in frames (RFC 4737 section 4.2).
    pub reordering_extent_max: u64,
    /// Frames that arrived after `n` that were all sent later, by n from 1 (RFC 4737 section 5);
    /// TCP takes those of n = 3 for lost.
    pub n_reordered: Vec<u64>,
    /// Arrivals so long after later ones that nobody knows whether they are late or repeats.
    pub too_late: u64,
    /// Frames whose payload was not as it was sent; none where it was not compared.
    pub corrupt: Option<u64>,
    /// Frames with the flow's signature that an earlier run had sent; counted nowhere else.
    pub stale: u64,
    /// Arrivals a second, from the first to the last.
    pub pps: f64,
    /// One-way delay.
    pub delay: DistributionReport,
    /// Packet delay variation: each delay less the least (RFC 5481 section 4.2).
    pub pdv: VariationReport,
    /// Inter-packet delay variation: each delay less that of the frame before (RFC 5481
    /// section 4.1).
    pub ipdv: DistributionReport,
    /// Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); of several workers' frames
    /// the greatest.
    pub jitter_ns: u64,
    /// What happened when.
    pub series: Option<SeriesReport>,
    /// Arrivals by the VLAN tags that they had, where that was asked for.
    pub tags: Vec<TagReport>,
}

/// What arrived of a flow under the same VLAN tags. Its frames are numbered through the whole flow,
/// so that those which arrived under other tags are missing here.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TagReport {
    /// The VLANs, the outer one first, two at most; none of frames without a tag.
    pub vlans: Vec<u16>,
    /// Arrivals, further copies included.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames below the last one under these tags which have not come under them.
    pub missing: u64,
    /// How often frames were left out.
    pub gaps: u64,
    /// Arrivals of a frame beyond its first one.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Arrivals more than 64 frames after later ones, which may be late or repeats.
    pub too_late: u64,
}

/// What happened in intervals of equal length from the start of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeriesReport {
    /// How long each interval is, in seconds.
    pub interval_s: f64,
    /// Arrivals in each interval.
    pub packets: Vec<u64>,
    /// Their bytes without FCS.
    pub bytes: Vec<u64>,
    /// Frames found missing in each that have not come since.
    pub missing: Vec<u64>,
    /// The mean delay of each in nanoseconds; none where nothing arrived.
    pub delay_mean_ns: Vec<Option<f64>>,
    /// The greatest.
    pub delay_max_ns: Vec<Option<i64>>,
}

impl From<&Series> for SeriesReport {
    fn from(series: &Series) -> Self {
        let intervals = series.intervals();
        Self {
            interval_s: series.length().as_secs_f64(),
            packets: intervals.iter().map(|interval| interval.frames).collect(),
            bytes: intervals.iter().map(|interval| interval.bytes).collect(),
            missing: intervals.iter().map(|interval| interval.missing).collect(),
            delay_mean_ns: intervals.iter().map(|interval| interval.delay_ns_mean()).collect(),
            delay_max_ns: intervals
                .iter()
                .map(|interval| (interval.delays > 0).then_some(interval.delay_ns_max))
                .collect(),
        }
    }
}
