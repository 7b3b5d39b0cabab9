//! What a run reports: one document for tables, JSON and whatever reads either.
//!
//! The JSON form is `wirestorm.result/1`, described by `schemas/wirestorm.result.1.json`. Times
//! are in seconds or nanoseconds as their names say, rates per second, lengths without FCS
//! unless the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS).

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::histogram::{Histogram, bucket_of};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::Duration;

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.result/1";

/// The result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// The command that ran.
    pub command: &'static str,
    /// What was to be sent.
    pub captures: Vec<String>,
    /// What was asked for.
    pub asked: Asked,
    /// From the first departure to the last, in seconds: rates are those of the intervals between
    /// departures over this time.
    pub elapsed_s: f64,
    /// The part of it in which nothing was to be sent: pauses between passes, and while the run
    /// was suspended.
    pub paused_s: f64,
    /// Frames that left.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// How fast they left.
    #[serde(flatten)]
    pub rates: Rates,
    /// Bits a second of the frames without FCS, as tcpreplay counts them.
    pub bps_frames: f64,
    /// How far the rate was from what was asked, in millionths, pauses not counted; none at top
    /// speed.
    pub rate_error_ppm: Option<f64>,
    /// Flows; none where they were not counted.
    pub flows: Option<Flows>,
    /// Frames that did not leave because a port refused them.
    pub failed: u64,
    /// Why some of them did: longer than the interface takes, too short for Ethernet, or
    /// of a kind that has no Ethernet form.
    pub refused: Refused,
    /// Frames sent shorter than they were on the wire.
    pub truncated: u64,
    /// Attempts repeated because a queue was full or the interface busy.
    pub retried: Retried,
    /// Frames left out because they were late, or still queued at an interruption.
    pub unsent: u64,
    /// Packets passed over on request.
    pub left_out: u64,
    /// Passes completed over all captures.
    pub passes: u64,
    /// Times the worker found nothing read yet.
    pub starved: u64,
    /// How departures kept to the schedule; none at top speed.
    pub departures: Option<DepartureReport>,
    /// The interface for everything, or for the client side.
    pub port: PortReport,
    /// The interface for the server side.
    pub second_port: Option<PortReport>,
    /// What arrived; none where nobody looked.
    pub rx: Option<ReceiveReport>,
    /// Whether it was ended by a signal.
    pub interrupted: bool,
    /// What went wrong; what was measured before stands.
    pub errors: Vec<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// How fast frames went.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Rates {
    /// Frames a second.
    pub pps: f64,
    /// Layer-1 bits a second.
    pub bps_l1: f64,
    /// Layer-2 bits a second, with FCS.
    pub bps_l2: f64,
}

/// What was asked for; `None` is "not".
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Asked {
    /// What sets the pace: nothing, the capture's own timing, frames a second, bits a second.
    #[schemars(extend("enum" = ["topspeed", "capture", "pps", "bps"]))]
    pub pace: &'static str,
    /// Speed-up of the capture's own timing.
    pub multiplier: Option<f64>,
    /// Frames a second.
    pub pps: Option<f64>,
    /// Bits a second.
    pub bps: Option<f64>,
    /// What `bps` counts: `frames`, `l2` or `l1`.
    pub layer: Option<&'static str>,
    /// Frames in all.
    pub packets: Option<u64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Passes over the captures.
    pub passes: Option<u64>,
}

/// Flows: packets of one direction with equal addresses, ports, protocol and VLAN.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Flows {
    /// Flows begun.
    pub count: u64,
    /// Flows begun a second.
    pub per_second: f64,
    /// Flows begun again after the expiry; they are in `count`.
    pub expired: u64,
    /// Packets that belong to a flow.
    pub flow_packets: u64,
    /// Packets that are not IP.
    pub non_flow_packets: u64,
    /// Packets whose headers are cut or make no sense.
    pub invalid_packets: u64,
}

/// Frames that no port could send.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Refused {
    /// Longer than the interface takes.
    pub too_long: u64,
    /// The longest of those, in bytes.
    pub too_long_max: u64,
    /// Without a whole Ethernet header.
    pub too_short: u64,
    /// Of another link layer, without an Ethernet form.
    pub unconvertible: u64,
}

/// Attempts that were repeated.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Retried {
    /// The kernel had no buffers (`ENOBUFS`).
    pub no_buffers: u64,
    /// The interface was busy (`EAGAIN`).
    pub again: u64,
}

/// How departures kept to the schedule.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DepartureReport {
    /// Where departures were stamped.
    pub stamped: &'static str,
    /// How much later than planned the first frame left, in nanoseconds.
    pub start_delay_ns: u64,
    /// How far the schedule had to be moved after that, in nanoseconds.
    pub shifted_ns: u64,
    /// How much of that was made up for by gaps a little shorter, in nanoseconds.
    pub regained_ns: u64,
    /// The latest that a frame left after it was due, in nanoseconds.
    pub lateness_max_ns: u64,
    /// Time between departures.
    pub gaps: HistogramReport,
    /// How far each gap was from the one scheduled, either way.
    pub gap_errors: HistogramReport,
}

/// A histogram in nanoseconds; of nothing, its quantiles are null.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HistogramReport {
    /// Values counted.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90 of 100 are at most this.
    pub p90_ns: Option<u64>,
    /// 99 of 100 are at most this.
    pub p99_ns: Option<u64>,
    /// 999 of 1,000 are at most this.
    pub p99_9_ns: Option<u64>,
    /// The greatest.
    pub max_ns: Option<u64>,
    /// Start of each bucket that is not empty, and its count.
    pub buckets: Vec<(u64, u64)>,
}

