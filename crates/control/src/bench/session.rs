//! A method with its record and its progress.

use std::sync::Arc;
use std::time::{Instant as StdInstant, SystemTime, UNIX_EPOCH};

use wirestorm_method::device::SimulatedDevice;
use wirestorm_method::estimate::remaining;
use wirestorm_method::method::{Findings, Method};
use wirestorm_method::recorded::Recorded;
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};

use crate::result::RunResult;

/// A completed trial, as [`TrialLog`] receives it.
#[derive(Clone, Copy, Debug)]
pub struct CompletedTrial<'a> {
    /// Number from 1, recorded trials included.
    pub number: u32,
    /// Start in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// What the method asked for.
    pub input: &'a TrialInput,
    /// What the method reads.
    pub output: &'a TrialOutput,
    /// Full result; `None` in a simulation.
    pub result: Option<&'a RunResult>,
}

/// Receives the trials of a method.
pub trait TrialLog {
    /// A trial starts. `remaining_s` is the estimated time to the end of the method, with this
    /// trial.
    fn started(&mut self, number: u32, input: &TrialInput, remaining_s: f64);

    /// A trial is complete. The method continues when this returns.
    ///
    /// # Errors
    /// An error, such as a full disk, ends the method.
    fn completed(&mut self, trial: &CompletedTrial) -> Result<(), String>;
}

/// A source of trials with full results.
pub trait FullTrial: Trial {
    /// Returns the full result of the last trial, once; `None` if there is none.
    fn take_result(&mut self) -> Option<Arc<RunResult>>;
}

impl FullTrial for SimulatedDevice {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        None
    }
}

/// Outcome of a method.
#[derive(Debug)]
pub struct SessionOutcome {
    /// Findings; after an error, those of the completed tests.
    pub findings: Findings,
    /// Error that ended the method.
    pub error: Option<TrialError>,
    /// Number of trials, recorded ones included.
    pub trials: u32,
    /// Sum of the times of all trials in seconds.
    pub trials_s: f64,
    /// Time of this session in seconds.
    pub elapsed_s: f64,
    /// Time of the trials of this session in seconds.
    pub session_trials_s: f64,
}

/// Runs a method on `trial`, after the trials of `records`.
///
/// `waits_s` is the time between two trials, for the estimate.
pub fn run_method(
    method: &Method,
    records: Vec<(TrialInput, TrialOutput)>,
    waits_s: f64,
    trial: &mut dyn FullTrial,
    log: &mut dyn TrialLog,
) -> SessionOutcome {
    let started = StdInstant::now();
    // A sum of nothing would be -0.
    let recorded_s = records.iter().fold(0.0, |sum, (_, output)| sum + output.elapsed_s);
    let logged = Logged {
        method,
        records: records.clone(),
        waits_s,
        trial,
        log,
        estimate: Estimate::default(),
        trials_s: recorded_s,
    };
    let mut source = Recorded::new(records, logged);
    let (findings, outcome) = method.run(&mut source);
    let logged = source.into_rest();
    SessionOutcome {
        findings,
        error: outcome.err(),
        trials: logged.records.len() as u32,
        trials_s: logged.trials_s,
        elapsed_s: started.elapsed().as_secs_f64(),
        session_trials_s: logged.trials_s - recorded_s,
    }
}

/// Executes trials and passes them to the log.
struct Logged<'a> {
    method: &'a Method,
    records: Vec<(TrialInput, TrialOutput)>,
    waits_s: f64,
    trial: &'a mut dyn FullTrial,
    log: &'a mut dyn TrialLog,
    estimate: Estimate,
    trials_s: f64,
}

/// Remaining time, as of a number of trials.
#[derive(Default)]
struct Estimate {
    remaining_s: f64,
    /// Time of the estimate; `None` before the first.
    at: Option<StdInstant>,
    /// Time that it took to compute.
    took_s: f64,
}

impl Logged<'_> {
    /// Returns the estimated remaining time in seconds. An estimate replays the whole method, so a
    /// new one waits until it costs less than 0.1 % of the time since the last one.
    fn remaining_s(&mut self) -> f64 {
        let now = StdInstant::now();
        let since_s = self.estimate.at.map_or(f64::MAX, |at| (now - at).as_secs_f64());
        if since_s < self.estimate.took_s * 1_000.0 {
            return (self.estimate.remaining_s - since_s).max(0.0);
        }
        let trials = remaining(self.method, &self.records, 0.5);
        let trials_s: f64 = trials.iter().map(|input| input.duration().as_secs_f64()).sum();
        let remaining_s = trials_s + self.waits_s * trials.len() as f64;
        let took_s = now.elapsed().as_secs_f64();
        self.estimate = Estimate { remaining_s, at: Some(now), took_s };
        remaining_s
    }
}

impl Trial for Logged<'_> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let number = self.records.len() as u32 + 1;
        let remaining_s = self.remaining_s();
        self.log.started(number, input, remaining_s);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let output = self.trial.run(input)?;
        self.trials_s += output.elapsed_s;
        let result = self.trial.take_result();
        let (output_ref, result) = (&output, result.as_deref());
        let completed =
            CompletedTrial { number, started_unix_ns, input, output: output_ref, result };
        self.log.completed(&completed).map_err(TrialError::Failed)?;
        self.records.push((input.clone(), output.clone()));
        Ok(output)
    }
}
