//! What a method needs from the result of a trial of frames.

use wirestorm_base::time::Duration;
use wirestorm_method::distribution::Distribution;
use wirestorm_method::trial::{OfferOutput, PathOutput, StepOutput, TrialInput, TrialOutput};

use crate::result::{DistributionReport, FlowReport, RunResult};
use crate::traffic::SeriesOptions;

/// Offer and step of each flow of a trial, by index in its plan.
#[derive(Clone, Debug)]
pub struct Steps(Vec<(usize, usize)>);

impl Steps {
    pub(super) const fn new(steps: Vec<(usize, usize)>) -> Self {
        Self(steps)
    }

    /// Reads the output of a trial from the result of the run of its plan. The time of the trial is
    /// that of its caller.
    pub fn output(&self, input: &TrialInput, result: &RunResult) -> TrialOutput {
        let steps = &self.0;
        let mut output = read(input, steps, result);
        if input.counts_seconds {
            for (flow, (offer, _)) in result.flows.iter().zip(steps) {
                output.offers[*offer].seconds.push(by_second(flow));
            }
        }
        for (number, offer) in output.offers.iter_mut().enumerate() {
            offer.paths = paths(input, number, steps, result);
        }
        output
    }
}

/// Returns the intervals of the time series that a trial needs; `None` for the default intervals.
pub fn series(input: &TrialInput) -> Option<SeriesOptions> {
    if input.counts_seconds { series_of(input.duration()) } else { None }
}

/// Reads what a method needs from the result of a trial.
pub(super) fn read(
    input: &TrialInput,
    steps: &[(usize, usize)],
    result: &RunResult,
) -> TrialOutput {
    let mut offers: Vec<OfferOutput> = input
        .offers
        .iter()
        .map(|offer| OfferOutput {
            steps: vec![StepOutput::default(); offer.steps.len()],
            ..OfferOutput::default()
        })
        .collect();
    for (flow, &(offer, step), part) in parts(input, steps, result) {
        let output = &mut offers[offer];
        let sum = &mut output.steps[step];
        let seconds = sum.seconds.max(part.seconds);
        let last_loss_s = latest(sum.last_loss_s, part.last_loss_s);
        sum.add(&part);
        (sum.seconds, sum.last_loss_s) = (seconds, last_loss_s);
        for measured in &flow.measured {
            output.duplicated += measured.duplicated;
            output.reordered += measured.reordered;
            output.outage_s = latest(output.outage_s, measured.gap_max_s);
        }
        let lost = sum.lost();
        sum.last_loss_s = sum.last_loss_s.filter(|_| lost > 0);
    }
    for output in &mut offers {
        output.outage_s.get_or_insert(0.0);
    }
    let dropped: u64 =
        result.ports.iter().filter_map(|port| port.rx.as_ref()).map(|rx| rx.dropped).sum();
    let mut notes = result.notes.clone();
    if dropped > 0 {
        notes.push(format!(
            "{dropped} frames were lost in the receiver of the tester, not in the device"
        ));
    }
    TrialOutput { offers, receiver_dropped: dropped, notes, ..TrialOutput::default() }
}

/// Returns the flows of a trial, each with its offer, its step and its results.
fn parts<'a>(
    input: &'a TrialInput,
    steps: &'a [(usize, usize)],
    result: &'a RunResult,
) -> impl Iterator<Item = (&'a FlowReport, &'a (usize, usize), StepOutput)> {
    // A port does not report which flow its failed frames belong to.
    let mut failed: Vec<(&str, u64)> = result
        .ports
        .iter()
        .filter_map(|port| Some((&*port.name, port.tx.as_ref()?)))
        .map(|(name, tx)| (name, tx.failed + tx.unsent))
        .collect();
    result.flows.iter().zip(steps).map(move |(flow, place)| {
        let load = &input.offers[place.0].steps[place.1];
        let failed = failed.iter_mut().find(|(port, _)| *port == flow.tx);
        let failed = failed.map_or(0, |(_, failed)| {
            let of_flow = (*failed).min(flow.packets);
            *failed -= of_flow;
            of_flow
        });
        let mut part = StepOutput {
            intended: load.units(),
            offered: flow.packets - failed,
            seconds: load.duration().as_secs_f64(),
            ..StepOutput::default()
        };
        for measured in &flow.measured {
            part.received += measured.received;
            part.last_loss_s = latest(part.last_loss_s, measured.last_gap_s);
            part.delay.get_or_insert_default().merge(&distribution(&measured.delay));
        }
        (flow, place, part)
    })
}

/// Returns the results of each sending interface for an offer; empty if only one sends.
fn paths(
    input: &TrialInput,
    offer: usize,
    steps: &[(usize, usize)],
    result: &RunResult,
) -> Vec<PathOutput> {
    let mut paths: Vec<PathOutput> = Vec::new();
    for (flow, _, part) in parts(input, steps, result).filter(|(_, place, _)| place.0 == offer) {
        let name = format!("{} > {}", flow.tx, flow.rx.join(", "));
        match paths.iter_mut().find(|path| path.path == name) {
            Some(path) => path.total.add(&part),
            None => {
                let mut total = StepOutput::default();
                total.add(&part);
                paths.push(PathOutput { path: name, total });
            }
        }
    }
    if paths.len() > 1 { paths } else { Vec::new() }
}

/// Returns intervals that divide a second and cover a duration; `None` for the default intervals.
fn series_of(duration: Duration) -> Option<SeriesOptions> {
    /// Longest trial with intervals of 100 ms: 9 MB for each flow.
    const FINE_MAX: Duration = Duration::from_secs(7_200);
    /// Time around the traffic that the intervals cover too.
    const AROUND: Duration = Duration::from_secs(60);
    let millis = if duration <= FINE_MAX { 100 } else { 1_000 };
    let interval = Duration::from_millis(millis);
    let covered = duration.saturating_add(AROUND);
    let intervals_max = usize::try_from(covered.as_nanos() / interval.as_nanos()).ok()?;
    Some(SeriesOptions { interval, intervals_max })
}

/// Returns the frames of a flow that arrived in each second from its first arrival.
fn by_second(flow: &FlowReport) -> Vec<u64> {
    let mut seconds = Vec::new();
    for series in flow.measured.iter().filter_map(|measured| measured.series.as_ref()) {
        let first = series.packets.iter().position(|packets| *packets > 0);
        let intervals = series.packets.get(first.unwrap_or(0)..).unwrap_or_default();
        let each = (1.0 / series.interval_s.max(1e-3)).round().max(1.0) as usize;
        for (second, packets) in intervals.chunks(each).enumerate() {
            if seconds.len() <= second {
                seconds.push(0);
            }
            seconds[second] += packets.iter().sum::<u64>();
        }
    }
    seconds
}

fn latest(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

fn distribution(report: &DistributionReport) -> Distribution {
    Distribution {
        count: report.count,
        min_ns: report.min_ns.unwrap_or_default(),
        mean_ns: report.mean_ns.unwrap_or_default(),
        max_ns: report.max_ns.unwrap_or_default(),
        buckets: report.buckets.clone(),
    }
}
