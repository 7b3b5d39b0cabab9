//! Next hops of clients' devices, each resolved in its VLAN.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::{Client, Devices, EmulationPlan, NextHop, Vlans};
use wirestorm_stack::{Host, ProxiedAddresses};
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use crate::emulation::error::EmulationError;
use crate::responder::{HostError, PacketSocketHost, UnansweredRequest, VlanHostConfig};

/// ARP responders for addresses besides the ports' own, by port.
pub(in crate::emulation) struct RouterResolver {
    hosts: BTreeMap<usize, PacketSocketHost>,
    /// Ethernet addresses of resolved routers, by port, VLAN and address.
    known: BTreeMap<(usize, Option<Vlans>, IpAddr), MacAddress>,
}

impl RouterResolver {
    /// Opens the ARP responders. `interfaces` has the interface name and the Ethernet address of
    /// each used port.
    pub(in crate::emulation) fn open(
        plan: &EmulationPlan,
        interfaces: &[Option<(String, MacAddress)>],
    ) -> Result<Self, EmulationError> {
        let mut addresses: BTreeMap<(usize, Option<Vlans>), Vec<IpAddr>> = BTreeMap::new();
        let mut add = |port, vlan, address| {
            let those: &mut Vec<_> = addresses.entry((port, vlan)).or_default();
            if !those.contains(&address) {
                those.push(address);
            }
        };
        for proxied in &plan.answered_addresses {
            add(proxied.port, proxied.vlan, proxied.address);
        }
        for (template, client) in
            plan.templates.iter().filter_map(|it| Some((it, it.client.as_ref()?)))
        {
            for (number, devices) in client.devices.iter().enumerate() {
                let Some(next_hop) = devices.next_hop else { continue };
                let from = source_address(plan, client, &next_hop).ok_or_else(|| {
                    EmulationError::NoSourceAddress {
                        path: format!("{}.client.devices[{number}]", template.path),
                        next_hop: next_hop.first,
                    }
                })?;
                add(client.transmit, devices.vlan, from);
            }
        }
        let mut configs: BTreeMap<usize, Vec<VlanHostConfig>> = BTreeMap::new();
        let mut proxied_by_vlan = proxied_addresses(plan);
        // A VLAN may have clients or servers, but no source address for requests to a router.
        let alone = proxied_by_vlan.keys().filter(|it| !addresses.contains_key(it));
        let all = addresses.clone().into_iter().chain(alone.map(|it| (*it, Vec::new())));
        for ((port, vlan), addresses) in all.collect::<Vec<_>>() {
            let addresses = addresses.into_iter().map(Prefix::host).collect();
            let proxied = proxied_by_vlan.remove(&(port, vlan)).unwrap_or_default();
            configs.entry(port).or_default().push(VlanHostConfig { vlan, addresses, proxied });
        }
        let mut hosts: BTreeMap<_, PacketSocketHost> = BTreeMap::new();
        for (port, configs) in configs {
            let Some(Some((interface, _))) = interfaces.get(port) else { continue };
            hosts.insert(port, PacketSocketHost::open_all(interface, configs)?);
        }
        // Ports do not answer requests yet, so they learn each other from announcements.
        if hosts.len() > 1 {
            for host in hosts.values_mut() {
                host.announce().map_err(HostError::from)?;
            }
        }
        Ok(Self { hosts, known: BTreeMap::new() })
    }

