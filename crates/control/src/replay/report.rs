//! From what the workers counted to the result.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use wirestorm_base::count::counted;
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::ReplayCounters;
use wirestorm_plan::replay::{ReplayPlan, Target};

use super::reader::{ReadError, ReaderCounters};
use super::work::WorkerOutcome;
use crate::port::{Choice, Interfaces, stamp_name};
use crate::result::{
    Asked, DepartureReport, Flows, FrameRate, PortReport, ReceiveReport, Refused, Retried,
    RunResult, SCHEMA, layer_name,
};
use crate::work::departures_of_all;

/// A run that has ended.
pub(super) struct Ended {
    pub(super) captures: Vec<String>,
    pub(super) start: Instant,
    pub(super) outcomes: Vec<WorkerOutcome>,
    pub(super) read_counters: Arc<ReaderCounters>,
    pub(super) read_error: Option<ReadError>,
    pub(super) rx: Option<ReceiveReport>,
    /// What one should know of how it was run.
    pub(super) notes: Vec<String>,
    pub(super) interrupted: bool,
}

impl Ended {
    /// The result.
    pub(super) fn report(self, plan: &ReplayPlan, interfaces: &Interfaces) -> RunResult {
        let Self {
            captures,
            start,
            outcomes,
            read_counters,
            read_error,
            rx,
            notes: noted,
            interrupted,
        } = self;
        let mut counters = [ReplayCounters::default(); 2];
        let mut transmitted = [TransmitCounters::default(); 2];
        let mut choices: Vec<&Choice> = Vec::new();
        let mut finished = start;
        let mut paused = Duration::ZERO;
        let mut errors: Vec<String> = Vec::new();
        for outcome in &outcomes {
            finished = finished.max(outcome.finished);
            paused = paused.max(outcome.paused);
            errors.extend(outcome.error.iter().map(ToString::to_string));
            for (sum, counters) in counters.iter_mut().zip(&outcome.counters) {
                sum.merge(counters);
            }
            for (sum, port) in transmitted.iter_mut().zip(&outcome.ports) {
                sum.merge(&port.transmitted);
            }
            if choices.is_empty() {
                choices.extend(outcome.ports.iter().map(|port| &port.choice));
            }
        }
        errors.extend(read_error.iter().map(ToString::to_string));
        errors.extend(rx.iter().filter_map(|rx| rx.error.clone()));
        // A file's time stamps are the schedule; what took time is to write it.
        let departures = outcomes.iter().filter_map(|outcome| outcome.departures.clone());
        let departures = departures_of_all(departures)
            .filter(|(record, _)| record.frames > 0 && !matches!(plan.target, Target::File(_)));
        let (mut sum, mut sent) = (counters[0], transmitted[0]);
        sum.merge(&counters[1]);
        sent.merge(&transmitted[1]);
        let cut_off = read_counters.cut_off.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Each of them was missing in every pass.
        let missing = cut_off.iter().filter(|cut| cut.loses_packet()).count() as u64;
        transmitted[0].failed += missing * sum.passes.max(1);
        sent.failed += missing * sum.passes.max(1);
        let lasted = finished.saturating_since(start);
        let (rate, elapsed_s) = achieved(&sent, lasted, departures.as_ref().map(|(r, _)| r));
        let mut reports = choices.iter().enumerate().map(|(position, choice)| {
            let interface = interfaces.links.get(position);
            let (counters, transmitted) = (&counters[position], &transmitted[position]);
            PortReport {
                interface: interface
                    .map_or_else(|| target_name(plan), |(name, _)| name.to_string()),
                backend: choice.backend,
                why: choice.why.clone(),
                sent: transmitted.sent,
                sent_bytes: transmitted.sent_bytes,
                failed: failed(counters, transmitted),
                refused: refused(counters),
                truncated: counters.truncated,
                retried: retried(transmitted),
                unsent: transmitted.unsent + counters.unsent,
                flows: flows(plan, counters, elapsed_s),
            }
        });
        RunResult {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: "replay",
            captures,
            asked: asked(plan),
            elapsed_s,
            paused_s: paused.as_secs_f64(),
            packets: sent.sent,
            bytes: sent.sent_bytes,
            rates: rate.into(),
            bps_frames: rate.bits_per_second(Layer::Frame),
            rate_error_ppm: rate_error_ppm(plan, &rate, elapsed_s, paused),
            flows: flows(plan, &sum, elapsed_s),
            failed: failed(&sum, &sent),
            refused: refused(&sum),
            truncated: sum.truncated,
            retried: retried(&sent),
            unsent: sent.unsent + sum.unsent,
            left_out: sum.left_out,
            passes: sum.passes,
            starved: sum.starved,
            departures: departures
                .as_ref()
                .map(|(record, stamp)| DepartureReport::new(record, stamp_name(*stamp))),
            port: reports.next().unwrap_or_default(),
            second_port: reports.next(),
            rx,
            interrupted,
            errors,
            notes: noted
                .into_iter()
                .chain(cut_off.iter().map(|cut| format!("{}: {}", cut.input, cut.reason)))
                .chain(notes(&sum, interfaces, &read_counters))
                .collect(),
        }
    }
}

fn flows(plan: &ReplayPlan, counters: &ReplayCounters, elapsed_s: f64) -> Option<Flows> {
    plan.flows.map(|_| Flows {
        count: counters.flows,
        per_second: counters.flows as f64 / elapsed_s.max(1e-9),
        expired: counters.flows_expired,
        flow_packets: counters.flow_packets,
        non_flow_packets: counters.non_flow_packets,
        invalid_packets: counters.invalid_packets,
    })
}

