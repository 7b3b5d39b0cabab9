//! Tests across machines: nodes, ports, and which run goes where.

mod schema;

use std::path::PathBuf;

use serde_json::Value;
use wirestorm_base::time::Duration;

use crate::document;
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::port::{PORT as PORT_OF_PLAN, Port, read_port};
use crate::document::time::read_time;
use crate::document::value_at::{Fields, ValueAt};

pub use schema::{RunSchemas, schema};

const TEST: [&str; 11] = [
    "name",
    "nodes",
    "ports",
    "runs",
    "duration",
    "iterations",
    "pause",
    "drain",
    "fail_if",
    "clock",
    "when_agent_lost",
];
const NODE: [&str; 2] = ["name", "agent"];
/// Fields of a port; those behind the first three are those of a port in plans.
const PORT: [&str; 6] = ["name", "node", "interface", "speed", "addresses", "gateway"];
const RUN: [&str; 6] = ["name", "streams", "emulate", "replay", "bench", "options"];
/// Kinds of a run, of which each has one.
const KINDS: [&str; 4] = ["streams", "emulate", "replay", "bench"];
const CLOCK: [&str; 7] = ["path", "source", "interval", "error_max", "asymmetry", "bias", "lead"];

/// Largest numbers of nodes, ports and runs.
const NODES_MAX: usize = 1_000;
const PORTS_MAX: usize = 4_000;
const RUNS_MAX: usize = 4_000;

/// Default and longest time of `drain`; the default is that of RFC 2544 section 23.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// A parsed test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPlan {
    /// Name in the run history.
    pub name: Option<String>,
    /// Machines, or parts of one.
    pub nodes: Vec<Node>,
    /// Ports of the nodes.
    pub ports: Vec<TestPort>,
    /// Runs, which start together.
    pub runs: Vec<TestRun>,
    /// Duration of each run; `None` for the end of its plan.
    pub duration: Option<Duration>,
    /// Number of times that all runs are repeated.
    pub iterations: u32,
    /// Time between two iterations.
    pub pause: Duration,
    /// Time without arrivals, after all nodes have sent their frames, after which the missing ones
    /// count as lost.
    pub drain: Duration,
    /// Limits, such as `loss>0.1%`: the test fails if one is true. Not parsed yet.
    pub fail_if: Vec<String>,
    /// Comparison of the clocks.
    pub clock: ClockPlan,
    /// What happens if an agent is lost after the start.
    pub when_agent_lost: WhenAgentLost,
}

/// A machine, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name in the test.
    pub name: String,
    /// Name of the agent.
    pub agent: String,
}

/// A port of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPort {
    /// Name in the test and in the plans.
    pub name: String,
    /// Index of the node.
    pub node: usize,
    /// Interface on the node, such as `eth1` or `netns/a:veth0`.
    pub interface: String,
    /// The port as plans have it, with its name, speed, addresses and gateway.
    pub in_plans: Value,
}

/// A run of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRun {
    /// Name, unique in the test.
    pub name: String,
    /// Kind and plan.
    pub kind: TestRunKind,
    /// Options as the HTTP API takes them.
    pub options: Value,
}

/// Kind and plan of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum TestRunKind {
    /// Flows; their ports may be on several nodes.
    Streams(PlanText),
    /// Clients and servers; all ports are on one node.
    Emulate(PlanText),
    /// Replay of captures, as the HTTP API takes it, on the ports of one node.
    Replay(Value),
    /// A benchmark method, with its parameters; its ports may be on several nodes.
    Bench(Value),
}

/// Where a plan is.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanText {
    /// A file, relative to the test.
    File(PathBuf),
    /// A part of the test.
    Inline(Value),
}

/// Comparison of the clocks of senders and receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockPlan {
    /// Path of the sessions.
    pub path: ClockPath,
    /// What clocks are compared by.
    pub source: ClockSource,
    /// Time between two exchanges.
    pub interval: Duration,
    /// Largest error of an offset with which the test may start.
    pub error_max: Option<Duration>,
    /// Known asymmetry of the path of the exchanges, from the sender to the receiver minus the
    /// opposite, in ns. They are those of STAMP, or of PTP if the source is PTP.
    pub asymmetry_ns: i64,
    /// Constant delay that the testers add, which is subtracted from all one-way delays.
    pub bias: Duration,
    /// Time from the command to the common start.
    pub lead: Duration,
}

