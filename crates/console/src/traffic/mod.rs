//! Rates from the live counters of runs: the difference of the last counters and those a second
//! before.

mod lines;
mod track;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use wirestorm_api::delays::FlowDelays;
use wirestorm_api::progress::Progress;
use wirestorm_api::run::RunState;

pub(crate) use lines::{
    ConnectionLine, CpuLine, DelayLine, FlowLine, HistogramLine, Histograms, PortLine, ProbeLine,
};
use track::Track;

/// Values of a sparkline: one a second.
pub(crate) const HISTORY_MAX: usize = 120;
/// Most flows with a sparkline.
const FLOW_HISTORIES_MAX: usize = 200;
/// Most ended runs whose counters stay in the tables.
const ENDED_MAX: usize = 20;

/// Values of the last two minutes, one a second.
pub(crate) type History = VecDeque<f64>;

fn push(history: &mut History, value: f64) {
    if history.len() == HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(value);
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
        let ended = self.runs.iter().filter(|(_, track)| track.is_over());
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
        let ended = self.runs.iter().filter(|(_, track)| track.is_over());
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

    /// Returns the counters and rates of all interfaces of runs, by interface.
    pub(crate) fn port_lines(&self) -> BTreeMap<String, PortLine> {
        let mut lines: BTreeMap<String, PortLine> = BTreeMap::new();
        for (port, line) in self.runs.values().flat_map(Track::ports) {
            lines.entry(port.interface.clone()).or_default().add(&line);
        }
        lines
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

    /// Returns the histograms of delays of active runs, the newest run first; of the newest ended
    /// run if none is active. `chosen`: flows, among those with a histogram, that get a line.
    pub(crate) fn histograms(&self, chosen: Range<usize>) -> Histograms {
        let mut histograms = Histograms::default();
        for track in self.with_histograms() {
            let flows = &track.latest().flows;
            let measured = flows.iter().filter(|flow| flow.received.is_some()).count();
            histograms.left_out += measured.saturating_sub(FlowDelays::FLOWS_MAX);
            for (name, counts) in track.histograms() {
                let mut line = chosen.contains(&histograms.count).then(BTreeMap::new);
                for (start, count) in counts {
                    *histograms.total.entry(start).or_default() += count;
                    if let Some(line) = &mut line {
                        line.insert(start, count);
                    }
                }
                let line = line.map(|counts| HistogramLine { name: Arc::clone(name), counts });
                histograms.chosen.extend(line);
                histograms.count += 1;
            }
        }
        histograms
    }

    /// Returns the number of flows with a histogram.
    pub(crate) fn histogram_count(&self) -> usize {
        self.with_histograms().into_iter().map(|track| track.histograms().count()).sum()
    }

    /// Returns the runs whose histograms are shown.
    fn with_histograms(&self) -> Vec<&Track> {
        let mut runs: Vec<&Track> = self.newest().into_iter().map(|(_, track)| track).collect();
        match runs.iter().any(|track| !track.is_over()) {
            true => runs.retain(|track| !track.is_over()),
            false => runs.truncate(1),
        }
        runs
    }

    /// Returns the latency probes of all runs.
    pub(crate) fn probes(&self) -> Vec<ProbeLine> {
        let probes = self.newest().into_iter().flat_map(|(_, track)| &track.latest().latency);
        let line = |probe: &wirestorm_api::progress::LatencyProgress| ProbeLine {
            name: format!("{} to {}", probe.port, probe.target),
            sent: probe.sent,
            received: probe.received,
            delay: probe.mean_ns.map(|mean_ns| DelayLine {
                samples: probe.received,
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
        let active = self.runs.values().filter(|track| !track.is_over());
        active.flat_map(|it| &it.latest().flows).map(|flow| flow.name.to_string()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
