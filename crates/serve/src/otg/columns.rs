//! The metrics that a request names: others are left out. Without names, all are given.

use wirestorm_otg::proto::flow_metrics_request::metric_names::Enum as OfFlow;
use wirestorm_otg::proto::lag_metrics_request::column_names::Enum as OfLag;
use wirestorm_otg::proto::port_metrics_request::column_names::Enum as OfPort;
use wirestorm_otg::proto::{FlowMetric, LagMetric, PortMetric};

/// Leaves out the fields of a metric whose names are not wanted.
macro_rules! keep {
    ($metric:ident, $names:ident: $type:ident, $($field:ident $name:ident),+) => {
        if !$names.is_empty() {
            $(if !$names.contains(&$type::$name) {
                $metric.$field = None;
            })+
        }
    };
}

/// Keeps the named metrics of a flow. Loss, delays, time stamps and tags have no names.
pub(super) fn of_flow(metric: &mut FlowMetric, names: &[OfFlow]) {
    keep!(
        metric, names: OfFlow,
        transmit Transmit, frames_tx FramesTx, frames_rx FramesRx, bytes_tx BytesTx,
        bytes_rx BytesRx, frames_tx_rate FramesTxRate, frames_rx_rate FramesRxRate,
        tx_l1_rate_bps TxL1RateBps, rx_l1_rate_bps RxL1RateBps, tx_rate_bytes TxRateBytes,
        rx_rate_bytes RxRateBytes, tx_rate_bps TxRateBps, rx_rate_bps RxRateBps,
        tx_rate_kbps TxRateKbps, rx_rate_kbps RxRateKbps, tx_rate_mbps TxRateMbps,
        rx_rate_mbps RxRateMbps
    );
}

/// Keeps the named metrics of a port.
pub(super) fn of_port(metric: &mut PortMetric, names: &[OfPort]) {
    keep!(
        metric, names: OfPort,
        transmit Transmit, location Location, link Link, capture Capture, frames_tx FramesTx,
        frames_rx FramesRx, bytes_tx BytesTx, bytes_rx BytesRx, frames_tx_rate FramesTxRate,
        frames_rx_rate FramesRxRate, bytes_tx_rate BytesTxRate, bytes_rx_rate BytesRxRate,
        last_change LastChange, speed Speed
    );
}

/// Keeps the named metrics of a link aggregation group.
pub(super) fn of_lag(metric: &mut LagMetric, names: &[OfLag]) {
    keep!(
        metric, names: OfLag,
        oper_status OperStatus, member_ports_up MemberPortsUp, frames_tx FramesTx,
        frames_rx FramesRx, bytes_tx BytesTx, bytes_rx BytesRx, frames_tx_rate FramesTxRate,
        frames_rx_rate FramesRxRate, bytes_tx_rate BytesTxRate, bytes_rx_rate BytesRxRate
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_metrics_remain() {
        let all = FlowMetric {
            name: Some("flow".to_owned()),
            frames_tx: Some(1),
            frames_rx: Some(2),
            loss: Some(0.5),
            ..FlowMetric::default()
        };
        let mut named = all.clone();
        of_flow(&mut named, &[OfFlow::FramesRx]);
        assert_eq!(named, FlowMetric { frames_tx: None, ..all.clone() });
        let mut unnamed = all.clone();
        of_flow(&mut unnamed, &[]);
        assert_eq!(unnamed, all);
    }
}
