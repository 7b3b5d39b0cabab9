//! Key performance indicators of the sustain phase (RFC 9411 section 6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connections::ConnectionsOutput;
use crate::distribution::Distribution;

/// Key performance indicators of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Kpis {
    /// TCP connections established per second.
    pub connections_per_s: Summary,
    /// Application transactions per second.
    pub transactions_per_s: Summary,
    /// Completed TLS handshakes per second, on average.
    pub tls_handshakes_per_s: f64,
    /// Inspected throughput in bit/s of layer 2 with FCS, in both directions.
    pub throughput_bps: Summary,
    /// Goodput in bit/s of TCP payload in both directions, on average.
    pub goodput_bps: f64,
    /// Concurrent TCP connections.
    pub concurrent: Summary,
    /// Time from the SYN to the first packet of application data; null without a transaction.
    pub time_to_first_byte: Option<TimeSummary>,
    /// Time from the SYN to the last packet of application data of the first transaction.
    pub time_to_last_byte: Option<TimeSummary>,
    /// Time from the request to the last packet of application data of later transactions of a
    /// connection; null with one transaction for each connection.
    pub response_time: Option<TimeSummary>,
}

/// Minimum, mean and maximum over the intervals of the sustain phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Summary {
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

/// Statistics of times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimeSummary {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min_ns: i64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Maximum.
    pub max_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 90th percentile.
    pub p90_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// 99.9th percentile.
    pub p99_9_ns: i64,
}

impl Kpis {
    /// Computes the indicators of a trial.
    pub fn new(output: &ConnectionsOutput) -> Self {
        let seconds = output.sustain_s.max(1e-9);
        let per_second = |count: u64| count as f64 / seconds;
        let series = &output.series;
        let interval = series.interval_s.max(1e-9);
        // Intervals count payload; headers add the same factor to each.
        let factor = output.layer_2_bytes as f64 * 8.0 / output.payload_bytes.max(1) as f64;
        let bits = series.payload_bytes.iter().map(|&bytes| bytes as f64 * factor / interval);
        let bits: Vec<f64> = bits.collect();
        let counts: Vec<f64> = series.concurrent.iter().map(|&count| count as f64).collect();
        let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        Self {
            connections_per_s: Summary::new(
                per_second(output.established),
                &series.established_per_s,
            ),
            transactions_per_s: Summary::new(
                per_second(output.transactions),
                &series.transactions_per_s,
            ),
            tls_handshakes_per_s: per_second(output.tls_handshakes),
            throughput_bps: Summary::new(per_second(output.layer_2_bytes) * 8.0, &bits),
            goodput_bps: per_second(output.payload_bytes) * 8.0,
            concurrent: Summary::new(mean, &counts),
            time_to_first_byte: TimeSummary::new(&output.time_to_first_byte),
            time_to_last_byte: TimeSummary::new(&output.time_to_last_byte),
            response_time: TimeSummary::new(&output.response_time),
        }
    }
}

impl Summary {
    /// Creates a summary of a mean and values around it; without values all three are the mean.
    fn new(mean: f64, values: &[f64]) -> Self {
        let all = || values.iter().copied();
        let (min, max) = (all().fold(mean, f64::min), all().fold(mean, f64::max));
        Self { min, mean, max }
    }
}

impl TimeSummary {
    fn new(times: &Distribution) -> Option<Self> {
        let quantile = |part| times.quantile(part);
        Some(Self {
            count: times.count,
            min_ns: times.min_ns,
            mean_ns: times.mean_ns,
            max_ns: times.max_ns,
            p50_ns: quantile(0.5)?,
            p90_ns: quantile(0.9)?,
            p99_ns: quantile(0.99)?,
            p99_9_ns: quantile(0.999)?,
        })
    }
}