impl Default for ClockPlan {
    fn default() -> Self {
        Self {
            path: ClockPath::Management,
            source: ClockSource::Auto,
            interval: Duration::from_millis(20),
            error_max: None,
            asymmetry_ns: 0,
            bias: Duration::ZERO,
            lead: Duration::from_millis(500),
        }
    }
}

/// Path of the sessions that compare clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockPath {
    /// Between the management addresses of the agents.
    #[default]
    Management,
    /// No comparison: the nodes share one clock, or delays are not needed.
    None,
}

/// What clocks are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockSource {
    /// References, PTP and exchanges, as far as they are known; the one with the smallest bound
    /// counts.
    #[default]
    Auto,
    /// A reference of each machine with a known error, such as chronyd's.
    Reference,
    /// Exchanges of time stamps between the agents.
    Stamp,
    /// PTP sessions of the agents (`wirestorm agent --ptp`) with the same grandmaster, which may be
    /// one of the agents.
    Ptp,
}

/// What happens if an agent is lost after the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenAgentLost {
    /// The test ends.
    #[default]
    Abort,
    /// The others continue.
    Continue,
}

impl TestPort {
    /// Returns the port as a plan has it.
    ///
    /// # Errors
    /// Its speed, an address or a gateway is wrong.
    pub fn port(&self) -> Result<Port, PlanErrors> {
        Ok(read_port(&ValueAt::root(&self.in_plans), &PORT_OF_PLAN)?)
    }
}

impl TestPlan {
    /// Sets the interface of a port.
    ///
    /// # Errors
    /// A message if the test has no port of this name.
    pub fn bind(&mut self, port: &str, interface: &str) -> Result<(), String> {
        let Some(found) = self.ports.iter_mut().find(|it| it.name == port) else {
            let names: Vec<&str> = self.ports.iter().map(|port| port.name.as_str()).collect();
            return Err(format!("found {port:?}, expected one of {}", names.join(", ")));
        };
        interface.clone_into(&mut found.interface);
        Ok(())
    }

    /// Reads a test in YAML or JSON.
    ///
    /// # Errors
    /// Returns all errors, each with its path.
    pub fn parse(text: &str) -> Result<Self, PlanErrors> {
        let document = document::read(text)?;
        let root = ValueAt::root(&document);
        let fields = root.fields(&TEST)?;
        let mut problems = ErrorCollector::default();
        let nodes = read_nodes(&fields, &mut problems);
        let ports = read_ports(&fields, &nodes, &mut problems);
        let runs = read_runs(&fields, &mut problems);
        let time = |name: &str, default: Duration, problems: &mut ErrorCollector| {
            let time = fields.get(name).map_or(Ok(default), |place| read_time(&place));
            problems.take(time).unwrap_or(default)
        };
        let duration = fields.get("duration").map(|place| read_time(&place)).transpose();
        let duration = problems.take(duration).flatten();
        let pause = time("pause", Duration::ZERO, &mut problems);
        let drain = fields.get("drain").map_or(Ok(DRAIN), |place| {
            let time = read_time(&place)?;
            let expected = || place.unexpected("0ms to 60s");
            (time <= DRAIN_MAX).then_some(time).ok_or_else(expected)
        });
        let drain = problems.take(drain).unwrap_or(DRAIN);
        let iterations =
            fields.get("iterations").map_or(Ok(1), |place| place.integer(1, 1_000_000));
        let iterations = problems.take(iterations).unwrap_or(1) as u32;
        let name = fields.get("name").map(|place| place.non_empty_string("a name")).transpose();
        let name = problems.take(name).flatten().map(str::to_owned);
        let fail_if = fields.get("fail_if").map_or(Ok(Vec::new()), |place| read_limits(&place));
        let fail_if = problems.take(fail_if).unwrap_or_default();
        let clock = fields.get("clock").map_or(Ok(ClockPlan::default()), |it| read_clock(&it));
        let clock = problems.take(clock).unwrap_or_default();
        let lost = fields.get("when_agent_lost").map_or(Ok(WhenAgentLost::Abort), |place| {
            match place.text("abort or continue")? {
                "abort" => Ok(WhenAgentLost::Abort),
                "continue" => Ok(WhenAgentLost::Continue),
                _ => Err(place.unexpected("abort or continue")),
            }
        });
        let when_agent_lost = problems.take(lost).unwrap_or_default();
        if runs.iter().any(|run| matches!(run.kind, TestRunKind::Bench(_))) {
            problems.take(check_bench(&fields));
        }
        problems.finish(Self {
            name,
            nodes,
            ports,
            runs,
            duration,
            iterations,
            pause,
            drain,
            fail_if,
            clock,
            when_agent_lost,
        })
    }
}