/// A port that sent.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PortReport {
    /// The interface, or the file.
    pub interface: String,
    /// What carried the frames.
    pub backend: &'static str,
    /// Why that.
    pub why: String,
    /// Frames the interface accepted.
    pub sent: u64,
    /// Their bytes without FCS.
    pub sent_bytes: u64,
    /// Frames that it refused, those in `refused` included.
    pub failed: u64,
    /// Frames that were not given to it, and why.
    pub refused: Refused,
    /// Frames sent shorter than they were on the wire.
    pub truncated: u64,
    /// Attempts repeated because a queue was full or the interface busy.
    pub retried: Retried,
    /// Frames left out because they were late, or still queued at an interruption.
    pub unsent: u64,
    /// Flows; none where they were not counted.
    pub flows: Option<Flows>,
}

/// What arrived.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReceiveReport {
    /// The interface.
    pub interface: String,
    /// What received the frames.
    pub backend: &'static str,
    /// Why that.
    pub why: String,
    /// Where arrivals were stamped.
    pub stamped: &'static str,
    /// Frames that arrived.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// From the first arrival to the last, in seconds.
    pub elapsed_s: f64,
    /// Frames a second: intervals between arrivals over the time they took.
    pub pps: f64,
    /// Layer-2 bits a second, with FCS.
    pub bps_l2: f64,
    /// Frames sent that did not arrive.
    pub lost: u64,
    /// The same in hundredths of what was sent.
    pub loss_percent: f64,
    /// Frames that arrived beyond those sent: not all were ours. Always 0 with verification,
    /// which tells them apart.
    pub surplus: u64,
    /// Frames that arrived and that the receiver had no room for; not counted as lost.
    pub missed: u64,
    /// ARP and neighbour discovery among the frames that arrived.
    pub neighbour_packets: u64,
    /// What verification found; none where it was not asked for.
    pub verify: Option<VerifyReport>,
    /// Time between arrivals; none where not all were timed.
    pub gaps: Option<HistogramReport>,
    /// What `queues` are: `cpu` or `queue`.
    pub queues_are: &'static str,
    /// By CPU or queue.
    pub queues: Vec<QueueReport>,
    /// What ended the receiving early.
    pub error: Option<String>,
}

/// Content and order of what arrived.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifyReport {
    /// Frames that arrived as they were sent.
    pub intact: u64,
    /// Intact frames that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// The greatest reordering extent (RFC 4737 section 4.2).
    pub reordering_extent_max: u64,
    /// Arrivals of a frame beyond the number of times it was sent.
    pub duplicated: u64,
    /// Arrivals that equal no frame sent.
    pub unexpected: u64,
    /// Frames that could not be noted, for there were too many on their way.
    pub unverified: u64,
}

/// What arrived on one queue or CPU.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueueReport {
    /// The CPU's or queue's number.
    pub queue: u32,
    /// Frames.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// From its first frame to its last, in seconds.
    pub elapsed_s: f64,
    /// Frames a second.
    pub pps: f64,
}

/// Frames a second that have this length in the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRate {
    pub(crate) pps: f64,
    /// Without FCS; 0 of nothing.
    bytes_mean: f64,
}

impl FrameRate {
    pub(crate) fn new(pps: f64, frames: u64, bytes: u64) -> Self {
        Self { pps, bytes_mean: bytes as f64 / frames.max(1) as f64 }
    }

    /// So many frames, and their bytes without FCS, in so many seconds.
    pub(crate) fn over(frames: u64, bytes: u64, seconds: f64) -> Self {
        Self::new(frames as f64 / seconds.max(1e-9), frames, bytes)
    }

    pub(crate) fn bits_per_second(&self, layer: Layer) -> f64 {
        self.pps * (self.bytes_mean + layer.overhead() as f64) * 8.0
    }
}

impl From<FrameRate> for Rates {
    fn from(rate: FrameRate) -> Self {
        Self {
            pps: rate.pps,
            bps_l1: rate.bits_per_second(Layer::Wire),
            bps_l2: rate.bits_per_second(Layer::FrameWithFcs),
        }
    }
}

/// What a rate in bits counts, as results name it.
pub(crate) const fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Frame => "frames",
        Layer::FrameWithFcs => "l2",
        Layer::Wire => "l1",
    }
}

impl HistogramReport {
    /// The summary of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        let quantile = |q| histogram.quantile(q).map(Duration::as_nanos);
        Self {
            count: histogram.count(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
            max_ns: (histogram.count() > 0).then(|| histogram.max().as_nanos()),
            buckets: histogram.buckets().map(|(start, count)| (start.as_nanos(), count)).collect(),
        }
    }

    /// Adds what another one counted.
    pub(crate) fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let mut both = Histogram::new();
        for report in [&*self, other] {
            for &(start, count) in &report.buckets {
                both.add_bucket(bucket_of(start), count);
            }
            both.note_max(Duration::from_nanos(report.max_ns.unwrap_or(0)));
        }
        *self = Self::new(&both);
    }
}

impl DepartureReport {
    /// The report of a record whose stamps were taken at `stamped`.
    pub fn new(record: &DepartureRecord, stamped: &'static str) -> Self {
        Self {
            stamped,
            start_delay_ns: record.start_delay.as_nanos(),
            shifted_ns: record.shifted.as_nanos(),
            regained_ns: record.regained.as_nanos(),
            lateness_max_ns: record.lateness_max.as_nanos(),
            gaps: HistogramReport::new(&record.gaps),
            gap_errors: HistogramReport::new(&record.gap_errors),
        }
    }
}
