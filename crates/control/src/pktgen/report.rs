//! What the runs of a script report.
//!
//! The JSON form is `wirestorm.pktgen/1`, described by `schemas/wirestorm.pktgen.1.json`. Units are
//! those of `wirestorm.result/1`.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::rate::Layer;
use wirestorm_plan::pktgen::{Counters, LoweredDevice};
use wirestorm_wire::stream::Speed;

use super::run::{Outcome, Sent};
use crate::port::stamp_name;
use crate::result::{DepartureReport, FrameRate, Rates, ReceiveReport};

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.pktgen/1";

/// The result of a script.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PktgenResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// Each start, in order.
    pub runs: Vec<PktgenRun>,
    /// What arrived; none where nobody looked.
    pub rx: Option<ReceiveReport>,
    /// Whether a run was ended by a signal.
    pub interrupted: bool,
    /// What went wrong; what was measured before stands.
    pub errors: Vec<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// What one `start` came to.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PktgenRun {
    /// Each device, thread by thread.
    pub devices: Vec<DeviceReport>,
    /// Whether it was ended before all was sent: by the script, or by a signal.
    pub stopped: bool,
}

/// One device.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceReport {
    /// Its name: `eth0@1`.
    pub name: String,
    /// Its interface: `eth0`.
    pub interface: String,
    /// The number of the pktgen thread that it was added to.
    pub thread: u32,
    /// What carried its frames; none where it sent none.
    pub backend: Option<&'static str>,
    /// Why that.
    pub why: Option<String>,
    /// Frames that left.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames that the interface refused.
    pub failed: u64,
    /// Frames left out because they were late, or queued at an interruption.
    pub unsent: u64,
    /// From the common start to its end, in seconds: rates are those over all of it, as pktgen
    /// counts.
    pub elapsed_s: f64,
    /// The part of it that was waited.
    pub idle_s: f64,
    /// How fast they left.
    #[serde(flatten)]
    pub rates: Rates,
    /// Bits a second of the frames without FCS.
    pub bps_frames: f64,
    /// Frames a second that were asked for; none where it was as fast as it goes, or bits.
    pub asked_pps: Option<f64>,
    /// Bits a second of frames without FCS that were asked for; none where it was as fast as it
    /// goes, or frames.
    pub asked_bps: Option<f64>,
    /// How far the rate was from what was asked, in millionths, by the gaps between departures.
    pub rate_error_ppm: Option<f64>,
    /// How departures kept to the schedule; none where all was sent as fast as it goes.
    pub departures: Option<DepartureReport>,
    /// What its file shows behind `Result: `.
    pub result: String,
}

impl DeviceReport {
    /// The report of a device whose file shows this result.
    pub(super) fn new(
        device: &LoweredDevice,
        outcome: &Outcome,
        counters: &Counters,
        result: String,
    ) -> Self {
        let elapsed_s = outcome.elapsed.as_secs_f64();
        let rate = FrameRate::over(counters.frames, counters.bytes, elapsed_s);
        let mut report = Self {
            name: device.name.clone(),
            interface: device.interface.clone(),
            thread: device.cpu,
            packets: counters.frames,
            bytes: counters.bytes,
            elapsed_s,
            idle_s: outcome.idle.as_secs_f64(),
            rates: rate.into(),
            bps_frames: rate.bits_per_second(Layer::Frame),
            result,
            ..Self::default()
        };
        let Some(Sent { choice, transmitted, departures }) = &outcome.sent else { return report };
        report.backend = Some(choice.backend);
        report.why = Some(choice.why.clone());
        report.failed = transmitted.failed;
        report.unsent = transmitted.unsent;
        let timed = departures.as_ref().filter(|(record, _)| record.frames > 0);
        report.departures =
            timed.map(|(record, stamp)| DepartureReport::new(record, stamp_name(*stamp)));
        let speed = device.streams.first().map(|stream| stream.transmission.speed);
        // Between N departures are N - 1 gaps.
        let gaps_a_second = timed.and_then(|(record, _)| {
            let span_s = record.last?.saturating_since(record.first?).as_secs_f64();
            let gaps = record.frames.checked_sub(1).filter(|gaps| *gaps > 0)?;
            (span_s > 0.0).then(|| gaps as f64 / span_s)
        });
        let ratio = match speed {
            Some(Speed::Frames(asked)) => {
                report.asked_pps = Some(asked.per_second());
                gaps_a_second.map(|pps| pps / asked.per_second())
            }
            Some(Speed::Bits(asked, _)) => {
                report.asked_bps = Some(asked.per_second());
                gaps_a_second.map(|pps| {
                    let rate = FrameRate::new(pps, counters.frames, counters.bytes);
                    rate.bits_per_second(Layer::Frame) / asked.per_second()
                })
            }
            Some(Speed::Max) | None => None,
        };
        report.rate_error_ppm = ratio.map(|ratio| (ratio - 1.0) * 1e6);
        report
    }
}
