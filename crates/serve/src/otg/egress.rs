//! Counters of all frames that arrive at ports, by bits of the frames: `egress_only_tracking`.

use std::sync::Arc;

use wirestorm_control::arrivals::{ArrivalsByValue, ValueArrivals};
use wirestorm_otg::lower::EgressTracking;
use wirestorm_otg::proto::{
    EgressOnlyTrackingMetric, EgressOnlyTrackingMetricTag, EgressOnlyTrackingMetricsRequest,
    EgressOnlyTrackingTaggedMetric, EgressOnlyTrackingTimestamp,
    egress_only_tracking_tagged_metrics_filter::metric_names::Enum as MetricName,
};

use super::error::OtgError;
use super::metrics::{FCS, l1_bits};
use super::session::LoadedPort;
use crate::server::{CaptureGuard, Identity, Server};

/// Counters of the tracked ports.
#[derive(Default)]
pub(super) struct Egress(Vec<TrackedPort>);

struct TrackedPort {
    tracking: EgressTracking,
    counters: ArrivalsByValue,
    _guard: CaptureGuard,
}

impl Egress {
    /// Counts from now on.
    ///
    /// # Errors
    /// The frames of a port are not available.
    pub(super) fn start(
        server: &Arc<Server>,
        user: &Identity,
        tracked: &[EgressTracking],
        ports: &[LoadedPort],
    ) -> Result<Self, OtgError> {
        let mut started = Vec::with_capacity(tracked.len());
        for tracking in tracked {
            let location = &ports[tracking.port].location;
            let guard = server.begin_capture(user, location)?;
            let bits = tracking.tags.iter().map(|tag| tag.bits()).collect();
            let counters = ArrivalsByValue::start(&guard.interface, bits)
                .map_err(|error| OtgError::invalid(format!("{location}: {error}")))?;
            started.push(TrackedPort { tracking: tracking.clone(), counters, _guard: guard });
        }
        Ok(Self(started))
    }

    /// Sets all counters to zero.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|it| it.counters.clear());
    }

    /// Returns the metrics of ports by the names of all ports; of all tracked ports if the request
    /// names none.
    ///
    /// # Errors
    /// The request names a port that is not tracked.
    pub(super) fn metrics(
        &self,
        request: &EgressOnlyTrackingMetricsRequest,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<EgressOnlyTrackingMetric>, OtgError> {
        let wanted = &request.port_names;
        let is_tracked =
            |wanted: &&String| self.0.iter().any(|it| name(it.tracking.port) == **wanted);
        if let Some(unknown) = wanted.iter().find(|wanted| !is_tracked(wanted)) {
            let message = format!(
                "egress_only_tracking.port_names: found {unknown:?}, which has no tracking"
            );
            return Err(OtgError::invalid(message));
        }
        let filter = request.tagged_metrics.clone().unwrap_or_default();
        let names: Vec<MetricName> = filter.metric_names().collect();
        let metric = |it: &TrackedPort| {
            let values = it.counters.values();
            let of_values = values.iter().map(|of| metric(&it.tracking, of, &names));
            EgressOnlyTrackingMetric {
                port_rx: Some(name(it.tracking.port)),
                tagged_metrics: of_values.chain(of_others(it)).collect(),
            }
        };
        let is_wanted =
            |it: &&TrackedPort| wanted.is_empty() || wanted.contains(&name(it.tracking.port));
        Ok(self.0.iter().filter(is_wanted).map(metric).collect())
    }
}

/// Returns the metrics of the frames without values, if there are any.
fn of_others(port: &TrackedPort) -> Option<EgressOnlyTrackingTaggedMetric> {
    let frames = port.counters.without_values();
    let tags = port.tracking.tags.iter().map(|tag| EgressOnlyTrackingMetricTag {
        name: Some(tag.name.clone()),
        // Clients check that a value is hexadecimal.
        value: None,
    });
    (frames > 0).then(|| EgressOnlyTrackingTaggedMetric {
        tags: tags.collect(),
        frames_rx: Some(frames),
        ..EgressOnlyTrackingTaggedMetric::default()
    })
}

/// Returns the metrics of one combination of values: those with these names, or all.
fn metric(
    tracking: &EgressTracking,
    of: &ValueArrivals,
    names: &[MetricName],
) -> EgressOnlyTrackingTaggedMetric {
    let has = |name: MetricName| names.is_empty() || names.contains(&name);
    let rate = |name: MetricName, value: f64| has(name).then_some(value as f32);
    let tags =
        tracking.tags.iter().zip(&of.values).map(|(tag, value)| EgressOnlyTrackingMetricTag {
            name: Some(tag.name.clone()),
            value: Some(format!("{value:#x}")),
        });
    let bytes_rate = of.bytes_rate + FCS as f64 * of.frames_rate;
    EgressOnlyTrackingTaggedMetric {
        tags: tags.collect(),
        frames_rx: has(MetricName::FramesRx).then_some(of.frames),
        bytes_rx: has(MetricName::BytesRx).then_some(of.bytes + FCS * of.frames),
        frames_rx_rate: rate(MetricName::FramesRxRate, of.frames_rate),
        timestamps: tracking.timestamps.then_some(EgressOnlyTrackingTimestamp {
            first_timestamp_ns: Some(of.first_unix_ns as f64),
            last_timestamp_ns: Some(of.last_unix_ns as f64),
        }),
        rx_l1_rate_bps: rate(MetricName::RxL1RateBps, l1_bits(of.bytes_rate, of.frames_rate)),
        rx_rate_bytes: rate(MetricName::RxRateBytes, bytes_rate),
        rx_rate_bps: rate(MetricName::RxRateBps, bytes_rate * 8.0),
        rx_rate_kbps: rate(MetricName::RxRateKbps, bytes_rate * 8e-3),
        rx_rate_mbps: rate(MetricName::RxRateMbps, bytes_rate * 8e-6),
        // Frames of any sender count.
        tx_metrics: None,
    }
}
