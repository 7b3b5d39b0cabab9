//! Rates from the live counters of runs: the difference of the last counters and those a second
//! before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use wirestorm_api::progress::{FlowProgress, PortProgress, Progress};
use wirestorm_api::run::RunState;

/// Time between the counters of a rate, in nanoseconds.
const WINDOW_NS: u64 = 1_000_000_000;
/// Most counters in the window of a run.
const SAMPLES_MAX: usize = 12;
/// Values of a sparkline: one a second.
pub(crate) const HISTORY_MAX: usize = 120;
/// Most flows with a sparkline.
const FLOW_HISTORIES_MAX: usize = 200;
/// Most ended runs whose counters stay in the tables.
const ENDED_MAX: usize = 20;

/// Bytes that a frame takes on the wire beyond its counted ones: preamble, FCS and gap.
const WIRE_OVERHEAD: f64 = 24.0;
/// Length of the FCS in bytes.
const FCS: f64 = 4.0;

/// Frames and bytes, as a total or for each second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) frames: f64,
    pub(crate) bytes: f64,
}

impl Amount {
    /// Bits at layer 1: with preamble, FCS and gap.
    pub(crate) fn bits_l1(self) -> f64 {
        8.0 * (self.bytes + WIRE_OVERHEAD * self.frames)
    }

    /// Bits at layer 2: with FCS.
    pub(crate) fn bits_l2(self) -> f64 {
        8.0 * (self.bytes + FCS * self.frames)
    }

    fn of(frames: u64, bytes: u64) -> Self {
        Self { frames: frames as f64, bytes: bytes as f64 }
    }

    fn since(self, before: Self, seconds: f64) -> Self {
        Self {
            frames: (self.frames - before.frames).max(0.0) / seconds,
            bytes: (self.bytes - before.bytes).max(0.0) / seconds,
        }
    }

    fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// Values of the last two minutes, one a second.
pub(crate) type History = VecDeque<f64>;

fn push(history: &mut History, value: f64) {
    if history.len() == HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(value);
}

/// Counters and rates of a port, all runs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PortLine {
    pub(crate) tx: Amount,
    pub(crate) rx: Amount,
    /// Since the counters were cleared, as all below.
    pub(crate) tx_frames: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) rx_frames: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) tx_failed: u64,
    pub(crate) tx_unsent: u64,
    pub(crate) rx_dropped: u64,
}

/// Counters and rates of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowLine {
    pub(crate) run: String,
    pub(crate) name: Arc<str>,
    pub(crate) tx: Amount,
    pub(crate) rx: Amount,
    pub(crate) tx_frames: u64,
    pub(crate) tx_unsent: u64,
    /// Whether the flow, or its whole run, is paused.
    pub(crate) is_paused: bool,
    /// Counters of the receivers; `None` for a flow that is not measured.
    pub(crate) received: Option<ReceivedLine>,
}

/// What arrived of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceivedLine {
    pub(crate) frames: u64,
    /// Frames sent that have not arrived, those on their way included.
    pub(crate) missing: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) delay: Option<DelayLine>,
}

/// Delays of a flow or of probes in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DelayLine {
    pub(crate) min_ns: Option<f64>,
    pub(crate) mean_ns: f64,
    /// Median; `None` for flows beyond those with histograms.
    pub(crate) p50_ns: Option<f64>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) max_ns: Option<f64>,
    pub(crate) jitter_ns: Option<f64>,
    /// Mean of the last second; `None` if nothing arrived.
    pub(crate) recent_ns: Option<f64>,
}

/// Frames of a flow in each range of delays since the counters were cleared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HistogramLine {
    pub(crate) name: Arc<str>,
    /// Ranges as in [`FlowDelays`].
    pub(crate) counts: BTreeMap<i64, u64>,
}

/// Round-trip times of the probes from a port.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProbeLine {
    pub(crate) name: String,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) delay: Option<DelayLine>,
}

