//! What is measured of flows and received frames.

use super::packet::MetricTag;
use super::ports::Names;
use super::problems::{ConfigError, Problems, unsupported};
use crate::proto::egress_only_tracking_filter::choice::Enum as Filter;
use crate::proto::egress_only_tracking_tx_offset::choice::Enum as TxOffset;
use crate::proto::flow_latency_metrics::mode::Enum as Mode;
use crate::proto::flow_rx_tx_ratio::choice::Enum as Ratio;
use crate::proto::{Config, FlowMetrics};

/// What is measured of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricSettings {
    /// Whether the flow has metrics at all. Its frames then carry signatures.
    pub enabled: bool,
    /// Whether to report the loss.
    pub loss: bool,
    /// Whether to report the times of the first and the last frame.
    pub timestamps: bool,
    /// Latency to report.
    pub latency: Option<LatencyMode>,
    /// Expected frames received per frame sent, for the loss.
    pub rx_tx_ratio: RxTxRatio,
    /// Whether to report the metrics for each receiving port.
    pub per_rx_port: bool,
}

/// What latency is (RFC 1242 section 3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyMode {
    /// From the last bit sent to the first bit received.
    StoreForward,
    /// From the first bit sent to the first bit received.
    CutThrough,
}

/// Expected frames received per frame sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RxTxRatio {
    /// This number.
    Value(f32),
    /// The number of receiving ports.
    RxPorts,
}

impl Default for RxTxRatio {
    fn default() -> Self {
        Self::Value(1.0)
    }
}

/// Counts received frames of a port by their bits, whoever sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressTracking {
    /// Index of the receiving port.
    pub port: usize,
    /// Bits to count by.
    pub tags: Vec<EgressTag>,
    /// Whether to report the times of the first and the last frame.
    pub timestamps: bool,
}

/// Bits to count received frames by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressTag {
    /// Bits of the received frame.
    pub rx: MetricTag,
    /// Offset in bits of the same field in the frame as it was sent, if it moves.
    pub tx_bit_offset: Option<usize>,
}

/// Reads the metrics of a flow.
pub(super) fn read(
    metrics: Option<&FlowMetrics>,
    path: &str,
) -> Result<MetricSettings, ConfigError> {
    let Some(metrics) = metrics else { return Ok(MetricSettings::default()) };
    let latency = metrics.latency.as_ref().filter(|latency| latency.enable());
    let rx_tx_ratio = match &metrics.rx_tx_ratio {
        None => RxTxRatio::default(),
        Some(ratio) if ratio.choice() == Ratio::RxCount => RxTxRatio::RxPorts,
        Some(ratio) => match ratio.value.unwrap_or(1.0) {
            value if value > 0.0 && value.is_finite() => RxTxRatio::Value(value),
            value => {
                let message = format!("found {value}, expected more than 0");
                return Err(ConfigError::new(format!("{path}.rx_tx_ratio.value"), message));
            }
        },
    };
    Ok(MetricSettings {
        enabled: metrics.enable(),
        loss: metrics.loss(),
        timestamps: metrics.timestamps(),
        latency: latency.map(|latency| match latency.mode() {
            Mode::CutThrough => LatencyMode::CutThrough,
            Mode::StoreForward | Mode::Unspecified => LatencyMode::StoreForward,
        }),
        rx_tx_ratio,
        per_rx_port: metrics.predefined_metric_tags.as_ref().is_some_and(|tags| tags.rx_name()),
    })
}

/// Reads the tracking of received frames.
pub(super) fn egress_tracking(
    config: &Config,
    ports: &Names,
    problems: &mut Problems,
) -> Vec<EgressTracking> {
    let mut trackings = Vec::with_capacity(config.egress_only_tracking.len());
    for (index, tracking) in config.egress_only_tracking.iter().enumerate() {
        let path = format!("egress_only_tracking[{index}]");
        for (index, filter) in tracking.filters.iter().enumerate() {
            if filter.choice() == Filter::AutoMacsec {
                problems.error(unsupported(format!("{path}.filters[{index}].auto_macsec")));
            }
        }
        let tags = tracking.metric_tags.iter().enumerate().filter_map(|(index, tag)| {
            let bit_length = tag.length.unwrap_or(1) as usize;
            if !(1..=128).contains(&bit_length) {
                let path = format!("{path}.metric_tags[{index}].length");
                let message = format!("found {bit_length}, expected 1 to 128");
                problems.error(ConfigError::new(path, message));
                return None;
            }
            let custom = tag.tx_offset.as_ref().filter(|it| it.choice() == TxOffset::Custom);
            let tx_offset = custom.and_then(|offset| offset.custom.as_ref());
            Some(EgressTag {
                rx: MetricTag {
                    name: tag.name().to_owned(),
                    bit_offset: tag.rx_offset() as usize,
                    bit_length,
                },
                tx_bit_offset: tx_offset.map(|offset| offset.value() as usize),
            })
        });
        let tags = tags.collect();
        let port = ports.port(tracking.port_name(), format!("{path}.port_name"));
        if let Some(port) = problems.take(port) {
            let timestamps = tracking.enable_timestamps();
            trackings.push(EgressTracking { port, tags, timestamps });
        }
    }
    trackings
}
