//! System recovery (RFC 2544 section 26.5) and reset (section 26.6, RFC 6201).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::{Rfc2544, Subject, Test, ThroughputRow};
use crate::seconds;
use crate::statistics::mean;
use crate::trial::{Length, Step, Trial, TrialError, TrialInput};

/// Parameters of the system recovery test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecoveryOptions {
    /// Duration of the overload in seconds.
    #[serde(rename = "overload_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub overload: Duration,
    /// Duration of the reduced load in seconds.
    #[serde(rename = "reduced_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub reduced: Duration,
    /// Number of repetitions.
    pub repetitions: u32,
}

impl Default for RecoveryOptions {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { overload: minute, reduced: minute, repetitions: 3 }
    }
}

/// System recovery of one frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecoveryRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Throughput in frames per second of each interface.
    pub throughput: u64,
    /// Load of the overload in frames per second of each interface.
    pub overload: u64,
    /// Time of each repetition from the reduction of the load to the last loss, in seconds; 0
    /// without loss after the reduction.
    pub recovery_s: Vec<f64>,
    /// Mean of `recovery_s`.
    pub mean_s: Option<f64>,
    /// Whether the overload lost frames in all repetitions. If not, the recovery says little.
    pub is_overloaded: bool,
}

/// Parameters of the reset test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResetOptions {
    /// Time in seconds before the reset, in which the device forwards.
    #[serde(rename = "before_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub before: Duration,
    /// Time in seconds after the reset.
    #[serde(rename = "after_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub after: Duration,
}

impl Default for ResetOptions {
    fn default() -> Self {
        // RFC 6201: "forward the traffic for at least 15 seconds before any test activities".
        Self { before: Duration::from_secs(15), after: Duration::from_secs(120) }
    }
}

/// Result of a reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResetRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Load in frames per second of each interface.
    pub load: u64,
    /// Frames lost.
    pub lost: u64,
    /// Reset time by frame loss in seconds: lost frames divided by the load (RFC 6201).
    pub by_loss_s: f64,
    /// Reset time by time stamps in seconds: longest time between two arrivals (RFC 6201); null
    /// if arrivals were not timed.
    pub by_timestamps_s: Option<f64>,
}

impl Rfc2544 {
    /// Measures the time to recover from an overload.
    pub(super) fn recovery(
        &self,
        subject: &Subject,
        throughput: &ThroughputRow,
        trial: &mut dyn Trial,
    ) -> Result<RecoveryRow, TrialError> {
        let options = &self.recovery;
        // "110% of the recorded throughput rate or the maximum rate for the media, whichever is
        // lower", then "50% of the above rate".
        let overload = (throughput.load as f64 * 1.1).round() as u64;
        let overload = overload.clamp(1, self.max_load(subject.frame_size));
        let steps = vec![
            Step { load: overload, length: Length::Time(options.overload) },
            Step { load: (overload / 2).max(1), length: Length::Time(options.reduced) },
        ];
        let input = TrialInput::steps(Test::Recovery.name(), &subject.traffic, steps);
        let mut row = RecoveryRow {
            traffic: subject.traffic.name.clone(),
            frame_size: subject.frame_size,
            throughput: throughput.load,
            overload,
            is_overloaded: true,
            ..RecoveryRow::default()
        };
        for _ in 0..options.repetitions {
            let output = trial.run(&input)?.first();
            let [overload, reduced] = &*output.steps else {
                return Err(TrialError::Failed("expected results of two steps".into()));
            };
            row.is_overloaded &= overload.lost() > 0;
            let last_loss_s = reduced.last_loss_s.filter(|_| reduced.lost() > 0);
            row.recovery_s.push(last_loss_s.unwrap_or(0.0));
        }
        row.mean_s = mean(&row.recovery_s);
        Ok(row)
    }

    /// Measures the time to recover from a reset.
    pub(super) fn reset(
        &self,
        subject: &Subject,
        throughput: &ThroughputRow,
        trial: &mut dyn Trial,
    ) -> Result<ResetRow, TrialError> {
        let load = throughput.load;
        let length = Length::Time(self.reset.before.saturating_add(self.reset.after));
        let mut input = TrialInput::constant(Test::Reset.name(), &subject.traffic, load, length);
        input.reset_after_s = Some(self.reset.before.as_secs_f64());
        let output = trial.run(&input)?.first();
        let total = output.total();
        // The interfaces share the loss.
        let load_all = total.offered as f64 / input.duration().as_secs_f64();
        Ok(ResetRow {
            traffic: subject.traffic.name.clone(),
            frame_size: subject.frame_size,
            load,
            lost: total.lost(),
            by_loss_s: total.lost() as f64 / load_all.max(1e-9),
            by_timestamps_s: output.outage_s,
        })
    }
}
