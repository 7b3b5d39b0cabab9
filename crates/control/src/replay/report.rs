//! Builds the result from the counters of the workers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use wirestorm_base::count::pluralise;
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::ReplayCounters;
use wirestorm_plan::replay::{ReplayPlan, Target as SendTo};

use super::reader::ReadError;
use super::reader_counters::ReaderCounters;
use super::target::port_names;
use super::work::WorkerOutcome;
use crate::backend::{Choice, XDP};
use crate::port::{Interfaces, stamp_name};
use crate::result::{
    Achieved, DepartureReport, FrameRate, PortReport, ReceiveReport, RefusedReport, ReplayFlows,
    RunResult, Target, TransmitReport, layer_name,
};
use crate::work::merge_departures;

/// Outcome of a run.
pub(super) struct ReplayOutcome {
    pub(super) captures: Vec<String>,
    pub(super) start: Instant,
    pub(super) outcomes: Vec<WorkerOutcome>,
    pub(super) read_counters: Arc<ReaderCounters>,
    pub(super) read_error: Option<ReadError>,
    /// Receiving interface and its report.
    pub(super) rx: Option<(String, ReceiveReport)>,
    /// Notes for the result.
    pub(super) notes: Vec<String>,
}

impl ReplayOutcome {
    /// Completes `result`.
    pub(super) fn report(
        self,
        result: RunResult,
        plan: &ReplayPlan,
        interfaces: &Interfaces,
    ) -> RunResult {
        let Self { captures, start, outcomes, read_counters, read_error, rx, notes: noted } = self;
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
        let is_in_kernel = choices.iter().any(|it| it.backend.name == XDP.name);
        let made_in_kernel: u64 = outcomes.iter().map(|it| it.made_by_port.0).sum();
        let made_by_process = outcomes.iter().find_map(|it| it.made_by_port.1).map(str::to_owned);
        errors.extend(read_error.iter().map(ToString::to_string));
        errors.extend(rx.iter().filter_map(|(_, rx)| rx.error.clone()));
        // The timestamps of a file follow the schedule exactly; the elapsed time is only that of
        // writing.
        let departures = outcomes.iter().filter_map(|outcome| outcome.departures.clone());
        let departures = merge_departures(departures)
            .filter(|(record, _)| record.frames > 0 && !matches!(plan.target, SendTo::File(_)));
        let (mut sum, mut sent) = (counters[0], transmitted[0]);
        sum.merge(&counters[1]);
        sent.merge(&transmitted[1]);
        let cut_off =
            read_counters.truncated_files.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Each truncated packet was missing in each pass.
        let missing = cut_off.iter().filter(|cut| cut.loses_packet()).count() as u64;
        transmitted[0].failed += missing * sum.passes.max(1);
        sent.failed += missing * sum.passes.max(1);
        let lasted = finished.saturating_since(start);
        let (rate, elapsed_s) = achieved(&sent, lasted, departures.as_ref().map(|(r, _)| r));
        let names = port_names(plan, interfaces);
        let port = |(position, choice): (usize, &&Choice)| {
            let (counters, transmitted) = (&counters[position], &transmitted[position]);
            let interface = names.get(position).or(names.last()).cloned().unwrap_or_default();
            PortReport {
                name: interface.clone(),
                interface,
                backend: Some(choice.backend.name.into()),
                backend_reason: Some(choice.why.clone()),
                tx: Some(transmit(plan, counters, transmitted, elapsed_s)),
                ..PortReport::default()
            }
        };
        let mut ports: Vec<PortReport> = choices.iter().enumerate().map(port).collect();
        if let Some((interface, rx)) = rx {
            match ports.iter_mut().find(|port| port.interface == interface) {
                Some(port) => port.rx = Some(rx),
                None => ports.push(PortReport {
                    name: interface.clone(),
                    interface,
                    rx: Some(rx),
                    ..PortReport::default()
                }),
            }
        }
        let mut tx = transmit(plan, &sum, &sent, elapsed_s);
        tx.rates = rate.into();
        tx.bps_frames = rate.bits_per_second(Layer::Frame);
        tx.departures = departures
            .as_ref()
            .map(|(record, stamp)| DepartureReport::new(record, stamp_name(*stamp)));
        let mut result = RunResult {
            plan: captures,
            target: target(plan),
            achieved: Achieved {
                tx,
                rate_error_ppm: rate_error_ppm(plan, &rate, elapsed_s, paused),
                passes: Some(sum.passes),
                filtered: Some(sum.filtered),
                underruns: Some(sum.underruns),
                made_in_kernel: is_in_kernel.then_some(made_in_kernel),
                made_by_process: made_by_process.filter(|_| is_in_kernel),
            },
            ports,
            errors,
            notes: noted
                .into_iter()
                .chain(cut_off.iter().map(|cut| format!("{}: {}", cut.input, cut.reason)))
                .chain(notes(&sum, interfaces, &read_counters))
                .collect(),
            ..result
        };
        result.times.elapsed_s = elapsed_s;
        result.times.paused_s = paused.as_secs_f64();
        result
    }
}