/// Connections of a port of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConnectionLine {
    pub(crate) run: String,
    pub(crate) port: String,
    pub(crate) active: u64,
    pub(crate) established: u64,
    pub(crate) failed: u64,
    pub(crate) retransmitted: u64,
    /// Established connections and payload bytes for each second.
    pub(crate) rate: f64,
    pub(crate) tx_bytes_rate: f64,
    pub(crate) rx_bytes_rate: f64,
}

/// CPU time of the workers of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuLine {
    pub(crate) run: String,
    pub(crate) state: RunState,
    pub(crate) is_paused: bool,
    pub(crate) elapsed_s: f64,
    /// CPUs in use: 1.0 is one CPU all the time.
    pub(crate) load: f64,
    /// CPU time for each frame of the last second, in nanoseconds; `None` without frames.
    pub(crate) per_frame_ns: Option<f64>,
    pub(crate) waiting_for: Option<String>,
    pub(crate) fraction: Option<f64>,
}

/// Counters of a run.
#[derive(Debug)]
struct Track {
    /// Counters of the last second, the newest last. Never empty.
    samples: VecDeque<Progress>,
    /// Counters when they were cleared.
    base: Option<Progress>,
    /// Order of the runs.
    number: u64,
}

impl Track {
    fn latest(&self) -> &Progress {
        &self.samples[self.samples.len() - 1]
    }

    /// Returns the counters before the last ones, and the seconds between both. `None` if the run
    /// has ended, or for the first counters.
    fn before(&self) -> Option<(&Progress, f64)> {
        let (first, last) = (self.samples.front()?, self.latest());
        let nanoseconds = last.elapsed_ns.saturating_sub(first.elapsed_ns);
        let is_active = matches!(last.state, RunState::Running | RunState::Draining);
        (is_active && nanoseconds > 0).then_some((first, nanoseconds as f64 / 1e9))
    }

    fn add(&mut self, progress: Progress) {
        let oldest = progress.elapsed_ns.saturating_sub(WINDOW_NS);
        // Counters of exactly a second before stay.
        while self.samples.len() > 1 && self.samples[1].elapsed_ns <= oldest
            || self.samples.len() >= SAMPLES_MAX
        {
            self.samples.pop_front();
        }
        self.samples.push_back(progress);
    }

    fn ports(&self) -> impl Iterator<Item = (&PortProgress, PortLine)> {
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

    fn flows(&self, run: &str) -> impl Iterator<Item = FlowLine> {
        let before = self.before();
        self.latest().flows.iter().enumerate().map(move |(index, flow)| {
            let then = before.map(|(before, seconds)| (before.flows.get(index), seconds));
            let base = self.base.as_ref().and_then(|base| base.flows.get(index));
            let mut line = flow_line(run, flow, then, base);
            line.is_paused |= self.latest().is_paused;
            line
        })
    }

    fn histograms(&self) -> impl Iterator<Item = HistogramLine> {
        self.latest().flows.iter().enumerate().filter_map(|(index, flow)| {
            let mut counts: BTreeMap<i64, u64> =
                flow.delays.as_ref()?.histogram.iter().copied().collect();
            let base = self.base.as_ref().and_then(|base| base.flows.get(index)?.delays.as_ref());
            for (start, count) in base.into_iter().flat_map(|base| &base.histogram) {
                if let Some(now) = counts.get_mut(start) {
                    *now = now.saturating_sub(*count);
                }
            }
            counts.retain(|_, count| *count > 0);
            Some(HistogramLine { name: Arc::clone(&flow.name), counts })
        })
    }
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

/// Live counters of the runs that the console follows, and of the last that ended.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    runs: BTreeMap<String, Track>,
    next_number: u64,
    port_histories: BTreeMap<String, (History, History)>,
    cpu_histories: BTreeMap<String, History>,
    delay_histories: BTreeMap<(String, Arc<str>), History>,
}

impl Traffic {
    /// Adds counters of a run.
    pub(crate) fn add(&mut self, run: &str, progress: Progress) {
        if let Some(track) = self.runs.get_mut(run) {
            track.add(progress);
        } else {
            let number = self.next_number;
            self.next_number += 1;
            let samples = VecDeque::from([progress]);
            self.runs.insert(run.to_owned(), Track { samples, base: None, number });
        }
        self.remove_old();
    }