fn read_nodes(fields: &Fields<'_>, problems: &mut ErrorCollector) -> Vec<Node> {
    let Some(place) = problems.take(fields.required("nodes", "a list of nodes")) else {
        return Vec::new();
    };
    let mut nodes: Vec<Node> = Vec::new();
    for item in problems.take(items(&place, "nodes", NODES_MAX)).unwrap_or_default() {
        let node = || {
            // A node without more than a name may be the name alone.
            if let Value::String(name) = item.value() {
                return Ok(Node { name: name.clone(), agent: name.clone() });
            }
            let fields = item.fields(&NODE)?;
            let name = fields.required("name", "a name")?.non_empty_string("a name")?;
            let agent =
                fields.get("agent").map(|it| it.non_empty_string("an agent")).transpose()?;
            Ok(Node { name: name.to_owned(), agent: agent.unwrap_or(name).to_owned() })
        };
        let Some(node) = problems.take(node()) else { continue };
        if nodes.iter().any(|other| other.name == node.name) {
            let error = item.error(format!("a second node {:?}", node.name), "a unique name");
            problems.take::<()>(Err(error));
        }
        nodes.push(node);
    }
    nodes
}

fn read_ports(fields: &Fields<'_>, nodes: &[Node], problems: &mut ErrorCollector) -> Vec<TestPort> {
    let Some(place) = problems.take(fields.required("ports", "a list of ports")) else {
        return Vec::new();
    };
    let mut ports: Vec<TestPort> = Vec::new();
    for item in problems.take(items(&place, "ports", PORTS_MAX)).unwrap_or_default() {
        let port = || {
            let fields = item.fields(&PORT)?;
            let name = fields.required("name", "a name")?.non_empty_string("a name")?.to_owned();
            let place = fields.required("node", "the name of a node")?;
            let node = place.text("the name of a node")?;
            let node = nodes.iter().position(|it| it.name == node).ok_or_else(|| {
                let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                place.unexpected(format!("one of the nodes {}", names.join(", ")))
            })?;
            let expected = "an interface such as eth1 or netns/NAME:veth0";
            let interface = fields.required("interface", expected)?;
            let interface = interface.non_empty_string(expected)?.to_owned();
            let in_plans = fields.all().filter(|(name, _)| !["node", "interface"].contains(name));
            let in_plans = in_plans.map(|(name, place)| (name.to_owned(), place.value().clone()));
            Ok::<_, PlanError>(TestPort {
                name,
                node,
                interface,
                in_plans: Value::Object(in_plans.collect()),
            })
        };
        let Some(port) = problems.take(port()) else { continue };
        if ports.iter().any(|other| other.name == port.name) {
            let error = item.error(format!("a second port {:?}", port.name), "a unique name");
            problems.take::<()>(Err(error));
        }
        ports.push(port);
    }
    ports
}

fn read_runs(fields: &Fields<'_>, problems: &mut ErrorCollector) -> Vec<TestRun> {
    let Some(place) = problems.take(fields.required("runs", "a list of runs")) else {
        return Vec::new();
    };
    let mut runs: Vec<TestRun> = Vec::new();
    let items = problems.take(items(&place, "runs", RUNS_MAX)).unwrap_or_default();
    for (number, item) in items.iter().enumerate() {
        let Some(run) = problems.take(read_run(item, number)) else { continue };
        if runs.iter().any(|other| other.name == run.name) {
            let error = item.error(format!("a second run {:?}", run.name), "a unique name");
            problems.take::<()>(Err(error));
        }
        runs.push(run);
    }
    runs
}

/// Checks that a test with a method has nothing else: the method decides how many trials run, and how
/// long.
fn check_bench(fields: &Fields<'_>) -> Result<(), PlanError> {
    if let Some(place) = fields.get("runs") {
        let count = place.items("runs")?.len();
        if count > 1 {
            let expected = "no other run beside a benchmark method";
            return Err(place.error(format!("{count} runs"), expected));
        }
    }
    for (key, instead) in [
        ("duration", "none: a method has the duration of its trials"),
        ("iterations", "none: a method repeats trials as it needs them"),
        ("pause", "none: a method has a wait after each trial (settle)"),
    ] {
        if let Some(place) = fields.get(key) {
            return Err(place.unexpected(instead));
        }
    }
    Ok(())
}

