//! Attributes and addresses of ports, and the service mode.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use wirestorm_control::af_packet::Direction;
use wirestorm_control::wire::packet::MacAddress;

use super::frame_socket::{FrameSocket, nothing};
use super::parameters::{Parameters, done};
use super::port::{Layers, Port};
use super::responder::Responder;
use super::rpc::{Answer, RpcError};
use super::{Trex, TrexMode};

/// Maximum number of VLAN tags.
const VLANS_MAX: usize = 2;

impl Trex {
    /// Returns the attributes of a port, without its addresses.
    pub(super) fn attributes(&self, number: usize, port: &Port) -> Value {
        let facts = self.interfaces[number].facts();
        json!({
            "promiscuous": {"enabled": port.promiscuous.is_some()},
            "multicast": {"enabled": port.is_multicast},
            "link": {"up": facts.is_up},
            "speed": facts.speed.per_second() / 1e9,
            "rx_filter_mode": if port.is_service || port.is_filtered { "all" } else { "hw" },
            "vxlan_fs": [],
            "fc": {"mode": 0},
        })
    }

    /// Returns the addresses of a port.
    pub(super) fn layers(&self, number: usize, port: &Port) -> Value {
        let Layers { destination, ipv4, ipv6, .. } = &port.layers;
        let is_configured = destination.is_some() && !matches!(ipv4, Some((_, _, false)));
        let ipv4 = match ipv4 {
            None => json!({"state": "none"}),
            Some((source, next_hop, is_resolved)) => json!({
                "state": if *is_resolved { "resolved" } else { "unresolved" },
                "src": source.to_string(),
                "dst": next_hop.to_string(),
            }),
        };
        let ipv6 = match ipv6 {
            None => json!({"enabled": false}),
            Some(address) => {
                let source = address.map(|it| it.to_string()).unwrap_or_default();
                json!({"enabled": true, "src": source})
            }
        };
        json!({
            "ether": {
                "src": self.interfaces[number].facts().mac.to_string(),
                "dst": destination.unwrap_or(MacAddress([0; 6])).to_string(),
                "state": if is_configured { "configured" } else { "unconfigured" },
            },
            "ipv4": ipv4,
            "ipv6": ipv6,
        })
    }

    /// Starts or stops the answers of a port to ARP and pings, after its addresses or its service
    /// mode changed.
    fn update_responder(&self, number: usize) -> Result<(), RpcError> {
        let (layers, is_service) = {
            let state = self.state();
            let port = &state.ports[number];
            (port.layers.clone(), port.is_service)
        };
        let is_needed = is_service && (layers.ipv4.is_some() || layers.ipv6.is_some());
        let responder = match is_needed {
            true => Some(
                Responder::start(&self.interfaces[number], &layers).map_err(RpcError::execution)?,
            ),
            false => None,
        };
        let before = std::mem::replace(&mut self.state().ports[number].responder, responder);
        // The end of the old one waits for its thread.
        drop(before);
        Ok(())
    }
}

pub(super) fn set_port_attr(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    // The map is in the order of the names, as in TRex.
    let attributes = parameters.object("attr")?;
    for name in attributes.0.keys() {
        match name.as_str() {
            "promiscuous" => {
                let is_on = attributes.object(name)?.flag("enabled")?;
                let socket = match is_on {
                    false => None,
                    true => {
                        let interface = &trex.interfaces[port].name;
                        let socket = FrameSocket::open(
                            interface,
                            Direction::Arriving,
                            nothing(),
                            true,
                            |_| {},
                        );
                        Some(socket.map_err(RpcError::execution)?)
                    }
                };
                let before = std::mem::replace(&mut trex.state().ports[port].promiscuous, socket);
                drop(before);
            }
            "multicast" => {
                let is_on = attributes.object(name)?.flag("enabled")?;
                trex.state().ports[port].is_multicast = is_on;
            }
            "vxlan_fs" if trex.mode == TrexMode::Astf => {
                let text = "VXLAN flow stats are relevant only to stateless mode";
                return Err(RpcError::execution(text));
            }
            "link_status" | "led_status" | "flow_ctrl_mode" | "vxlan_fs" => {
                return Err(RpcError::execution(format!(
                    "Error applying {name}: operation is not supported for this NIC."
                )));
            }
            _ => return Err(RpcError::execution(format!("unknown attribute type: '{name}'"))),
        }
    }
    done()
}