    /// Marks a run as over, if its last counters were not those of the end.
    pub(crate) fn end(&mut self, run: &str, state: RunState) {
        if let Some(track) = self.runs.get_mut(run)
            && let Some(last) = track.samples.back_mut()
        {
            last.state = state;
        }
    }

    /// Ends the runs that are not among the active ones of the server: their rates are over.
    pub(crate) fn retain_active(&mut self, is_active: impl Fn(&str) -> bool) {
        for (run, track) in &mut self.runs {
            if let Some(last) = track.samples.back_mut()
                && !last.state.is_over()
                && !is_active(run)
            {
                last.state = RunState::Died;
            }
        }
    }

    /// Removes the oldest ended runs beyond the limit.
    fn remove_old(&mut self) {
        let ended = self.runs.iter().filter(|(_, track)| track.latest().state.is_over());
        let mut ended: Vec<(u64, String)> =
            ended.map(|(run, track)| (track.number, run.clone())).collect();
        ended.sort();
        let excess = ended.len().saturating_sub(ENDED_MAX);
        for (_, run) in &ended[..excess] {
            self.forget(run);
        }
    }

    fn forget(&mut self, run: &str) {
        self.runs.remove(run);
        self.cpu_histories.remove(run);
        self.delay_histories.retain(|(of, _), _| of != run);
    }

    /// Counts from now on. Ended runs leave the tables.
    pub(crate) fn clear(&mut self) {
        let ended = self.runs.iter().filter(|(_, track)| track.latest().state.is_over());
        for run in ended.map(|(run, _)| run.clone()).collect::<Vec<_>>() {
            self.forget(&run);
        }
        for track in self.runs.values_mut() {
            track.base = Some(track.latest().clone());
        }
        self.port_histories.clear();
    }

    /// Adds the rates of the last second to the sparklines.
    pub(crate) fn tick(&mut self) {
        let mut lines = self.port_lines();
        // A port whose run was forgotten continues with zeros.
        for interface in self.port_histories.keys() {
            lines.entry(interface.clone()).or_default();
        }
        for (interface, line) in lines {
            let (tx, rx) = self.port_histories.entry(interface).or_default();
            push(tx, line.tx.frames);
            push(rx, line.rx.frames);
        }
        for line in self.cpu() {
            push(self.cpu_histories.entry(line.run).or_default(), line.load);
        }
        for flow in self.flows().into_iter().take(FLOW_HISTORIES_MAX) {
            let recent = flow.received.and_then(|it| it.delay).and_then(|it| it.recent_ns);
            if let Some(recent) = recent {
                let history = self.delay_histories.entry((flow.run, flow.name)).or_default();
                push(history, recent.max(0.0));
            }
        }
    }

    fn port_lines(&self) -> BTreeMap<String, PortLine> {
        let mut lines: BTreeMap<String, PortLine> = BTreeMap::new();
        for (port, line) in self.runs.values().flat_map(Track::ports) {
            let sum = lines.entry(port.interface.clone()).or_default();
            sum.tx.add(line.tx);
            sum.rx.add(line.rx);
            sum.tx_frames += line.tx_frames;
            sum.tx_bytes += line.tx_bytes;
            sum.rx_frames += line.rx_frames;
            sum.rx_bytes += line.rx_bytes;
            sum.tx_failed += line.tx_failed;
            sum.tx_unsent += line.tx_unsent;
            sum.rx_dropped += line.rx_dropped;
        }
        lines
    }

    /// Returns the counters and rates of an interface.
    pub(crate) fn port(&self, interface: &str) -> PortLine {
        self.port_lines().remove(interface).unwrap_or_default()
    }

