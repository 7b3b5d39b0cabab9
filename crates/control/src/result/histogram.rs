//! Histograms and distributions of values in nanoseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::histogram::{Histogram, bucket_of};
use wirestorm_base::time::Duration;
use wirestorm_engine::measure::{Distribution, PacketDelayVariation};

/// Histogram in nanoseconds. Quantiles are null if the histogram is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HistogramReport {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// Maximum.
    pub max_ns: Option<u64>,
    /// Lower bound and count of each non-empty bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// Distribution of signed values in nanoseconds. Statistics are null if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DistributionReport {
    /// Number of values.
    pub count: u64,
    /// Minimum.
    pub min_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 90th percentile.
    pub p90_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<i64>,
    /// 99.99th percentile.
    pub p99_99_ns: Option<i64>,
    /// Maximum.
    pub max_ns: Option<i64>,
    /// Lower bound and count of each non-empty bucket.
    pub buckets: Vec<(i64, u64)>,
}

/// Packet delay variation: delay minus the minimum delay, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariationReport {
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<i64>,
    /// Maximum.
    pub max_ns: Option<i64>,
}

impl HistogramReport {
    /// Returns the summary of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        let quantile = |q| histogram.quantile(q).map(Duration::as_nanos);
        Self {
            count: histogram.count(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
            max_ns: (histogram.count() > 0).then(|| histogram.max().as_nanos()),
            buckets: histogram.buckets().map(|(start, count)| (start.as_nanos(), count)).collect(),
        }
    }

    /// Merges the buckets of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let mut both = Histogram::new();
        for report in [&*self, other] {
            for &(start, count) in &report.buckets {
                both.add_bucket(bucket_of(start), count);
            }
            both.note_max(Duration::from_nanos(report.max_ns.unwrap_or(0)));
        }
        *self = Self::new(&both);
    }
}

impl From<&Distribution> for DistributionReport {
    fn from(values: &Distribution) -> Self {
        Self {
            count: values.count(),
            min_ns: values.min(),
            mean_ns: values.mean(),
            p50_ns: values.quantile(0.5),
            p90_ns: values.quantile(0.9),
            p99_ns: values.quantile(0.99),
            p99_9_ns: values.quantile(0.999),
            p99_99_ns: values.quantile(0.9999),
            max_ns: values.max(),
            buckets: values.buckets().collect(),
        }
    }
}

impl From<&PacketDelayVariation> for VariationReport {
    fn from(values: &PacketDelayVariation) -> Self {
        Self {
            mean_ns: values.mean(),
            p50_ns: values.quantile(0.5),
            p99_ns: values.quantile(0.99),
            p99_9_ns: values.quantile(0.999),
            max_ns: values.max(),
        }
    }
}
