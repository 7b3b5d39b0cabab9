//! Link aggregation groups: their members and their metrics.

use std::collections::BTreeSet;

use wirestorm_otg::proto::lag_metric::oper_status;
use wirestorm_otg::proto::{
    self, LagMetric, LagMetricsRequest, PortMetric, state_protocol_lacp, state_protocol_lacp_admin,
    state_protocol_lacp_member_ports,
};

use super::error::OtgError;
use super::session::{Answer, Loaded, Session, Warnings};

impl Session {
    /// Takes members out of their link aggregation groups, or back; all members without names.
    /// There are no LACPDUs: the state only selects the members of static groups.
    pub(super) fn set_members(&mut self, lacp: &proto::StateProtocolLacp) -> Answer<Warnings> {
        use state_protocol_lacp::choice::Enum as Choice;
        use state_protocol_lacp_admin::state::Enum as Admin;
        use state_protocol_lacp_member_ports::state::Enum as State;
        let (names, up, path) = match (lacp.choice(), &lacp.admin, &lacp.member_ports) {
            (Choice::Admin, Some(admin), _) => {
                (&admin.lag_member_names, admin.state() != Admin::Down, "admin")
            }
            (Choice::MemberPorts, _, Some(ports)) => {
                (&ports.lag_member_names, ports.state() != State::Down, "member_ports")
            }
            _ => {
                let message = "protocol.lacp: found nothing, expected admin or member_ports";
                return Err(OtgError::invalid(message));
            }
        };
        let loaded = self.loaded()?;
        let path = format!("protocol.lacp.{path}.lag_member_names");
        let members: BTreeSet<usize> =
            loaded.lowered.lags.iter().flat_map(|lag| lag.ports.iter().copied()).collect();
        let chosen = match names.is_empty() {
            true => members,
            false => {
                let chosen = loaded.ports_named(names, &path)?;
                if let Some(port) = chosen.iter().find(|port| !members.contains(port)) {
                    let name = &loaded.lowered.ports[*port].name;
                    let message = format!("{path}: found {name:?}, which is no member of a LAG");
                    return Err(OtgError::invalid(message));
                }
                chosen
            }
        };
        match up {
            true => loaded.members_out.retain(|port| !chosen.contains(port)),
            false => loaded.members_out.extend(chosen),
        }
        loaded.traffic.set_members(&loaded.lowered, &loaded.members_out)?;
        Ok(Vec::new())
    }
}

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
