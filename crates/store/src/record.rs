//! Records of runs, as the files in a run directory hold them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_control::result::{HostFacts, RunResult, Verdict};
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::trial::{TrialInput, TrialOutput};

/// Format of [`RunRecord`].
pub const RUN_SCHEMA: &str = "wirestorm.run/1";
/// Format of [`BenchResult`].
pub const BENCH_SCHEMA: &str = "wirestorm.bench/1";

/// Facts about a run: `run.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunRecord {
    /// Format: `wirestorm.run/1`.
    pub schema: String,
    /// Name of the run directory, unique on this machine.
    pub id: String,
    /// Name that the user gave; null without one.
    pub name: Option<String>,
    /// Kind of the run.
    pub kind: RecordKind,
    /// State of the run. A run whose process died stays `running`; readers detect that.
    pub state: State,
    /// Process that executes the run, to detect that it died.
    pub process: u32,
    /// Command line.
    pub command: Vec<String>,
    /// Wirestorm version.
    pub version: String,
    /// Machine that executes the run.
    pub host: HostFacts,
    /// Interfaces of the run.
    pub interfaces: Vec<InterfaceRecord>,
    /// Device under test.
    pub device: DeviceRecord,
    /// Method and parameters; null unless the run is a method.
    pub method: Option<Method>,
    /// Start in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// End in nanoseconds since the Unix epoch; null until the end.
    pub ended_unix_ns: Option<u64>,
    /// Error that ended the run; null without one.
    pub error: Option<String>,
    /// Plans and other input files, by name, with their text.
    pub files: BTreeMap<String, String>,
}

/// Kind of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// `replay`.
    Replay,
    /// `run` and `send`.
    Streams,
    /// `emulate`.
    Emulation,
    /// `impair`.
    Impair,
    /// `pktgen`.
    Pktgen,
    /// `bench`.
    Bench,
}

/// State of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The run has not ended.
    Running,
    /// The run ended.
    Finished,
    /// The user stopped the run.
    Interrupted,
    /// An error ended the run.
    Failed,
}

/// An interface of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InterfaceRecord {
    /// Interface, with its namespace.
    pub interface: String,
    /// `physical`, `veth` and so on.
    pub kind: String,
    /// Driver; empty if there is none.
    pub driver: String,
    /// Longest network-layer packet in bytes.
    pub mtu: u32,
    /// Link speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
    /// Transmit queues in use.
    pub transmit_queues: u32,
    /// Receive queues in use.
    pub receive_queues: u32,
}

/// Description of the device under test, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeviceRecord {
    /// Name of the device; empty if the user gave none.
    pub name: String,
    /// Further facts, such as `firmware`.
    pub facts: BTreeMap<String, String>,
}

/// A trial of a method: `trials/NUMBER.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrialRecord {
    /// Number from 1.
    pub number: u32,
    /// Start in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// What the method asked for.
    pub input: TrialInput,
    /// What the method read.
    pub output: TrialOutput,
    /// Full result, with all counters, histograms and time series; null in a simulation.
    pub result: Option<Box<RunResult>>,
}

/// Result of a method: `result.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BenchResult {
    /// Format: `wirestorm.bench/1`.
    pub schema: String,
    /// Wirestorm version.
    pub version: String,
    /// Method and parameters.
    pub parameters: Method,
    /// Findings.
    pub findings: Findings,
    /// Differences from what the method's documents recommend or require.
    pub deviations: Vec<String>,
    /// Warnings, such as a generator that limits a result.
    pub warnings: Vec<String>,
    /// Whether the method was completed and met its criteria.
    pub verdict: Verdict,
    /// Number of trials.
    pub trials: u32,
    /// Sum of the times of all trials in seconds, with their waits.
    pub trials_s: f64,
    /// Time of the whole method in seconds, without interruptions.
    pub elapsed_s: f64,
    /// Whether a simulated device took the place of interfaces.
    pub is_simulated: bool,
}
