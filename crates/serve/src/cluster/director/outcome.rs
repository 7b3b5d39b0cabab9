//! Progress and outcome of a test.

use std::time::Duration;

use wirestorm_bus::BusError;
use wirestorm_control::bench::CompletedTrial;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::TrialInput;
use wirestorm_control::result::RunResult;
use wirestorm_store::record::BenchResult;

use super::JudgedLimit;

/// Outcome of a test.
#[derive(Debug, Default)]
pub struct TestOutcome {
    /// Outcome of each iteration; empty for a benchmark method.
    pub iterations: Vec<IterationOutcome>,
    /// Outcome of a benchmark method; `None` for other runs.
    pub bench: Option<BenchOutcome>,
}

/// Outcome of a benchmark method.
#[derive(Debug)]
pub struct BenchOutcome {
    /// Name of the run in the test.
    pub name: String,
    /// Findings of the completed trials, and the error that ended the method, if one did.
    pub result: BenchResult,
    /// Limits of the test, in order.
    pub limits: Vec<JudgedLimit>,
}

/// Outcome of an iteration.
#[derive(Debug, Default)]
pub struct IterationOutcome {
    /// Runs in the order of the test.
    pub runs: Vec<RunOutcome>,
    /// Greatest difference between the starts of two agents in ns; `None` if it is unknown.
    pub start_skew_ns: Option<f64>,
    /// Agents that were lost, with the reason.
    pub lost: Vec<(String, String)>,
    /// Limits of the test, in order.
    pub limits: Vec<JudgedLimit>,
    /// Errors of records in the log that cannot be read, so what they have is missing.
    pub unreadable: Vec<String>,
}

/// Outcome of a run of the test.
#[derive(Debug)]
pub struct RunOutcome {
    /// Name in the test.
    pub name: String,
    /// Text of its plan, if it has one.
    pub plan: Option<String>,
    /// Merged result, or the error of each agent.
    pub result: Result<RunResult, String>,
}

impl RunOutcome {
    /// Returns the plan as a file of the run history, with its name; `None` without a plan. `test`:
    /// name of the test.
    pub fn plan_file(&self, test: &str) -> Option<(String, String)> {
        Some((format!("{test}/{}", self.name), self.plan.clone()?))
    }
}

/// Progress of a test.
#[derive(Clone, Debug)]
pub enum TestProgress<'a> {
    /// The next phase has begun.
    Phase(&'static str),
    /// An iteration is over; the number is from 1.
    Iteration(u32, &'a IterationOutcome),
    /// A benchmark method begins.
    Method {
        /// Name of the run in the test.
        name: &'a str,
        /// Method.
        method: &'a Method,
    },
    /// A trial of the method starts.
    TrialStarted {
        /// Number from 1.
        number: u32,
        /// What the method asks for.
        input: &'a TrialInput,
        /// Estimated time to the end of the method, with this trial, in seconds.
        remaining_s: f64,
    },
    /// A trial of the method is complete.
    Trial(&'a CompletedTrial<'a>),
    /// Counters of the running iteration.
    Running {
        /// Time since the start.
        elapsed: Duration,
        /// Frames sent by all flows.
        sent: u64,
        /// Frames received of all flows.
        received: u64,
    },
    /// An agent is lost.
    Lost {
        /// Agent.
        agent: String,
        /// Reason.
        reason: String,
    },
}

/// Reason why a test did not start.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The test or a plan has errors.
    #[error("{0}")]
    Plan(String),
    /// The bus failed.
    #[error("bus: {0}")]
    Bus(#[from] BusError),
    /// An agent refused or did not answer.
    #[error("agent {agent}, {phase}: {reason}")]
    Agent {
        /// Agent.
        agent: String,
        /// What it was to do.
        phase: &'static str,
        /// Reason.
        reason: String,
    },
    /// The clocks could not be compared exactly enough.
    #[error("{0}")]
    Clocks(String),
    /// The test was stopped before it started.
    #[error("stopped before the start")]
    Stopped,
}
