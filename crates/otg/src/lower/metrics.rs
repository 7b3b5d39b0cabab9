//! What is measured of flows.

use super::problems::ConfigError;
use crate::proto::FlowMetrics;
use crate::proto::flow_latency_metrics::mode::Enum as Mode;
use crate::proto::flow_rx_tx_ratio::choice::Enum as Ratio;

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
