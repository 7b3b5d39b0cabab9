//! Metrics of flows and ports.

use wirestorm_control::base::rate::Layer;
use wirestorm_control::{FlowSnapshot, MeasuredSnapshot};
use wirestorm_otg::proto::{
    FlowMetric, FlowMetricsRequest, FlowTaggedMetricsFilter, LagMetric, MetricLatency,
    MetricTimestamp, MetricsRequest, MetricsResponse, PortMetric, flow_metric, metrics_request,
    metrics_response, port_metric,
};

use super::columns;
use super::error::OtgError;
use super::session::{Loaded, Session};
use super::tagged;
use super::traffic::FlowState;

/// Bytes of the FCS of a frame, which the models count.
pub(super) const FCS: u64 = 4;
/// The models have the speed of a port in kilobytes per second.
const BITS_OF_KILOBYTE: u64 = 8_000;

/// Metrics of all flows and ports of a configuration, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    pub(crate) ports: Vec<PortTelemetry>,
    /// Also of flows whose metrics are not enabled; these have no metrics of the receiving side.
    pub(crate) flows: Vec<FlowMetric>,
    pub(crate) lags: Vec<LagMetric>,
}

/// Metrics of a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTelemetry {
    pub(crate) metric: PortMetric,
    /// Speed of the link in bits a second, if known.
    pub(crate) speed_bps: Option<u64>,
}

impl Session {
    /// Returns the metrics of all flows and ports, with tagged metrics if wanted; nothing without a
    /// configuration.
    pub(super) fn telemetry(&mut self, with_tags: bool) -> Telemetry {
        let Some(loaded) = self.loaded.as_mut() else { return Telemetry::default() };
        loaded.traffic.sample();
        loaded.links.update();
        let port = |index: usize| {
            let (_, speed_bps) = self.server.link(&loaded.ports[index].interface);
            PortTelemetry { metric: loaded.port_metric(index), speed_bps }
        };
        let every_tag = FlowTaggedMetricsFilter::default();
        let tags = with_tags.then_some(&every_tag);
        Telemetry {
            ports: (0..loaded.ports.len()).map(port).collect(),
            flows: (0..loaded.lowered.flows.len())
                .map(|index| loaded.flow_metric(index, tags))
                .collect(),
            lags: (0..loaded.lowered.lags.len()).map(|index| loaded.lag_metric(index)).collect(),
        }
    }

    /// Returns metrics.
    ///
    /// # Errors
    /// The request is not valid, or asks for metrics of protocols.
    pub(super) fn get_metrics(
        &mut self,
        request: &MetricsRequest,
    ) -> Result<MetricsResponse, OtgError> {
        use metrics_request::choice::Enum as Choice;
        let loaded = match self.loaded.as_mut() {
            Some(loaded) => loaded,
            // An empty configuration has no metrics.
            None => return Ok(MetricsResponse::default()),
        };
        loaded.traffic.sample();
        loaded.links.update();
        let mut response = MetricsResponse::default();
        match request.choice() {
            Choice::Flow => {
                let wanted = request.flow.clone().unwrap_or_default();
                response.choice = Some(metrics_response::choice::Enum::FlowMetrics.into());
                response.flow_metrics = loaded.flow_metrics(&wanted)?;
                let names: Vec<_> = wanted.metric_names().collect();
                response.flow_metrics.iter_mut().for_each(|it| columns::of_flow(it, &names));
            }
            Choice::Port => {
                let wanted = request.port.clone().unwrap_or_default();
                response.choice = Some(metrics_response::choice::Enum::PortMetrics.into());
                let names: Vec<_> = wanted.column_names().collect();
                for index in loaded.ports_wanted(&wanted.port_names)? {
                    let mut metric = loaded.port_metric(index);
                    let (_, speed_bps) = self.server.link(&loaded.ports[index].interface);
                    metric.speed = speed_bps.map(|bits| bits / BITS_OF_KILOBYTE);
                    columns::of_port(&mut metric, &names);
                    response.port_metrics.push(metric);
                }
            }
            Choice::Lag => {
                let wanted = request.lag.clone().unwrap_or_default();
                response.choice = Some(metrics_response::choice::Enum::LagMetrics.into());
                response.lag_metrics = loaded.lag_metrics(&wanted)?;
                let names: Vec<_> = wanted.column_names().collect();
                response.lag_metrics.iter_mut().for_each(|it| columns::of_lag(it, &names));
            }
            Choice::EgressOnlyTracking => {
                let wanted = request.egress_only_tracking.clone().unwrap_or_default();
                let name = |port: usize| loaded.lowered.ports[port].name.clone();
                let choice = metrics_response::choice::Enum::EgressOnlyTrackingMetrics;
                response.choice = Some(choice.into());
                response.egress_only_tracking_metrics = loaded.egress.metrics(&wanted, name)?;
            }
            choice => {
                let name = choice.as_str_name();
                return Err(OtgError::invalid(format!("{name}: not supported")));
            }
        }
        Ok(response)
    }
}

