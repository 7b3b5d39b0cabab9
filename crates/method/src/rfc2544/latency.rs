//! Latency (RFC 2544 section 26.2) and delay variation (RFC 8219 sections 7.2 and 7.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::{Rfc2544, Subject, Test, ThroughputRow};
use crate::distribution::Distribution;
use crate::seconds;
use crate::statistics::{mean, median, percentile};
use crate::trial::{Length, Step, Trial, TrialError, TrialInput};

/// Parameters of the latency test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyOptions {
    /// Part of the stream before the measured frames, in seconds.
    #[serde(rename = "warm_up_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub warm_up: Duration,
    /// Part of the stream whose frames are all measured, in seconds.
    #[serde(rename = "measured_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub measured: Duration,
    /// Number of streams.
    pub repetitions: u32,
    /// Load as a fraction of the throughput.
    pub load: f64,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { warm_up: minute, measured: minute, repetitions: 20, load: 1.0 }
    }
}

impl LatencyOptions {
    /// Returns the duration of a stream.
    pub fn stream(&self) -> Duration {
        self.warm_up.saturating_add(self.measured)
    }
}

/// Latency of one frame size. Values of repetitions are the median, with the 1st and 99th
/// percentile (RFC 8219).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyRow {
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: u32,
    /// Load in frames per second of each interface.
    pub load: u64,
    /// Number of streams.
    pub repetitions: u32,
    /// Mean of the mean delays of all streams, in nanoseconds (RFC 2544); null without arrivals.
    pub mean_ns: Option<f64>,
    /// Typical latency in nanoseconds: median delay of a stream (RFC 8219).
    pub typical: Option<Repeated>,
    /// Worst-case latency in nanoseconds: 99.9th percentile of a stream (RFC 8219).
    pub worst_case: Option<Repeated>,
    /// Delay variation in nanoseconds: 99.9th percentile minus minimum of a stream (RFC 8219).
    pub pdv: Option<Repeated>,
    /// Delays of the measured frames of all streams.
    pub delay: Distribution,
    /// Frames lost in all streams.
    pub lost: u64,
}

/// A value of several repetitions, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Repeated {
    /// Median.
    pub median_ns: f64,
    /// 1st percentile.
    pub p1_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
}

impl Repeated {
    fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median_ns: median(values)?,
            p1_ns: percentile(values, 0.01)?,
            p99_ns: percentile(values, 0.99)?,
        })
    }
}

impl Rfc2544 {
    /// Measures the latency at the throughput.
    ///
    /// RFC 2544 tags one frame of a stream, RFC 8219 at least 500 after 60 s. Here all frames after
    /// the warm-up carry a time stamp.
    pub(super) fn latency(
        &self,
        subject: &Subject,
        throughput: &ThroughputRow,
        trial: &mut dyn Trial,
    ) -> Result<LatencyRow, TrialError> {
        let options = &self.latency;
        let load = ((throughput.load as f64 * options.load) as u64).max(1);
        let step = |duration| Step { load, length: Length::Time(duration) };
        let steps = [options.warm_up, options.measured];
        let steps: Vec<_> = steps.into_iter().filter(|it| *it > Duration::ZERO).map(step).collect();
        let input = TrialInput::steps(Test::Latency.name(), &subject.traffic, steps);
        let mut row = LatencyRow {
            traffic: subject.traffic.name.clone(),
            frame_size: subject.frame_size,
            load,
            repetitions: options.repetitions,
            ..LatencyRow::default()
        };
        let (mut means, mut typical, mut worst, mut pdv) = (vec![], vec![], vec![], vec![]);
        for _ in 0..options.repetitions {
            let output = trial.run(&input)?.first();
            row.lost += output.total().lost();
            let delay = output.steps.last().and_then(|step| step.delay.as_ref());
            let Some(delay) = delay.filter(|delay| delay.count > 0) else { continue };
            let quantile = |part| delay.quantile(part).unwrap_or_default() as f64;
            means.push(delay.mean_ns);
            typical.push(quantile(0.5));
            worst.push(quantile(0.999));
            pdv.push(quantile(0.999) - delay.min_ns as f64);
            row.delay.merge(delay);
        }
        row.mean_ns = mean(&means);
        row.typical = Repeated::of(&typical);
        row.worst_case = Repeated::of(&worst);
        row.pdv = Repeated::of(&pdv);
        Ok(row)
    }
}
