//! Counters as text: the same as in the live tables, measured for a second.

use std::time::Duration;

use clap::Args;
use wirestorm_api::delays::FlowDelays;
use wirestorm_api::progress::Progress;

use super::{Answer, Execute, Result};
use crate::histogram;
use crate::number::{elapsed, grouped, nanoseconds, scaled};
use crate::session::Session;
use crate::text::table;
use crate::traffic::{DelayLine, HistogramLine, PortLine, Traffic};

/// Interval of the live counters from which the rates come.
const INTERVAL: Duration = Duration::from_millis(500);
/// Interval while a command waits for the first counters of a run.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// Time of a run after which its counters are final, even if it has no ports.
const FIRST_WAIT_NS: u64 = 2_000_000_000;
/// Counters of each run: those of one second.
const SAMPLES: usize = 3;

/// Print counters.
#[derive(Args, Debug)]
#[group(multiple = true)]
pub(crate) struct Stats {
    /// Ports [default: ports, and what the runs have]
    #[arg(short, long)]
    ports: bool,

    /// All ports together
    #[arg(short, long)]
    global: bool,

    /// Flows
    #[arg(short, long)]
    streams: bool,

    /// Delays and latency probes
    #[arg(short, long)]
    latency: bool,

    /// Histograms of delays
    #[arg(long, alias = "lh")]
    hist: bool,

    /// Connections of clients and servers
    #[arg(short = 't', long, visible_alias = "templates")]
    connections: bool,

    /// CPU time of the workers
    #[arg(short, long)]
    cpu: bool,

    /// Only active runs on these ports
    #[arg(long, value_name = "PORT", num_args = 1..)]
    port: Vec<String>,
}

impl Stats {
    fn is_default(&self) -> bool {
        let Self { ports, global, streams, latency, hist, connections, cpu, .. } = *self;
        ![ports, global, streams, latency, hist, connections, cpu].contains(&true)
    }
}

impl Execute for Stats {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let runs = session.runs(&[], &self.port)?;
        let traffic = measured(session, runs.iter().map(|run| run.id.as_str()))?;
        let interfaces: Vec<String> = runs.into_iter().flat_map(|run| run.interfaces).collect();
        let all = self.is_default();
        let mut parts = Vec::new();
        if all || self.ports || self.global {
            parts.push(ports_text(session, &traffic, &interfaces, self.global)?);
        }
        if all || self.streams {
            parts.push(flows_text(&traffic));
        }
        if all || self.latency {
            parts.push(latency_text(&traffic));
        }
        if self.hist {
            parts.extend(histogram_texts(&traffic));
        }
        if all || self.connections {
            parts.push(connections_text(&traffic));
        }
        if all || self.cpu {
            parts.push(cpu_text(&traffic));
        }
        let mut parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            parts.push("the active runs have no such counters\n".to_owned());
        }
        Ok(Answer::Text(parts.join("\n")))
    }
}

/// Returns the counters of runs and the rates of a second.
fn measured<'a>(session: &Session, runs: impl Iterator<Item = &'a str>) -> Result<Traffic> {
    let mut streams = Vec::new();
    for run in runs {
        let flows = FlowDelays::FLOWS_MAX;
        streams.push((run, session.client.follow_delays(run, INTERVAL, flows)?));
    }
    let mut traffic = Traffic::default();
    for (run, stream) in streams {
        for progress in stream.take(SAMPLES) {
            let progress: Progress = progress?;
            traffic.add(run, progress);
        }
    }
    Ok(traffic)
}

fn ports_text(
    session: &Session,
    traffic: &Traffic,
    interfaces: &[String],
    is_global: bool,
) -> Result<String> {
    let ports = session.client.ports()?;
    let name = |interface: &String| {
        let port = ports.iter().find(|port| port.interface == *interface);
        port.map_or_else(|| interface.clone(), |port| port.name.clone())
    };
    let mut names: Vec<&String> = interfaces.iter().collect();
    names.sort();
    names.dedup();
    let mut rows = Vec::new();
    let mut total = PortLine::default();
    let mut lines = traffic.port_lines();
    for interface in names {
        let line = lines.remove(interface).unwrap_or_default();
        total.add(&line);
        rows.push(port_row(name(interface), &line));
    }
    if is_global {
        rows = vec![port_row("all".to_owned(), &total)];
    }
    Ok(table(["port", "tx", "tx L1", "rx", "rx L1", "tx frames", "rx frames"], &rows))
}

fn port_row(name: String, line: &PortLine) -> [String; 7] {
    [
        name,
        scaled(line.tx.frames, "pps"),
        scaled(line.tx.bits_l1(), "b/s"),
        scaled(line.rx.frames, "pps"),
        scaled(line.rx.bits_l1(), "b/s"),
        grouped(line.tx_frames),
        grouped(line.rx_frames),
    ]
}

fn flows_text(traffic: &Traffic) -> String {
    let rows: Vec<_> = traffic
        .flows()
        .iter()
        .map(|flow| {
            let received = flow.received.as_ref();
            let or_none = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), grouped);
            [
                flow.name.to_string(),
                match flow.is_paused {
                    true => "paused".to_owned(),
                    false => scaled(flow.tx.frames, "pps"),
                },
                received.map_or_else(|| "-".to_owned(), |_| scaled(flow.rx.frames, "pps")),
                grouped(flow.tx_frames),
                or_none(received.map(|it| it.frames)),
                or_none(received.map(|it| it.missing)),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(["flow", "tx", "rx", "tx frames", "rx frames", "missing"], &rows),
    }
}