impl Loaded {
    /// Returns the metrics of flows in the order of the configuration. Without names: of all flows
    /// whose metrics are enabled.
    fn flow_metrics(&self, wanted: &FlowMetricsRequest) -> Result<Vec<FlowMetric>, OtgError> {
        let names = &wanted.flow_names;
        let tagged = wanted.tagged_metrics.clone().unwrap_or_default();
        let flows = &self.lowered.flows;
        if let Some(unknown) = names.iter().find(|name| !flows.iter().any(|it| it.name == **name)) {
            let message = format!("flow.flow_names: found {unknown:?}, which is no flow");
            return Err(OtgError::invalid(message));
        }
        let is_wanted = |index: usize| match &names[..] {
            [] => flows[index].metrics.enabled,
            names => names.contains(&flows[index].name),
        };
        let wanted = (0..flows.len()).filter(|index| is_wanted(*index));
        Ok(wanted.map(|index| self.flow_metric(index, Some(&tagged))).collect())
    }

    fn flow_metric(&self, index: usize, tagged: Option<&FlowTaggedMetricsFilter>) -> FlowMetric {
        let settings = &self.lowered.flows[index];
        let first = &self.lowered.plan.flows[settings.streams[0].planned];
        let port = |port: usize| self.lowered.ports[port].name.clone();
        let state = match self.traffic.state(index) {
            FlowState::Started => flow_metric::transmit::Enum::Started,
            FlowState::Stopped => flow_metric::transmit::Enum::Stopped,
            FlowState::Paused => flow_metric::transmit::Enum::Paused,
        };
        let counters = self.traffic.flow(index);
        let sum = |count: fn(&FlowSnapshot) -> u64| counters.streams.iter().map(count).sum::<u64>();
        let (frames_tx, bytes_tx) = (sum(|it| it.sent.frames), sum(|it| it.sent.bytes));
        let received = counters.streams.iter().filter_map(|it| it.received);
        let received: Vec<MeasuredSnapshot> = received.collect();
        let frames_rx: u64 = received.iter().map(|it| it.frames).sum();
        let bytes_rx: u64 = received.iter().map(|it| it.bytes).sum();
        let [tx_pps, tx_bytes, rx_pps, rx_bytes] = counters.rates;
        let with_fcs = |bytes: f64, pps: f64| bytes + pps * FCS as f64;
        let (tx_rate, rx_rate) = (with_fcs(tx_bytes, tx_pps), with_fcs(rx_bytes, rx_pps));
        let mut metric = FlowMetric {
            name: Some(settings.name.clone()),
            port_tx: Some(port(first.tx_port)),
            transmit: Some(state.into()),
            frames_tx: Some(frames_tx),
            bytes_tx: Some(bytes_tx + FCS * frames_tx),
            frames_tx_rate: Some(tx_pps as f32),
            tx_l1_rate_bps: Some(l1_bits(tx_bytes, tx_pps) as f32),
            tx_rate_bytes: Some(tx_rate as f32),
            tx_rate_bps: Some((tx_rate * 8.0) as f32),
            tx_rate_kbps: Some((tx_rate * 8e-3) as f32),
            tx_rate_mbps: Some((tx_rate * 8e-6) as f32),
            ..FlowMetric::default()
        };
        if first.rx_ports.len() == 1 {
            metric.port_rx = Some(port(first.rx_ports[0]));
        }
        if !settings.metrics.enabled {
            return metric;
        }
        metric.frames_rx = Some(frames_rx);
        metric.bytes_rx = Some(bytes_rx + FCS * frames_rx);
        metric.frames_rx_rate = Some(rx_pps as f32);
        metric.rx_l1_rate_bps = Some(l1_bits(rx_bytes, rx_pps) as f32);
        metric.rx_rate_bytes = Some(rx_rate as f32);
        metric.rx_rate_bps = Some((rx_rate * 8.0) as f32);
        metric.rx_rate_kbps = Some((rx_rate * 8e-3) as f32);
        metric.rx_rate_mbps = Some((rx_rate * 8e-6) as f32);
        if settings.metrics.loss {
            let lost = frames_tx.saturating_sub(frames_rx) as f64;
            metric.loss = Some((lost * 100.0 / (frames_tx as f64).max(1.0)) as f32);
        }
        if settings.metrics.latency.is_some() {
            metric.latency = Some(latency(&received));
        }
        if settings.metrics.timestamps {
            let arrivals = received.iter().filter_map(|it| it.arrivals);
            let both = arrivals.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let unix = |at| wirestorm_control::to_unix_ns(at) as f64;
            metric.timestamps = Some(MetricTimestamp {
                first_timestamp_ns: both.map(|(first, _)| unix(first)),
                last_timestamp_ns: both.map(|(_, last)| unix(last)),
            });
        }
        if let Some(filter) = tagged
            && settings.has_tags()
        {
            let counters = self.traffic.tagged(index, settings.metrics.per_rx_port);
            metric.tagged_metrics = tagged::metrics(settings, &counters, filter);
        }
        metric
    }

