//! Builds the result from the counters of workers and receivers.

use std::collections::BTreeSet;

use wirestorm_base::count::pluralise;
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{Receiver, TAG_RECORDS_MAX};
use wirestorm_engine::stream::{ResidentStreams, Share, StreamCounters};
use wirestorm_model::stream::{Mode, Speed};
use wirestorm_plan::traffic::TrafficPlan;

use super::measured::ExpectedFlows;
use super::options::StreamOptions;
use super::workload::{PortWorkload, WorkerOutcome};
use crate::backend::XDP;
use crate::port::stamp_name;
use crate::result::{
    Achieved, DepartureReport, FlowReport, FrameRate, PortReport, ReceiveReport, RunResult, Target,
    TotalReport, TransmitReport, layer_name,
};
use crate::work::merge_departures;

/// Outcome of a run.
pub(super) struct TrafficOutcome<'a> {
    pub(super) start: Instant,
    pub(super) outcomes: Vec<WorkerOutcome>,
    pub(super) arrived: Vec<(usize, ReceiveReport)>,
    /// Receivers, and the flows that they measured.
    pub(super) measured: Vec<(Receiver, &'a ExpectedFlows)>,
    pub(super) notes: Vec<String>,
    pub(super) options: &'a StreamOptions,
    /// Flows that received commands during the run.
    pub(super) changed_flows: BTreeSet<usize>,
}

/// Obstacle that the plan does not show.
const UNKNOWN_OBSTACLE: &str = "commands changed its frames, or the kernel refused its program";

pub(super) fn add(sum: &mut StreamCounters, other: &StreamCounters) {
    sum.frames += other.frames;
    sum.bytes += other.bytes;
    sum.unsent += other.unsent;
    sum.starts = sum.starts.max(other.starts);
    sum.made_by_port += other.made_by_port;
}

