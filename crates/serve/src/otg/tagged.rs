//! Tagged metrics: counters of a flow by bits of its frames, and by receiving port.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use wirestorm_control::result::{MeasuredReport, ValuesReport};
use wirestorm_otg::lower::FlowSettings;
use wirestorm_otg::proto::flow_metric_tag_value::choice::Enum as ValueChoice;
use wirestorm_otg::proto::{
    FlowMetricTag, FlowMetricTagValue, FlowTaggedMetric, FlowTaggedMetricsFilter, MetricLatency,
    MetricTimestamp,
};

use super::metrics::{FCS, l1_bits};
use super::sent_values::SentCount;

/// Name of the tag with the receiving port.
const RX_NAME: &str = "rx_name";

/// Minimum time between two samples for a rate; a rate covers one to two of it.
const RATE_INTERVAL: Duration = Duration::from_millis(500);

/// Counters of a flow by tags.
#[derive(Default)]
pub(super) struct TagCounters {
    /// Measurement at each receiving port, or that of all of them.
    pub(super) measured: Vec<MeasuredReport>,
    /// Received frames and bytes per second, by port and values.
    pub(super) rates: BTreeMap<TagKey, [f64; 2]>,
    /// Sent frames by values; empty if they are not known.
    pub(super) sent: BTreeMap<Vec<String>, SentCount>,
    /// Frames and bytes per second that the flow sends.
    pub(super) sent_rates: [f64; 2],
}

/// Receiving port and values of the tags.
pub(super) type TagKey = (String, Vec<String>);

/// Received frames and bytes by tags at two times, for rates.
#[derive(Default)]
pub(super) struct TagSamples([Option<(Instant, TagCounts)>; 2]);

/// Received frames and bytes by tags.
type TagCounts = BTreeMap<TagKey, [u64; 2]>;

impl TagSamples {
    /// Takes a sample. Returns the rates since the earlier ones; they are 0 if the flow does not
    /// send.
    pub(super) fn rates(
        &mut self,
        measured: &[MeasuredReport],
        is_sending: bool,
    ) -> BTreeMap<TagKey, [f64; 2]> {
        let counts = measured.iter().flat_map(|report| {
            let count = |values: &ValuesReport| {
                let key = (report.port.clone(), values.values.clone());
                (key, [values.packets, values.bytes])
            };
            let all = ((report.port.clone(), Vec::new()), [report.received, report.received_bytes]);
            report.values.iter().map(count).chain([all])
        });
        let now = (Instant::now(), counts.collect::<TagCounts>());
        let [before, recent] = &mut self.0;
        let elapsed = |earlier: &Instant| now.0.duration_since(*earlier);
        let since = before.as_ref().or(recent.as_ref()).filter(|_| is_sending);
        let rates = now.1.iter().map(|(key, counts)| {
            let rate = since.map(|(at, before)| {
                let before = before.get(key).copied().unwrap_or_default();
                let seconds = elapsed(at).as_secs_f64().max(1e-3);
                [0, 1].map(|it| counts[it].saturating_sub(before[it]) as f64 / seconds)
            });
            (key.clone(), rate.unwrap_or_default())
        });
        let rates = rates.collect();
        if recent.as_ref().is_none_or(|(at, _)| elapsed(at) >= RATE_INTERVAL) {
            *before = recent.replace(now);
        }
        rates
    }
}

/// Returns the sum of the measurements at two ports, by values.
pub(super) fn merged(mut sum: MeasuredReport, other: MeasuredReport) -> MeasuredReport {
    sum.received += other.received;
    sum.received_bytes += other.received_bytes;
    for values in other.values {
        let Some(known) = sum.values.iter_mut().find(|it| it.values == values.values) else {
            sum.values.push(values);
            continue;
        };
        let (mine, theirs) = (known.packets as f64, values.packets as f64);
        known.delay_mean_ns =
            (known.delay_mean_ns * mine + values.delay_mean_ns * theirs) / (mine + theirs).max(1.0);
        known.packets += values.packets;
        known.bytes += values.bytes;
        known.first_unix_ns = known.first_unix_ns.min(values.first_unix_ns);
        known.last_unix_ns = known.last_unix_ns.max(values.last_unix_ns);
        known.delay_min_ns = known.delay_min_ns.min(values.delay_min_ns);
        known.delay_max_ns = known.delay_max_ns.max(values.delay_max_ns);
    }
    sum
}