fn mac(text: &str) -> Result<MacAddress, RpcError> {
    text.parse().map_err(|_| RpcError::parameters(format!("'invalid MAC address: '{text}'")))
}

fn ipv4(text: &str, what: &str) -> Result<Ipv4Addr, RpcError> {
    let wrong = || RpcError::parameters(format!("invalid {what} IPv4 address: '{text}'"));
    text.parse().map_err(|_| wrong())
}

pub(super) fn set_l2(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let destination = mac(parameters.text("dst_mac")?)?;
    {
        let port = &mut trex.state().ports[port];
        port.check_idle("set_l2_mode")?;
        port.layers.destination = Some(destination);
        port.layers.ipv4 = None;
    }
    trex.update_responder(port)?;
    done()
}

pub(super) fn set_l3(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let source = ipv4(parameters.text("src_addr")?, "source")?;
    let next_hop = ipv4(parameters.text("dst_addr")?, "destination")?;
    let resolved = parameters.find("resolved_mac").map(|_| parameters.text("resolved_mac"));
    let resolved = resolved.transpose()?.map(mac).transpose()?;
    {
        let port = &mut trex.state().ports[port];
        port.check_idle("set_l3_mode")?;
        port.layers.ipv4 = Some((source, next_hop, resolved.is_some()));
        port.layers.destination = resolved;
    }
    trex.update_responder(port)?;
    done()
}

pub(super) fn conf_ipv6(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let is_enabled = parameters.flag("enabled")?;
    let text = parameters.text("src_ipv6")?;
    let source: Option<Ipv6Addr> =
        match text {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                RpcError::parameters(format!("invalid source IPv6 address: '{text}'"))
            })?),
        };
    {
        let port = &mut trex.state().ports[port];
        port.check_idle("conf_ipv6")?;
        port.layers.ipv6 = is_enabled.then_some(source);
    }
    trex.update_responder(port)?;
    done()
}

pub(super) fn set_vlan(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let vlans = parameters.u16s("vlan")?;
    if vlans.len() > VLANS_MAX {
        let found = vlans.len();
        return Err(RpcError::parameters(format!(
            "Maximal number of stacked VLANs is {VLANS_MAX}, got: {found}"
        )));
    }
    if let Some(wrong) = vlans.iter().find(|vlan| !(1..=4_095).contains(*vlan)) {
        return Err(RpcError::parameters(format!("invalid VLAN tag: '{wrong}'")));
    }
    if vlans.len() > 1 && trex.mode == TrexMode::Astf {
        return Err(RpcError::execution("Stacked VLANs are not allowed in ASTF mode"));
    }
    {
        let port = &mut trex.state().ports[port];
        port.check_idle("set_vlan")?;
        port.layers.vlans = vlans;
    }
    trex.update_responder(port)?;
    done()
}

pub(super) fn service(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let is_enabled = parameters.flag("enabled")?;
    let is_filtered = parameters.flag_or("filtered", false)?;
    trex.set_service(port, is_enabled, is_filtered)?;
    done()
}

impl Trex {
    pub(super) fn set_service(
        &self,
        port: usize,
        is_enabled: bool,
        is_filtered: bool,
    ) -> Result<(), RpcError> {
        {
            let mut state = self.state();
            if !is_enabled && state.ports[port].is_service {
                self.check_no_captures(port, &state.ports[port])?;
            }
            state.ports[port].is_service = is_enabled;
            state.ports[port].is_filtered = is_filtered;
        }
        self.update_responder(port)
    }
}
