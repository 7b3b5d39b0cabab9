//! From what the workers counted to the result.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{StampPoint, TransmitCounters};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::ReplayCounters;
use wirestorm_plan::replay::{ReplayPlan, Target};

use super::reader::{ReadError, ReaderCounters};
use super::work::WorkerOutcome;
use crate::port::{Choice, Interfaces, stamp_name};
use crate::result::{
    Asked, DepartureReport, Flows, PortReport, ReceiveReport, Refused, Retried, RunResult, SCHEMA,
};

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
        let mut departures: Option<(DepartureRecord, StampPoint)> = None;
        let mut finished = start;
        let mut paused = Duration::ZERO;
        let mut errors: Vec<String> = Vec::new();
        for outcome in &outcomes {
            finished = finished.max(outcome.finished);
            paused = paused.max(outcome.paused);
            errors.extend(outcome.error.iter().map(ToString::to_string));
            match (&mut departures, &outcome.departures) {
                (Some((sum, _)), Some((record, _))) => sum.merge(record),
                (empty @ None, Some(first)) => *empty = Some(first.clone()),
                (_, None) => {}
            }
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
        let departures = departures
            .filter(|(record, _)| record.frames > 0 && !matches!(plan.target, Target::File(_)));
        let (mut sum, mut sent) = (counters[0], transmitted[0]);
        sum.merge(&counters[1]);
        sent.merge(&transmitted[1]);
        let rates = Rates::new(&sent, start, finished, departures.as_ref().map(|(r, _)| r));
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
                flows: flows(plan, counters, &rates),
            }
        });
        RunResult {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: "replay",
            captures,
            asked: asked(plan),
            elapsed_s: rates.elapsed_s,
            paused_s: paused.as_secs_f64(),
            packets: sent.sent,
            bytes: sent.sent_bytes,
            pps: rates.pps,
            bps_l1: rates.bits_per_second(Layer::Wire),
            bps_l2: rates.bits_per_second(Layer::FrameWithFcs),
            bps_frames: rates.bits_per_second(Layer::Frame),
            rate_error_ppm: rate_error_ppm(plan, &rates, paused),
            flows: flows(plan, &sum, &rates),
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
            notes: noted.into_iter().chain(notes(&sum, interfaces, &read_counters)).collect(),
        }
    }
}

fn flows(plan: &ReplayPlan, counters: &ReplayCounters, rates: &Rates) -> Option<Flows> {
    plan.flows.map(|_| Flows {
        count: counters.flows,
        per_second: counters.flows as f64 / rates.elapsed_s.max(1e-9),
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
            "{} frames were longer than the interface takes (MTU {mtu}, longest frame {} bytes) \
             and were not sent; --mtu-trunc cuts them, a larger MTU lets them pass",
            counters.too_long, counters.too_long_max
        ));
    }
    if counters.too_short > 0 {
        notes.push(format!(
            "{} records hold less than an Ethernet header and were not sent",
            counters.too_short
        ));
    }
    if counters.unconvertible > 0 {
        notes.push(format!(
            "{} records of other link layers have no Ethernet form and were not sent",
            counters.unconvertible
        ));
    }
    if flows_overflowed > 0 {
        notes.push(format!(
            "the table of flows was full: {flows_overflowed} packets of further flows are not \
             in the count of flows"
        ));
    }
    if sides_overflowed > 0 {
        notes.push(format!(
            "the table of conversations was full: the sides of {sides_overflowed} packets are \
             guesses by port"
        ));
    }
    notes
}

/// What a run that has no interface sends to.
fn target_name(plan: &ReplayPlan) -> String {
    match &plan.target {
        Target::File(path) => path.display().to_string(),
        Target::Memory | Target::Interfaces { .. } => "memory".to_owned(),
    }
}

/// Rates over the time from the first departure to the last. N departures span N - 1
/// intervals; a rate of N over that time would be N / (N - 1) too high.
struct Rates {
    elapsed_s: f64,
    pps: f64,
    bytes_mean: f64,
}

impl Rates {
    fn new(
        transmitted: &TransmitCounters,
        start: Instant,
        finished: Instant,
        departures: Option<&DepartureRecord>,
    ) -> Self {
        let sent = transmitted.sent as f64;
        let bytes_mean = if sent > 0.0 { transmitted.sent_bytes as f64 / sent } else { 0.0 };
        let span = departures
            .and_then(|record| Some(record.last?.saturating_since(record.first?)))
            .filter(|span| span.as_nanos() > 0);
        match span {
            Some(span) => {
                let elapsed_s = span.as_secs_f64();
                Self { elapsed_s, pps: (sent - 1.0).max(0.0) / elapsed_s, bytes_mean }
            }
            None => {
                let elapsed_s = finished.saturating_since(start).as_secs_f64();
                Self { elapsed_s, pps: sent / elapsed_s.max(1e-9), bytes_mean }
            }
        }
    }

    fn bits_per_second(&self, layer: Layer) -> f64 {
        self.pps * (self.bytes_mean + layer.overhead() as f64) * 8.0
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
            asked.layer = Some(match layer {
                Layer::Frame => "frames",
                Layer::FrameWithFcs => "l2",
                Layer::Wire => "l1",
            });
        }
    }
    asked
}

/// The rate that is asked for is that of the time in which frames are to be sent: pauses that are
/// part of the plan make it no lower.
fn rate_error_ppm(plan: &ReplayPlan, rates: &Rates, paused: Duration) -> Option<f64> {
    // A file has the rate that was asked for by its time stamps, however fast it was written.
    if matches!(plan.target, Target::File(_)) {
        return None;
    }
    let (asked, achieved) = match plan.pace {
        Pace::TopSpeed | Pace::Capture { .. } => return None,
        Pace::Packets { rate, .. } => (rate.per_second(), rates.pps),
        Pace::Bits { rate, layer } => (rate.per_second(), rates.bits_per_second(layer)),
    };
    let sending_s = rates.elapsed_s - paused.as_secs_f64();
    (sending_s > 0.0).then(|| (achieved * rates.elapsed_s / sending_s / asked - 1.0) * 1e6)
}
