//! Counters of flows and ports, and their rates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestorm_control::result::MeasuredReport;
use wirestorm_control::{FlowSnapshot, PortSnapshot, RunState, Snapshot};

use super::super::sent_values::SentCount;
use super::super::tagged::{self, TagCounters};
use super::{FlowState, Started, StartedStream, Traffic};

/// Time that tagged metrics wait for the result of a run whose receivers have ended.
const RESULT_WAIT: Duration = Duration::from_secs(1);
/// Minimum time between two snapshots for a rate; the maximum is twice as long, unless requests are
/// further apart.
const RATE_INTERVAL: Duration = Duration::from_millis(500);

/// Counters of a flow and their rates.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct FlowCounters {
    pub(in super::super) streams: Vec<FlowSnapshot>,
    /// Rates per second: frames sent, bytes sent, frames received, bytes received, without FCS.
    pub(in super::super) rates: [f64; 4],
}

/// Counters of a port and their rates.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PortCounters {
    pub(in super::super) tx_frames: u64,
    pub(in super::super) tx_bytes: u64,
    pub(in super::super) rx_frames: u64,
    pub(in super::super) rx_bytes: u64,
    /// Rates per second in the same order.
    pub(in super::super) rates: [f64; 4],
}

impl Traffic {
    /// Takes snapshots of all runs, for the counters and the rates.
    pub(in super::super) fn sample(&mut self) {
        for it in &mut self.runs {
            let Some(latest) = it.run.handle.latest() else { continue };
            let now = Instant::now();
            if now.duration_since(it.samples[1].0) >= RATE_INTERVAL {
                it.samples[0] = std::mem::replace(&mut it.samples[1], (now, Arc::clone(&latest)));
            }
            it.samples[2] = (now, latest);
        }
    }

    /// Returns the counters of a flow as of the last sample.
    pub(in super::super) fn flow(&self, flow: usize) -> FlowCounters {
        let Some(Some(started)) = self.flows.get(flow) else { return FlowCounters::default() };
        let [before, _, after] = &self.runs[started.run].samples;
        let of = |snapshot: &Snapshot| -> Vec<FlowSnapshot> {
            let places = started.streams.iter().map(|it| it.place);
            places.filter_map(|place| snapshot.flows.get(place).cloned()).collect()
        };
        let (streams, earlier) = (of(&after.1), of(&before.1));
        let seconds = seconds_between(&before.1, &after.1);
        let counts = |streams: &[FlowSnapshot]| {
            let received = |it: &FlowSnapshot| it.received.unwrap_or_default();
            [
                streams.iter().map(|it| it.sent.frames).sum::<u64>(),
                streams.iter().map(|it| it.sent.bytes).sum(),
                streams.iter().map(|it| received(it).frames).sum(),
                streams.iter().map(|it| received(it).bytes).sum(),
            ]
        };
        let is_sending = self.state(flow) == FlowState::Started;
        let rates =
            if is_sending { rates(counts(&earlier), counts(&streams), seconds) } else { [0.0; 4] };
        FlowCounters { streams, rates }
    }

    /// Returns the counters of a flow by tags; at each receiving port apart if `per_port` is true.
    pub(in super::super) fn tagged(&self, flow: usize, per_port: bool) -> TagCounters {
        let mut measured = self.measured(flow);
        if !per_port {
            measured = measured.into_iter().reduce(tagged::merged).into_iter().collect();
        }
        let Some(Some(started)) = self.flows.get(flow) else { return TagCounters::default() };
        let is_sending = self.state(flow) == FlowState::Started;
        let rates = started.tag_samples.borrow_mut().rates(&measured, is_sending);
        let sent = if measured.len() == 1 { self.sent_by_values(started) } else { None };
        let [frames, bytes, ..] = self.flow(flow).rates;
        TagCounters { measured, rates, sent: sent.unwrap_or_default(), sent_rates: [frames, bytes] }
    }

    /// Returns the frames that a flow has sent by the values of its tags, if they are known.
    fn sent_by_values(&self, started: &Started) -> Option<BTreeMap<Vec<String>, SentCount>> {
        let snapshot = &self.runs[started.run].samples[2].1;
        let [stream] = &started.streams[..] else { return None };
        let values = started.sent_values.first()?.as_ref()?;
        let sent = snapshot.flows.get(stream.place).map(|flow| flow.sent).unwrap_or_default();
        if sent.unsent > 0 {
            return None;
        }
        let counts = values.counts(sent.frames).into_iter();
        Some(counts.map(|(values, count)| (values.to_vec(), count)).collect())
    }

    /// Returns the measurement of a flow so far at each receiving port, or that of its ended run.
    fn measured(&self, flow: usize) -> Vec<MeasuredReport> {
        let Some(Some(started)) = self.flows.get(flow) else { return Vec::new() };
        let run = &self.runs[started.run].run;
        let reports = |stream: &StartedStream| match run.handle.measured(stream.place) {
            Some(reports) if !reports.is_empty() => reports,
            _ => {
                if run.handle.state() == RunState::Draining {
                    // The receivers have ended, so the result follows.
                    run.handle.wait_over(Some(RESULT_WAIT));
                }
                let result = run.result();
                let flow = result.as_ref().and_then(|result| result.flows.get(stream.place));
                flow.map(|flow| flow.measured.clone()).unwrap_or_default()
            }
        };
        started.streams.iter().flat_map(reports).collect()
    }

    /// Returns the counters of a port, by its name, as of the last sample. Each run on a shared port
    /// counts all arrivals, so the one that received most counts.
    pub(in super::super) fn port(&self, name: &str) -> PortCounters {
        let mut sum = PortCounters::default();
        for it in &self.runs {
            let [before, _, after] = &it.samples;
            // A snapshot has the ports that its run uses.
            let of = |snapshot: &Snapshot| {
                snapshot.ports.iter().find(|it| it.name == name).cloned().unwrap_or_default()
            };
            let counts = |it: &PortSnapshot| {
                let (sent, received) = (&it.transmitted, &it.received);
                [sent.sent, sent.sent_bytes, received.received, received.received_bytes]
            };
            let (earlier, now) = (counts(&of(&before.1)), counts(&of(&after.1)));
            let rates = match it.run.is_over() {
                true => [0.0; 4],
                false => rates(earlier, now, seconds_between(&before.1, &after.1)),
            };
            sum.tx_frames += now[0];
            sum.tx_bytes += now[1];
            sum.rates[0] += rates[0];
            sum.rates[1] += rates[1];
            if now[2] >= sum.rx_frames {
                (sum.rx_frames, sum.rx_bytes) = (now[2], now[3]);
                (sum.rates[2], sum.rates[3]) = (rates[2], rates[3]);
            }
        }
        sum
    }
}

fn seconds_between(before: &Snapshot, after: &Snapshot) -> f64 {
    after.elapsed.saturating_sub(before.elapsed).as_secs_f64()
}

fn rates(before: [u64; 4], after: [u64; 4], seconds: f64) -> [f64; 4] {
    if seconds <= 0.0 {
        return [0.0; 4];
    }
    std::array::from_fn(|at| after[at].saturating_sub(before[at]) as f64 / seconds)
}
