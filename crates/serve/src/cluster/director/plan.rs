//! Which part of each run goes to which node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use wirestorm_api::run::{PlanSource, ReplayRequest, RunOptions};
use wirestorm_control::files::Files;
use wirestorm_control::plan::load;
use wirestorm_control::plan::test_plan::{PlanText, TestPlan, TestRun, TestRunKind};
use wirestorm_control::plan::traffic::{Port, TrafficPlan};
use wirestorm_control::traffic::SeriesOptions;

use super::super::protocol::{ElsewherePart, Part, PartPlan, SeriesPart};
use super::contents::PlanFiles;

/// Streams of all runs of a test together have IDs below this one; see `Signature::STREAM_BITS`.
const STREAM_IDS: u32 = 1 << 24;

/// Number of segments of delays that a run should have; each lasts at least 100 ms.
const SEGMENTS: u64 = 1_000;
const SEGMENT_NS_MIN: u64 = 100_000_000;

/// Returns the length of a segment of delays in ns.
pub(super) fn segment_ns(test: &TestPlan) -> u64 {
    test.duration.map_or(0, |it| it.as_nanos() / SEGMENTS).max(SEGMENT_NS_MIN)
}

/// Stream IDs of the runs of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamIds {
    first: u32,
    next: u32,
}

impl StreamIds {
    /// Starts at an ID that other tests do not use: tests at the same time have different seeds.
    pub(super) const fn new(seed: u64) -> Self {
        let first = 1 + (seed as u32) % (STREAM_IDS / 2);
        Self { first, next: first }
    }

    /// Takes the IDs of the streams of a plan, one for each flow and worker; returns the first.
    ///
    /// # Errors
    /// There are not as many left.
    pub(super) fn take(&mut self, flows: usize, workers: Option<u16>) -> Result<u32, String> {
        let workers = usize::from(workers.unwrap_or(1).max(1));
        let left = STREAM_IDS - self.next;
        let count = u32::try_from(flows.saturating_mul(workers)).unwrap_or(u32::MAX);
        if count > left {
            return Err(format!(
                "{flows} flows on {workers} workers need {count} stream IDs, expected at most \
                 {left}: use fewer flows or workers"
            ));
        }
        let first = self.next;
        self.next += count;
        Ok(first)
    }

    /// Takes IDs like [`Self::take`], from the start again if too few are left.
    ///
    /// # Errors
    /// All IDs are too few.
    pub(super) fn take_again(&mut self, flows: usize, workers: Option<u16>) -> Result<u32, String> {
        self.take(flows, workers).or_else(|_| {
            self.next = self.first;
            self.take(flows, workers)
        })
    }
}

/// A run of the test, and its parts.
#[derive(Debug)]
pub(super) struct PlannedRun {
    pub(super) name: String,
    /// Text of its plan, for the history.
    pub(super) text: Option<String>,
    /// The plan, if it is one of streams.
    pub(super) streams: Option<Arc<TrafficPlan>>,
    /// Node of each port of a plan of streams.
    pub(super) nodes_of_ports: Vec<Option<usize>>,
    /// Files of the plan: their paths here by their names in the plan. An error matters only to those who
    /// send the files.
    pub(super) files: Result<BTreeMap<String, PathBuf>, String>,
    /// Parts by node.
    pub(super) parts: BTreeMap<usize, Part>,
}

impl PlannedRun {
    /// Returns the pairs of nodes between which flows go: receiver and sender.
    pub(super) fn pairs(&self) -> BTreeSet<(usize, usize)> {
        let Some(plan) = &self.streams else { return BTreeSet::new() };
        let node = |port: usize| self.nodes_of_ports.get(port).copied().flatten();
        let pairs = plan.flows.iter().flat_map(|flow| {
            flow.rx_ports.iter().filter_map(move |rx| Some((node(*rx)?, node(flow.tx_port)?)))
        });
        pairs.filter(|(receiver, sender)| receiver != sender).collect()
    }

    /// Sets the intervals of the time series.
    pub(super) fn set_series(&mut self, series: SeriesOptions) {
        let SeriesOptions { interval, intervals_max } = series;
        let series = SeriesPart { interval_ns: interval.as_nanos(), intervals_max };
        self.parts.values_mut().for_each(|part| part.series = Some(series));
    }

    /// Sets the drift of the clocks of senders against that of a receiver.
    pub(super) fn set_drift(&mut self, receiver: usize, drift_of: impl Fn(usize) -> f64) {
        let nodes = &self.nodes_of_ports;
        let Some(plan) = &self.streams else { return };
        let Some(elsewhere) = self.parts.get_mut(&receiver).and_then(|it| it.elsewhere.as_mut())
        else {
            return;
        };
        for (name, drift) in &mut elsewhere.ports {
            let index = plan.ports.iter().position(|port| port.name == *name);
            let node = index.and_then(|index| nodes.get(index).copied().flatten());
            *drift = node.map_or(0.0, &drift_of);
        }
    }

