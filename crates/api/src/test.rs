//! Tests across machines that a server directs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Request for a test.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// Nodes, ports and runs. Files that it names must have been uploaded as captures.
    pub test: TestSource,
    /// Name in the run history; that of the test by default.
    #[serde(default)]
    pub name: Option<String>,
    /// Interface for a port of the test, instead of the one in the test.
    #[serde(default)]
    pub ports: BTreeMap<String, String>,
    /// Time after which an agent stops sending without this server, 100ms to 600s; 5s by default.
    #[serde(default)]
    pub lease: Option<String>,
}

/// A test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TestSource {
    /// Text in YAML or JSON.
    Text(String),
    /// A JSON document.
    Document(Value),
}

/// State of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestState {
    /// It has not ended.
    Running,
    /// It ended, and each run has a result.
    Finished,
    /// It did not start, an agent was lost, or a run has no result.
    Failed,
    /// It was stopped.
    Interrupted,
}

impl TestState {
    /// Returns whether the state is final.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Running)
    }
}

/// A test of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestSummary {
    /// ID, unique on the bus.
    pub id: String,
    /// Name.
    pub name: String,
    /// State.
    pub state: TestState,
    /// Whether a user has asked to stop it.
    pub is_stopping: bool,
    /// Whether it runs on agents of the bus, or on this machine.
    pub on_bus: bool,
    /// User who started it.
    pub user: String,
    /// Session of the user; empty for the default session.
    pub session: String,
    /// Agents of its nodes, in the order of the test.
    pub agents: Vec<String>,
    /// Start in nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// End in nanoseconds since the Unix epoch; null until the end.
    pub ended_unix_ns: Option<u64>,
    /// Phase: `agents`, `files`, `clocks`, `prepare`, `run` or `results`; null before the first one.
    pub phase: Option<String>,
    /// Number of the iteration that runs or ran last, from 1.
    pub iteration: u32,
    /// Number of iterations of the test.
    pub iterations: u32,
    /// Why it failed or was stopped; null without a reason.
    pub message: Option<String>,
}

/// A test, with its progress and its results so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestStatus {
    /// The test.
    pub test: TestSummary,
    /// Time since the start of the iteration in seconds; null before the first one.
    pub elapsed_s: Option<f64>,
    /// Frames that all flows of the iteration sent.
    pub sent: u64,
    /// Frames that were received of all flows of the iteration.
    pub received: u64,
    /// Latest lines of the progress, at most 200.
    pub lines: Vec<TestLine>,
    /// Latest iterations that are over, at most 20. The run history has the others.
    pub results: Vec<TestIteration>,
}

/// A line of the progress of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestLine {
    /// Time in nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// Text.
    pub text: String,
}

/// An iteration of a test that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestIteration {
    /// Number from 1.
    pub number: u32,
    /// Greatest difference between the starts of two agents in nanoseconds; null if it is unknown.
    pub start_skew_ns: Option<f64>,
    /// Agents that were lost.
    pub lost: Vec<LostAgent>,
    /// Runs in the order of the test.
    pub runs: Vec<TestRun>,
}

/// An agent that was lost during a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostAgent {
    /// Agent.
    pub agent: String,
    /// Reason.
    pub reason: String,
}

/// A run of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestRun {
    /// Name in the test.
    pub name: String,
    /// Verdict: `met`, `fell_short`, `failed` or `interrupted`; null without a result.
    pub outcome: Option<String>,
    /// Reasons of the verdict and errors of agents, at most 20.
    pub messages: Vec<String>,
    /// ID in the run history; null if it is not there.
    pub run: Option<String>,
    /// Number of flows.
    pub flows_total: usize,
    /// Flows with their receiving ports, at most 200.
    pub flows: Vec<TestFlow>,
}

/// A flow at a receiving port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestFlow {
    /// Name in the plan.
    pub name: String,
    /// Port that sends it.
    pub tx: String,
    /// Port that receives it; null if the flow is not measured.
    pub rx: Option<String>,
    /// Frames sent.
    pub sent: u64,
    /// Frames sent per second; null if nothing was sent.
    pub sent_pps: Option<f64>,
    /// Distinct frames received; null if the flow is not measured.
    pub received: Option<u64>,
    /// Frames received per second; null if the flow is not measured.
    pub received_pps: Option<f64>,
    /// Lost frames in percent of sent frames, of all receiving ports.
    pub loss_percent: Option<f64>,
    /// Frames that arrived after one sent later (RFC 4737).
    pub reordered: Option<u64>,
    /// Interarrival jitter in nanoseconds (RFC 3550).
    pub jitter_ns: Option<u64>,
    /// One-way delay; null if it is unknown.
    pub delay: Option<TestDelay>,
}

/// One-way delay of a flow, with its error. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestDelay {
    /// Minimum.
    pub min_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// Maximum.
    pub max_ns: Option<i64>,
    /// Each delay is right to this many nanoseconds if the assumption holds; null if sender and
    /// receiver are one machine.
    pub half_width_ns: Option<f64>,
    /// Each delay is right to this many nanoseconds in any case; null if it is `half_width_ns`.
    pub bound_ns: Option<f64>,
    /// What the comparison of the clocks relies on; null if sender and receiver are one machine.
    pub assumption: Option<String>,
    /// How the clocks were compared; null if sender and receiver are one machine.
    pub method: Option<String>,
}