    /// Returns the frames that an interface sent and received in each second.
    pub(crate) fn port_history(&self, interface: &str) -> (&History, &History) {
        static EMPTY: History = History::new();
        self.port_histories.get(interface).map_or((&EMPTY, &EMPTY), |(tx, rx)| (tx, rx))
    }

    /// Returns the CPU load of a run in each second.
    pub(crate) fn cpu_history(&self, run: &str) -> Option<&History> {
        self.cpu_histories.get(run)
    }

    /// Returns the mean delay of a flow in each second.
    pub(crate) fn delay_history(&self, flow: &FlowLine) -> Option<&History> {
        self.delay_histories.get(&(flow.run.clone(), Arc::clone(&flow.name)))
    }

    /// Returns the runs, the newest first.
    fn newest(&self) -> Vec<(&str, &Track)> {
        let mut runs: Vec<(&str, &Track)> =
            self.runs.iter().map(|(run, track)| (run.as_str(), track)).collect();
        runs.sort_by_key(|(_, track)| std::cmp::Reverse(track.number));
        runs
    }

    /// Returns the flows of all runs, the newest run first.
    pub(crate) fn flows(&self) -> Vec<FlowLine> {
        self.newest().into_iter().flat_map(|(run, track)| track.flows(run)).collect()
    }

    /// Returns the histograms of delays of the flows that have some, the newest run first.
    pub(crate) fn histograms(&self) -> Vec<HistogramLine> {
        self.newest().into_iter().flat_map(|(_, track)| track.histograms()).collect()
    }

    /// Returns the latency probes of all runs.
    pub(crate) fn probes(&self) -> Vec<ProbeLine> {
        let probes = self.newest().into_iter().flat_map(|(_, track)| &track.latest().latency);
        let line = |probe: &wirestorm_api::progress::LatencyProgress| ProbeLine {
            name: format!("{} to {}", probe.port, probe.target),
            sent: probe.sent,
            received: probe.received,
            delay: probe.mean_ns.map(|mean_ns| DelayLine {
                mean_ns,
                max_ns: probe.max_ns.map(|it| it as f64),
                ..DelayLine::default()
            }),
        };
        probes.map(line).collect()
    }

    /// Returns the connections of all ports that had any.
    pub(crate) fn connections(&self) -> Vec<ConnectionLine> {
        let mut lines = Vec::new();
        for (run, track) in self.newest() {
            let before = track.before();
            for (index, port) in track.latest().ports.iter().enumerate() {
                let now = port.connections;
                if now == Default::default() {
                    continue;
                }
                let of = |it: &Progress| it.ports.get(index).map(|port| port.connections);
                let then = before.map(|(it, seconds)| (of(it).unwrap_or_default(), seconds));
                let rate = |value: u64, then: u64, seconds: f64| {
                    value.saturating_sub(then) as f64 / seconds
                };
                let rates = then.map(|(then, seconds)| {
                    (
                        rate(now.established, then.established, seconds),
                        rate(now.tx_bytes, then.tx_bytes, seconds),
                        rate(now.rx_bytes, then.rx_bytes, seconds),
                    )
                });
                let (rate, tx_bytes_rate, rx_bytes_rate) = rates.unwrap_or_default();
                let base = track.base.as_ref().and_then(|base| base.ports.get(index));
                let base = base.map(|base| base.connections).unwrap_or_default();
                lines.push(ConnectionLine {
                    run: run.to_owned(),
                    port: port.name.clone(),
                    active: now.active,
                    established: now.established.saturating_sub(base.established),
                    failed: now.failed.saturating_sub(base.failed),
                    retransmitted: now.retransmitted.saturating_sub(base.retransmitted),
                    rate,
                    tx_bytes_rate,
                    rx_bytes_rate,
                });
            }
        }
        lines
    }

