//! What a run of streams reports.
//!
//! The JSON form is `wirestorm.run/1`, described by `schemas/wirestorm.run.1.json`. Units are
//! those of `wirestorm.result/1`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::count::counted;
use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::port::TransmitCounters;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{Receiver, TAG_RECORDS_MAX};
use wirestorm_engine::stream::StreamCounters;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::stream::{Mode, Speed};

use super::lane::{Lane, WorkerOutcome};
use super::measured::{Expected, MeasuredReport};
use crate::port::stamp_name;
use crate::result::{DepartureReport, FrameRate, Rates, ReceiveReport, layer_name};
use crate::work::departures_of_all;

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.run/1";

/// The result of a run of streams.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrafficResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// From the start to the last departure, in seconds.
    pub elapsed_s: f64,
    /// Each flow, in the plan's order.
    pub flows: Vec<FlowReport>,
    /// Each port of the plan that sent or received.
    pub ports: Vec<PortReport>,
    /// Whether it was ended by a signal.
    pub interrupted: bool,
    /// What went wrong; what was measured before stands.
    pub errors: Vec<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// One flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowReport {
    /// Its name in the plan.
    pub name: String,
    /// The port that it left.
    pub tx: String,
    /// The ports where it should arrive.
    pub rx: Vec<String>,
    /// Frames given to the port.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// Frames left out because they were late.
    pub unsent: u64,
    /// How fast they went.
    #[serde(flatten)]
    pub rates: Rates,
    /// Frames a second that were asked for; none where it was as fast as it goes, or bits.
    pub asked_pps: Option<f64>,
    /// Bits a second that were asked for; none where it was as fast as it goes, or frames.
    pub asked_bps: Option<f64>,
    /// What `asked_bps` counts: `frames`, `l2` or `l1`.
    pub asked_layer: Option<&'static str>,
    /// How far the rate was from what was asked, in millionths; for continuous flows that were not
    /// told something else while they were sent.
    pub rate_error_ppm: Option<f64>,
    /// Frames that left and arrived nowhere; none where the flow is not measured.
    pub lost: Option<u64>,
    /// The same in hundredths of what left.
    pub loss_percent: Option<f64>,
    /// What was measured on each port where it should arrive.
    pub measured: Vec<MeasuredReport>,
}

/// One port.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PortReport {
    /// Its name in the plan.
    pub name: String,
    /// Its interface.
    pub interface: String,
    /// What carried its frames; none where it sent none.
    pub backend: Option<&'static str>,
    /// Why that.
    pub why: Option<String>,
    /// Where departures were stamped; none where it sent none. SCTP's checksum covers the stamp,
    /// so that of its frames is always the process's.
    pub stamped: Option<&'static str>,
    /// Frames that left.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// How fast they went.
    #[serde(flatten)]
    pub rates: Rates,
    /// Frames that the interface refused.
    pub failed: u64,
    /// Frames left out because they were late, or queued at an interruption.
    pub unsent: u64,
    /// How departures kept to the schedule; none where all was sent as fast as it goes.
    pub departures: Option<DepartureReport>,
    /// What arrived; none where nobody looked.
    pub rx: Option<ReceiveReport>,
    /// Frames that arrived without a signature: of flows that are not measured, of others,
    /// damaged in it or cut before it; none where nothing was measured.
    pub unknown: Option<u64>,
    /// Frames with the signature of a flow that should arrive elsewhere.
    pub astray: Option<u64>,
}

/// What a run has come to.
pub(super) struct Ended<'a> {
    pub(super) start: Instant,
    pub(super) outcomes: Vec<WorkerOutcome>,
    pub(super) arrived: Vec<(usize, ReceiveReport)>,
    /// What was measured, and of which streams.
    pub(super) measured: Vec<(Receiver, &'a Expected)>,
    pub(super) notes: Vec<String>,
    pub(super) interrupted: bool,
    /// How long it was to last.
    pub(super) duration: Duration,
    /// Flows that were told something else than the plan while they were sent.
    pub(super) steered: BTreeSet<usize>,
}

pub(super) fn add(sum: &mut StreamCounters, other: &StreamCounters) {
    sum.frames += other.frames;
    sum.bytes += other.bytes;
    sum.unsent += other.unsent;
    sum.starts = sum.starts.max(other.starts);
}

