//! Sources and destinations of flows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use wirestorm_wire::packet::MacAddress;

use super::interface::{Endpoint, Interface, Interfaces};
use super::packet::Packet;
use super::ports::{LagSettings, Names};
use super::problems::{ConfigError, Problems};
use super::{NextHop, Resolve};
use crate::proto::flow_router::mode::Enum as Mode;
use crate::proto::flow_tx_rx::choice::Enum as Choice;
use crate::proto::{Flow, FlowPort, FlowRouter};

/// Maximum number of pairs of all flows between devices.
const PAIRS_MAX: usize = 1 << 20;

/// What a configuration can name as the end of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) ports: &'a Names,
    pub(super) lags: &'a [LagSettings],
    pub(super) lag_names: &'a Names,
    pub(super) interfaces: &'a Interfaces,
}

/// The part of a flow that one port sends, or one link aggregation group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    /// Ports that share the frames; at least one.
    pub(super) tx_ports: Vec<usize>,
    /// Index of the link aggregation group of these ports.
    pub(super) lag: Option<usize>,
    pub(super) rx_ports: Vec<usize>,
    /// Devices; empty for a flow between ports.
    pub(super) pairs: Vec<Pair>,
    /// Whether this is the opposite direction of a bidirectional flow.
    pub(super) is_reversed: bool,
}

/// A source and a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) tx: Endpoint,
    pub(super) rx: Endpoint,
}

