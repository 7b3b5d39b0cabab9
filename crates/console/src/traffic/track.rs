//! Counters of a run over the last second, and the rows that follow from them.

use std::collections::VecDeque;
use std::sync::Arc;

use wirestorm_api::delays::FlowDelays;
use wirestorm_api::progress::{FlowProgress, PortProgress, Progress};
use wirestorm_api::run::RunState;

use super::lines::{Amount, DelayLine, FlowLine, PortLine, ReceivedLine};

/// Time between the counters of a rate, in nanoseconds.
const WINDOW_NS: u64 = 1_000_000_000;
/// Most counters in the window of a run.
const SAMPLES_MAX: usize = 12;

/// Counters of a run.
#[derive(Debug)]
pub(super) struct Track {
    /// Counters of the last second, the newest last. Never empty.
    pub(super) samples: VecDeque<Progress>,
    /// Counters when they were cleared.
    pub(super) base: Option<Progress>,
    /// Order of the runs.
    pub(super) number: u64,
}

impl Track {
    pub(super) fn latest(&self) -> &Progress {
        &self.samples[self.samples.len() - 1]
    }

    pub(super) fn is_over(&self) -> bool {
        self.latest().state.is_over()
    }

    /// Returns the counters before the last ones, and the seconds between both. `None` if the run
    /// has ended, or for the first counters.
    pub(super) fn before(&self) -> Option<(&Progress, f64)> {
        let (first, last) = (self.samples.front()?, self.latest());
        let nanoseconds = last.elapsed_ns.saturating_sub(first.elapsed_ns);
        let is_active = matches!(last.state, RunState::Running | RunState::Draining);
        (is_active && nanoseconds > 0).then_some((first, nanoseconds as f64 / 1e9))
    }

    pub(super) fn add(&mut self, progress: Progress) {
        let oldest = progress.elapsed_ns.saturating_sub(WINDOW_NS);
        // Counters of exactly a second before stay.
        while self.samples.len() > 1 && self.samples[1].elapsed_ns <= oldest
            || self.samples.len() >= SAMPLES_MAX
        {
            self.samples.pop_front();
        }
        self.samples.push_back(progress);
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = (&PortProgress, PortLine)> {
        let before = self.before();
        self.latest().ports.iter().enumerate().map(move |(index, port)| {
            let base = self.base.as_ref().and_then(|base| base.ports.get(index));
            let base = base.cloned().unwrap_or_default();
            // The first counters of a run have no ports yet: all are 0.
            let then = |before: &Progress| before.ports.get(index).cloned().unwrap_or_default();
            let before = before.map(|(before, seconds)| (then(before), seconds));
            let rate = |now: Amount, then: &dyn Fn(&PortProgress) -> Amount| match &before {
                Some((before, seconds)) => now.since(then(before), *seconds),
                None => Amount::default(),
            };
            let (tx, rx) = (
                |port: &PortProgress| Amount::of(port.tx_frames, port.tx_bytes),
                |port: &PortProgress| Amount::of(port.rx_frames, port.rx_bytes),
            );
            let line = PortLine {
                tx: rate(tx(port), &tx),
                rx: rate(rx(port), &rx),
                tx_frames: port.tx_frames.saturating_sub(base.tx_frames),
                tx_bytes: port.tx_bytes.saturating_sub(base.tx_bytes),
                rx_frames: port.rx_frames.saturating_sub(base.rx_frames),
                rx_bytes: port.rx_bytes.saturating_sub(base.rx_bytes),
                tx_failed: port.tx_failed.saturating_sub(base.tx_failed),
                tx_unsent: port.tx_unsent.saturating_sub(base.tx_unsent),
                rx_dropped: port.rx_dropped.saturating_sub(base.rx_dropped),
            };
            (port, line)
        })
    }

    pub(super) fn flows(&self, run: &str) -> impl Iterator<Item = FlowLine> {
        let before = self.before();
        self.latest().flows.iter().enumerate().map(move |(index, flow)| {
            let then = before.map(|(before, seconds)| (before.flows.get(index), seconds));
            let base = self.base.as_ref().and_then(|base| base.flows.get(index));
            let mut line = flow_line(run, flow, then, base);
            line.is_paused = !self.is_over() && (line.is_paused || self.latest().is_paused);
            line
        })
    }

    /// Returns the flows with histograms of delays: their names, and the frames in each range since
    /// the counters were cleared.
    pub(super) fn histograms(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, impl Iterator<Item = (i64, u64)>)> {
        self.latest().flows.iter().enumerate().filter_map(|(index, flow)| {
            let now = flow.delays.as_ref()?;
            let base = self.base.as_ref().and_then(|base| base.flows.get(index)?.delays.as_ref());
            Some((&flow.name, counts_since(now, base)))
        })
    }
}

/// Returns the frames in each range of delays that came after `base`.
fn counts_since<'a>(
    now: &'a FlowDelays,
    base: Option<&'a FlowDelays>,
) -> impl Iterator<Item = (i64, u64)> + 'a {
    let before = move |start: i64| {
        let counts = &base?.histogram;
        let at = counts.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(counts[at].1)
    };
    let since = move |&(start, count): &(i64, u64)| {
        (start, count.saturating_sub(before(start).unwrap_or(0)))
    };
    now.histogram.iter().map(since).filter(|(_, count)| *count > 0)
}