fn latency_text(traffic: &Traffic) -> String {
    let row = |name: String, delay: &DelayLine| {
        let or_none = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), nanoseconds);
        [
            name,
            or_none(delay.min_ns),
            nanoseconds(delay.mean_ns),
            or_none(delay.p50_ns),
            or_none(delay.p99_ns),
            or_none(delay.max_ns),
            or_none(delay.jitter_ns),
            or_none(delay.recent_ns),
        ]
    };
    let flows = traffic.flows();
    let flows = flows.iter().filter_map(|flow| {
        let delay = flow.received.as_ref()?.delay.as_ref()?;
        Some(row(flow.name.to_string(), delay))
    });
    let probes = traffic.probes();
    let probes =
        probes.iter().filter_map(|probe| Some(row(probe.name.clone(), probe.delay.as_ref()?)));
    let rows: Vec<_> = flows.chain(probes).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            let heads = ["delay", "min", "mean", "p50", "p99", "max", "jitter", "last second"];
            table(heads, &rows)
        }
    }
}

/// Returns a table for each flow with a histogram: ranges of delays, and the frames in them.
fn histogram_texts(traffic: &Traffic) -> Vec<String> {
    const ROWS_MAX: usize = 40;
    const BAR: usize = 30;
    let text = |line: HistogramLine| {
        let name = line.name.to_string();
        let rows = histogram::rows(&line.counts, &[], ROWS_MAX);
        let sum: u64 = rows.iter().map(|row| row.total).sum();
        let most = rows.iter().map(|row| row.total).max().unwrap_or(0);
        let row = |row: &histogram::Row| {
            let frames = row.total;
            let share = format!("{:.3} %", 100.0 * frames as f64 / sum.max(1) as f64);
            [row.range(), grouped(frames), share, histogram::bar(frames, most, BAR)]
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        table([&name, "frames", "share", ""], &rows)
    };
    let histograms = traffic.histograms(0..usize::MAX);
    let left_out = match histograms.left_out {
        0 => None,
        flows => Some(format!(
            "{flows} more measured flows: each run has histograms of its first {}\n",
            FlowDelays::FLOWS_MAX
        )),
    };
    histograms.chosen.into_iter().map(text).chain(left_out).collect()
}

fn connections_text(traffic: &Traffic) -> String {
    let rows: Vec<_> = traffic
        .connections()
        .iter()
        .map(|line| {
            [
                line.port.clone(),
                scaled(line.rate, "/s"),
                grouped(line.active),
                grouped(line.established),
                grouped(line.failed),
                grouped(line.retransmitted),
                scaled(8.0 * line.tx_bytes_rate, "b/s"),
                scaled(8.0 * line.rx_bytes_rate, "b/s"),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(
            ["port", "new", "active", "established", "failed", "retransmitted", "tx", "rx"],
            &rows,
        ),
    }
}

fn cpu_text(traffic: &Traffic) -> String {
    let row = |line: &crate::traffic::CpuLine| {
        [
            line.run.clone(),
            super::runs::state_name(line.state, line.is_paused).to_owned(),
            elapsed(line.elapsed_s),
            format!("{:.0} %", 100.0 * line.load),
            line.per_frame_ns.map_or_else(|| "-".to_owned(), nanoseconds),
        ]
    };
    let rows: Vec<_> = traffic.cpu().iter().map(row).collect();
    table(["run", "state", "time", "CPU", "per frame"], &rows)
}

/// List flows.
#[derive(Args, Debug)]
pub(crate) struct Streams {
    /// Only active runs on these ports
    #[arg(short, long = "port", value_name = "PORT", num_args = 1..)]
    ports: Vec<String>,
}

impl Execute for Streams {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let runs = session.runs(&[], &self.ports)?;
        let mut rows = Vec::new();
        for run in runs {
            let progress = first_counters(session, &run.id)?;
            let is_over = progress.state.is_over();
            for flow in progress.flows {
                let is_paused = !is_over && (flow.is_paused || progress.is_paused);
                rows.push([
                    flow.name.to_string(),
                    run.id.clone(),
                    if flow.received.is_some() { "measured" } else { "not measured" }.to_owned(),
                    if is_paused { "paused" } else { "" }.to_owned(),
                    grouped(flow.tx_frames),
                ]);
            }
        }
        Ok(Answer::Text(match rows.is_empty() {
            true => "the active runs have no flows\n".to_owned(),
            false => table(["flow", "run", "arrivals", "state", "tx frames"], &rows),
        }))
    }
}

/// Returns counters of a run; waits for the first ones of a run that has just started.
fn first_counters(session: &Session, run: &str) -> Result<Progress> {
    let mut last = session.client.progress(run)?;
    if last.ports.is_empty() {
        for progress in session.client.follow(run, FIRST_INTERVAL)? {
            last = progress?;
            if !last.ports.is_empty() || last.elapsed_ns > FIRST_WAIT_NS {
                break;
            }
        }
    }
    Ok(last)
}

/// List active runs.
#[derive(Args, Debug)]
pub(crate) struct Profiles {}

impl Execute for Profiles {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let runs = session.active()?;
        let row = |run: &wirestorm_api::run::RunSummary| {
            [
                run.id.clone(),
                run.name.clone().unwrap_or_default(),
                super::runs::state(run).to_owned(),
                run.interfaces.join(" "),
            ]
        };
        let rows: Vec<_> = runs.iter().map(row).collect();
        Ok(Answer::Text(match rows.is_empty() {
            true => "no run of yours is active\n".to_owned(),
            false => table(["run", "name", "state", "interfaces"], &rows),
        }))
    }
}