/// Builds a transmit report with rates over the duration of the run.
fn transmit(
    plan: &ReplayPlan,
    counters: &ReplayCounters,
    transmitted: &TransmitCounters,
    elapsed_s: f64,
) -> TransmitReport {
    TransmitReport {
        failed: failed(counters, transmitted),
        refused: refused(counters),
        truncated: counters.truncated,
        unsent: transmitted.unsent + counters.unsent,
        flows: flows(plan, counters, elapsed_s),
        ..TransmitReport::over(transmitted, elapsed_s)
    }
}

fn flows(plan: &ReplayPlan, counters: &ReplayCounters, elapsed_s: f64) -> Option<ReplayFlows> {
    plan.flows.map(|_| ReplayFlows {
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

const fn refused(counters: &ReplayCounters) -> RefusedReport {
    RefusedReport {
        too_long: counters.too_long,
        too_long_max: counters.too_long_max,
        too_short: counters.too_short,
        unconvertible: counters.unconvertible,
    }
}

/// Returns notes on frames that were not sent, with remedies.
fn notes(counters: &ReplayCounters, interfaces: &Interfaces, read: &ReaderCounters) -> Vec<String> {
    let flows_overflowed = read.flows_overflowed.load(Ordering::Relaxed);
    let sides_overflowed = read.sides_overflowed.load(Ordering::Relaxed);
    let mut notes = Vec::new();
    if counters.too_long > 0 {
        let mtu = interfaces.links.first().map_or(0, |(_, link)| link.mtu);
        notes.push(format!(
            "{} longer than the interface allows (MTU {mtu}, longest frame {} bytes) and not sent; \
             use --mtu-trunc to truncate such frames, or increase the MTU",
            pluralise(counters.too_long, "frame was", "frames were"),
            counters.too_long_max
        ));
    }
    if counters.too_short > 0 {
        notes.push(format!(
            "{} shorter than an Ethernet header and not sent",
            pluralise(counters.too_short, "record was", "records were")
        ));
    }
    if counters.unconvertible > 0 {
        notes.push(format!(
            "{} of a link type that cannot be converted to Ethernet and not sent",
            pluralise(counters.unconvertible, "record was", "records were")
        ));
    }
    if flows_overflowed > 0 {
        notes.push(format!(
            "the flow table was full: {} missing in the flow counts",
            pluralise(flows_overflowed, "packet is", "packets are")
        ));
    }
    if sides_overflowed > 0 {
        notes.push(format!(
            "the conversation table was full: {} assigned to a side by port",
            pluralise(sides_overflowed, "packet is", "packets are")
        ));
    }
    notes
}

/// Returns the rate and the time in seconds from the first to the last departure. N departures span
/// N - 1 intervals, so a rate of N over that time would be too high. Without timed departures,
/// returns the rate over `lasted`.
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

fn target(plan: &ReplayPlan) -> Target {
    let mut target = Target {
        packets: (plan.limits.packets < u64::MAX).then_some(plan.limits.packets),
        duration_s: (plan.limits.duration < Duration::MAX)
            .then(|| plan.limits.duration.as_secs_f64()),
        passes: (plan.limits.passes < u64::MAX).then_some(plan.limits.passes),
        tolerance_ppm: f64::from(plan.tolerance_ppm),
        ..Target::default()
    };
    match plan.pace {
        Pace::TopSpeed => target.pace = Some("topspeed".into()),
        Pace::Capture { multiplier, .. } => {
            target.pace = Some("capture".into());
            target.multiplier = Some(multiplier.digits as f64 / multiplier.denominator as f64);
        }
        Pace::Packets { rate, .. } => {
            target.pace = Some("pps".into());
            target.pps = Some(rate.per_second());
        }
        Pace::Bits { rate, layer } => {
            target.pace = Some("bps".into());
            target.bps = Some(rate.per_second());
            target.bps_layer = Some(layer_name(layer).into());
        }
    }
    target
}

/// Returns the relative rate error in parts per million. Planned pauses do not count: the target
/// rate applies to the sending time only.
fn rate_error_ppm(
    plan: &ReplayPlan,
    achieved: &FrameRate,
    elapsed_s: f64,
    paused: Duration,
) -> Option<f64> {
    // The timestamps of a file follow the target rate, whatever the speed of writing.
    if matches!(plan.target, SendTo::File(_)) {
        return None;
    }
    let (target, achieved) = match plan.pace {
        Pace::TopSpeed | Pace::Capture { .. } => return None,
        Pace::Packets { rate, .. } => (rate.per_second(), achieved.pps),
        Pace::Bits { rate, layer } => (rate.per_second(), achieved.bits_per_second(layer)),
    };
    let sending_s = elapsed_s - paused.as_secs_f64();
    (sending_s > 0.0).then(|| (achieved * elapsed_s / sending_s / target - 1.0) * 1e6)
}
