//! MLRsearch as a method: the search of [`crate::search::mlrsearch`] for each traffic and frame
//! size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::rate::line_rate;
use crate::search::Measurement;
use crate::search::classification::Goal;
use crate::search::mlrsearch::{ControllerInput, GoalResult, search};
use crate::seconds;
use crate::trial::{Length, Traffic, Trial, TrialError, TrialInput};

/// Parameters of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Mlrsearch {
    /// Search goals.
    pub goals: Vec<Goal>,
    /// Names of the traffic, such as `ipv4` and `ipv6`. Each is searched on its own.
    pub traffic: Vec<String>,
    /// Frame sizes in bytes with FCS.
    pub frame_sizes: Vec<u32>,
    /// Speed of the links in bit/s of layer 1.
    pub link_bps: u64,
    /// Max Load in frames per second of each interface; null: the line rate.
    pub load_max: Option<u64>,
    /// Min Load in frames per second of each interface; null: 1/10,000 of Max Load.
    pub load_min: Option<u64>,
    /// Maximum sum of the trial durations of one search, in seconds.
    #[serde(rename = "search_max_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub search_max: Duration,
}

/// Findings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MlrsearchFindings {
    /// A row for each traffic and frame size.
    pub searches: Vec<MlrsearchRow>,
}

/// Result of one search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MlrsearchRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Theoretical maximum of the link in frames per second.
    pub line_rate: u64,
    /// Max Load in frames per second of each interface.
    pub max_load: u64,
    /// Results of all goals, in their order.
    pub results: Vec<GoalResult>,
    /// Whether the tester failed in a trial: its generator did not reach the load, or its receiver
    /// dropped frames. Both count as loss.
    pub is_tester_limited: bool,
    /// Number of trials.
    pub trials: u32,
    /// Sum of the trial durations in seconds.
    pub trial_seconds: f64,
}

/// Name of the test in trial inputs.
const TEST: &str = "search";

impl MlrsearchFindings {
    /// Returns what a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for row in &self.searches {
            let subject = format!("{} {} B", row.traffic, row.frame_size);
            if row.is_tester_limited {
                warnings.push(format!(
                    "{subject}: the tester did not reach the load of some trials; what it did not \
                     send counts as loss. Lower --max-load"
                ));
            }
            for result in row.results.iter().filter(|result| !result.is_regular) {
                let reason = match (result.lower, result.upper) {
                    (_, None) => "the device forwards the maximum load",
                    (None, _) => "the device loses frames at the minimum load",
                    _ => "the search ended before the bounds were close enough",
                };
                warnings.push(format!("{subject}, goal {}: irregular: {reason}", result.goal));
            }
        }
        warnings
    }
}

impl Goal {
    /// Returns the goal of RFC 2544 (RFC 9971 section 4.10.2).
    pub fn rfc2544() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            name: "rfc2544".into(),
            final_trial: minute,
            duration_sum: minute,
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            initial_trial: Duration::from_secs(1),
            width: 0.005,
        }
    }

    /// Returns a goal by its name: `rfc2544` (RFC 9971 section 4.10.2), `tst009` (section 4.10.3),
    /// `ndr` (no loss in most of 21 trials of 1 s) or `pdr` (0.5 % loss in most of them).
    pub fn preset(name: &str) -> Option<Self> {
        let goal = |final_s, sum_s, loss_ratio, exceed_ratio| Self {
            name: name.to_owned(),
            final_trial: Duration::from_secs(final_s),
            duration_sum: Duration::from_secs(sum_s),
            loss_ratio,
            exceed_ratio,
            ..Self::rfc2544()
        };
        match name {
            "rfc2544" => Some(Self::rfc2544()),
            "tst009" => Some(goal(60, 120, 0.0, 0.5)),
            "ndr" => Some(goal(1, 21, 0.0, 0.5)),
            "pdr" => Some(goal(1, 21, 0.005, 0.5)),
            _ => None,
        }
    }
}

impl Mlrsearch {
    /// Runs all searches. After an error, `findings` has those that were complete.
    ///
    /// # Errors
    /// Returns the first error of a trial.
    pub fn run(
        &self,
        trial: &mut dyn Trial,
        findings: &mut MlrsearchFindings,
    ) -> Result<(), TrialError> {
        for name in &self.traffic {
            for traffic in Traffic::of_sizes(name, &self.frame_sizes) {
                let frame_size = traffic.frame_size.unwrap_or_default();
                findings.searches.push(self.search(&traffic, frame_size, trial)?);
            }
        }
        Ok(())
    }

    fn search(
        &self,
        traffic: &Traffic,
        frame_size: u32,
        trial: &mut dyn Trial,
    ) -> Result<MlrsearchRow, TrialError> {
        let line_rate = line_rate(frame_size, self.link_bps);
        let max_load = self.load_max.map_or(line_rate, |load| load.min(line_rate)).max(1);
        let mut row = MlrsearchRow {
            traffic: traffic.name.clone(),
            frame_size,
            line_rate,
            max_load,
            ..MlrsearchRow::default()
        };
        let input = ControllerInput {
            goals: self.goals.clone(),
            min_load: self.load_min.unwrap_or(max_load / 10_000).clamp(1, max_load),
            max_load,
            duration_max: self.search_max,
        };
        let mut measure = |load: u64, duration: Duration| {
            let input = TrialInput::constant(TEST, traffic, load, Length::Time(duration));
            let measurement = Measurement::new(load, duration, &trial.run(&input)?);
            row.trials += 1;
            row.trial_seconds += duration.as_secs_f64();
            row.is_tester_limited |= measurement.is_tester_limited();
            Ok(measurement)
        };
        row.results = search(&input, &mut measure)?;
        Ok(row)
    }

    /// Returns the differences of the parameters from what RFC 9971 recommends.
    pub fn deviations(&self) -> Vec<String> {
        let mut deviations = Vec::new();
        for goal in &self.goals {
            let mut add = |text: &str| deviations.push(format!("goal {}: {text}", goal.name));
            if goal.duration_sum < goal.final_trial {
                add("the duration sum is shorter than the final trial (RFC 9971 section 4.6.2)");
            }
            if goal.width < goal.loss_ratio {
                add("the width is lower than the loss ratio (RFC 9971 section 4.6.5)");
            }
        }
        let first = self.goals.first().map(|goal| goal.final_trial);
        if self.goals.iter().any(|goal| Some(goal.final_trial) != first) {
            deviations.push(
                "the goals have different final trial durations (RFC 9971 section 4.6.1)".into(),
            );
        }
        deviations
    }
}