impl TrafficOutcome<'_> {
    /// Completes `result`.
    pub(super) fn report(
        self,
        result: RunResult,
        plan: &TrafficPlan,
        interfaces: &[String],
        workloads: &[PortWorkload],
    ) -> RunResult {
        let finished = self.outcomes.iter().map(|outcome| outcome.finished).max();
        let elapsed_s = finished.unwrap_or(self.start).saturating_since(self.start).as_secs_f64();
        let paused = self.outcomes.iter().map(|outcome| outcome.paused).max();
        let paused_s = paused.unwrap_or_default().as_secs_f64();
        let mut flows = vec![StreamCounters::default(); plan.flows.len()];
        // Of flows that the in-kernel sender sends: why the process makes their frames.
        let mut obstacles = vec![None; plan.flows.len()];
        let mut speeds = vec![None; plan.flows.len()];
        let mut spans = vec![elapsed_s; plan.flows.len()];
        let mut sum = TransmitCounters::default();
        let mut ports: Vec<PortReport> = plan
            .ports
            .iter()
            .zip(interfaces)
            .map(|(port, interface)| PortReport {
                name: port.name.clone(),
                interface: interface.clone(),
                ..PortReport::default()
            })
            .collect();
        for (index, workload) in workloads.iter().enumerate() {
            let mut transmitted = TransmitCounters::default();
            let mut records = Vec::new();
            let report = &mut ports[workload.port];
            let mut stamped = None;
            for outcome in self.outcomes.iter().filter_map(|outcome| outcome.ports.get(index)) {
                transmitted.merge(&outcome.transmitted);
                report.backend.get_or_insert(outcome.choice.backend.name.into());
                report.backend_reason.get_or_insert_with(|| outcome.choice.why.clone());
                stamped.get_or_insert(stamp_name(outcome.stamp));
                records.extend(outcome.departures.clone());
                for (&flow, counters) in workload.flows.iter().zip(&outcome.counters) {
                    add(&mut flows[flow], counters);
                }
            }
            if report.backend.as_deref() == Some(XDP.name) {
                let resident = ResidentStreams::of(&workload.streams, Share::ALL);
                for (&flow, obstacle) in workload.flows.iter().zip(resident.obstacles) {
                    obstacles[flow] = Some(obstacle);
                }
            }
            let departures = merge_departures(records.into_iter());
            let span_s =
                departures.as_ref().and_then(|(record, _)| span_s(record)).unwrap_or(elapsed_s);
            for (&flow, stream) in workload.flows.iter().zip(&workload.streams) {
                speeds[flow] = Some(stream.transmission.speed);
                spans[flow] = span_s;
            }
            let departures = departures
                .filter(|(record, _)| record.frames > 0)
                .map(|(record, stamp)| DepartureReport::new(&record, stamp_name(stamp)));
            let tx = TransmitReport::over(&transmitted, span_s);
            sum.merge(&transmitted);
            report.tx =
                Some(TransmitReport { timestamp_point: stamped.map(Into::into), departures, ..tx });
        }
        for (port, arrived) in self.arrived {
            ports[port].rx = Some(arrived);
        }
        let mut measured = vec![Vec::new(); plan.flows.len()];
        let mut beyond_tags = 0;
        for (receiver, streams) in &self.measured {
            let rx = ports[streams.port].rx.get_or_insert_default();
            rx.no_signature = Some(receiver.unknown().frames);
            rx.wrong_port = Some(receiver.foreign().frames);
            beyond_tags += receiver.beyond_tags().frames;
            for (flow, report) in streams.reports(receiver) {
                measured[flow].push(report);
            }
        }
        let mut flow_report = |(index, counters): (usize, &StreamCounters)| {
            let flow = &plan.flows[index];
            let name = |port: &usize| plan.ports[*port].name.clone();
            let transmission = &flow.stream.transmission;
            // A member of a link aggregation group sends a part of the rate.
            let is_judged = transmission.mode == Mode::Continuous
                && flow.stream.member.is_none()
                && transmission.self_start
                && !transmission.start_paused;
            // The gap from the last frame to the end of the run also belongs to the flow's time.
            let duration = self.options.duration;
            let is_complete = is_judged && duration != Duration::MAX && !result.interrupted;
            let least = if is_complete { duration.as_secs_f64() } else { 0.0 };
            let delay = if is_judged { transmission.start_delay.as_secs_f64() } else { 0.0 };
            // No frame was due while the run was paused.
            let span = spans[index];
            let span = if span > paused_s { span - paused_s } else { span }.max(least);
            let span = if span > delay { span - delay } else { span };
            let time = flow.duration.filter(|_| is_judged).map_or(f64::MAX, Duration::as_secs_f64);
            let span = span.min(time);
            let rate = FrameRate::over(counters.frames, counters.bytes, span);
            let mut report = FlowReport {
                name: flow.stream.name.clone(),
                tx: name(&flow.tx_port),
                rx: flow.rx_ports.iter().map(name).collect(),
                packets: counters.frames,
                bytes: counters.bytes,
                unsent: counters.unsent,
                made_in_kernel: obstacles[index].map(|_| counters.made_by_port),
                made_by_process: obstacles[index]
                    .filter(|_| counters.made_by_port < counters.frames)
                    .map(|obstacle| obstacle.unwrap_or(UNKNOWN_OBSTACLE).to_owned()),
                rates: rate.into(),
                target_pps: None,
                target_bps: None,
                target_layer: None,
                rate_error_ppm: None,
                lost: None,
                loss_percent: None,
                total: TotalReport::of(&measured[index]),
                measured: std::mem::take(&mut measured[index]),
            };
            // The machine of a port elsewhere knows how many frames it sent.
            if !report.measured.is_empty() && self.options.is_here(flow.tx_port) {
                let received: u64 = report.measured.iter().map(|port| port.received).sum();
                let lost = counters.frames.saturating_sub(received);
                report.lost = Some(lost);
                report.loss_percent = Some(lost as f64 * 100.0 / counters.frames.max(1) as f64);
            }
            let ratio = match speeds[index] {
                Some(Speed::Frames(target)) => {
                    report.target_pps = Some(target.per_second());
                    Some(rate.pps / target.per_second())
                }
                Some(Speed::Bits(target, layer)) => {
                    report.target_bps = Some(target.per_second());
                    report.target_layer = Some(layer_name(layer).into());
                    Some(rate.bits_per_second(layer) / target.per_second())
                }
                Some(Speed::Max) | None => None,
            };
            let is_unchanged = is_judged && !self.changed_flows.contains(&index);
            report.rate_error_ppm = ratio.filter(|_| is_unchanged).map(|ratio| (ratio - 1.0) * 1e6);
            report
        };
        let mut notes = self.notes;
        let unsent = sum.failed + sum.unsent;
        if unsent > 0 && !self.measured.is_empty() {
            notes.push(format!(
                "{} not sent by a port: lost in the counts of flows",
                pluralise(unsent, "generated frame was", "generated frames were")
            ));
        }
        let missed: u64 =
            ports.iter().filter_map(|port| port.rx.as_ref()).map(|rx| rx.dropped).sum();
        if missed > 0 && !self.measured.is_empty() {
            notes.push(format!(
                "{} dropped because the receive buffer was full: lost in the counts of flows",
                pluralise(missed, "frame was", "frames were")
            ));
        }
        if beyond_tags > 0 {
            notes.push(format!(
                "{} beyond the limit of {TAG_RECORDS_MAX} VLAN tag records: counted by flow only",
                pluralise(beyond_tags, "frame", "frames")
            ));
        }
        let flows = flows.iter().enumerate().map(&mut flow_report).collect();
        let used = |port: &PortReport| port.tx.is_some() || port.rx.is_some();
        let errors = self.outcomes.iter().filter_map(|outcome| outcome.error.as_ref());
        let receive_errors = ports.iter().filter_map(|port| port.rx.as_ref()?.error.clone());
        let mut result = RunResult {
            target: Target {
                duration_s: (self.options.duration != Duration::MAX)
                    .then(|| self.options.duration.as_secs_f64()),
                tolerance_ppm: self.options.tolerance_ppm,
                ..Target::default()
            },
            achieved: Achieved { tx: TransmitReport::over(&sum, elapsed_s), ..Achieved::default() },
            errors: errors.map(ToString::to_string).chain(receive_errors).collect(),
            flows,
            notes,
            ports: ports.into_iter().filter(used).collect(),
            ..result
        };
        result.times.elapsed_s = elapsed_s;
        result.times.paused_s = paused_s;
        result
    }
}

/// Returns the time that all frames of a record take in seconds: N gaps for N frames, although only
/// N - 1 lie between the first and the last.
fn span_s(record: &DepartureRecord) -> Option<f64> {
    let span = record.last?.saturating_since(record.first?).as_secs_f64();
    let gaps = record.frames.checked_sub(1).filter(|gaps| *gaps > 0)?;
    Some(span * record.frames as f64 / gaps as f64)
}
