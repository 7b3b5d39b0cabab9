//! Measurements of a flow, merged over all its receiving ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_engine::measure::DelayRecord;

use super::{DistributionReport, MeasuredReport, SeriesReport};

/// Measurement of a flow at all its receiving ports. Delays are merged from the buckets of each
/// distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TotalReport {
    /// Distinct frames received.
    pub received: u64,
    /// Bytes received without FCS, duplicates included.
    pub received_bytes: u64,
    /// Duplicates (RFC 5560).
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent in frames at any port (RFC 4737 section 4.2).
    #[serde(default)]
    pub reordering_extent_max: u64,
    /// Received frames per second.
    pub pps: f64,
    /// One-way delay.
    pub delay: DistributionReport,
    /// Inter-packet delay variation between frames that arrived at the same port (RFC 5481 section
    /// 4.1); null in results of earlier versions.
    #[serde(default)]
    pub ipdv: Option<DistributionReport>,
    /// Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); maximum of all ports.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Each delay is right to this many nanoseconds if the assumptions of the comparisons hold; null
    /// if no clocks were compared.
    pub half_width_ns: Option<f64>,
    /// Each delay is right to this many nanoseconds in any case; null if it is `half_width_ns`.
    pub bound_ns: Option<f64>,
    /// Time series; null if a port has none. Reordering and variation apply within the ports.
    /// Frames are `missing` here if they arrived at none of the ports. Intervals have delays if all
    /// ports measured them.
    #[serde(default)]
    pub series: Option<SeriesReport>,
}

impl TotalReport {
    /// Merges the measurements of several receiving ports; `None` for a single one.
    pub fn of(measured: &[MeasuredReport]) -> Option<Self> {
        if measured.len() < 2 {
            return None;
        }
        let sum = |value: fn(&MeasuredReport) -> u64| measured.iter().map(value).sum();
        let most_of =
            |value: fn(&MeasuredReport) -> u64| measured.iter().map(value).max().unwrap_or(0);
        let one_way = || measured.iter().filter_map(|it| it.one_way.as_ref());
        let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
        Some(Self {
            received: sum(|it| it.received),
            received_bytes: sum(|it| it.received_bytes),
            duplicated: sum(|it| it.duplicated),
            reordered: sum(|it| it.reordered),
            reordering_extent_max: most_of(|it| it.reordering_extent_max),
            pps: measured.iter().map(|it| it.pps).sum(),
            delay: merged(measured.iter().map(|it| &it.delay)),
            ipdv: Some(merged(measured.iter().map(|it| &it.ipdv))),
            jitter_ns: most_of(|it| it.jitter_ns),
            half_width_ns: most(&mut one_way().map(|it| it.half_width_ns)),
            bound_ns: most(&mut one_way().filter_map(|it| it.bound_ns)),
            series: SeriesReport::merged(measured.iter().map(|it| it.series.as_ref())),
        })
    }
}

/// Merges distributions by their buckets. Count, minimum, mean and maximum are exact.
fn merged<'a>(reports: impl Iterator<Item = &'a DistributionReport> + Clone) -> DistributionReport {
    let mut record = DelayRecord::default();
    for report in reports.clone() {
        let (min, max) = (report.min_ns.unwrap_or(0), report.max_ns.unwrap_or(0));
        for &(start, count) in &report.buckets {
            record.note_many(start.clamp(min, max.max(min)), count);
        }
    }
    let sum: f64 = reports.clone().filter_map(|it| Some(it.mean_ns? * it.count as f64)).sum();
    let count: u64 = reports.clone().map(|it| it.count).sum();
    DistributionReport {
        count,
        min_ns: reports.clone().filter_map(|it| it.min_ns).min(),
        mean_ns: (count > 0).then(|| sum / count as f64),
        max_ns: reports.filter_map(|it| it.max_ns).max(),
        ..record.delays().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::OneWayReport;

    fn measured(delays: &[i64], half_width_ns: f64) -> MeasuredReport {
        let mut record = DelayRecord::default();
        delays.iter().for_each(|delay| record.note(*delay));
        MeasuredReport {
            received: delays.len() as u64,
            pps: 10.0,
            delay: record.delays().into(),
            one_way: Some(OneWayReport {
                half_width_ns,
                bound_ns: Some(2.0 * half_width_ns),
                ..OneWayReport::default()
            }),
            ..MeasuredReport::default()
        }
    }

    #[test]
    fn delays_of_all_receivers_are_merged_and_not_averaged() {
        let few = measured(&[-50, 1_000], 100.0);
        let many = measured(&[3_000; 98], 300.0);
        assert_eq!(TotalReport::of(std::slice::from_ref(&few)), None);
        let total = TotalReport::of(&[few, many]).unwrap();
        assert_eq!((total.received, total.pps), (100, 20.0));
        let DistributionReport { count, min_ns, mean_ns, p50_ns, max_ns, .. } = total.delay;
        assert_eq!((count, min_ns, max_ns), (100, Some(-50), Some(3_000)));
        assert!((mean_ns.unwrap() - 2_949.5).abs() < 1e-6, "{mean_ns:?}");
        assert!((p50_ns.unwrap() - 3_000).abs() < 60, "{p50_ns:?}");
        assert_eq!((total.half_width_ns, total.bound_ns), (Some(300.0), Some(600.0)));
    }

    #[test]
    fn variation_and_reordering_of_all_receivers_are_merged() {
        let with = |extent: u64, jitter_ns: u64, ipdv: &[i64]| MeasuredReport {
            reordering_extent_max: extent,
            jitter_ns,
            ipdv: measured(ipdv, 0.0).delay,
            series: Some(SeriesReport { interval_s: 1.0, ..SeriesReport::default() }),
            ..MeasuredReport::default()
        };
        let total = TotalReport::of(&[with(2, 9, &[-4, 4]), with(5, 3, &[8])]).unwrap();
        assert_eq!((total.reordering_extent_max, total.jitter_ns), (5, 9));
        let ipdv = total.ipdv.unwrap();
        assert_eq!((ipdv.count, ipdv.min_ns, ipdv.max_ns), (3, Some(-4), Some(8)));
        assert!(total.series.is_some());
        // A total without the series of a port would miss its frames.
        let total = TotalReport::of(&[with(2, 9, &[]), MeasuredReport::default()]).unwrap();
        assert_eq!(total.series, None);
    }

    #[test]
    fn results_of_earlier_versions_are_read() {
        let mut earlier = serde_json::to_value(TotalReport::default()).unwrap();
        for later in ["reordering_extent_max", "ipdv", "jitter_ns", "series"] {
            assert!(earlier.as_object_mut().unwrap().remove(later).is_some(), "{later}");
        }
        let total: TotalReport = serde_json::from_value(earlier).unwrap();
        assert_eq!(total, TotalReport::default());
    }

    #[test]
    fn receivers_without_delays_have_none_together() {
        let total = TotalReport::of(&[MeasuredReport::default(), MeasuredReport::default()]);
        let delay = total.unwrap().delay;
        assert_eq!((delay.count, delay.mean_ns, delay.min_ns), (0, None, None));
    }
}