    /// Returns the devices of a template's clients, with all Ethernet addresses resolved. Devices
    /// with a next hop become one entry for each router. Routers without clients are not resolved.
    pub(in crate::emulation) fn resolve(
        &mut self,
        plan: &EmulationPlan,
        client: &Client,
        clients: AddressRange,
        goes_on: &mut impl FnMut(&UnansweredRequest<'_>) -> bool,
    ) -> Result<Vec<Devices>, EmulationError> {
        let mut entries = Vec::new();
        for devices in &client.devices {
            let Some(next_hop) = devices.next_hop else {
                entries.push(*devices);
                continue;
            };
            let behind =
                (0..devices.count).map_while(|number| Some((number, behind(devices, number)?)));
            for (number, assigned) in behind {
                if common(&assigned, clients).is_none() {
                    continue;
                }
                let router =
                    AddressRange { first: next_hop.first, count: devices.count }.at(number.into());
                let key = (client.transmit, devices.vlan, router);
                let mac = match self.known.get(&key) {
                    Some(mac) => *mac,
                    None => {
                        let host = self.hosts.get_mut(&client.transmit);
                        let place = host.as_ref().and_then(|it| it.place(devices.vlan));
                        // `open` has created the responder and checked the source address.
                        let (Some(host), Some(place), Some(from)) =
                            (host, place, source_address(plan, client, &next_hop))
                        else {
                            continue;
                        };
                        let mac = host.resolve_from(place, from, router, &mut *goes_on)?;
                        self.known.insert(key, mac);
                        mac
                    }
                };
                let next_hop =
                    Some(NextHop { first: router, from: source_address(plan, client, &next_hop) });
                entries.push(Devices { destination: Some(mac), next_hop, ..assigned });
            }
        }
        Ok(entries)
    }

    /// Returns the responders that stay. A port's own responder already answers for its addresses
    /// without VLAN tags, so hosts with only these stop.
    pub(in crate::emulation) fn into_responders(
        self,
        plan: &EmulationPlan,
    ) -> Vec<(usize, PacketSocketHost)> {
        let owns = |port: usize, host: &Host| {
            let addresses = &plan.ports[port].addresses;
            let is_own = |it: &Prefix| addresses.iter().any(|prefix| prefix.address == it.address);
            host.tags.is_empty() && host.addresses.iter().all(is_own)
        };
        let others = self.hosts.into_iter();
        let stays = |(port, mut host): (usize, PacketSocketHost)| {
            host.keep(|host| !owns(port, host)).then_some((port, host))
        };
        others.filter_map(stays).collect()
    }
}

/// Returns the clients and servers in VLANs, by port and VLAN. These are clients whose devices have
/// a VLAN, their servers, and servers with `vlans`.
fn proxied_addresses(
    plan: &EmulationPlan,
) -> BTreeMap<(usize, Option<Vlans>), Vec<ProxiedAddresses>> {
    let mut proxied: BTreeMap<_, Vec<ProxiedAddresses>> = BTreeMap::new();
    let mut add = |port: usize, vlan: Vlans, range: &AddressRange, every: u32| {
        let range = *range;
        let those = proxied.entry((port, Some(vlan))).or_default();
        if !those.contains(&ProxiedAddresses { range, stride: every }) {
            those.push(ProxiedAddresses { range, stride: every });
        }
    };
    for template in &plan.templates {
        let (client, server) = (template.client.as_ref(), template.server.as_ref());
        let devices = client.into_iter().flat_map(|client| &client.devices);
        for (devices, vlan) in devices.clone().filter_map(|it| Some((it, it.vlan?))) {
            if let Some(client) = client
                && let Some(clients) = client_addresses(plan, client)
                && let Some(behind) = common(devices, clients)
            {
                add(client.transmit, vlan, &behind, devices.stride);
            }
        }
        let Some(server) = server else { continue };
        let known = client.map(|client| client.servers);
        let of_port = plan.ports[server.transmit].addresses.iter();
        let of_port = of_port.map(|it| AddressRange { first: it.address, count: 1 });
        let ranges: Vec<_> = server.addresses.into_iter().chain(known).collect();
        let ranges = if ranges.is_empty() { of_port.collect() } else { ranges };
        let vlans = devices.filter_map(|it| it.vlan).chain(server.vlans.iter().copied());
        for vlan in vlans {
            ranges.iter().for_each(|range| add(server.transmit, vlan, range, 1));
        }
    }
    proxied
}

/// Returns the source address of requests for a router: the plan's, or the port's first address of
/// the same family.
fn source_address(plan: &EmulationPlan, client: &Client, next_hop: &NextHop) -> Option<IpAddr> {
    let addresses = plan.ports[client.transmit].addresses.iter().map(|it| it.address);
    let mut alike = addresses.filter(|it| it.is_ipv4() == next_hop.first.is_ipv4());
    next_hop.from.or_else(|| alike.next())
}

/// Returns the clients behind router `number`, as devices with a single router. Returns `None` if
/// there are no clients for it.
fn behind(devices: &Devices, number: u32) -> Option<Devices> {
    let before = number.checked_mul(devices.stride)?;
    let count = devices.clients.count.checked_sub(before).filter(|count| *count > 0)?;
    let first = devices.clients.at(before.into());
    Some(Devices {
        clients: AddressRange { first, count },
        stride: devices.stride.saturating_mul(devices.count),
        count: 1,
        next_hop: None,
        ..*devices
    })
}

/// Returns the clients of a template: its addresses, or the first address of its port.
pub(in crate::emulation) fn client_addresses(
    plan: &EmulationPlan,
    client: &Client,
) -> Option<AddressRange> {
    let of_port = plan.ports[client.transmit].addresses.first();
    client.addresses.or(of_port.map(|it| AddressRange { first: it.address, count: 1 }))
}

/// Whether each client of a template has a device with an Ethernet address or a next hop.
pub(in crate::emulation) fn all_have_devices(devices: &[Devices], clients: AddressRange) -> bool {
    let knows = |it: &Devices| it.destination.is_some() || it.next_hop.is_some();
    if !devices.iter().all(knows) {
        return false;
    }
    let all = devices.iter().filter(|it| it.stride == 1);
    let mut next = 0;
    while next < clients.count {
        let behind =
            |it: &Devices| Some(it.clients.count - it.clients.offset_of(clients.at(next.into()))?);
        let Some(count) = all.clone().find_map(behind) else { return false };
        next = next.saturating_add(count.max(1));
    }
    true
}

/// Returns the clients of a template that use these devices: every [`Devices::stride`]th address of
/// the returned range.
fn common(devices: &Devices, clients: AddressRange) -> Option<AddressRange> {
    let range = devices.clients;
    // Index of the first common client in the devices' range and in the template's range.
    let (first, place) = match clients.offset_of(range.first) {
        Some(place) => (0, place),
        None => {
            let before = range.offset_of(clients.first)?;
            let first = before.checked_next_multiple_of(devices.stride.max(1))?;
            (first, first - before)
        }
    };
    let left = range.count.checked_sub(first)?.min(clients.count.checked_sub(place)?);
    (left > 0).then(|| AddressRange { first: range.at(first.into()), count: left })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_plan::emulation::MplsLabels;

    fn range(first: &str, count: u32) -> AddressRange {
        AddressRange { first: first.parse().unwrap(), count }
    }

    #[test]
    fn clients_are_assigned_to_routers_round_robin() {
        let devices = Devices {
            clients: range("16.0.0.1", 5),
            stride: 1,
            count: 4,
            vlan: Some(7.into()),
            labels: MplsLabels::default(),
            destination: None,
            source: None,
            next_hop: Some(NextHop { first: "1.1.1.1".parse().unwrap(), from: None }),
        };
        let second = behind(&devices, 1).unwrap();
        assert_eq!((second.clients, second.stride), (range("16.0.0.2", 4), 4));
        // Only 16.0.0.2: every fourth client belongs to this router, so the next is 16.0.0.6.
        assert_eq!(common(&second, range("16.0.0.0", 3)), Some(range("16.0.0.2", 1)));
        assert_eq!(common(&second, range("16.0.0.2", 1)), Some(range("16.0.0.2", 1)));
        assert_eq!(common(&second, range("16.0.0.3", 100)), None);
        let first = behind(&devices, 0).unwrap();
        assert_eq!(common(&first, range("16.0.0.3", 3)), Some(range("16.0.0.5", 1)));
        assert_eq!(common(&first, range("16.0.0.2", 3)), None);
        assert_eq!(behind(&Devices { clients: range("16.0.0.1", 1), ..devices }, 1), None);
    }

    #[test]
    fn clients_with_known_devices_need_no_default_next_hop() {
        let devices = |first, count, every| Devices {
            clients: range(first, count),
            stride: every,
            count: 1,
            vlan: None,
            labels: MplsLabels::default(),
            destination: Some(MacAddress([2, 0, 0, 0, 0, 1])),
            source: None,
            next_hop: None,
        };
        let both = [devices("16.0.0.4", 5, 1), devices("16.0.0.1", 3, 1)];
        assert!(all_have_devices(&both, range("16.0.0.1", 8)));
        assert!(!all_have_devices(&both, range("16.0.0.1", 9)));
        assert!(!all_have_devices(&both, range("16.0.0.0", 2)));
        assert!(!all_have_devices(&[devices("16.0.0.1", 4, 2)], range("16.0.0.1", 4)));
        let unknown = Devices { destination: None, ..devices("16.0.0.1", 1, 1) };
        assert!(!all_have_devices(&[unknown, devices("16.0.0.1", 4, 1)], range("16.0.0.1", 4)));
    }
}