    /// Returns the CPU time of all runs.
    pub(crate) fn cpu(&self) -> Vec<CpuLine> {
        let line = |(run, track): (&str, &Track)| {
            let latest = track.latest();
            let frames = |it: &Progress| -> u64 {
                it.ports.iter().map(|port| port.tx_frames + port.rx_frames).sum()
            };
            let spent = track.before().map(|(before, seconds)| {
                let nanoseconds = latest.worker_time_ns.saturating_sub(before.worker_time_ns);
                let frames = frames(latest).saturating_sub(frames(before));
                (nanoseconds as f64, frames, seconds)
            });
            CpuLine {
                run: run.to_owned(),
                state: latest.state,
                is_paused: latest.is_paused,
                elapsed_s: latest.elapsed_ns as f64 / 1e9,
                load: spent.map_or(0.0, |(nanoseconds, _, seconds)| nanoseconds / 1e9 / seconds),
                per_frame_ns: spent
                    .filter(|(_, frames, _)| *frames > 0)
                    .map(|(nanoseconds, frames, _)| nanoseconds / frames as f64),
                waiting_for: latest.waiting_for.clone(),
                fraction: latest.fraction,
            }
        };
        self.newest().into_iter().map(line).collect()
    }

    /// Returns the names of all flows, for completion.
    pub(crate) fn flow_names(&self) -> Vec<String> {
        let active = self.runs.values().filter(|track| !track.latest().state.is_over());
        active.flat_map(|it| &it.latest().flows).map(|flow| flow.name.to_string()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wirestorm_api::delays::FlowDelays;
    use wirestorm_api::progress::{ConnectionProgress, FlowReceived};

    use super::*;

    /// Counters of a run with a sender on `eth1` and a receiver on `eth2`, at a time.
    pub(crate) fn progress(milliseconds: u64, frames: u64) -> Progress {
        let port = |name: &str, interface: &str| PortProgress {
            name: name.to_owned(),
            interface: interface.to_owned(),
            ..PortProgress::default()
        };
        Progress {
            elapsed_ns: milliseconds * 1_000_000,
            ports: vec![
                PortProgress {
                    tx_frames: frames,
                    tx_bytes: 60 * frames,
                    connections: ConnectionProgress {
                        established: frames / 10,
                        active: 3,
                        ..ConnectionProgress::default()
                    },
                    ..port("left", "eth1")
                },
                PortProgress { rx_frames: frames, rx_bytes: 60 * frames, ..port("right", "eth2") },
            ],
            flows: vec![FlowProgress {
                name: "voice".into(),
                tx_frames: frames,
                tx_bytes: 60 * frames,
                tx_unsent: 0,
                starts: 1,
                is_paused: false,
                delays: Some(FlowDelays::new([(1_100, frames / 2), (9_000, frames / 10)])),
                received: Some(FlowReceived {
                    frames: frames - frames / 100,
                    bytes: 60 * frames,
                    duplicated: 0,
                    reordered: 0,
                    delay_mean_ns: Some(2_000.0),
                    delay_min_ns: Some(1_000),
                    delay_max_ns: Some(9_000),
                    jitter_ns: Some(150),
                }),
            }],
            worker_time_ns: milliseconds * 500_000,
            ..Progress::in_state(RunState::Running)
        }
    }

    #[test]
    fn rate_is_that_of_the_last_second() {
        let mut traffic = Traffic::default();
        for (milliseconds, frames) in [(0, 0), (500, 100), (1_000, 600), (1_500, 1_100)] {
            traffic.add("a", progress(milliseconds, frames));
        }
        let port = traffic.port("eth1");
        assert_eq!((port.tx.frames, port.tx_frames), (1_000.0, 1_100));
        assert_eq!(port.tx.bits_l1(), 8.0 * 84.0 * 1_000.0);
        assert_eq!(port.tx.bits_l2(), 8.0 * 64.0 * 1_000.0);
        assert_eq!(traffic.port("eth2").rx.frames, 1_000.0);
        let flow = &traffic.flows()[0];
        assert_eq!(flow.tx.frames, 1_000.0);
        assert_eq!(flow.received.as_ref().unwrap().missing, 11);
        let cpu = &traffic.cpu()[0];
        assert_eq!((cpu.load, cpu.per_frame_ns), (0.5, Some(250_000.0)));
    }

    #[test]
    fn first_counters_of_a_run_can_be_empty() {
        let mut traffic = Traffic::default();
        traffic.add("a", Progress::in_state(RunState::Running));
        traffic.add("a", progress(500, 500));
        assert_eq!(traffic.port("eth1").tx.frames, 1_000.0);
        assert_eq!(traffic.flows()[0].tx.frames, 1_000.0);
        assert_eq!(traffic.connections()[0].rate, 100.0);
    }

    #[test]
    fn rates_end_with_the_run_and_counters_stay_until_they_are_cleared() {
        let mut traffic = Traffic::default();
        traffic.add("a", progress(0, 0));
        traffic.add("a", progress(1_000, 1_000));
        traffic.add("a", Progress { state: RunState::Finished, ..progress(2_000, 2_000) });
        let port = traffic.port("eth1");
        assert_eq!((port.tx.frames, port.tx_frames), (0.0, 2_000));
        traffic.add("b", progress(0, 0));
        traffic.add("b", progress(1_000, 500));
        assert_eq!(traffic.port("eth1").tx_frames, 2_500, "the runs of a port add up");
        traffic.clear();
        let port = traffic.port("eth1");
        assert_eq!((port.tx.frames, port.tx_frames), (500.0, 0), "the rate stays");
        traffic.add("b", progress(2_000, 900));
        assert_eq!(traffic.port("eth1").tx_frames, 400);
        assert_eq!(traffic.flows().len(), 1);
    }

    #[test]
    fn recent_delay_is_the_mean_of_the_last_second() {
        let mut traffic = Traffic::default();
        traffic.add("a", progress(0, 1_000));
        let mut next = progress(1_000, 2_000);
        let received = next.flows[0].received.as_mut().unwrap();
        received.delay_mean_ns = Some(3_000.0);
        traffic.add("a", next);
        let delay = traffic.flows()[0].received.clone().unwrap().delay.unwrap();
        assert_eq!(delay.recent_ns, Some(4_000.0));
    }

    #[test]
    fn histograms_count_from_the_time_of_clearing() {
        let mut traffic = Traffic::default();
        traffic.add("a", progress(0, 1_000));
        let counts = |traffic: &Traffic| traffic.histograms()[0].counts.clone();
        assert_eq!(counts(&traffic), BTreeMap::from([(1_024, 500), (8_192, 100)]));
        traffic.clear();
        assert_eq!(counts(&traffic), BTreeMap::new());
        traffic.add("a", progress(1_000, 1_200));
        assert_eq!(counts(&traffic), BTreeMap::from([(1_024, 100), (8_192, 20)]));
        let delay = traffic.flows()[0].received.clone().unwrap().delay.unwrap();
        assert_eq!((delay.p50_ns, delay.p99_ns), (Some(1_100.0), Some(9_000.0)));
    }

    #[test]
    fn sparklines_get_a_value_each_second_and_are_bounded() {
        let mut traffic = Traffic::default();
        for second in 0..2 * HISTORY_MAX as u64 {
            traffic.add("a", progress(1_000 * second, 100 * second));
            traffic.tick();
        }
        let (tx, rx) = traffic.port_history("eth1");
        assert_eq!((tx.len(), tx.back(), rx.back()), (HISTORY_MAX, Some(&100.0), Some(&0.0)));
        assert_eq!(traffic.cpu_history("a").map(History::len), Some(HISTORY_MAX));
    }

    #[test]
    fn number_of_ended_runs_is_bounded() {
        let mut traffic = Traffic::default();
        for number in 0..3 * ENDED_MAX {
            let ended = Progress { state: RunState::Finished, ..progress(1_000, 10) };
            traffic.add(&format!("run {number}"), ended);
        }
        assert_eq!(traffic.cpu().len(), ENDED_MAX);
        assert_eq!(traffic.cpu()[0].run, format!("run {}", 3 * ENDED_MAX - 1));
    }
}
