//! Link aggregation groups: their members and their metrics.

use std::collections::BTreeSet;

use wirestorm_otg::proto::lag_metric::oper_status;
use wirestorm_otg::proto::{LagMetric, LagMetricsRequest, PortMetric};

use super::error::OtgError;
use super::session::Loaded;

impl Loaded {
    /// Returns the ports that may not send or receive for their group: `protocol.lacp` has taken
    /// them out, or `port.link` has taken them down.
    pub(super) fn ports_out(&self) -> BTreeSet<usize> {
        let down = (0..self.ports.len()).filter(|port| self.links.is_taken_down(*port));
        down.chain(self.members_out.iter().copied()).collect()
    }

    /// Returns the metrics of groups in the order of the configuration; of all without names.
    ///
    /// # Errors
    /// The request names an unknown group.
    pub(super) fn lag_metrics(
        &self,
        request: &LagMetricsRequest,
    ) -> Result<Vec<LagMetric>, OtgError> {
        let (names, lags) = (&request.lag_names, &self.lowered.lags);
        if let Some(unknown) = names.iter().find(|name| !lags.iter().any(|it| it.name == **name)) {
            let message = format!("lag.lag_names: found {unknown:?}, which is no LAG");
            return Err(OtgError::invalid(message));
        }
        let is_wanted = |index: &usize| names.is_empty() || names.contains(&lags[*index].name);
        Ok((0..lags.len()).filter(is_wanted).map(|index| self.lag_metric(index)).collect())
    }

    /// Returns the metrics of a group: the sums over its members.
    pub(super) fn lag_metric(&self, index: usize) -> LagMetric {
        let lag = &self.lowered.lags[index];
        let members: Vec<PortMetric> =
            lag.ports.iter().map(|port| self.port_metric(*port)).collect();
        let is_up = |port: &&usize| self.links.is_up(**port) && !self.members_out.contains(*port);
        let members_up = lag.ports.iter().filter(is_up).count() as u32;
        let oper_status = match members_up > 0 && members_up >= lag.min_links {
            true => oper_status::Enum::Up,
            false => oper_status::Enum::Down,
        };
        let count = |of: fn(&PortMetric) -> u64| Some(members.iter().map(of).sum());
        let rate = |of: fn(&PortMetric) -> f32| Some(members.iter().map(of).sum());
        LagMetric {
            name: Some(lag.name.clone()),
            oper_status: Some(oper_status.into()),
            member_ports_up: Some(members_up),
            frames_tx: count(|it| it.frames_tx()),
            frames_rx: count(|it| it.frames_rx()),
            bytes_tx: count(|it| it.bytes_tx()),
            bytes_rx: count(|it| it.bytes_rx()),
            frames_tx_rate: rate(|it| it.frames_tx_rate()),
            frames_rx_rate: rate(|it| it.frames_rx_rate()),
            bytes_tx_rate: rate(|it| it.bytes_tx_rate()),
            bytes_rx_rate: rate(|it| it.bytes_rx_rate()),
        }
    }
}
