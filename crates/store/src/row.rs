//! Trials as rows: one for each offer and step.

use serde::{Deserialize, Serialize};
use wirestorm_control::result::RunResult;
use wirestorm_method::trial::{Offer, OfferOutput, Step, StepOutput, TrialInput, TrialOutput};

use crate::record::RecordKind;

/// A step of an offer of a trial, or the whole of a run without trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrialRow {
    /// Number of the trial from 1; 0 in a run without trials.
    pub number: u32,
    /// Start in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Test that needed the trial; the kind of a run without trials.
    pub test: String,
    /// Name of the traffic.
    pub traffic: String,
    /// Offer of the trial from 1.
    pub offer: u32,
    /// Step of the offer from 1.
    pub step: u32,
    /// Frame size in bytes with FCS; null if the traffic defines its own sizes.
    pub frame_size: Option<u32>,
    /// Intended load of each transmitting interface, in units per second; null if there is none.
    pub load: Option<u64>,
    /// Time from the first to the last departure in seconds.
    pub seconds: f64,
    /// Units that the intended load amounts to; null if there is none.
    pub intended: Option<u64>,
    /// Units sent.
    pub offered: u64,
    /// Distinct units received; null if arrivals were not counted.
    pub received: Option<u64>,
    /// Units lost; null if arrivals were not counted.
    pub lost: Option<u64>,
    /// Lost units as a fraction; of trials: the Trial Loss Ratio (RFC 9971).
    pub loss_ratio: Option<f64>,
    /// Minimum delay in nanoseconds.
    pub delay_min_ns: Option<i64>,
    /// Mean delay in nanoseconds.
    pub delay_mean_ns: Option<f64>,
    /// Median of the delay in nanoseconds.
    pub delay_p50_ns: Option<i64>,
    /// 99th percentile of the delay in nanoseconds.
    pub delay_p99_ns: Option<i64>,
    /// 99.9th percentile of the delay in nanoseconds.
    pub delay_p99_9_ns: Option<i64>,
    /// Maximum delay in nanoseconds.
    pub delay_max_ns: Option<i64>,
    /// Duplicates; counted for all steps of an offer, in the row of the first.
    pub duplicated: Option<u64>,
    /// Reordered units; counted for all steps of an offer, in the row of the first.
    pub reordered: Option<u64>,
    /// Flows sent to a flow exporter in the whole trial, in its first row.
    pub flows_sent: Option<u64>,
    /// Those of the sent flows that records report, in the first row of the trial.
    pub flows_captured: Option<u64>,
}

/// A trial without its full result, which takes most of the time to parse.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TrialHead {
    pub(crate) number: u32,
    pub(crate) started_unix_ns: u64,
    pub(crate) input: TrialInput,
    pub(crate) output: TrialOutput,
}

impl TrialHead {
    pub(crate) fn rows(&self) -> Vec<TrialRow> {
        rows_of(self.number, self.started_unix_ns, &self.input, &self.output)
    }
}

/// Returns the rows of a trial.
pub(crate) fn rows_of(
    number: u32,
    started_unix_ns: u64,
    input: &TrialInput,
    output: &TrialOutput,
) -> Vec<TrialRow> {
    let mut rows = Vec::new();
    for (offer_index, (offer, results)) in input.offers.iter().zip(&output.offers).enumerate() {
        for (step_index, (step, result)) in offer.steps.iter().zip(&results.steps).enumerate() {
            let whole = (step_index == 0).then_some(results);
            rows.push(TrialRow {
                number,
                started_unix_ns,
                test: input.test.clone(),
                offer: offer_index as u32 + 1,
                step: step_index as u32 + 1,
                ..row(offer, step, result, whole)
            });
        }
    }
    if let (Some(row), Some(export)) = (rows.first_mut(), &output.export) {
        row.flows_sent = Some(export.sent.flows);
        row.flows_captured = Some(export.captured.flows);
    }
    rows
}

fn row(offer: &Offer, step: &Step, result: &StepOutput, whole: Option<&OfferOutput>) -> TrialRow {
    let delay = result.delay.as_ref().filter(|delay| delay.count > 0);
    let quantile = |part: f64| delay.and_then(|delay| delay.quantile(part));
    TrialRow {
        traffic: offer.traffic.clone(),
        frame_size: offer.frame_size,
        load: Some(step.load),
        seconds: result.seconds,
        intended: Some(result.intended),
        offered: result.offered,
        received: Some(result.received),
        lost: Some(result.lost()),
        loss_ratio: Some(result.loss_ratio()),
        delay_min_ns: delay.map(|delay| delay.min_ns),
        delay_mean_ns: delay.map(|delay| delay.mean_ns),
        delay_p50_ns: quantile(0.5),
        delay_p99_ns: quantile(0.99),
        delay_p99_9_ns: quantile(0.999),
        delay_max_ns: delay.map(|delay| delay.max_ns),
        duplicated: whole.map(|offer| offer.duplicated),
        reordered: whole.map(|offer| offer.reordered),
        ..TrialRow::default()
    }
}

/// Returns the rows of a run without trials: its measured flows, or else its sum.
pub(crate) fn rows_of_run(kind: RecordKind, result: &RunResult) -> Vec<TrialRow> {
    let seconds = result.times.elapsed_s;
    let common = TrialRow {
        started_unix_ns: result.times.started_unix_ns.unwrap_or(0),
        test: kind.name().to_owned(),
        seconds,
        step: 1,
        ..TrialRow::default()
    };
    if result.flows.is_empty() {
        let counted = || result.ports.iter().filter_map(|port| port.rx.as_ref());
        let received = counted().next().map(|_| counted().map(|rx| rx.packets).sum());
        let lost = counted().filter_map(|rx| rx.lost).reduce(|sum, lost| sum + lost);
        let offered = result.achieved.tx.packets;
        return vec![TrialRow {
            offer: 1,
            offered,
            received,
            lost,
            loss_ratio: lost.map(|lost| lost as f64 / offered.max(1) as f64),
            ..common
        }];
    }
    let flow = |(index, flow): (usize, &wirestorm_control::result::FlowReport)| {
        let measured = flow.measured.first();
        let delay = measured.map(|it| &it.delay).filter(|_| flow.measured.len() == 1);
        TrialRow {
            offer: index as u32 + 1,
            traffic: flow.name.clone(),
            load: flow.target_pps.map(|pps| pps.round() as u64),
            offered: flow.packets,
            received: measured.map(|_| flow.measured.iter().map(|it| it.received).sum()),
            lost: flow.lost,
            loss_ratio: flow.lost.map(|lost| lost as f64 / flow.packets.max(1) as f64),
            delay_min_ns: delay.and_then(|it| it.min_ns),
            delay_mean_ns: delay.and_then(|it| it.mean_ns),
            delay_p50_ns: delay.and_then(|it| it.p50_ns),
            delay_p99_ns: delay.and_then(|it| it.p99_ns),
            delay_p99_9_ns: delay.and_then(|it| it.p99_9_ns),
            delay_max_ns: delay.and_then(|it| it.max_ns),
            duplicated: measured.map(|_| flow.measured.iter().map(|it| it.duplicated).sum()),
            reordered: measured.map(|_| flow.measured.iter().map(|it| it.reordered).sum()),
            ..common.clone()
        }
    };
    result.flows.iter().enumerate().map(flow).collect()
}
