//! What a link reports.
//!
//! The JSON form is `wirestorm.link/1`, described by `schemas/wirestorm.link.1.json`.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;

use crate::port::Choice;
use crate::result::HistogramReport;

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.link/1";

/// What went over a link between two interfaces.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LinkResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// How long the interfaces were joined, in seconds.
    pub elapsed_s: f64,
    /// Where chance came from.
    pub seed: u64,
    /// From the first interface to the second, and back.
    pub directions: Vec<DirectionReport>,
    /// Whether it was ended by a signal.
    pub interrupted: bool,
    /// What went wrong; what was counted before stands.
    pub errors: Vec<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// One direction of a link.
///
/// Every frame that entered, and every copy, is in exactly one of `lost`, `queue_dropped`,
/// `no_room`, `delivered` and `held`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DirectionReport {
    /// The interface that frames came from.
    pub from: String,
    /// The interface that they left from.
    pub to: String,
    /// What carried the frames of the first.
    pub backend: &'static str,
    /// Why that.
    pub why: String,
    /// Frames that entered the link.
    pub entered: u64,
    /// Their bytes without FCS.
    pub entered_bytes: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames and copies in which a bit was changed.
    pub corrupted: u64,
    /// Frames and copies dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames and copies dropped because too many were held.
    pub no_room: u64,
    /// Frames and copies that came out.
    pub delivered: u64,
    /// Their bytes without FCS.
    pub delivered_bytes: u64,
    /// Those of them that came out behind a frame that had entered later.
    pub reordered: u64,
    /// Frames and copies still on the link in the end, which were dropped.
    pub held: u64,
    /// Frames that did not enter: longer than the other interface takes, or shorter than a
    /// header.
    pub unfit: u64,
    /// Frames that the other interface refused, or had not sent in the end.
    pub failed: u64,
    /// Frames that arrived and that there was no room for.
    pub missed: u64,
    /// How late frames came out, beside what was asked for.
    pub lateness: HistogramReport,
    /// CPU time of the direction, in seconds.
    pub cpu_s: f64,
}

/// What a direction's worker came back with.
pub(super) struct Ended {
    pub(super) counters: ImpairmentCounters,
    pub(super) unfit: u64,
    pub(super) transmitted: TransmitCounters,
    pub(super) received: ReceiveCounters,
    pub(super) lateness: Histogram,
    pub(super) cpu: Duration,
    pub(super) error: Option<String>,
}

impl Ended {
    pub(super) fn report(&self, (from, to): (&str, &str), choice: &Choice) -> DirectionReport {
        let counters = &self.counters;
        DirectionReport {
            from: from.to_owned(),
            to: to.to_owned(),
            backend: choice.backend,
            why: choice.why.clone(),
            entered: counters.entered,
            entered_bytes: counters.entered_bytes,
            lost: counters.lost,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            queue_dropped: counters.queue_dropped,
            no_room: counters.no_room,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            reordered: counters.reordered,
            held: counters.held(),
            unfit: self.unfit,
            failed: self.transmitted.failed + self.transmitted.unsent,
            missed: self.received.missed,
            lateness: HistogramReport::new(&self.lateness),
            cpu_s: self.cpu.as_secs_f64(),
        }
    }
}
