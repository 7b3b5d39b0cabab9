//! Validation criteria of RFC 9411 sections 7.1 to 7.9.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Test;
use crate::connections::{ConnectionsInput, ConnectionsOutput, LoadUnit};

/// Limits of the validation criteria.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Criteria {
    /// Failed transactions as a fraction of the attempted ones: less than this.
    pub failed: f64,
    /// Connections terminated by an unexpected RST as a fraction of the initiated ones: less than
    /// this.
    pub resets: f64,
    /// Deviation of the forwarding rate from its mean, as a fraction: less than this. The load that
    /// is reached may be lower than the target by less than this.
    pub rate_deviation: f64,
    /// Deviation of the concurrent connections from their mean, as a fraction: less than this.
    pub concurrent_deviation: f64,
}

impl Default for Criteria {
    /// Returns the limits of RFC 9411.
    fn default() -> Self {
        Self { failed: 1e-5, resets: 1e-5, rate_deviation: 0.05, concurrent_deviation: 0.1 }
    }
}

/// A validation criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// Failed transactions.
    FailedTransactions,
    /// Connections terminated by an unexpected RST.
    UnexpectedResets,
    /// Constant forwarding rate.
    RateDeviation,
    /// Constant number of concurrent connections.
    ConcurrentDeviation,
    /// Load that was reached, below the target.
    TargetMissed,
}

impl Criterion {
    /// Returns the name of the criterion in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailedTransactions => "failed transactions",
            Self::UnexpectedResets => "connections with unexpected RST",
            Self::RateDeviation => "deviation of the rate",
            Self::ConcurrentDeviation => "deviation of concurrent connections",
            Self::TargetMissed => "load below its target",
        }
    }
}

/// Value of a criterion in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CriterionValue {
    /// Criterion.
    pub criterion: Criterion,
    /// Value as a fraction.
    pub value: f64,
    /// Limit that the value must be less than.
    pub limit: f64,
    /// Whether it is.
    pub is_met: bool,
}

/// Difference from the mean that is not a deviation of the concurrent connections. Short connections
/// overlap by chance: a few dozen are open at a time, however constant the device is.
const CONCURRENT_NOISE: f64 = 50.0;

impl Criteria {
    /// Judges a trial. The criteria of each test are those of its section.
    pub fn judge(
        &self,
        test: Test,
        load: u64,
        input: &ConnectionsInput,
        output: &ConnectionsOutput,
    ) -> Vec<CriterionValue> {
        let ratio = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let reached = output.reached(input.unit);
        let missed = (1.0 - reached / (load as f64).max(1e-9)).max(0.0);
        let mut values = vec![(
            Criterion::FailedTransactions,
            ratio(output.failed, output.transactions_attempted.max(output.failed)),
            self.failed,
        )];
        if test != Test::Throughput {
            let resets = ratio(output.resets, output.attempted.max(output.resets));
            values.push((Criterion::UnexpectedResets, resets, self.resets));
        }
        if test != Test::Mix {
            let deviation = rate_deviation(input, output);
            values.push((Criterion::RateDeviation, deviation, self.rate_deviation));
        }
        if matches!(test, Test::Connections | Test::Throughput | Test::Latency) {
            let deviation = deviation(&output.series.concurrent, CONCURRENT_NOISE);
            values.push((Criterion::ConcurrentDeviation, deviation, self.concurrent_deviation));
        }
        values.push((Criterion::TargetMissed, missed, self.rate_deviation));
        let value = |(criterion, value, limit): (Criterion, f64, f64)| CriterionValue {
            criterion,
            value,
            limit,
            is_met: value < limit,
        };
        values.into_iter().map(value).collect()
    }
}

/// Returns the largest deviation of the forwarding rate as a fraction of its mean. A connection more
/// or less in an interval does not count, because a low rate is not divisible.
fn rate_deviation(input: &ConnectionsInput, output: &ConnectionsOutput) -> f64 {
    let series = &output.series;
    let largest = input.classes.iter().map(|class| class.object_bytes()).max().unwrap_or(0);
    if series.payload_bytes.iter().all(|&bytes| bytes == 0) {
        return 1.0;
    }
    if input.unit != LoadUnit::ConcurrentConnections {
        return deviation(&series.payload_bytes, largest as f64);
    }
    // A connection that is held sends one request in each think time.
    let period = input.think_time.as_secs_f64() / series.interval_s.max(1e-9);
    let period = (period.round() as usize).max(1);
    let sums: Vec<u64> =
        series.payload_bytes.windows(period).map(|window| window.iter().sum()).collect();
    deviation(&sums, largest as f64)
}

/// Returns the largest difference from the mean beyond `noise`, as a fraction of the mean.
fn deviation(values: &[u64], noise: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    let difference = values.iter().map(|&value| (value as f64 - mean).abs()).fold(0.0, f64::max);
    (difference - noise).max(0.0) / mean.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_relative_to_the_mean_beyond_the_noise() {
        assert!((deviation(&[100, 104, 96], 0.0) - 0.04).abs() < 1e-12);
        assert!((deviation(&[100, 104, 96], 3.0) - 0.01).abs() < 1e-12);
        assert_eq!((deviation(&[5, 6, 4], 2.0), deviation(&[], 0.0)), (0.0, 0.0));
        assert_eq!(deviation(&[0, 0], 0.0), 0.0);
    }
}
