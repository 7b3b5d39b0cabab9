//! Back-to-back frames (RFC 9004, which updates RFC 2544 section 26.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::{Rfc2544, Subject, Test, ThroughputRow};
use crate::seconds;
use crate::statistics::{mean, standard_deviation};
use crate::trial::{Length, Trial, TrialError, TrialInput};

/// Parameters of the back-to-back test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BackToBackOptions {
    /// Number of searches for the longest burst.
    pub repetitions: u32,
    /// Time to send the longest burst, in seconds.
    #[serde(rename = "burst_max_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub burst_max: Duration,
    /// Minimum step of the search, in frames.
    pub step: u64,
}

impl Default for BackToBackOptions {
    fn default() -> Self {
        Self { repetitions: 50, burst_max: Duration::from_secs(2), step: 1 }
    }
}

/// Back-to-back frames of one frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BackToBackRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Reason why the size was not tested; null if it was.
    pub skipped: Option<String>,
    /// Rate within bursts in frames per second: the maximum load.
    pub rate: u64,
    /// Longest burst without loss of each search, in frames.
    pub bursts: Vec<u64>,
    /// Average of the longest bursts: the benchmark.
    pub average: Option<f64>,
    /// Minimum of the longest bursts.
    pub min: Option<u64>,
    /// Maximum of the longest bursts.
    pub max: Option<u64>,
    /// Standard deviation of the longest bursts.
    pub standard_deviation: Option<f64>,
    /// Longest burst that the search may send.
    pub burst_max: u64,
    /// Implied DUT buffer time in seconds.
    pub implied_buffer_s: Option<f64>,
    /// Corrected DUT buffer time in seconds.
    pub corrected_buffer_s: Option<f64>,
}

impl Rfc2544 {
    /// Searches the longest burst without loss, several times.
    pub(super) fn back_to_back(
        &self,
        subject: &Subject,
        throughput: &ThroughputRow,
        trial: &mut dyn Trial,
    ) -> Result<BackToBackRow, TrialError> {
        let rate = self.max_load(subject.frame_size);
        let options = &self.back_to_back;
        let burst_max = (rate as f64 * options.burst_max.as_secs_f64()).max(2.0) as u64;
        let mut row = BackToBackRow {
            traffic: subject.traffic.name.clone(),
            frame_size: subject.frame_size,
            rate,
            burst_max,
            ..BackToBackRow::default()
        };
        // RFC 9004 section 6.1: only sizes with a throughput below the maximum rate.
        if throughput.load >= rate {
            row.skipped = Some("the throughput is the maximum load, so no burst is lost".into());
            return Ok(row);
        }
        for _ in 0..options.repetitions {
            row.bursts.push(longest_burst(subject, rate, burst_max, options.step, trial)?);
        }
        let bursts: Vec<f64> = row.bursts.iter().map(|&burst| burst as f64).collect();
        row.average = mean(&bursts);
        row.min = row.bursts.iter().min().copied();
        row.max = row.bursts.iter().max().copied();
        row.standard_deviation = standard_deviation(&bursts);
        row.implied_buffer_s = row.average.map(|frames| frames / rate as f64);
        let forwarded = throughput.load as f64 / rate as f64;
        row.corrected_buffer_s = row.implied_buffer_s.map(|implied| implied * (1.0 - forwarded));
        Ok(row)
    }
}

/// Searches the longest burst without loss, in frames. The longest allowed burst is tried first.
fn longest_burst(
    subject: &Subject,
    rate: u64,
    burst_max: u64,
    step: u64,
    trial: &mut dyn Trial,
) -> Result<u64, TrialError> {
    let mut passes = |frames: u64| {
        let name = Test::BackToBack.name();
        let input = TrialInput::constant(name, &subject.traffic, rate, Length::Units(frames));
        Ok::<_, TrialError>(trial.run(&input)?.first().total().lost() == 0)
    };
    if passes(burst_max)? {
        return Ok(burst_max);
    }
    let (mut lower, mut upper) = (0, burst_max);
    while upper - lower > step.max(1) {
        let middle = lower + (upper - lower) / 2;
        match passes(middle)? {
            true => lower = middle,
            false => upper = middle,
        }
    }
    Ok(lower)
}
