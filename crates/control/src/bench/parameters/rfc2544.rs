//! Parameters of RFC 2544.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use wirestorm_base::time::Duration;
use wirestorm_method::rfc2544::{
    BackToBackOptions, FRAME_SIZES, LatencyOptions, RecoveryOptions, ResetOptions, Rfc2544, Test,
};

use super::paths::Links;
use super::schema;
use super::value::{
    ParameterError, REPETITIONS, duration, frame_sizes, in_range, one_or_many, percent, protocols,
    read_tests,
};

/// Resolutions of the back-to-back burst, in frames.
const BURST_STEPS: RangeInclusive<u64> = 1..=1_000_000;

/// Parameters of RFC 2544. Times are text with a unit; ratios are in percent.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rfc2544Parameters {
    /// Tests; the throughput is always measured.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::tests_of_rfc2544")]
    pub tests: Vec<String>,
    /// Duration of a trial.
    #[schemars(schema_with = "schema::time")]
    pub trial: String,
    /// Duration of the trials of a search before the final one. Default: `trial`.
    #[schemars(schema_with = "schema::optional_time")]
    pub intermediate: Option<String>,
    /// Resolution of the throughput, in percent of it.
    pub resolution: f64,
    /// Trials that confirm the throughput.
    #[schemars(range(min = 0, max = *REPETITIONS.end()))]
    pub confirm: u32,
    /// Whether the trial above the throughput is repeated.
    pub verify_upper: bool,
    /// Frame sizes in bytes with FCS.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::frame_sizes")]
    pub frame_sizes: Vec<u32>,
    /// Protocols; each is tested on its own.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::protocols")]
    pub traffic: Vec<String>,
    /// Streams of the latency test.
    #[schemars(range(min = *REPETITIONS.start(), max = *REPETITIONS.end()))]
    pub latency_repetitions: u32,
    /// Duration of a latency stream; its second half is measured.
    #[schemars(schema_with = "schema::time")]
    pub latency_stream: String,
    /// Load of the latency test, in percent of the throughput.
    pub latency_load: f64,
    /// Step of the frame loss rate test, in percent of the maximum load.
    pub loss_step: f64,
    /// Searches for the longest back-to-back burst.
    #[schemars(range(min = *REPETITIONS.start(), max = *REPETITIONS.end()))]
    pub burst_repetitions: u32,
    /// Longest back-to-back burst.
    #[schemars(schema_with = "schema::time")]
    pub burst_max: String,
    /// Resolution of the back-to-back burst, in frames.
    #[schemars(range(min = *BURST_STEPS.start(), max = *BURST_STEPS.end()))]
    pub burst_step: u64,
    /// Overloads of the recovery test.
    #[schemars(range(min = *REPETITIONS.start(), max = *REPETITIONS.end()))]
    pub recovery_repetitions: u32,
    /// Duration of an overload, and of the reduced load after it.
    #[schemars(schema_with = "schema::time")]
    pub recovery_overload: String,
    /// Time before the reset of the reset test.
    #[schemars(schema_with = "schema::time")]
    pub reset_before: String,
    /// Time after the reset of the reset test.
    #[schemars(schema_with = "schema::time")]
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
        let trial = duration("trial", &self.trial)?;
        let intermediate = self.intermediate.as_deref();
        let intermediate = intermediate.map(|text| duration("intermediate", text)).transpose()?;
        let stream = duration("latency_stream", &self.latency_stream)?;
        let half = Duration::from_nanos(stream.as_nanos() / 2);
        let overload = duration("recovery_overload", &self.recovery_overload)?;
        let repetitions = |key, number: u32| in_range(key, number, &REPETITIONS);
        Ok(Rfc2544 {
            tests: read_tests(&self.tests, &Test::ALL, Test::name)?,
            traffic: protocols(&self.traffic)?,
            frame_sizes: frame_sizes(&self.frame_sizes)?,
            link_bps: links.bps,
            load_max: links.load_max,
            trial,
            intermediate: intermediate.unwrap_or(trial),
            resolution: percent("resolution", self.resolution, 0.000_1, 50.0)?,
            verifies_upper: self.verify_upper,
            confirmations: in_range("confirm", self.confirm, &(0..=*REPETITIONS.end()))?,
            frame_loss_step: percent("loss_step", self.loss_step, 0.1, 10.0)?,
            latency: LatencyOptions {
                warm_up: half,
                measured: stream.saturating_sub(half),
                repetitions: repetitions("latency_repetitions", self.latency_repetitions)?,
                load: percent("latency_load", self.latency_load, 0.1, 100.0)?,
            },
            back_to_back: BackToBackOptions {
                repetitions: repetitions("burst_repetitions", self.burst_repetitions)?,
                burst_max: duration("burst_max", &self.burst_max)?,
                step: in_range("burst_step", self.burst_step, &BURST_STEPS)?,
            },
            recovery: RecoveryOptions {
                overload,
                reduced: overload,
                repetitions: repetitions("recovery_repetitions", self.recovery_repetitions)?,
            },
            reset: ResetOptions {
                before: duration("reset_before", &self.reset_before)?,
                after: duration("reset_after", &self.reset_after)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_and_repetitions_have_bounds() {
        let links = Links { bps: 10_000_000_000, load_max: None };
        let default = Rfc2544Parameters::default;
        for (key, parameters) in [
            ("trial", Rfc2544Parameters { trial: "0s".into(), ..default() }),
            ("intermediate", Rfc2544Parameters { intermediate: Some("0s".into()), ..default() }),
            ("latency_stream", Rfc2544Parameters { latency_stream: "0s".into(), ..default() }),
            (
                "recovery_overload",
                Rfc2544Parameters { recovery_overload: "0s".into(), ..default() },
            ),
            ("burst_max", Rfc2544Parameters { burst_max: "0s".into(), ..default() }),
            ("burst_step", Rfc2544Parameters { burst_step: 0, ..default() }),
            ("confirm", Rfc2544Parameters { confirm: 10_001, ..default() }),
            ("latency_repetitions", Rfc2544Parameters { latency_repetitions: 0, ..default() }),
            ("burst_repetitions", Rfc2544Parameters { burst_repetitions: 0, ..default() }),
            ("recovery_repetitions", Rfc2544Parameters { recovery_repetitions: 0, ..default() }),
        ] {
            assert_eq!(parameters.method(links).unwrap_err().key, key);
        }
    }

    #[test]
    fn defaults_are_those_of_the_method() {
        let links = Links { bps: 10_000_000_000, load_max: None };
        assert_eq!(Rfc2544Parameters::default().method(links), Ok(Rfc2544::default()));
    }
}
