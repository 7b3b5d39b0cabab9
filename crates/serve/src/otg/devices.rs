//! Hosts of devices: they answer ARP, neighbour discovery and pings, and find neighbours.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use wirestorm_control::responder::{DeviceHost, DeviceHosts};
use wirestorm_control::wire::packet::MacAddress;
use wirestorm_otg::Lowered;
use wirestorm_otg::lower::Interface;

use super::error::OtgError;
use super::session::LoadedPort;

/// Hosts of the devices of a configuration.
#[derive(Default)]
pub(super) struct Devices {
    hosts: Option<DeviceHosts>,
    /// Hosts of each interface: one for each member of a link aggregation group.
    places: Vec<Range<usize>>,
    /// Resolved neighbours: index of the interface and IP address.
    neighbours: BTreeMap<(usize, IpAddr), MacAddress>,
}

impl Devices {
    /// Starts the hosts, and resolves the gateways of all of them. Does nothing if they run.
    ///
    /// # Errors
    /// A port does not open.
    pub(super) fn start(
        &mut self,
        lowered: &Lowered,
        ports: &[LoadedPort],
    ) -> Result<(), OtgError> {
        let interfaces = &lowered.interfaces;
        if self.hosts.is_some() || interfaces.iter().all(|it| it.addresses.is_empty()) {
            return Ok(());
        }
        let host = |interface: &Interface, port: usize| DeviceHost {
            interface: ports[port].interface.clone(),
            mac: interface.mac,
            tags: interface.vlans.iter().map(|tag| (tag.tpid, tag.priority, tag.id)).collect(),
            addresses: interface.addresses.iter().map(|it| it.prefix).collect(),
            gateways: interface.addresses.iter().map(|it| it.gateway).collect(),
        };
        let (mut hosts, mut places) = (Vec::new(), Vec::with_capacity(interfaces.len()));
        for interface in interfaces {
            let members = match interface.lag.and_then(|lag| lowered.lags.get(lag)) {
                Some(lag) => lag.ports.as_slice(),
                None => std::slice::from_ref(&interface.port),
            };
            places.push(hosts.len()..hosts.len() + members.len());
            hosts.extend(members.iter().map(|port| host(interface, *port)));
        }
        let hosts = DeviceHosts::start(hosts);
        self.hosts = Some(hosts.map_err(|error| OtgError::invalid(error.to_string()))?);
        self.places = places;
        for (index, interface) in interfaces.iter().enumerate() {
            for address in &interface.addresses {
                match address.gateway_mac {
                    Some(mac) => drop(self.neighbours.insert((index, address.gateway), mac)),
                    // A gateway that does not answer has no neighbour state.
                    None => drop(self.resolve(index, address.gateway)),
                }
            }
        }
        Ok(())
    }

    /// Stops the hosts.
    pub(super) fn stop(&mut self) {
        self.hosts = None;
        self.neighbours.clear();
    }

    /// Returns the Ethernet address of a neighbour of an interface.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn resolve(
        &mut self,
        interface: usize,
        address: IpAddr,
    ) -> Result<MacAddress, String> {
        if let Some(mac) = self.neighbours.get(&(interface, address)) {
            return Ok(*mac);
        }
        let hosts = self.hosts.as_ref().ok_or("the devices do not run")?;
        let mut outcome = Err("no such interface".to_owned());
        // The other end chooses the member of a group by which it answers.
        for host in self.places.get(interface).cloned().unwrap_or_default() {
            outcome = hosts.resolve(host, address);
            if outcome.is_ok() {
                break;
            }
        }
        let mac = outcome?;
        self.neighbours.insert((interface, address), mac);
        Ok(mac)
    }

    /// Sends an echo request from an interface; returns whether it was answered.
    pub(super) fn ping(&self, interface: usize, destination: IpAddr) -> bool {
        let Some(hosts) = &self.hosts else { return false };
        let mut places = self.places.get(interface).cloned().unwrap_or_default();
        places.any(|host| hosts.ping(host, destination))
    }
}