    /// Returns the frames sent to each port by the other nodes, for the receiver on a node. `sent`:
    /// frames of each flow.
    pub(super) fn sent_to(&self, receiver: usize, sent: &[u64]) -> Vec<u64> {
        let Some(plan) = &self.streams else { return Vec::new() };
        let mut frames = vec![0; plan.ports.len()];
        let node = |port: usize| self.nodes_of_ports.get(port).copied().flatten();
        for (flow, sent) in plan.flows.iter().zip(sent) {
            let is_remote = node(flow.tx_port) != Some(receiver);
            for rx in flow.rx_ports.iter().filter(|rx| is_remote && node(**rx) == Some(receiver)) {
                frames[*rx] += sent;
            }
        }
        frames
    }
}

/// Plans all runs of a test. `place`: the folder of the test file, and its files. `seed`: for stream
/// IDs that other tests do not use.
///
/// # Errors
/// A plan has errors, or its ports do not fit the test.
pub(super) fn plan_runs(
    test: &TestPlan,
    place: (&Path, &Arc<dyn Files>),
    seed: u64,
) -> Result<Vec<PlannedRun>, String> {
    let mut streams = StreamIds::new(seed);
    let runs = test.runs.iter().map(|run| {
        let planned = plan_run(test, run, place, &mut streams);
        planned.map_err(|error| format!("run {}: {error}", run.name))
    });
    runs.collect()
}

fn plan_run(
    test: &TestPlan,
    run: &TestRun,
    place: (&Path, &Arc<dyn Files>),
    ids: &mut StreamIds,
) -> Result<PlannedRun, String> {
    let (folder, files) = place;
    let options: RunOptions =
        serde_json::from_value(run.options.clone()).map_err(|error| format!("options: {error}"))?;
    let duration = test.duration.map(|duration| format!("{}ns", duration.as_nanos()));
    let options = RunOptions { duration: options.duration.or(duration), ..options };
    match &run.kind {
        TestRunKind::Streams(source) => {
            let (text, folder) = read(test, source, place)?;
            let files = PlanFiles::new(&folder, files);
            // As an agent reads it, so that the names of files are the same.
            let plan = load::streams(&text, Path::new(""), &*files).map_err(|it| it.to_string())?;
            let first_stream = ids.take(plan.flows.len(), options.workers)?;
            let planned = streams(test, &run.name, plan, text, &options, first_stream)?;
            Ok(PlannedRun { files: files.used(), ..planned })
        }
        TestRunKind::Bench(_) => Err("a benchmark method is planned trial by trial".to_owned()),
        TestRunKind::Emulate(source) => {
            let (text, folder) = read(test, source, place)?;
            let files = PlanFiles::new(&folder, files);
            let plan = load::emulation(&text, Path::new(""), &*files);
            let plan = plan.map_err(|it| it.to_string())?;
            files.note_tls(&plan);
            let names = plan.ports.iter().map(|port| port.name.as_str());
            let (node, ports) = on_one_node(test, names)?;
            let plan = PlanSource::Text(text.clone());
            let planned = one_part(run, Some(text), node, (plan, ports, options));
            Ok(PlannedRun { files: files.used(), ..planned })
        }
        TestRunKind::Replay(request) => {
            let mut request: ReplayRequest =
                serde_json::from_value(request.clone()).map_err(|error| error.to_string())?;
            let captures = PlanFiles::new(folder, files).captures(&request.captures);
            let mut names = vec![request.port.as_str()];
            names.extend(request.second_port.as_deref());
            names.extend(request.rx.as_deref());
            let (node, interfaces) = on_one_node(test, names.into_iter())?;
            let interface = |name: &String| interfaces.get(name).cloned().unwrap_or_default();
            let [second_port, rx] =
                [&request.second_port, &request.rx].map(|name| name.as_ref().map(interface));
            let port = interface(&request.port);
            request = ReplayRequest { port, second_port, rx, ..request };
            let plan = PlanSource::Replay(Box::new(request));
            let ports = BTreeMap::new();
            let planned = one_part(run, None, node, (plan, ports, options));
            Ok(PlannedRun { files: captures, ..planned })
        }
    }
}

/// Returns a run whose ports are all on one node.
fn one_part(
    run: &TestRun,
    text: Option<String>,
    node: usize,
    (plan, ports, options): (PlanSource, BTreeMap<String, String>, RunOptions),
) -> PlannedRun {
    let part = Part {
        run: run.name.clone(),
        plan: PartPlan::Source(plan),
        files: BTreeMap::new(),
        ports,
        options,
        elsewhere: None,
        series: None,
        only_receives: false,
    };
    PlannedRun {
        name: run.name.clone(),
        text,
        streams: None,
        nodes_of_ports: Vec::new(),
        files: Ok(BTreeMap::new()),
        parts: BTreeMap::from([(node, part)]),
    }
}