/// Returns the tagged metrics of a flow for the tags that pass the filter. Without tags there are
/// none.
pub(super) fn metrics(
    settings: &FlowSettings,
    counters: &TagCounters,
    filter: &FlowTaggedMetricsFilter,
) -> Vec<FlowTaggedMetric> {
    if filter.include == Some(false) {
        return Vec::new();
    }
    let mut metrics = Vec::new();
    for report in &counters.measured {
        let port = settings.metrics.per_rx_port.then(|| text_tag(&report.port));
        let rate = |values: &[String]| {
            let key = (report.port.clone(), values.to_vec());
            counters.rates.get(&key).copied().unwrap_or_default()
        };
        if report.values.is_empty()
            && let Some(port) = &port
        {
            let mut metric = FlowTaggedMetric { tags: vec![port.clone()], ..Default::default() };
            set_received(&mut metric, [report.received, report.received_bytes], rate(&[]));
            metrics.push(metric);
        }
        for values in &report.values {
            let mut metric = metric(settings, values, port.clone());
            set_received(&mut metric, [values.packets, values.bytes], rate(&values.values));
            if let Some(sent) = counters.sent.get(&values.values) {
                set_sent(&mut metric, settings, sent, counters.sent_rates);
            }
            metrics.push(metric);
        }
        let is_missing =
            |values: &Vec<String>| !report.values.iter().any(|it| it.values == *values);
        for (values, sent) in counters.sent.iter().filter(|(values, _)| is_missing(values)) {
            if sent.frames > 0 {
                let tags = value_tags(settings, values).chain(port.clone()).collect();
                let mut metric = FlowTaggedMetric { tags, ..FlowTaggedMetric::default() };
                set_received(&mut metric, [0, 0], [0.0, 0.0]);
                set_sent(&mut metric, settings, sent, counters.sent_rates);
                metrics.push(metric);
            }
        }
    }
    metrics.retain(|metric| passes(metric, filter));
    metrics
}

/// Sets the counters of received frames, from frames and bytes without FCS.
fn set_received(
    metric: &mut FlowTaggedMetric,
    [frames, bytes]: [u64; 2],
    [frames_rate, bytes_rate]: [f64; 2],
) {
    let with_fcs = bytes_rate + FCS as f64 * frames_rate;
    metric.frames_rx = Some(frames);
    metric.bytes_rx = Some(bytes + FCS * frames);
    metric.frames_rx_rate = Some(frames_rate as f32);
    metric.rx_l1_rate_bps = Some(l1_bits(bytes_rate, frames_rate) as f32);
    metric.rx_rate_bytes = Some(with_fcs as f32);
    metric.rx_rate_bps = Some((with_fcs * 8.0) as f32);
    metric.rx_rate_kbps = Some((with_fcs * 8e-3) as f32);
    metric.rx_rate_mbps = Some((with_fcs * 8e-6) as f32);
}

/// Sets the counters of sent frames, and the loss.
fn set_sent(
    metric: &mut FlowTaggedMetric,
    settings: &FlowSettings,
    sent: &SentCount,
    [frames_rate, bytes_rate]: [f64; 2],
) {
    metric.frames_tx = Some(sent.frames);
    let frames_rate = frames_rate * sent.share;
    metric.frames_tx_rate = Some(frames_rate as f32);
    // Frames of several sizes have the values in any order.
    if let Some(bytes) = sent.bytes {
        let bytes_rate = bytes_rate * sent.share;
        let with_fcs = bytes_rate + FCS as f64 * frames_rate;
        metric.bytes_tx = Some(bytes + FCS * sent.frames);
        metric.tx_l1_rate_bps = Some(l1_bits(bytes_rate, frames_rate) as f32);
        metric.tx_rate_bytes = Some(with_fcs as f32);
        metric.tx_rate_bps = Some((with_fcs * 8.0) as f32);
        metric.tx_rate_kbps = Some((with_fcs * 8e-3) as f32);
        metric.tx_rate_mbps = Some((with_fcs * 8e-6) as f32);
    }
    if settings.metrics.loss {
        let lost = sent.frames.saturating_sub(metric.frames_rx()) as f64;
        metric.loss = Some((lost * 100.0 / (sent.frames as f64).max(1.0)) as f32);
    }
}

/// Returns the tags of a flow with these values.
fn value_tags<'a>(
    settings: &'a FlowSettings,
    values: &'a [String],
) -> impl Iterator<Item = FlowMetricTag> + 'a {
    let tags = settings.tags.iter().chain(&settings.egress_tags).zip(values);
    tags.map(|(tag, value)| FlowMetricTag {
        name: Some(tag.name.clone()),
        value: Some(FlowMetricTagValue {
            choice: Some(ValueChoice::Hex.into()),
            hex: Some(value.clone()),
            str: None,
        }),
    })
}

/// Returns the metric of received frames with the same values, without its counters.
fn metric(
    settings: &FlowSettings,
    counted: &ValuesReport,
    port: Option<FlowMetricTag>,
) -> FlowTaggedMetric {
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
        tags: value_tags(settings, &counted.values).chain(port).collect(),
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
