//! Tagged metrics: counters of a flow by bits of its frames, and by receiving port.

use wirestorm_control::result::{MeasuredReport, ValuesReport};
use wirestorm_otg::lower::FlowSettings;
use wirestorm_otg::proto::flow_metric_tag_value::choice::Enum as ValueChoice;
use wirestorm_otg::proto::{
    FlowMetricTag, FlowMetricTagValue, FlowTaggedMetric, FlowTaggedMetricsFilter, MetricLatency,
    MetricTimestamp,
};

use super::metrics::FCS;

/// Name of the tag with the receiving port.
const RX_NAME: &str = "rx_name";

/// Returns the tagged metrics of a flow: from its measurement at each receiving port, for the tags
/// that pass the filter. Without tags there are none.
pub(super) fn metrics(
    settings: &FlowSettings,
    measured: &[MeasuredReport],
    filter: &FlowTaggedMetricsFilter,
) -> Vec<FlowTaggedMetric> {
    if filter.include == Some(false) {
        return Vec::new();
    }
    let mut metrics = Vec::new();
    for report in measured {
        let port = settings.metrics.per_rx_port.then(|| text_tag(&report.port));
        if report.values.is_empty()
            && let Some(port) = &port
        {
            metrics.push(FlowTaggedMetric {
                tags: vec![port.clone()],
                frames_rx: Some(report.received),
                bytes_rx: Some(report.received_bytes + FCS * report.received),
                ..FlowTaggedMetric::default()
            });
        }
        for values in &report.values {
            metrics.push(metric(settings, values, port.clone()));
        }
    }
    metrics.retain(|metric| passes(metric, filter));
    metrics
}

fn metric(
    settings: &FlowSettings,
    counted: &ValuesReport,
    port: Option<FlowMetricTag>,
) -> FlowTaggedMetric {
    let tags = settings.tags.iter().chain(&settings.egress_tags).zip(&counted.values);
    let tags = tags.map(|(tag, value)| FlowMetricTag {
        name: Some(tag.name.clone()),
        value: Some(FlowMetricTagValue {
            choice: Some(ValueChoice::Hex.into()),
            hex: Some(value.clone()),
            str: None,
        }),
    });
    let latency = settings.metrics.latency.map(|_| MetricLatency {
        minimum_ns: Some(counted.delay_min_ns as f64),
        maximum_ns: Some(counted.delay_max_ns as f64),
        average_ns: Some(counted.delay_mean_ns),
    });
    let timestamps = settings.metrics.timestamps.then_some(MetricTimestamp {
        first_timestamp_ns: Some(counted.first_unix_ns as f64),
        last_timestamp_ns: Some(counted.last_unix_ns as f64),
    });
    FlowTaggedMetric {
        tags: tags.chain(port).collect(),
        frames_rx: Some(counted.packets),
        bytes_rx: Some(counted.bytes + FCS * counted.packets),
        timestamps,
        latency,
        ..FlowTaggedMetric::default()
    }
}

fn text_tag(port: &str) -> FlowMetricTag {
    let value = FlowMetricTagValue {
        choice: Some(ValueChoice::Str.into()),
        hex: None,
        str: Some(port.to_owned()),
    };
    FlowMetricTag { name: Some(RX_NAME.to_owned()), value: Some(value) }
}

/// Returns whether a metric has a value of the filter for each tag that the filter names.
fn passes(metric: &FlowTaggedMetric, filter: &FlowTaggedMetricsFilter) -> bool {
    filter.filters.iter().all(|wanted| {
        let tag = metric.tags.iter().find(|tag| tag.name == wanted.name);
        let value = tag.and_then(|tag| tag.value.as_ref());
        value.is_some_and(|value| {
            let mut values = wanted.values.iter();
            wanted.values.is_empty() || values.any(|wanted| is_value(value, wanted))
        })
    })
}

/// Returns whether a value is the one of a filter: a text, or a number with or without `0x`.
fn is_value(value: &FlowMetricTagValue, wanted: &str) -> bool {
    let number = |text: &str| {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        u128::from_str_radix(digits.unwrap_or(text), 16).ok()
    };
    match (&value.hex, &value.str) {
        (Some(hex), _) => number(hex).is_some() && number(hex) == number(wanted),
        (None, Some(text)) => text == wanted,
        (None, None) => false,
    }
}