fn flow_line(
    run: &str,
    flow: &FlowProgress,
    before: Option<(Option<&FlowProgress>, f64)>,
    base: Option<&FlowProgress>,
) -> FlowLine {
    let rate = |now: Amount, then: &dyn Fn(&FlowProgress) -> Amount| match before {
        Some((before, seconds)) => now.since(before.map_or_else(Amount::default, then), seconds),
        None => Amount::default(),
    };
    let tx = |flow: &FlowProgress| Amount::of(flow.tx_frames, flow.tx_bytes);
    let rx = |flow: &FlowProgress| match flow.received {
        Some(received) => Amount::of(received.frames, received.bytes),
        None => Amount::default(),
    };
    let received = flow.received.map(|received| {
        let base_received = base.and_then(|base| base.received);
        let since = |value: u64, base: Option<u64>| value.saturating_sub(base.unwrap_or(0));
        let missing = flow.tx_frames.saturating_sub(received.frames);
        let base_missing = base.zip(base_received);
        let base_missing = base_missing.map(|(base, it)| base.tx_frames.saturating_sub(it.frames));
        let recent_ns = before.and_then(|(before, _)| {
            let before = before?.received?;
            let frames = received.frames.checked_sub(before.frames).filter(|it| *it > 0)?;
            let sum = received.delay_mean_ns? * received.frames as f64
                - before.delay_mean_ns.unwrap_or(0.0) * before.frames as f64;
            Some(sum / frames as f64)
        });
        ReceivedLine {
            frames: since(received.frames, base_received.map(|it| it.frames)),
            missing: since(missing, base_missing),
            duplicated: since(received.duplicated, base_received.map(|it| it.duplicated)),
            reordered: since(received.reordered, base_received.map(|it| it.reordered)),
            delay: received.delay_mean_ns.map(|mean_ns| DelayLine {
                samples: received.frames,
                min_ns: received.delay_min_ns.map(|it| it as f64),
                mean_ns,
                p50_ns: flow.delays.as_ref().and_then(|it| it.p50_ns).map(|it| it as f64),
                p99_ns: flow.delays.as_ref().and_then(|it| it.p99_ns).map(|it| it as f64),
                max_ns: received.delay_max_ns.map(|it| it as f64),
                jitter_ns: received.jitter_ns.map(|it| it as f64),
                recent_ns,
            }),
        }
    });
    FlowLine {
        run: run.to_owned(),
        name: Arc::clone(&flow.name),
        tx: rate(tx(flow), &tx),
        rx: rate(rx(flow), &rx),
        tx_frames: flow.tx_frames.saturating_sub(base.map_or(0, |base| base.tx_frames)),
        tx_unsent: flow.tx_unsent.saturating_sub(base.map_or(0, |base| base.tx_unsent)),
        is_paused: flow.is_paused,
        received,
    }
}
