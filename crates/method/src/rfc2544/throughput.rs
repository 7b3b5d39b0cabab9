//! Throughput (RFC 2544 section 26.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::{Rfc2544, Subject, Test};
use crate::rate::{layer_1_rate, layer_2_rate, line_rate};
use crate::search::Measurement;
use crate::search::bisection::Bisection;
use crate::trial::{Length, Trial, TrialError, TrialInput};

/// Throughput of one frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ThroughputRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Throughput in frames per second of each interface; 0 if all trials lost frames.
    pub load: u64,
    /// Smallest load with loss, in frames per second of each interface; null if there is none.
    pub upper: Option<u64>,
    /// Theoretical maximum of the link in frames per second.
    pub line_rate: u64,
    /// Throughput in percent of the theoretical maximum.
    pub line_rate_percent: f64,
    /// Throughput in bit/s of layer 1.
    pub bps_l1: f64,
    /// Throughput in bit/s of layer 2.
    pub bps_l2: f64,
    /// Whether the tester, not the device, failed at the upper bound: its generator did not reach the
    /// load, or its receiver dropped frames.
    pub is_tester_limited: bool,
    /// Number of trials of the search.
    pub trials: u32,
    /// Whether the upper bound passed when it was verified: the device had not recovered from an
    /// earlier trial, and the throughput is higher. Raise the wait between trials.
    pub is_contradictory: bool,
    /// Trials that confirmed the throughput.
    pub confirmed: u32,
    /// Trials that should confirm it.
    pub confirmations: u32,
}

impl Rfc2544 {
    /// Searches the throughput.
    pub(super) fn throughput(
        &self,
        subject: &Subject,
        trial: &mut dyn Trial,
    ) -> Result<ThroughputRow, TrialError> {
        let max_load = self.max_load(subject.frame_size);
        let mut measure = |load: u64, duration: Duration| {
            let length = Length::Time(duration);
            let name = Test::Throughput.name();
            let input = TrialInput::constant(name, &subject.traffic, load, length);
            Ok(Measurement::new(load, duration, &trial.run(&input)?))
        };
        let search = Bisection {
            min_load: (max_load / 10_000).max(1),
            max_load,
            width: self.resolution,
            loss_ratio: 0.0,
            intermediate: self.intermediate.min(self.trial),
            full: self.trial,
            verifies_upper: self.verifies_upper,
        };
        let bounds = search.search(&mut measure)?;
        let load = bounds.lower.map_or(0, |trial| trial.load);
        let mut confirmed = 0;
        if load > 0 {
            for _ in 0..self.confirmations {
                confirmed += u32::from(measure(load, self.trial)?.loss_ratio == 0.0);
            }
        }
        let line_rate = line_rate(subject.frame_size, self.link_bps);
        Ok(ThroughputRow {
            traffic: subject.traffic.name.clone(),
            frame_size: subject.frame_size,
            load,
            upper: bounds.upper.map(|trial| trial.load),
            line_rate,
            line_rate_percent: load as f64 * 100.0 / line_rate.max(1) as f64,
            bps_l1: layer_1_rate(load as f64, subject.frame_size),
            bps_l2: layer_2_rate(load as f64, subject.frame_size),
            is_tester_limited: bounds.upper.is_some_and(|trial| trial.is_tester_limited()),
            trials: bounds.trials,
            is_contradictory: bounds.is_contradictory,
            confirmed,
            confirmations: if load > 0 { self.confirmations } else { 0 },
        })
    }
}
