//! Reports on one-way delay between two machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_engine::measure::Segment;
use wirestorm_io::clock;

use super::{DistributionReport, Label, VariationReport};

/// Raw delays of a flow in a segment of time: arrival by the receiver's clock minus departure by the
/// sender's clock. Nothing is corrected, so a later analysis can use other clock offsets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SegmentReport {
    /// First arrival by the receiver's clock, in nanoseconds since the Unix epoch.
    pub start_ns: i64,
    /// Last arrival.
    pub end_ns: i64,
    /// Delay of the reference line at the start, modulo 2^48 ns. Both clocks are the monotonic ones
    /// of their machines.
    pub reference_ns: i64,
    /// Slope of the reference line, in ns for each 2^32 ns.
    pub slope: i64,
    /// Number of delays.
    pub count: u64,
    /// Smallest deviation from the reference line.
    pub min_ns: i64,
    /// Mean deviation.
    pub mean_ns: f64,
    /// Largest deviation.
    pub max_ns: i64,
    /// Middle of each non-empty bucket of deviations, and its count.
    pub deviations: Vec<(i64, u64)>,
}

impl From<&Segment> for SegmentReport {
    fn from(segment: &Segment) -> Self {
        let deviations = &segment.deviations;
        Self {
            start_ns: clock::node_time(segment.start).as_nanos(),
            end_ns: clock::node_time(segment.end).as_nanos(),
            reference_ns: segment.reference_ns,
            slope: segment.slope,
            count: deviations.count(),
            min_ns: deviations.min().unwrap_or(0),
            mean_ns: deviations.mean().unwrap_or(0.0),
            max_ns: deviations.max().unwrap_or(0),
            deviations: deviations.buckets().collect(),
        }
    }
}

/// One-way delay of a flow between two machines (RFC 7679), with compared clocks. Negative delays are
/// kept: they show an error of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OneWayReport {
    /// One-way delay.
    pub delay: DistributionReport,
    /// Packet delay variation (RFC 5481 section 4.2), without the drift of the clocks.
    pub pdv: VariationReport,
    /// Each delay is right to this many nanoseconds if the assumption holds.
    pub half_width_ns: f64,
    /// Each delay is right to this many nanoseconds in any case; null if it is `half_width_ns`.
    pub bound_ns: Option<f64>,
    /// What the comparison relies on: `one clock`, `independent` clocks with known errors, or a
    /// `symmetric path`.
    pub assumption: Label,
    /// How the clocks were compared.
    pub method: String,
    /// Other comparisons of the clocks, whose bounds are larger.
    pub alternatives: Vec<ClockAlternative>,
    /// Asymmetry of the path of the exchanges: delay from the sender to the receiver minus the
    /// opposite. Only independent references show it.
    pub asymmetry: Option<AsymmetryReport>,
    /// True one-way delay, if the test knows it: all agents are on one machine, and have virtual
    /// clocks.
    pub truth: Option<DistributionReport>,
    /// Half of the shortest round trip of the comparison, in nanoseconds; null without one.
    pub half_round_trip_ns: Option<f64>,
    /// Constant delay of the testers that was subtracted, in nanoseconds.
    pub bias_ns: f64,
    /// Drift of the sender's clock against the receiver's, in ppm.
    pub drift_ppm: f64,
    /// Number of delays that are negative by more than their error.
    pub impossible: u64,
    /// Number of frames at times without a clock offset; they are in no other field.
    pub uncompared: u64,
    /// Steps of a clock and changes of the route.
    pub events: Vec<ClockEvent>,
    /// Delays over time.
    pub series: Vec<OneWaySegment>,
}

/// A comparison of the clocks that was not used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClockAlternative {
    /// How the clocks were compared.
    pub method: String,
    /// What it relies on: `independent` or `symmetric path`.
    pub assumption: Label,
    /// Its largest error if the assumption holds, in nanoseconds.
    pub half_width_ns: f64,
    /// Its largest error in any case, in nanoseconds.
    pub bound_ns: f64,
    /// What it would add to all delays, in nanoseconds.
    pub difference_ns: f64,
}

/// Asymmetry of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AsymmetryReport {
    /// Asymmetry in nanoseconds.
    pub value_ns: f64,
    /// Largest error of it, in nanoseconds.
    pub half_width_ns: f64,
}

/// A step of a clock or a change of the route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClockEvent {
    /// Time since the first arrival, in seconds.
    pub at_s: f64,
    /// `clock_step` or `route_change`.
    pub kind: Label,
    /// Change of the clocks' offset, in nanoseconds.
    pub offset_ns: i64,
    /// Change of the shortest delay from the sender to the receiver.
    pub forward_ns: i64,
    /// Change of the shortest delay from the receiver to the sender.
    pub backward_ns: i64,
}

/// Delays of a segment of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OneWaySegment {
    /// Start since the first arrival, in seconds.
    pub at_s: f64,
    /// Number of delays.
    pub count: u64,
    /// Shortest delay.
    pub min_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// Longest delay.
    pub max_ns: i64,
    /// Error of each of them.
    pub half_width_ns: f64,
}