const fn failed(counters: &ReplayCounters, transmitted: &TransmitCounters) -> u64 {
    transmitted.failed + counters.too_long + counters.too_short + counters.unconvertible
}

const fn refused(counters: &ReplayCounters) -> Refused {
    Refused {
        too_long: counters.too_long,
        too_long_max: counters.too_long_max,
        too_short: counters.too_short,
        unconvertible: counters.unconvertible,
    }
}

const fn retried(transmitted: &TransmitCounters) -> Retried {
    Retried { no_buffers: transmitted.retried_no_buffers, again: transmitted.retried_again }
}

/// What one should know of the frames that did not leave, and what to do about it.
fn notes(counters: &ReplayCounters, interfaces: &Interfaces, read: &ReaderCounters) -> Vec<String> {
    let flows_overflowed = read.flows_overflowed.load(Ordering::Relaxed);
    let sides_overflowed = read.sides_overflowed.load(Ordering::Relaxed);
    let mut notes = Vec::new();
    if counters.too_long > 0 {
        let mtu = interfaces.links.first().map_or(0, |(_, link)| link.mtu);
        notes.push(format!(
            "{} longer than the interface takes (MTU {mtu}, longest frame {} bytes) and not sent; \
             --mtu-trunc cuts such frames, a larger MTU lets them pass",
            counted(counters.too_long, "frame was", "frames were"),
            counters.too_long_max
        ));
    }
    if counters.too_short > 0 {
        notes.push(format!(
            "{} shorter than an Ethernet header and not sent",
            counted(counters.too_short, "record was", "records were")
        ));
    }
    if counters.unconvertible > 0 {
        notes.push(format!(
            "{} of a link layer without an Ethernet form and not sent",
            counted(counters.unconvertible, "record was", "records were")
        ));
    }
    if flows_overflowed > 0 {
        notes.push(format!(
            "the table of flows was full: {} of further flows not in the count of flows",
            counted(flows_overflowed, "packet is", "packets are")
        ));
    }
    if sides_overflowed > 0 {
        notes.push(format!(
            "the table of conversations was full: {} on a side guessed by port",
            counted(sides_overflowed, "packet is", "packets are")
        ));
    }
    notes
}

/// What a run that has no interface sends to.
fn target_name(plan: &ReplayPlan) -> String {
    match &plan.target {
        Target::File(path) => path.display().to_string(),
        Target::Memory { .. } | Target::Interfaces { .. } => "memory".to_owned(),
    }
}

/// The rate over the time from the first departure to the last, and that time in seconds. N
/// departures span N - 1 intervals; a rate of N over that time would be N / (N - 1) too high.
/// Where departures were not timed, all of them over the time that the run `lasted`.
fn achieved(
    transmitted: &TransmitCounters,
    lasted: Duration,
    departures: Option<&DepartureRecord>,
) -> (FrameRate, f64) {
    let (frames, bytes) = (transmitted.sent, transmitted.sent_bytes);
    let span = departures
        .and_then(|record| Some(record.last?.saturating_since(record.first?)))
        .filter(|span| span.as_nanos() > 0);
    match span {
        Some(span) => {
            let pps = frames.saturating_sub(1) as f64 / span.as_secs_f64();
            (FrameRate::new(pps, frames, bytes), span.as_secs_f64())
        }
        None => (FrameRate::over(frames, bytes, lasted.as_secs_f64()), lasted.as_secs_f64()),
    }
}

fn asked(plan: &ReplayPlan) -> Asked {
    let mut asked = Asked {
        packets: (plan.limits.packets < u64::MAX).then_some(plan.limits.packets),
        duration_s: (plan.limits.duration < Duration::MAX)
            .then(|| plan.limits.duration.as_secs_f64()),
        passes: (plan.limits.passes < u64::MAX).then_some(plan.limits.passes),
        ..Asked::default()
    };
    match plan.pace {
        Pace::TopSpeed => asked.pace = "topspeed",
        Pace::Capture { multiplier, .. } => {
            asked.pace = "capture";
            asked.multiplier = Some(multiplier.digits as f64 / multiplier.denominator as f64);
        }
        Pace::Packets { rate, .. } => {
            asked.pace = "pps";
            asked.pps = Some(rate.per_second());
        }
        Pace::Bits { rate, layer } => {
            asked.pace = "bps";
            asked.bps = Some(rate.per_second());
            asked.layer = Some(layer_name(layer));
        }
    }
    asked
}

/// The rate that is asked for is that of the time in which frames are to be sent: pauses that are
/// part of the plan make it no lower.
fn rate_error_ppm(
    plan: &ReplayPlan,
    achieved: &FrameRate,
    elapsed_s: f64,
    paused: Duration,
) -> Option<f64> {
    // A file has the rate that was asked for by its time stamps, however fast it was written.
    if matches!(plan.target, Target::File(_)) {
        return None;
    }
    let (asked, achieved) = match plan.pace {
        Pace::TopSpeed | Pace::Capture { .. } => return None,
        Pace::Packets { rate, .. } => (rate.per_second(), achieved.pps),
        Pace::Bits { rate, layer } => (rate.per_second(), achieved.bits_per_second(layer)),
    };
    let sending_s = elapsed_s - paused.as_secs_f64();
    (sending_s > 0.0).then(|| (achieved * elapsed_s / sending_s / asked - 1.0) * 1e6)
}