    /// Returns the indices of the ports with these names, in the order of the configuration; all
    /// without names.
    fn ports_wanted(&self, names: &[String]) -> Result<Vec<usize>, OtgError> {
        let ports = &self.lowered.ports;
        if let Some(unknown) = names.iter().find(|name| !ports.iter().any(|it| it.name == **name)) {
            let message = format!("port.port_names: found {unknown:?}, which is no port");
            return Err(OtgError::invalid(message));
        }
        let is_wanted = |index: &usize| names.is_empty() || names.contains(&ports[*index].name);
        Ok((0..ports.len()).filter(is_wanted).collect())
    }

    pub(super) fn port_metric(&self, index: usize) -> PortMetric {
        let counters = self.traffic.port(&self.lowered.ports[index].name);
        let [tx_pps, tx_bytes, rx_pps, rx_bytes] = counters.rates;
        let with_fcs = |bytes: f64, pps: f64| Some((bytes + pps * FCS as f64) as f32);
        let link = match self.links.is_up(index) {
            true => port_metric::link::Enum::Up,
            false => port_metric::link::Enum::Down,
        };
        let capture = match self.captures.is_running(index) {
            true => port_metric::capture::Enum::Started,
            false => port_metric::capture::Enum::Stopped,
        };
        let transmit = match self.traffic.sends(&self.lowered, index) {
            true => port_metric::transmit::Enum::Started,
            false => port_metric::transmit::Enum::Stopped,
        };
        PortMetric {
            name: Some(self.lowered.ports[index].name.clone()),
            location: Some(self.ports[index].location.clone()),
            link: Some(link.into()),
            capture: Some(capture.into()),
            transmit: Some(transmit.into()),
            frames_tx: Some(counters.tx_frames),
            frames_rx: Some(counters.rx_frames),
            bytes_tx: Some(counters.tx_bytes + FCS * counters.tx_frames),
            bytes_rx: Some(counters.rx_bytes + FCS * counters.rx_frames),
            frames_tx_rate: Some(tx_pps as f32),
            frames_rx_rate: Some(rx_pps as f32),
            bytes_tx_rate: with_fcs(tx_bytes, tx_pps),
            bytes_rx_rate: with_fcs(rx_bytes, rx_pps),
            last_change: self.links.changed_unix_ns(index),
            ..PortMetric::default()
        }
    }
}

/// Returns bits per second with preamble, FCS and gap, from bytes without FCS.
pub(super) fn l1_bits(bytes_rate: f64, frames_rate: f64) -> f64 {
    (bytes_rate + frames_rate * Layer::Wire.overhead() as f64) * 8.0
}

fn latency(received: &[MeasuredSnapshot]) -> MetricLatency {
    let frames: u64 =
        received.iter().filter(|it| it.delay_mean_ns.is_some()).map(|it| it.frames).sum();
    let sum: f64 =
        received.iter().filter_map(|it| Some(it.delay_mean_ns? * it.frames as f64)).sum();
    let minimum = received.iter().filter_map(|it| it.delay_min_ns).min();
    let maximum = received.iter().filter_map(|it| it.delay_max_ns).max();
    MetricLatency {
        minimum_ns: minimum.map(|ns| ns as f64),
        maximum_ns: maximum.map(|ns| ns as f64),
        average_ns: (frames > 0).then(|| sum / frames as f64),
    }
}