fn read_run(place: &ValueAt<'_>, number: usize) -> Result<TestRun, PlanError> {
    let fields = place.fields(&RUN)?;
    let name = fields.get("name").map(|place| place.non_empty_string("a name")).transpose()?;
    let name = name.map_or_else(|| format!("run-{}", number + 1), str::to_owned);
    let mut kinds = KINDS.into_iter().filter_map(|kind| Some((kind, fields.get(kind)?)));
    let (kind, plan) = match (kinds.next(), kinds.next()) {
        (Some(one), None) => one,
        (None, _) => {
            return Err(place.error("no kind of run", "streams, emulate, replay or bench"));
        }
        (Some((one, _)), Some((other, _))) => {
            let expected = "one kind of run for each item";
            return Err(place.error(format!("both {one} and {other}"), expected));
        }
    };
    let text = |plan: &ValueAt<'_>| match plan.value() {
        Value::String(path) => Ok(PlanText::File(path.into())),
        Value::Object(_) => Ok(PlanText::Inline(plan.value().clone())),
        _ => Err(plan.unexpected("the file of a plan, or a plan")),
    };
    let kind = match kind {
        "streams" => TestRunKind::Streams(text(&plan)?),
        "emulate" => TestRunKind::Emulate(text(&plan)?),
        "bench" if plan.value().is_object() => TestRunKind::Bench(plan.value().clone()),
        "bench" => return Err(plan.unexpected("a method with its parameters")),
        _ if plan.value().is_object() => TestRunKind::Replay(plan.value().clone()),
        _ => return Err(plan.unexpected("captures and ports")),
    };
    let options = match fields.get("options") {
        None => Value::Object(serde_json::Map::new()),
        Some(options) if options.value().is_object() => options.value().clone(),
        Some(options) => return Err(options.unexpected("options of a run")),
    };
    Ok(TestRun { name, kind, options })
}

fn read_clock(place: &ValueAt<'_>) -> Result<ClockPlan, PlanError> {
    let fields = place.fields(&CLOCK)?;
    let default = ClockPlan::default();
    let path = match fields.get("path") {
        None => default.path,
        Some(place) => match place.text("management or none")? {
            "management" => ClockPath::Management,
            "none" => ClockPath::None,
            _ => return Err(place.unexpected("management or none")),
        },
    };
    let source = match fields.get("source") {
        None => default.source,
        Some(place) => match place.text("auto, reference, stamp or ptp")? {
            "auto" => ClockSource::Auto,
            "reference" => ClockSource::Reference,
            "stamp" => ClockSource::Stamp,
            "ptp" => ClockSource::Ptp,
            _ => return Err(place.unexpected("auto, reference, stamp or ptp")),
        },
    };
    let interval = fields.get("interval").map_or(Ok(default.interval), |place| {
        let range = Duration::from_millis(1)..=Duration::from_secs(1);
        let interval = read_time(&place)?;
        if range.contains(&interval) { Ok(interval) } else { Err(place.unexpected("1ms to 1s")) }
    })?;
    let asymmetry_ns = fields.get("asymmetry").map_or(Ok(0), |place| {
        let text = place.text("a time such as 4ms or -4ms")?;
        let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
        let size =
            document::time::parse_time(size).and_then(|it| i64::try_from(it.as_nanos()).ok());
        size.map(|size| sign * size).ok_or_else(|| place.unexpected("a time such as 4ms or -4ms"))
    })?;
    Ok(ClockPlan {
        path,
        source,
        interval,
        error_max: fields.get("error_max").map(|place| read_time(&place)).transpose()?,
        asymmetry_ns,
        bias: fields.get("bias").map_or(Ok(default.bias), |place| read_time(&place))?,
        lead: fields.get("lead").map_or(Ok(default.lead), |place| read_time(&place))?,
    })
}

fn read_limits(place: &ValueAt<'_>) -> Result<Vec<String>, PlanError> {
    let limit = |place: &ValueAt<'_>| Ok(place.non_empty_string("a limit")?.to_owned());
    place.items("limits")?.iter().map(limit).collect()
}

fn items<'a>(place: &ValueAt<'a>, what: &str, most: usize) -> Result<Vec<ValueAt<'a>>, PlanError> {
    let items = place.items(what)?;
    match items.len() {
        0 => Err(place.error("an empty list", format!("at least one of {what}"))),
        count if count > most => {
            Err(place.error(format!("{count} {what}"), format!("at most {most}")))
        }
        _ => Ok(items),
    }
}

#[cfg(test)]
mod tests;
