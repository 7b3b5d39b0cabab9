//! Builds the report of a device.

use wirestorm_base::rate::Layer;
use wirestorm_model::stream::Speed;
use wirestorm_plan::pktgen::{Counters, LoweredDevice};

use super::run::{DeviceOutcome, PortOutcome};
use crate::port::stamp_name;
use crate::result::{DepartureReport, DeviceReport, FrameRate, TransmitReport};

/// Builds the report of a device. `result` is the `Result:` text of its file.
pub(super) fn device(
    device: &LoweredDevice,
    outcome: &DeviceOutcome,
    counters: &Counters,
    result: String,
) -> DeviceReport {
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let rate = FrameRate::over(counters.frames, counters.bytes, elapsed_s);
    let mut report = DeviceReport {
        name: device.name.clone(),
        interface: device.interface.clone(),
        thread: device.cpu,
        tx: TransmitReport {
            packets: counters.frames,
            bytes: counters.bytes,
            rates: rate.into(),
            bps_frames: rate.bits_per_second(Layer::Frame),
            ..TransmitReport::default()
        },
        elapsed_s,
        idle_s: outcome.idle.as_secs_f64(),
        result,
        ..DeviceReport::default()
    };
    let Some(PortOutcome { choice, transmitted, departures }) = &outcome.sent else {
        return report;
    };
    report.backend = Some(choice.backend.name.into());
    report.backend_reason = Some(choice.why.clone());
    report.tx.failed = transmitted.failed;
    report.tx.unsent = transmitted.unsent;
    let timed = departures.as_ref().filter(|(record, _)| record.frames > 0);
    report.tx.departures =
        timed.map(|(record, stamp)| DepartureReport::new(record, stamp_name(*stamp)));
    let speed = device.streams.first().map(|stream| stream.transmission.speed);
    // N departures have N - 1 gaps.
    let gaps_a_second = timed.and_then(|(record, _)| {
        let span_s = record.last?.saturating_since(record.first?).as_secs_f64();
        let gaps = record.frames.checked_sub(1).filter(|gaps| *gaps > 0)?;
        (span_s > 0.0).then(|| gaps as f64 / span_s)
    });
    let ratio = match speed {
        Some(Speed::Frames(target)) => {
            report.target_pps = Some(target.per_second());
            gaps_a_second.map(|pps| pps / target.per_second())
        }
        Some(Speed::Bits(target, _)) => {
            report.target_bps = Some(target.per_second());
            gaps_a_second.map(|pps| {
                let rate = FrameRate::new(pps, counters.frames, counters.bytes);
                rate.bits_per_second(Layer::Frame) / target.per_second()
            })
        }
        Some(Speed::Max) | None => None,
    };
    report.rate_error_ppm = ratio.map(|ratio| (ratio - 1.0) * 1e6);
    report
}
