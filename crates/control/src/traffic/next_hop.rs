//! Resolution of Ethernet addresses that a plan does not specify: source (interface) and next hop.

use std::net::IpAddr;

use wirestorm_plan::traffic::{PlanError, TrafficPlan};
use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, ipv4, ipv6};

use super::error::TrafficError;
use crate::responder::{HostError, PacketSocketHost, ResponderThreads};

/// Resolved addresses of all flows, and the responders of the plan's ports.
pub(super) struct ResolvedAddresses {
    /// Destination and source address to write into each flow; `None` to keep the plan's.
    resolved: Vec<[Option<MacAddress>; 2]>,
    _responders: ResponderThreads,
}

impl ResolvedAddresses {
    /// Starts responders on the ports with addresses, and resolves the addresses that flows need.
    ///
    /// # Errors
    /// Fails if a port does not open, or a neighbour does not answer.
    pub(super) fn find(plan: &TrafficPlan, interfaces: &[String]) -> Result<Self, TrafficError> {
        let mut resolved = vec![[None; 2]; plan.flows.len()];
        let mut hosts = Vec::new();
        for (index, port) in plan.ports.iter().enumerate() {
            let needs_address = plan.flows.iter().any(|flow| {
                flow.tx_port == index
                    && (flow.auto_addresses.source || flow.auto_addresses.destination)
            });
            let is_used = !interfaces[index].is_empty();
            if !is_used || port.addresses.is_empty() && !needs_address {
                continue;
            }
            let (addresses, gateways) = (port.addresses.clone(), port.gateways.clone());
            hosts.push((index, PacketSocketHost::open(&interfaces[index], addresses, gateways)?));
        }
        // All hosts are open, so they receive the announcements. Ports do not answer requests
        // yet.
        for (_, host) in &mut hosts {
            host.announce().map_err(HostError::from)?;
        }
        for (index, host) in &mut hosts {
            for (flow, resolved) in plan.flows.iter().zip(&mut resolved) {
                if flow.tx_port != *index {
                    continue;
                }
                if flow.auto_addresses.destination {
                    let destination = destination(&flow.stream.template);
                    let destination = destination.ok_or_else(|| PlanError {
                        path: flow.path.clone(),
                        message: "the first frame has no IP destination".into(),
                    });
                    let destination =
                        destination.map_err(|error| TrafficError::Plan(error.into()))?;
                    resolved[0] = Some(host.resolve(destination)?.1);
                }
                if flow.auto_addresses.source {
                    resolved[1] = Some(host.host().mac);
                }
            }
        }
        let hosts = hosts.into_iter().map(|(_, host)| host).collect();
        let responders = ResponderThreads::host(hosts).map_err(TrafficError::Thread)?;
        Ok(Self { resolved, _responders: responders })
    }

    /// Writes the resolved addresses of a flow into its template.
    pub(super) fn write(&self, flow: usize, template: &mut [u8]) {
        let Ok(mut frame) = ethernet::Frame::new(template) else { return };
        let [destination, source] = self.resolved[flow];
        if let Some(mac) = destination {
            frame.set_destination(mac);
        }
        if let Some(mac) = source {
            frame.set_source(mac);
        }
    }
}

/// Returns the IP destination of a frame without VLAN tags.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let frame = ethernet::Frame::new(frame).ok()?;
    match frame.ethertype() {
        ethertype::IPV4 => Some(ipv4::Packet::new(frame.payload()).ok()?.destination().into()),
        ethertype::IPV6 => Some(ipv6::Packet::new(frame.payload()).ok()?.destination().into()),
        _ => None,
    }
}
