//! The result of a test as a document: `wirestorm.test/1`.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_control::result::RunResult;
use wirestorm_store::record::BenchResult;

use super::{BenchOutcome, IterationOutcome, JudgedLimit, TestOutcome};

/// Format of [`TestDocument`].
pub const TEST_SCHEMA: &str = "wirestorm.test/1";

/// Results of a test.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TestDocument<'a> {
    /// Format: `wirestorm.test/1`.
    pub schema: &'static str,
    /// Name of the test.
    pub test: &'a str,
    /// Iterations, in order; empty for a benchmark method.
    pub iterations: Vec<IterationDocument<'a>>,
    /// Result of a benchmark method; null for other runs.
    pub bench: Option<BenchDocument<'a>>,
}

/// Result of a benchmark method.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BenchDocument<'a> {
    /// Name of the run in the test.
    pub name: &'a str,
    /// Limits of the test, in order.
    pub limits: &'a [JudgedLimit],
    /// Result, as `wirestorm bench --json` writes it: `wirestorm.bench/1`.
    pub result: &'a BenchResult,
}

/// Results of an iteration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IterationDocument<'a> {
    /// Greatest difference between the starts of two agents in ns; null if it is unknown.
    pub start_skew_ns: Option<f64>,
    /// Agents that were lost: name of the agent, and the reason.
    pub lost: &'a [(String, String)],
    /// Limits of the test, in order.
    pub limits: &'a [JudgedLimit],
    /// Errors of records in the log that cannot be read.
    pub unreadable: &'a [String],
    /// Runs in the order of the test.
    pub runs: Vec<RunDocument<'a>>,
}

/// Result of a run in an iteration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunDocument<'a> {
    /// Name of the run in the test.
    pub name: &'a str,
    /// Result; null without one.
    pub result: Option<&'a RunResult>,
    /// Why there is no result; null if there is one.
    pub error: Option<&'a str>,
}

impl<'a> TestDocument<'a> {
    /// Returns the results of a test with this name.
    pub fn new(test: &'a str, outcome: &'a TestOutcome) -> Self {
        let iterations = outcome.iterations.iter().map(IterationDocument::from);
        let bench = outcome.bench.as_ref();
        let bench = bench.map(|bench| {
            let BenchOutcome { name, result, limits } = bench;
            BenchDocument { name, limits, result }
        });
        Self { schema: TEST_SCHEMA, test, iterations: iterations.collect(), bench }
    }
}

impl<'a> From<&'a IterationOutcome> for IterationDocument<'a> {
    fn from(iteration: &'a IterationOutcome) -> Self {
        let runs = iteration.runs.iter().map(|run| RunDocument {
            name: &run.name,
            result: run.result.as_ref().ok(),
            error: run.result.as_ref().err().map(String::as_str),
        });
        Self {
            start_skew_ns: iteration.start_skew_ns,
            lost: &iteration.lost,
            limits: &iteration.limits,
            unreadable: &iteration.unreadable,
            runs: runs.collect(),
        }
    }
}
