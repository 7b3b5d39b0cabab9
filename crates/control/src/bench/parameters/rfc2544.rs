//! Parameters of RFC 2544.

use serde::Deserialize;
use wirestorm_base::time::Duration;
use wirestorm_method::rfc2544::{
    BackToBackOptions, FRAME_SIZES, LatencyOptions, RecoveryOptions, ResetOptions, Rfc2544, Test,
};

use super::paths::Links;
use super::value::{ParameterError, frame_sizes, of, one_or_many, percent, protocols, time};

/// Parameters of RFC 2544. Times are text with a unit; ratios are in percent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rfc2544Parameters {
    /// Tests, or `all`.
    #[serde(deserialize_with = "one_or_many")]
    pub tests: Vec<String>,
    /// Duration of a trial.
    pub trial: String,
    /// Duration of the trials of a search before the final one; `None`: `trial`.
    pub intermediate: Option<String>,
    /// Resolution of the throughput, in percent of it.
    pub resolution: f64,
    /// Trials that confirm the throughput.
    pub confirm: u32,
    /// Whether the trial above the throughput is repeated.
    pub verify_upper: bool,
    /// Frame sizes in bytes with FCS.
    #[serde(deserialize_with = "one_or_many")]
    pub frame_sizes: Vec<u32>,
    /// Protocols: `ipv4`, `ipv6`.
    #[serde(deserialize_with = "one_or_many")]
    pub traffic: Vec<String>,
    /// Streams of the latency test.
    pub latency_repetitions: u32,
    /// Duration of a latency stream.
    pub latency_stream: String,
    /// Load of the latency test, in percent of the throughput.
    pub latency_load: f64,
    /// Step of the frame loss rate test, in percent of the maximum load.
    pub loss_step: f64,
    /// Searches for the longest back-to-back burst.
    pub burst_repetitions: u32,
    /// Longest back-to-back burst.
    pub burst_max: String,
    /// Resolution of the back-to-back burst, in frames.
    pub burst_step: u64,
    /// Overloads of the recovery test.
    pub recovery_repetitions: u32,
    /// Duration of an overload, and of the reduced load after it.
    pub recovery_overload: String,
    /// Time before the reset of the reset test.
    pub reset_before: String,
    /// Time after the reset of the reset test.
    pub reset_after: String,
}

impl Default for Rfc2544Parameters {
    fn default() -> Self {
        Self {
            tests: ["throughput", "latency", "frame-loss", "back-to-back"]
                .map(str::to_owned)
                .to_vec(),
            trial: "60s".to_owned(),
            intermediate: None,
            resolution: 0.5,
            confirm: 0,
            verify_upper: false,
            frame_sizes: FRAME_SIZES.to_vec(),
            traffic: vec!["ipv4".to_owned()],
            latency_repetitions: 20,
            latency_stream: "120s".to_owned(),
            latency_load: 100.0,
            loss_step: 10.0,
            burst_repetitions: 50,
            burst_max: "2s".to_owned(),
            burst_step: 1,
            recovery_repetitions: 3,
            recovery_overload: "60s".to_owned(),
            reset_before: "15s".to_owned(),
            reset_after: "120s".to_owned(),
        }
    }
}

impl Rfc2544Parameters {
    /// Returns the method for these links.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn method(&self, links: Links) -> Result<Rfc2544, ParameterError> {
        let trial = time("trial", &self.trial)?;
        let intermediate = self.intermediate.as_deref();
        let intermediate = intermediate.map(|text| time("intermediate", text)).transpose()?;
        let stream = time("latency_stream", &self.latency_stream)?;
        let half = Duration::from_nanos(stream.as_nanos() / 2);
        let overload = time("recovery_overload", &self.recovery_overload)?;
        if self.burst_step == 0 {
            return Err(ParameterError::new("burst_step", "0: expected at least 1"));
        }
        Ok(Rfc2544 {
            tests: of("tests", parse_tests(&self.tests))?,
            traffic: protocols(&self.traffic)?,
            frame_sizes: frame_sizes(&self.frame_sizes)?,
            link_bps: links.bps,
            load_max: links.load_max,
            trial,
            intermediate: intermediate.unwrap_or(trial),
            resolution: percent("resolution", self.resolution, 0.000_1, 50.0)?,
            verifies_upper: self.verify_upper,
            confirmations: self.confirm,
            frame_loss_step: percent("loss_step", self.loss_step, 0.1, 10.0)?,
            latency: LatencyOptions {
                warm_up: half,
                measured: stream.saturating_sub(half),
                repetitions: self.latency_repetitions,
                load: percent("latency_load", self.latency_load, 0.1, 100.0)?,
            },
            back_to_back: BackToBackOptions {
                repetitions: self.burst_repetitions,
                burst_max: time("burst_max", &self.burst_max)?,
                step: self.burst_step,
            },
            recovery: RecoveryOptions {
                overload,
                reduced: overload,
                repetitions: self.recovery_repetitions,
            },
            reset: ResetOptions {
                before: time("reset_before", &self.reset_before)?,
                after: time("reset_after", &self.reset_after)?,
            },
        })
    }
}

/// Parses names of tests.
fn parse_tests(names: &[String]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for name in names {
        if name == "all" {
            return Ok(Test::ALL.to_vec());
        }
        let test = Test::ALL.into_iter().find(|test| test.name() == name);
        tests.push(test.ok_or_else(|| {
            let all = Test::ALL.map(Test::name).join(", ");
            format!("{name:?}: expected all, or some of {all}")
        })?);
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_or_all() {
        assert_eq!(parse_tests(&["all".into()]).unwrap(), Test::ALL);
        let error = parse_tests(&["jitter".into()]).unwrap_err();
        assert!(error.contains("back-to-back"), "{error}");
    }

    #[test]
    fn defaults_are_those_of_the_method() {
        let links = Links { bps: 10_000_000_000, load_max: None };
        assert_eq!(Rfc2544Parameters::default().method(links), Ok(Rfc2544::default()));
    }
}
