//! Records of runs, as the files in a run directory hold them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_control::bench::{CompletedTrial, SessionOutcome};
use wirestorm_control::inventory::InterfaceFacts;
pub use wirestorm_control::machine::MachineRecord;
use wirestorm_control::result::{HostFacts, Kind, Outcome, RunResult, Verdict};
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::trial::{TrialError, TrialInput, TrialOutput};

pub use crate::input::InputRecord;
use crate::process::ProcessRecord;

/// Format of [`RunRecord`].
pub const RUN_SCHEMA: &str = "wirestorm.run/1";
/// Format of [`TrialRecord`].
pub const TRIAL_SCHEMA: &str = "wirestorm.trial/1";
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
    /// State of the run. The file of a run whose process died still has `running`; readers check
    /// the process and report `died`.
    pub state: State,
    /// Process that executes the run, to detect that it died.
    pub process: ProcessRecord,
    /// Command line.
    pub command: Vec<String>,
    /// User of the server that executed the run; null for a run of the command line.
    #[serde(default)]
    pub owner: Option<OwnerRecord>,
    /// Request to the server that executed the run, as `GET /runs/{run}/plan` returns it, without
    /// the text of the plan, which is in `files`. Null for a run of the command line.
    #[serde(default)]
    pub request: Option<serde_json::Value>,
    /// Wirestorm version.
    pub version: String,
    /// Host name, kernel and CPUs of the run.
    pub host: HostFacts,
    /// Machine that executes the run.
    pub machine: MachineRecord,
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
    /// Digests of the input files of a method, which must not change before it continues.
    #[serde(default)]
    pub inputs: Vec<InputRecord>,
}

impl RunRecord {
    /// Creates the record of a run that starts now in this process, with the facts of this machine.
    /// [`Store::create`](crate::Store::create) sets its `id`.
    pub fn new(kind: RecordKind, command: Vec<String>) -> Self {
        Self {
            schema: RUN_SCHEMA.to_owned(),
            id: String::new(),
            name: None,
            kind,
            state: State::Running,
            process: ProcessRecord::current(),
            command,
            owner: None,
            request: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: HostFacts::read(),
            machine: MachineRecord::read(),
            interfaces: Vec::new(),
            device: DeviceRecord::default(),
            method: None,
            started_unix_ns: now_unix_ns(),
            ended_unix_ns: None,
            error: None,
            files: BTreeMap::new(),
            inputs: Vec::new(),
        }
    }

    /// Returns the state as a reader sees it: [`State::Died`] if the process of a running run is
    /// gone.
    pub fn observed_state(&self) -> State {
        match self.state {
            State::Running if !self.process.is_alive() => State::Died,
            state => state,
        }
    }
}

/// Returns the current time in nanoseconds since the Unix epoch.
pub(crate) fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// User of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OwnerRecord {
    /// Name of the user.
    pub user: String,
    /// Session of the user; empty for the default session.
    pub session: String,
}

/// Kind of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// The process ended before the run did. Only readers report it.
    Died,
}

impl From<Kind> for RecordKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Replay => Self::Replay,
            Kind::Streams => Self::Streams,
            Kind::Emulation => Self::Emulation,
            Kind::Impair => Self::Impair,
            Kind::Pktgen => Self::Pktgen,
        }
    }
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Replay, Self::Streams, Self::Emulation, Self::Impair, Self::Pktgen, Self::Bench];

    /// Returns the name of the kind in records and lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Streams => "streams",
            Self::Emulation => "emulation",
            Self::Impair => "impair",
            Self::Pktgen => "pktgen",
            Self::Bench => "bench",
        }
    }
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Interrupted, Self::Failed, Self::Died];

    /// Returns the state of a run that ended with a result.
    pub const fn of(result: &RunResult) -> Self {
        match result.verdict.outcome {
            Outcome::Failed => Self::Failed,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::Met | Outcome::FellShort if result.interrupted => Self::Interrupted,
            Outcome::Met | Outcome::FellShort => Self::Finished,
        }
    }

    /// Returns the name of the state in records and lists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Died => "died",
        }
    }
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
    /// Driver version; empty if there is none.
    pub driver_version: String,
    /// Firmware version; empty if the driver reports none.
    pub firmware: String,
    /// Bus address, such as `0000:01:00.0`; empty for virtual devices.
    pub bus: String,
    /// Longest network-layer packet in bytes.
    pub mtu: u32,
    /// Link speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
    /// Transmit queues in use.
    pub transmit_queues: u32,
    /// Receive queues in use.
    pub receive_queues: u32,
}

impl From<InterfaceFacts> for InterfaceRecord {
    fn from(facts: InterfaceFacts) -> Self {
        Self {
            interface: facts.interface,
            kind: facts.kind,
            driver: facts.driver,
            driver_version: facts.driver_version,
            firmware: facts.firmware,
            bus: facts.bus,
            mtu: facts.mtu,
            speed_bps: facts.speed_bps,
            transmit_queues: facts.transmit_queues,
            receive_queues: facts.receive_queues,
        }
    }
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

impl From<&CompletedTrial<'_>> for TrialRecord {
    fn from(trial: &CompletedTrial<'_>) -> Self {
        Self {
            number: trial.number,
            started_unix_ns: trial.started_unix_ns,
            input: trial.input.clone(),
            output: trial.output.clone(),
            result: trial.result.cloned().map(Box::new),
        }
    }
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

impl BenchResult {
    /// Returns the result of a method that has ended.
    pub fn new(method: &Method, outcome: SessionOutcome, is_simulated: bool) -> Self {
        let verdict = verdict(outcome.error.as_ref(), outcome.findings.shortfalls());
        Self {
            schema: BENCH_SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            parameters: method.clone(),
            warnings: outcome.findings.warnings(),
            findings: outcome.findings,
            deviations: method.deviations(),
            verdict,
            trials: outcome.trials,
            trials_s: outcome.trials_s,
            elapsed_s: outcome.elapsed_s,
            is_simulated,
        }
    }

    /// Returns the state of a run that ended with this result.
    pub const fn state(&self) -> State {
        match self.verdict.outcome {
            Outcome::Met | Outcome::FellShort => State::Finished,
            Outcome::Interrupted => State::Interrupted,
            Outcome::Failed => State::Failed,
        }
    }
}

/// Returns the verdict. `shortfalls` are the criteria that the device failed.
fn verdict(error: Option<&TrialError>, shortfalls: Vec<String>) -> Verdict {
    let outcome = match error {
        None if shortfalls.is_empty() => Outcome::Met,
        None => return Verdict { outcome: Outcome::FellShort, reasons: shortfalls },
        Some(TrialError::Stopped) => Outcome::Interrupted,
        Some(TrialError::Failed(_)) => Outcome::Failed,
    };
    Verdict { outcome, reasons: error.iter().map(ToString::to_string).collect() }
}