/// Plans a run of streams, whose ports may be on several nodes.
///
/// # Errors
/// The plan uses a port that the test does not have.
pub(super) fn streams(
    test: &TestPlan,
    name: &str,
    plan: TrafficPlan,
    text: String,
    options: &RunOptions,
    first_stream: u32,
) -> Result<PlannedRun, String> {
    let is_used = |index: usize| {
        plan.flows.iter().any(|flow| flow.tx_port == index || flow.rx_ports.contains(&index))
    };
    let node_of = |(index, port): (usize, &Port)| match find(test, &port.name) {
        Some(port) => Ok(Some(port.node)),
        None if !is_used(index) => Ok(None),
        None => Err(unknown_port(test, &port.name)),
    };
    let nodes_of_ports: Vec<Option<usize>> =
        plan.ports.iter().enumerate().map(node_of).collect::<Result<_, _>>()?;
    let used = nodes_of_ports.iter().enumerate().filter(|(index, _)| is_used(*index));
    let nodes: BTreeSet<usize> = used.filter_map(|(_, node)| *node).collect();
    let segment_ns = segment_ns(test);
    let part = |node: &usize| {
        let (mut ports, mut elsewhere) = (BTreeMap::new(), BTreeMap::new());
        for (port, of_port) in plan.ports.iter().zip(&nodes_of_ports) {
            match find(test, &port.name).filter(|_| *of_port == Some(*node)) {
                Some(found) => drop(ports.insert(port.name.clone(), found.interface.clone())),
                None => drop(elsewhere.insert(port.name.clone(), 0.0)),
            }
        }
        let drain_ns = test.drain.as_nanos();
        let elsewhere = ElsewherePart { ports: elsewhere, first_stream, segment_ns, drain_ns };
        let part = Part {
            run: name.to_owned(),
            plan: PartPlan::Source(PlanSource::Text(text.clone())),
            files: BTreeMap::new(),
            ports,
            options: options.clone(),
            elsewhere: (nodes.len() > 1).then_some(elsewhere),
            series: None,
            only_receives: !plan
                .flows
                .iter()
                .any(|flow| nodes_of_ports[flow.tx_port] == Some(*node)),
        };
        (*node, part)
    };
    let parts = nodes.iter().map(part).collect();
    let streams = Some(Arc::new(plan));
    let (name, text, files) = (name.to_owned(), Some(text), Ok(BTreeMap::new()));
    Ok(PlannedRun { name, text, streams, nodes_of_ports, files, parts })
}

/// Returns the text of a plan, and the folder of its files.
fn read(
    test: &TestPlan,
    source: &PlanText,
    (folder, files): (&Path, &Arc<dyn Files>),
) -> Result<(String, PathBuf), String> {
    match source {
        PlanText::File(path) => {
            let path = folder.join(path);
            let text = load::read_text(&path, &**files).map_err(|error| error.to_string())?;
            Ok((text, load::folder_of(&path).to_owned()))
        }
        PlanText::Inline(document) => {
            let mut document = document.clone();
            if let Value::Object(fields) = &mut document
                && !fields.contains_key("ports")
            {
                let ports = test.ports.iter().map(|port| port.in_plans.clone());
                fields.insert("ports".to_owned(), ports.collect());
            }
            Ok((format!("{document:#}"), folder.to_owned()))
        }
    }
}

pub(super) fn find<'a>(
    test: &'a TestPlan,
    name: &str,
) -> Option<&'a wirestorm_control::plan::test_plan::TestPort> {
    test.ports.iter().find(|port| port.name == name)
}

pub(super) fn unknown_port(test: &TestPlan, name: &str) -> String {
    let names: Vec<&str> = test.ports.iter().map(|port| port.name.as_str()).collect();
    format!("found port {name:?}, expected one of the test's ports {}", names.join(", "))
}

/// Returns the node of some ports, and the interface of each.
fn on_one_node<'a>(
    test: &TestPlan,
    names: impl Iterator<Item = &'a str>,
) -> Result<(usize, BTreeMap<String, String>), String> {
    let mut node = None;
    let mut ports = BTreeMap::new();
    for name in names {
        let port = find(test, name).ok_or_else(|| unknown_port(test, name))?;
        if *node.get_or_insert(port.node) != port.node {
            return Err(format!(
                "port {name:?} is on another node than the others: use a run for each node"
            ));
        }
        ports.insert(name.to_owned(), port.interface.clone());
    }
    node.map(|node| (node, ports)).ok_or_else(|| "the run has no port".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_are_taken_once_and_have_a_bound() {
        let mut ids = StreamIds::new(0);
        assert_eq!(
            (ids.take(3, None), ids.take(2, Some(4)), ids.take(1, Some(0))),
            (Ok(1), Ok(4), Ok(12))
        );
        // The last ID is below the bound.
        let left = (STREAM_IDS - 13) as usize;
        let error = ids.take(left + 1, None).unwrap_err();
        assert!(error.contains(&format!("{} stream IDs, expected at most {left}", left + 1)));
        assert_eq!(ids.take(left, None), Ok(13));
        assert!(ids.take(1, None).is_err());
        assert_eq!(ids.take_again(1, None), Ok(1));
        assert!(ids.take_again(usize::MAX, Some(u16::MAX)).is_err());
        let seeds = [0, 1, u64::MAX].map(|seed| StreamIds::new(seed).next);
        assert_eq!(seeds, [1, 2, STREAM_IDS / 2]);
    }
}
