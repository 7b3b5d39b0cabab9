//! Parameters of the search for the non-drop rate.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use wirestorm_base::time::Duration;
use wirestorm_method::ndr::{LatencyLimit, Ndr};

use super::paths::Links;
use super::schema;
use super::value::{
    ParameterError, duration, frame_sizes, in_range, one_or_many, percent, protocols, time,
};

/// Iterations after the first run.
const ITERATIONS: RangeInclusive<u32> = 1..=1_000;
/// Results: the rate, its half, its third and so on.
const RESULTS: RangeInclusive<u32> = 1..=10;

/// Parameters of the search for the non-drop rate of frames.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NdrParameters {
    /// Allowed drops, in percent of the frames sent.
    pub pdr: f64,
    /// Precision of the rate, in percent of the maximum rate.
    pub pdr_error: f64,
    /// Frames that the tester may fail to send or receive, in percent of the load.
    pub tester_limit: f64,
    /// Duration of an iteration.
    #[schemars(schema_with = "schema::time")]
    pub iteration: String,
    /// Duration of the first run.
    #[schemars(schema_with = "schema::time")]
    pub first_run: String,
    /// Most iterations after the first run.
    #[schemars(range(min = *ITERATIONS.start(), max = *ITERATIONS.end()))]
    pub max_iterations: u32,
    /// Number of results: the rate, its half, its third and so on.
    #[schemars(range(min = *RESULTS.start(), max = *RESULTS.end()))]
    pub results: u32,
    /// Largest latency of a passed iteration. Default: no limit.
    #[schemars(schema_with = "schema::optional_time")]
    pub max_latency: Option<String>,
    /// Frames that may be later than `max_latency`, in percent.
    pub latency_tolerance: f64,
    /// Half width of the range to search first around the rate that the first run lets expect, in
    /// percent of that rate. Default: the whole range.
    pub expected_range: Option<f64>,
    /// Frame sizes in bytes with FCS.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::frame_sizes")]
    pub frame_sizes: Vec<u32>,
    /// Protocols; each is searched on its own.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::protocols")]
    pub traffic: Vec<String>,
}

impl Default for NdrParameters {
    fn default() -> Self {
        Self {
            pdr: 0.1,
            pdr_error: 1.0,
            tester_limit: 2.0,
            iteration: "20s".to_owned(),
            first_run: "20s".to_owned(),
            max_iterations: 10,
            results: 1,
            max_latency: None,
            latency_tolerance: 0.0,
            expected_range: None,
            frame_sizes: vec![64],
            traffic: vec!["ipv4".to_owned()],
        }
    }
}

impl NdrParameters {
    /// Returns the method for these links.
    ///
    /// # Errors
    /// A parameter has a wrong value.
    pub fn method(&self, links: Links) -> Result<Ndr, ParameterError> {
        let tolerance = percent("latency_tolerance", self.latency_tolerance, 0.0, 100.0)?;
        let latency = match &self.max_latency {
            None if tolerance > 0.0 => {
                let message = "has no effect without max_latency: add it";
                return Err(ParameterError::new("latency_tolerance", message));
            }
            None => None,
            Some(text) => Some(LatencyLimit { max: latency(text)?, tolerance }),
        };
        let range = |range| percent("expected_range", range, 0.1, 50.0);
        Ok(Ndr {
            traffic: protocols(&self.traffic)?,
            frame_sizes: frame_sizes(&self.frame_sizes)?,
            link_bps: links.bps,
            load_max: links.load_max,
            first_run: duration("first_run", &self.first_run)?,
            iteration: duration("iteration", &self.iteration)?,
            iterations_max: in_range("max_iterations", self.max_iterations, &ITERATIONS)?,
            pdr: percent("pdr", self.pdr, 0.0, 100.0)?,
            pdr_error: percent("pdr_error", self.pdr_error, 0.000_1, 50.0)?,
            tester_limit: percent("tester_limit", self.tester_limit, 0.0, 100.0)?,
            latency,
            expected_range: self.expected_range.map(range).transpose()?,
            results: in_range("results", self.results, &RESULTS)?,
        })
    }
}

/// Reads a latency above zero: no frame arrives earlier.
fn latency(text: &str) -> Result<Duration, ParameterError> {
    const KEY: &str = "max_latency";
    match time(KEY, text)? {
        Duration::ZERO => Err(ParameterError::new(KEY, format!("{text:?}: expected more than 0"))),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_tolerances_have_bounds() {
        let links = Links { bps: 10_000_000_000, load_max: None };
        let default = NdrParameters::default;
        for (key, parameters) in [
            ("iteration", NdrParameters { iteration: "0s".into(), ..default() }),
            ("first_run", NdrParameters { first_run: "0s".into(), ..default() }),
            ("max_latency", NdrParameters { max_latency: Some("0s".into()), ..default() }),
            ("latency_tolerance", NdrParameters { latency_tolerance: -1.0, ..default() }),
            ("latency_tolerance", NdrParameters { latency_tolerance: 1.0, ..default() }),
            ("results", NdrParameters { results: 11, ..default() }),
        ] {
            assert_eq!(parameters.method(links).unwrap_err().key, key);
        }
    }

    #[test]
    fn defaults_are_those_of_the_method() {
        let links = Links { bps: 10_000_000_000, load_max: None };
        assert_eq!(NdrParameters::default().method(links), Ok(Ndr::default()));
    }
}
