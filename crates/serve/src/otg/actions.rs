//! Actions: pings from devices.

use std::net::IpAddr;

use wirestorm_otg::proto::{
    ActionProtocolIpv4PingRequest, ActionProtocolIpv6PingRequest, ActionResponse,
    ActionResponseProtocol, ActionResponseProtocolIpv4, ActionResponseProtocolIpv4Ping,
    ActionResponseProtocolIpv4PingResponse, ActionResponseProtocolIpv6,
    ActionResponseProtocolIpv6Ping, ActionResponseProtocolIpv6PingResponse, ControlAction,
    ControlActionResponse, action_protocol, action_response, action_response_protocol,
    action_response_protocol_ipv4, action_response_protocol_ipv4_ping_response as ping_ipv4,
    action_response_protocol_ipv6, action_response_protocol_ipv6_ping_response as ping_ipv6,
    control_action,
};

use super::error::OtgError;
use super::session::Session;

/// Maximum number of pings of a request: each takes up to 3 s if nobody answers.
const PINGS_MAX: usize = 256;

impl Session {
    /// Executes an action.
    ///
    /// # Errors
    /// The action is not supported, or names an unknown interface.
    pub(super) fn set_control_action(
        &mut self,
        action: &ControlAction,
    ) -> Result<ControlActionResponse, OtgError> {
        if action.choice() != control_action::choice::Enum::Protocol {
            return Err(OtgError::invalid("port.reboot: not supported"));
        }
        let protocol = action.protocol.as_ref();
        let protocol = protocol.ok_or_else(|| OtgError::invalid("protocol: found nothing"))?;
        use action_protocol::choice::Enum as Choice;
        let response = match protocol.choice() {
            Choice::Ipv4 => {
                let ping = protocol.ipv4.as_ref().and_then(|ipv4| ipv4.ping.as_ref());
                self.ping_ipv4(ping.map_or(&[], |ping| &ping.requests))?
            }
            Choice::Ipv6 => {
                let ping = protocol.ipv6.as_ref().and_then(|ipv6| ipv6.ping.as_ref());
                self.ping_ipv6(ping.map_or(&[], |ping| &ping.requests))?
            }
            choice => {
                let name = choice.as_str_name();
                return Err(OtgError::invalid(format!("protocol.{name}: not supported")));
            }
        };
        let choice = Some(action_response::choice::Enum::Protocol.into());
        let response = Some(ActionResponse { choice, protocol: Some(response) });
        Ok(ControlActionResponse { warnings: Vec::new(), response })
    }

    fn ping_ipv4(
        &mut self,
        requests: &[ActionProtocolIpv4PingRequest],
    ) -> Result<ActionResponseProtocol, OtgError> {
        let pairs = requests.iter().map(|it| (it.src_name(), it.dst_ip()));
        let answered = self.ping("ipv4", pairs.collect())?;
        let response = |(request, is_answered): (&ActionProtocolIpv4PingRequest, bool)| {
            let result = match is_answered {
                true => ping_ipv4::result::Enum::Succeeded,
                false => ping_ipv4::result::Enum::Failed,
            };
            ActionResponseProtocolIpv4PingResponse {
                src_name: request.src_name.clone(),
                dst_ip: request.dst_ip.clone(),
                result: Some(result.into()),
            }
        };
        let responses = requests.iter().zip(answered).map(response).collect();
        Ok(ActionResponseProtocol {
            choice: Some(action_response_protocol::choice::Enum::Ipv4.into()),
            ipv4: Some(ActionResponseProtocolIpv4 {
                choice: Some(action_response_protocol_ipv4::choice::Enum::Ping.into()),
                ping: Some(ActionResponseProtocolIpv4Ping { responses }),
            }),
            ipv6: None,
        })
    }

    fn ping_ipv6(
        &mut self,
        requests: &[ActionProtocolIpv6PingRequest],
    ) -> Result<ActionResponseProtocol, OtgError> {
        let pairs = requests.iter().map(|it| (it.src_name(), it.dst_ip()));
        let answered = self.ping("ipv6", pairs.collect())?;
        let response = |(request, is_answered): (&ActionProtocolIpv6PingRequest, bool)| {
            let result = match is_answered {
                true => ping_ipv6::result::Enum::Succeeded,
                false => ping_ipv6::result::Enum::Failed,
            };
            ActionResponseProtocolIpv6PingResponse {
                src_name: request.src_name.clone(),
                dst_ip: request.dst_ip.clone(),
                result: Some(result.into()),
            }
        };
        let responses = requests.iter().zip(answered).map(response).collect();
        Ok(ActionResponseProtocol {
            choice: Some(action_response_protocol::choice::Enum::Ipv6.into()),
            ipv4: None,
            ipv6: Some(ActionResponseProtocolIpv6 {
                choice: Some(action_response_protocol_ipv6::choice::Enum::Ping.into()),
                ping: Some(ActionResponseProtocolIpv6Ping { responses }),
            }),
        })
    }

    /// Sends an echo request for each pair of a source and a destination, one after the other.
    /// Returns whether each was answered. Starts the devices if they do not run.
    fn ping(&mut self, family: &str, pairs: Vec<(&str, &str)>) -> Result<Vec<bool>, OtgError> {
        let path =
            |index: usize, field: &str| format!("protocol.{family}.ping.requests[{index}].{field}");
        if pairs.len() > PINGS_MAX {
            return Err(OtgError::invalid(format!(
                "protocol.{family}.ping.requests: found {}, expected at most {PINGS_MAX}",
                pairs.len()
            )));
        }
        let interfaces = &self.loaded()?.lowered.interfaces;
        let mut pings = Vec::with_capacity(pairs.len());
        for (index, (source, destination)) in pairs.into_iter().enumerate() {
            let has_source = |host: &usize| {
                interfaces[*host].addresses.iter().any(|address| address.name == source)
            };
            let host = (0..interfaces.len()).find(has_source).ok_or_else(|| {
                let place = path(index, "src_name");
                OtgError::invalid(format!("{place}: found {source:?}, which is no interface"))
            })?;
            let destination: IpAddr = destination.parse().map_err(|_| {
                let place = path(index, "dst_ip");
                OtgError::invalid(format!("{place}: found {destination:?}, expected an address"))
            })?;
            pings.push((host, destination));
        }
        self.start_devices()?;
        let devices = &self.loaded()?.devices;
        Ok(pings.into_iter().map(|(host, to)| devices.ping(host, to)).collect())
    }
}
