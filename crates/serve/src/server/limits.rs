//! Limits of users on rates.
//!
//! The rates of a plan of streams are checked before the run. What a plan does not tell, such as
//! the rate of clients, is measured: a run that exceeds the limit is stopped.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::run::CommandRequest;
use wirestorm_api::session::Limits;
use wirestorm_control::base::rate::Layer;
use wirestorm_control::model::stream::Speed;
use wirestorm_control::run::Plan;

use super::identity::Identity;
use super::runs::{HostedRun, PortCounters};

/// Interval of the measurement. A burst may exceed the limit within it.
const INTERVAL: Duration = Duration::from_secs(1);
/// Part of the limit by which a measured rate may exceed it: late frames follow faster.
const TOLERANCE: f64 = 0.05;

/// Checks the rates of a plan against the limits of its user.
///
/// # Errors
/// A port would send faster.
pub(super) fn check(plan: &Plan, user: &Identity) -> Result<(), ErrorDocument> {
    let limits = &*user.limits;
    if limits.pps_max.is_none() && limits.bps_max.is_none() {
        return Ok(());
    }
    let Plan::Streams { plan, options } = plan else { return Ok(()) };
    let here = |index: &usize| options.is_here(*index);
    for index in (0..plan.ports.len()).filter(here) {
        let port = &plan.ports[index];
        // Without a known line rate, percentages are an error that the run reports.
        let Ok(streams) = plan.streams(index, None, options.multiplier) else { continue };
        let (mut pps, mut bps) = (0.0, 0.0);
        for (_, stream) in &streams {
            let frame = stream.template.len() as f64;
            let wire_bits = (frame + Layer::Wire.overhead() as f64) * 8.0;
            let frames = match stream.transmission.speed {
                Speed::Max => f64::INFINITY,
                Speed::Frames(rate) => rate.per_second(),
                Speed::Bits(rate, layer) => {
                    rate.per_second() / ((frame + layer.overhead() as f64) * 8.0)
                }
            };
            pps += frames;
            bps += frames * wire_bits;
        }
        exceeded(limits, pps, bps, 1.0).map_or(Ok(()), |limit| {
            let message = format!(
                "port {:?} would send {}, and the limit of {} is {limit}",
                port.name,
                if pps.is_finite() { format!("{pps:.0} frames/s") } else { "at full speed".into() },
                user.user
            );
            Err(ErrorDocument::new(ErrorCode::Forbidden, message))
        })?;
    }
    Ok(())
}

/// Checks that a command does not lift the rate of a run whose user has a limit, as far as the
/// command tells. The measurement finds the rest.
///
/// # Errors
/// The command asks for full speed.
pub(super) fn check_command(
    run: &HostedRun,
    command: &CommandRequest,
) -> Result<(), ErrorDocument> {
    let has_limit = run.limits.pps_max.is_some() || run.limits.bps_max.is_some();
    match command {
        CommandRequest::Rate { rate, .. } if has_limit && rate.trim() == "max" => {
            let message = format!("{} has a limited rate: give a number", run.user);
            Err(ErrorDocument::new(ErrorCode::Forbidden, message))
        }
        _ => Ok(()),
    }
}

/// Stops a run that sends faster than the limits of its user.
pub(super) fn enforce(run: &HostedRun) {
    if run.limits.pps_max.is_none() && run.limits.bps_max.is_none() {
        return;
    }
    let mut checked = run.checked.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if checked.as_ref().is_some_and(|it| now.duration_since(it.at) < INTERVAL) {
        return;
    }
    let Some(snapshot) = run.handle.latest() else { return };
    let counters: Vec<(u64, u64)> = snapshot
        .ports
        .iter()
        .map(|port| (port.transmitted.sent, port.transmitted.sent_bytes))
        .collect();
    let before = checked.replace(PortCounters { at: now, sent: counters.clone() });
    let Some(PortCounters { at, sent: before }) = before else { return };
    let seconds = now.duration_since(at).as_secs_f64();
    for ((port, (frames, bytes)), (frames_before, bytes_before)) in
        snapshot.ports.iter().zip(counters).zip(before)
    {
        let sent = frames.saturating_sub(frames_before) as f64;
        let bytes = bytes.saturating_sub(bytes_before) as f64;
        let (pps, bps) =
            (sent / seconds, (bytes + sent * Layer::Wire.overhead() as f64) * 8.0 / seconds);
        if let Some(limit) = exceeded(&run.limits, pps, bps, 1.0 + TOLERANCE) {
            run.stop(Some(format!(
                "stopped: port {} sent {pps:.0} frames/s and {bps:.0} bit/s, and the limit of {} \
                 is {limit}",
                port.name, run.user
            )));
            return;
        }
    }
}

/// Returns the limit that rates exceed by a factor.
fn exceeded(limits: &Limits, pps: f64, bps: f64, factor: f64) -> Option<String> {
    let over = |rate: f64, limit: Option<u64>| limit.filter(|it| rate > *it as f64 * factor);
    let pps = over(pps, limits.pps_max).map(|limit| format!("{limit} frames/s"));
    pps.or_else(|| over(bps, limits.bps_max).map(|limit| format!("{limit} bit/s")))
}
