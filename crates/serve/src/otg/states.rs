//! States of devices.

use std::net::IpAddr;

use wirestorm_otg::proto::{
    Neighborsv4State, Neighborsv6State, StatesRequest, StatesResponse, states_request,
    states_response,
};

use super::error::OtgError;
use super::session::Session;

impl Session {
    /// Returns the neighbours that devices have resolved. Tries those again that have not answered.
    ///
    /// # Errors
    /// The request asks for states of protocols.
    pub(super) fn get_states(
        &mut self,
        request: &StatesRequest,
    ) -> Result<StatesResponse, OtgError> {
        use states_request::choice::Enum as Choice;
        let names = match request.choice() {
            Choice::Ipv4Neighbors => {
                request.ipv4_neighbors.as_ref().map(|it| it.ethernet_names.clone())
            }
            Choice::Ipv6Neighbors => {
                request.ipv6_neighbors.as_ref().map(|it| it.ethernet_names.clone())
            }
            choice => {
                let name = choice.as_str_name();
                return Err(OtgError::invalid(format!("{name}: not supported")));
            }
        };
        let names = names.unwrap_or_default();
        let wants_ipv4 = request.choice() == Choice::Ipv4Neighbors;
        let loaded = self.loaded()?;
        let interfaces = &loaded.lowered.interfaces;
        if let Some(unknown) =
            names.iter().find(|name| !interfaces.iter().any(|it| it.name == **name))
        {
            let message = format!("ethernet_names: found {unknown:?}, which is no interface");
            return Err(OtgError::invalid(message));
        }
        let mut response = StatesResponse::default();
        for (index, interface) in interfaces.iter().enumerate() {
            if !names.is_empty() && !names.contains(&interface.name) {
                continue;
            }
            for address in &interface.addresses {
                let gateway = address.gateway;
                if gateway.is_ipv4() != wants_ipv4 {
                    continue;
                }
                let mac = loaded.devices.resolve(index, gateway).ok().map(|mac| mac.to_string());
                let ethernet_name = Some(interface.name.clone());
                match gateway {
                    IpAddr::V4(_) => response.ipv4_neighbors.push(Neighborsv4State {
                        ethernet_name,
                        ipv4_address: Some(gateway.to_string()),
                        link_layer_address: mac,
                    }),
                    IpAddr::V6(_) => response.ipv6_neighbors.push(Neighborsv6State {
                        ethernet_name,
                        ipv6_address: Some(gateway.to_string()),
                        link_layer_address: mac,
                    }),
                }
            }
        }
        let choice = match wants_ipv4 {
            true => states_response::choice::Enum::Ipv4Neighbors,
            false => states_response::choice::Enum::Ipv6Neighbors,
        };
        response.choice = Some(choice.into());
        Ok(response)
    }
}