impl Ended<'_> {
    pub(super) fn report(
        self,
        plan: &TrafficPlan,
        interfaces: &[String],
        lanes: &[Lane],
    ) -> TrafficResult {
        let finished = self.outcomes.iter().map(|outcome| outcome.finished).max();
        let elapsed_s = finished.unwrap_or(self.start).saturating_since(self.start).as_secs_f64();
        let paused = self.outcomes.iter().map(|outcome| outcome.paused).max();
        let paused_s = paused.unwrap_or_default().as_secs_f64();
        let mut flows = vec![StreamCounters::default(); plan.flows.len()];
        let mut speeds = vec![None; plan.flows.len()];
        let mut spans = vec![elapsed_s; plan.flows.len()];
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
        for (index, lane) in lanes.iter().enumerate() {
            let mut transmitted = TransmitCounters::default();
            let mut records = Vec::new();
            let report = &mut ports[lane.port];
            for outcome in self.outcomes.iter().filter_map(|outcome| outcome.lanes.get(index)) {
                transmitted.merge(&outcome.transmitted);
                report.backend.get_or_insert(outcome.choice.backend);
                report.stamped.get_or_insert(stamp_name(outcome.stamp));
                report.why.get_or_insert_with(|| outcome.choice.why.clone());
                records.extend(outcome.departures.clone());
                for (&flow, counters) in lane.flows.iter().zip(&outcome.counters) {
                    add(&mut flows[flow], counters);
                }
            }
            let departures = departures_of_all(records.into_iter());
            let span_s =
                departures.as_ref().and_then(|(record, _)| span_s(record)).unwrap_or(elapsed_s);
            for (&flow, stream) in lane.flows.iter().zip(&lane.streams) {
                speeds[flow] = Some(stream.transmission.speed);
                spans[flow] = span_s;
            }
            report.packets = transmitted.sent;
            report.bytes = transmitted.sent_bytes;
            report.failed = transmitted.failed;
            report.unsent = transmitted.unsent;
            report.rates = FrameRate::over(transmitted.sent, transmitted.sent_bytes, span_s).into();
            report.departures = departures
                .filter(|(record, _)| record.frames > 0)
                .map(|(record, stamp)| DepartureReport::new(&record, stamp_name(stamp)));
        }
        for (port, arrived) in self.arrived {
            ports[port].rx = Some(arrived);
        }
        let mut measured = vec![Vec::new(); plan.flows.len()];
        let mut beyond_tags = 0;
        for (receiver, streams) in &self.measured {
            ports[streams.port].unknown = Some(receiver.unknown().frames);
            ports[streams.port].astray = Some(receiver.foreign().frames);
            beyond_tags += receiver.beyond_tags().frames;
            for (flow, report) in streams.reports(receiver) {
                measured[flow].push(report);
            }
        }
        let mut flow_report = |(index, counters): (usize, &StreamCounters)| {
            let flow = &plan.flows[index];
            let name = |port: &usize| plan.ports[*port].name.clone();
            let transmission = &flow.stream.transmission;
            let is_judged = transmission.mode == Mode::Continuous
                && transmission.self_start
                && !transmission.start_paused;
            // What follows a flow's last frame until the end belongs to its time as well.
            let whole = is_judged && self.duration != Duration::MAX && !self.interrupted;
            let least = if whole { self.duration.as_secs_f64() } else { 0.0 };
            let delay = if is_judged { transmission.start_delay.as_secs_f64() } else { 0.0 };
            // Nothing was to be sent while the run was suspended.
            let span = spans[index];
            let span = if span > paused_s { span - paused_s } else { span }.max(least);
            let span = if span > delay { span - delay } else { span };
            let time = flow.time.filter(|_| is_judged).map_or(f64::MAX, Duration::as_secs_f64);
            let span = span.min(time);
            let rate = FrameRate::over(counters.frames, counters.bytes, span);
            let mut report = FlowReport {
                name: flow.stream.name.clone(),
                tx: name(&flow.transmit),
                rx: flow.receive.iter().map(name).collect(),
                packets: counters.frames,
                bytes: counters.bytes,
                unsent: counters.unsent,
                rates: rate.into(),
                asked_pps: None,
                asked_bps: None,
                asked_layer: None,
                rate_error_ppm: None,
                lost: None,
                loss_percent: None,
                measured: std::mem::take(&mut measured[index]),
            };
            if !report.measured.is_empty() {
                let received: u64 = report.measured.iter().map(|port| port.received).sum();
                let lost = counters.frames.saturating_sub(received);
                report.lost = Some(lost);
                report.loss_percent = Some(lost as f64 * 100.0 / counters.frames.max(1) as f64);
            }
            let ratio = match speeds[index] {
                Some(Speed::Frames(asked)) => {
                    report.asked_pps = Some(asked.per_second());
                    Some(rate.pps / asked.per_second())
                }
                Some(Speed::Bits(asked, layer)) => {
                    report.asked_bps = Some(asked.per_second());
                    report.asked_layer = Some(layer_name(layer));
                    Some(rate.bits_per_second(layer) / asked.per_second())
                }
                Some(Speed::Max) | None => None,
            };
            let is_as_asked = is_judged && !self.steered.contains(&index);
            report.rate_error_ppm = ratio.filter(|_| is_as_asked).map(|ratio| (ratio - 1.0) * 1e6);
            report
        };
        let mut notes = self.notes;
        let kept: u64 = ports.iter().map(|port| port.failed + port.unsent).sum();
        if kept > 0 && !self.measured.is_empty() {
            notes.push(format!(
                "{} made that no port sent: lost in the counts of flows",
                counted(kept, "frame was", "frames were")
            ));
        }
        let missed: u64 =
            ports.iter().filter_map(|port| port.rx.as_ref()).map(|rx| rx.missed).sum();
        if missed > 0 && !self.measured.is_empty() {
            notes.push(format!(
                "{} arrived that the receiver had no room for: lost in the counts of flows",
                counted(missed, "frame", "frames")
            ));
        }
        if beyond_tags > 0 {
            notes.push(format!(
                "{} arrived under more VLAN tags than are counted apart, {TAG_RECORDS_MAX}: \
                 counted by flow only",
                counted(beyond_tags, "frame", "frames")
            ));
        }
        TrafficResult {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            elapsed_s,
            flows: flows.iter().enumerate().map(&mut flow_report).collect(),
            ports: ports
                .into_iter()
                .filter(|port| port.backend.is_some() || port.rx.is_some())
                .collect(),
            interrupted: self.interrupted,
            errors: self
                .outcomes
                .iter()
                .filter_map(|outcome| outcome.error.as_ref().map(ToString::to_string))
                .collect(),
            notes,
        }
    }
}

/// The time that all frames of a record took: one gap more than lies between the first and the
/// last.
fn span_s(record: &DepartureRecord) -> Option<f64> {
    let span = record.last?.saturating_since(record.first?).as_secs_f64();
    let gaps = record.frames.checked_sub(1).filter(|gaps| *gaps > 0)?;
    Some(span * record.frames as f64 / gaps as f64)
}