impl Ends<'_> {
    /// Returns the senders of a flow.
    ///
    /// `pairs` counts those of all flows.
    pub(super) fn senders(
        &self,
        flow: &Flow,
        path: &str,
        pairs: &mut usize,
    ) -> Result<Vec<Sender>, ConfigError> {
        let path = format!("{path}.tx_rx");
        let nothing = || ConfigError::new(&path, "found nothing, expected port or device");
        let ends = flow.tx_rx.as_ref().ok_or_else(nothing)?;
        match (ends.choice(), &ends.port, &ends.device) {
            (Choice::Port | Choice::Unspecified, Some(port), _) => {
                Ok(vec![self.between_ports(port, &format!("{path}.port"))?])
            }
            (Choice::Device, _, Some(device)) => {
                self.between_devices(device, &format!("{path}.device"), pairs)
            }
            _ => Err(nothing()),
        }
    }

    fn between_ports(&self, port: &FlowPort, path: &str) -> Result<Sender, ConfigError> {
        let tx_ports = self.members(port.tx_name(), || format!("{path}.tx_name"))?;
        let lag = match self.ports.get(port.tx_name()) {
            Some(_) => None,
            None => self.lag_names.get(port.tx_name()),
        };
        let mut rx_ports = Vec::new();
        for (index, name) in port.rx_names.iter().enumerate() {
            add_all(&mut rx_ports, self.members(name, || format!("{path}.rx_names[{index}]"))?);
        }
        if let Some(name) = port.rx_name.as_ref().filter(|_| port.rx_names.is_empty()) {
            rx_ports = self.members(name, || format!("{path}.rx_name"))?;
        }
        if tx_ports.is_empty() {
            return Err(ConfigError::new(path, "found a LAG without ports"));
        }
        Ok(Sender { tx_ports, lag, rx_ports, ..Sender::default() })
    }

    /// Returns the ports of a port's or LAG's name.
    fn members(
        &self,
        name: &str,
        path: impl FnOnce() -> String,
    ) -> Result<Vec<usize>, ConfigError> {
        if let Some(port) = self.ports.get(name) {
            return Ok(vec![port]);
        }
        if let Some(lag) = self.lag_names.get(name).and_then(|lag| self.lags.get(lag)) {
            return Ok(lag.ports.clone());
        }
        let message = format!("found {name:?}, which is no port or LAG of this configuration");
        Err(ConfigError::new(path(), message))
    }

    fn between_devices(
        &self,
        device: &FlowRouter,
        path: &str,
        total: &mut usize,
    ) -> Result<Vec<Sender>, ConfigError> {
        let find = |names: &[String], field: &str| {
            let ends = names.iter().enumerate().map(|(index, name)| {
                self.interfaces.endpoints.get(name).copied().ok_or_else(|| {
                    let path = format!("{path}.{field}[{index}]");
                    let message =
                        format!("found {name:?}, which is no interface or address of a device");
                    ConfigError::new(path, message)
                })
            });
            ends.collect::<Result<Vec<_>, _>>()
        };
        let (tx, rx) = (find(&device.tx_names, "tx_names")?, find(&device.rx_names, "rx_names")?);
        if tx.is_empty() || rx.is_empty() {
            return Err(ConfigError::new(path, "found no tx_names or no rx_names"));
        }
        let is_mesh = device.mode() != Mode::OneToOne;
        let count = if is_mesh { tx.len().saturating_mul(rx.len()) } else { tx.len() };
        *total = total.saturating_add(count);
        if *total > PAIRS_MAX {
            let message = format!("expected at most {PAIRS_MAX} pairs in all flows");
            return Err(ConfigError::new(path, message));
        }
        let pairs: Vec<Pair> = match device.mode() {
            Mode::OneToOne => {
                if tx.len() != rx.len() {
                    let message = format!(
                        "one_to_one needs as many tx_names as rx_names; found {} and {}",
                        tx.len(),
                        rx.len()
                    );
                    return Err(ConfigError::new(path, message));
                }
                tx.iter().zip(&rx).map(|(tx, rx)| Pair { tx: *tx, rx: *rx }).collect()
            }
            Mode::Mesh | Mode::Unspecified => {
                let from = |tx: Endpoint| rx.iter().map(move |rx| Pair { tx, rx: *rx });
                tx.iter().flat_map(|tx| from(*tx)).collect()
            }
        };
        let mut senders = Vec::new();
        self.group(&pairs, false, &mut senders);
        if device.bidirectional() {
            let reversed: Vec<Pair> =
                pairs.iter().map(|pair| Pair { tx: pair.rx, rx: pair.tx }).collect();
            self.group(&reversed, true, &mut senders);
        }
        Ok(senders)
    }

    /// Groups pairs by the sending port or link aggregation group.
    fn group(&self, pairs: &[Pair], is_reversed: bool, senders: &mut Vec<Sender>) {
        let first = senders.len();
        for pair in pairs {
            let interface = self.interface(pair.tx);
            let tx_ports = self.ports_of(interface);
            let known = senders.iter().skip(first).position(|sender| sender.tx_ports == tx_ports);
            let index = known.map_or(senders.len(), |index| first + index);
            if index == senders.len() {
                let lag = interface.lag;
                senders.push(Sender { tx_ports, lag, is_reversed, ..Sender::default() });
            }
            let receiver = self.interface(pair.rx);
            add_all(&mut senders[index].rx_ports, self.ports_of(receiver));
            senders[index].pairs.push(*pair);
        }
    }

    /// Returns the ports of an interface: all members of its link aggregation group.
    fn ports_of(&self, interface: &Interface) -> Vec<usize> {
        match interface.lag.and_then(|lag| self.lags.get(lag)) {
            Some(lag) => lag.ports.clone(),
            None => vec![interface.port],
        }
    }

    fn interface(&self, endpoint: Endpoint) -> &Interface {
        // Endpoints are made with their interface.
        &self.interfaces.list[endpoint.interface]
    }

    fn ip(&self, endpoint: Endpoint) -> Option<IpAddr> {
        let addresses = &self.interface(endpoint).addresses;
        addresses.get(endpoint.address?).map(|address| address.prefix.address)
    }

    /// Fills the addresses of a packet that it does not give: those of the devices, and the
    /// Ethernet address of the next hop. Returns the next hops that are not resolved.
    pub(super) fn fill(
        &self,
        packet: &mut Packet,
        sender: &Sender,
        resolve: &Resolve,
        path: &str,
        problems: &mut Problems,
    ) -> BTreeSet<NextHop> {
        let pairs = &sender.pairs;
        let mut hops = BTreeSet::new();
        if pairs.is_empty() {
            return hops;
        }
        if sender.is_reversed {
            for (layout, one, other) in [
                ("ethernet", "src", "dst"),
                ("ipv4", "src", "dst"),
                ("ipv6", "src", "dst"),
                ("tcp", "src_port", "dst_port"),
                ("udp", "src_port", "dst_port"),
            ] {
                packet.exchange(layout, one, other);
            }
        }
        let is_tagged = pairs.iter().any(|pair| !self.interface(pair.tx).vlans.is_empty());
        if is_tagged && !packet.has("vlan") {
            problems.warn(
                format!("{path}.packet"),
                "the device's frames have VLAN tags; this packet has no vlan header",
            );
        }
        let mut destinations = Vec::with_capacity(pairs.len());
        for pair in pairs {
            destinations.push(self.destination(*pair, packet, resolve, &mut hops));
        }
        let sources: Vec<u128> =
            pairs.iter().map(|pair| mac_number(self.interface(pair.tx).mac)).collect();
        packet.set_if_open("ethernet", "src", &sources);
        if !packet.set_if_open("ethernet", "dst", &destinations) {
            hops.clear();
        }
        for (layout, is_version) in
            [("ipv4", IpAddr::is_ipv4 as fn(&IpAddr) -> bool), ("ipv6", IpAddr::is_ipv6)]
        {
            let addresses = |end: fn(&Pair) -> Endpoint| -> Vec<u128> {
                let ips = pairs.iter().filter_map(|pair| self.ip(end(pair)).filter(is_version));
                ips.map(ip_number).collect()
            };
            packet.set_if_open(layout, "src", &addresses(|pair| pair.tx));
            packet.set_if_open(layout, "dst", &addresses(|pair| pair.rx));
        }
        hops
    }

    /// Returns the Ethernet destination of a pair; 0 if it is not resolved.
    fn destination(
        &self,
        pair: Pair,
        packet: &Packet,
        resolve: &Resolve,
        hops: &mut BTreeSet<NextHop>,
    ) -> u128 {
        let interface = self.interface(pair.tx);
        let Some(address) = pair.tx.address.and_then(|index| interface.addresses.get(index)) else {
            // Between Ethernet interfaces, the network is one link.
            return mac_number(self.interface(pair.rx).mac);
        };
        let layout = if address.prefix.address.is_ipv4() { "ipv4" } else { "ipv6" };
        let destination = match packet.values(layout, "dst", 2).as_deref() {
            Some([one]) => Some(ip_of(*one, address.prefix.address)),
            // Several destinations have the gateway in common.
            Some(_) => None,
            None => self.ip(pair.rx),
        };
        let on_link = destination.filter(|ip| address.prefix.contains(*ip));
        let next_hop = on_link.unwrap_or(address.gateway);
        if next_hop == address.gateway
            && let Some(mac) = address.gateway_mac
        {
            return mac_number(mac);
        }
        if let Some(mac) = resolve.neighbour(&interface.name, next_hop) {
            return mac_number(mac);
        }
        hops.insert(NextHop { interface: pair.tx.interface, address: next_hop });
        0
    }
}

fn add_all(ports: &mut Vec<usize>, more: Vec<usize>) {
    for port in more {
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
}

fn mac_number(MacAddress(bytes): MacAddress) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn ip_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns the address with this number, of the same version as another.
fn ip_of(number: u128, version: IpAddr) -> IpAddr {
    match version {
        IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    }
}

/// Ethernet addresses of next hops by the name of the interface and the IP address.
pub(super) type Neighbours = BTreeMap<(String, IpAddr), MacAddress>;
