//! Routers that clients are behind: asked for their Ethernet addresses, each in its VLAN.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::{Client, Devices, EmulationPlan, NextHop, Vlans};
use wirestorm_stack::{Guests, Host};
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use crate::emulation::error::EmulationError;
use crate::responder::{HostError, Residence, Silence, Station};

/// Hosts beside those of the ports themselves, by port.
pub(in crate::emulation) struct NextHops {
    stations: BTreeMap<usize, Station>,
    /// Routers that have answered.
    known: BTreeMap<(usize, Option<Vlans>, IpAddr), MacAddress>,
}

impl NextHops {
    /// Lets ports answer for what a plan has beside their own addresses. `interfaces`: of each port
    /// that is used, its name and Ethernet address.
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
        for guest in &plan.guests {
            add(guest.port, guest.vlan, guest.address);
        }
        for (template, client) in
            plan.templates.iter().filter_map(|it| Some((it, it.client.as_ref()?)))
        {
            for (number, devices) in client.devices.iter().enumerate() {
                let Some(next_hop) = devices.next_hop else { continue };
                let from =
                    asker(plan, client, &next_hop).ok_or_else(|| EmulationError::NoAsker {
                        path: format!("{}.client.devices[{number}]", template.path),
                        next_hop: next_hop.first,
                    })?;
                add(client.transmit, devices.vlan, from);
            }
        }
        let mut residences: BTreeMap<usize, Vec<Residence>> = BTreeMap::new();
        let mut guests = guests(plan);
        // Who asks lives in VLANs in which nobody else may do.
        let alone = guests.keys().filter(|it| !addresses.contains_key(it));
        let all = addresses.clone().into_iter().chain(alone.map(|it| (*it, Vec::new())));
        for ((port, vlan), addresses) in all.collect::<Vec<_>>() {
            let addresses = addresses.into_iter().map(Prefix::host).collect();
            let guests = guests.remove(&(port, vlan)).unwrap_or_default();
            residences.entry(port).or_default().push(Residence { vlan, addresses, guests });
        }
        let mut stations: BTreeMap<_, Station> = BTreeMap::new();
        for (port, residences) in residences {
            let Some(Some((interface, _))) = interfaces.get(port) else { continue };
            stations.insert(port, Station::open_all(interface, residences)?);
        }
        // All hear the announcements, so that ports find each other, which do not answer yet.
        if stations.len() > 1 {
            for station in stations.values_mut() {
                station.announce().map_err(HostError::from)?;
            }
        }
        Ok(Self { stations, known: BTreeMap::new() })
    }

    /// The devices of a template's clients, with the Ethernet addresses of all routers and who they
    /// are; of routers
    /// that no client is behind nothing is asked.
    pub(in crate::emulation) fn resolve(
        &mut self,
        plan: &EmulationPlan,
        client: &Client,
        clients: AddressRange,
        goes_on: &mut impl FnMut(&Silence<'_>) -> bool,
    ) -> Result<Vec<Devices>, EmulationError> {
        let mut found = Vec::new();
        for devices in &client.devices {
            let Some(next_hop) = devices.next_hop else {
                found.push(*devices);
                continue;
            };
            let behind =
                (0..devices.count).map_while(|number| Some((number, behind(devices, number)?)));
            for (number, own) in behind {
                if common(&own, clients).is_none() {
                    continue;
                }
                let router =
                    AddressRange { first: next_hop.first, count: devices.count }.at(number.into());
                let key = (client.transmit, devices.vlan, router);
                let mac = match self.known.get(&key) {
                    Some(mac) => *mac,
                    None => {
                        let station = self.stations.get_mut(&client.transmit);
                        let place = station.as_ref().and_then(|it| it.place(devices.vlan));
                        // All were seen to when this was opened.
                        let (Some(station), Some(place), Some(from)) =
                            (station, place, asker(plan, client, &next_hop))
                        else {
                            continue;
                        };
                        let mac = station.ask(place, from, router, &mut *goes_on)?;
                        self.known.insert(key, mac);
                        mac
                    }
                };
                let next_hop =
                    Some(NextHop { first: router, from: asker(plan, client, &next_hop) });
                found.push(Devices { destination: Some(mac), next_hop, ..own });
            }
        }
        Ok(found)
    }

    /// Those that go on answering. What a port answers for in no VLAN it does itself.
    pub(in crate::emulation) fn into_stations(self, plan: &EmulationPlan) -> Vec<(usize, Station)> {
        let owns = |port: usize, host: &Host| {
            let own = &plan.ports[port].addresses;
            let is_own = |it: &Prefix| own.iter().any(|own| own.address == it.address);
            host.tags.is_empty() && host.addresses.iter().all(is_own)
        };
        let others = self.stations.into_iter();
        let stays = |(port, mut station): (usize, Station)| {
            station.keep(|host| !owns(port, host)).then_some((port, station))
        };
        others.filter_map(stays).collect()
    }
}

/// Clients and servers in VLANs, by the port and the VLAN: those whom the plan has behind tags, their
/// servers, and servers of which it says so.
fn guests(plan: &EmulationPlan) -> BTreeMap<(usize, Option<Vlans>), Vec<Guests>> {
    let mut guests: BTreeMap<_, Vec<Guests>> = BTreeMap::new();
    let mut add = |port: usize, vlan: Vlans, range: &AddressRange, every: u32| {
        let range = *range;
        let those = guests.entry((port, Some(vlan))).or_default();
        if !those.contains(&Guests { range, every }) {
            those.push(Guests { range, every });
        }
    };
    for template in &plan.templates {
        let (client, server) = (template.client.as_ref(), template.server.as_ref());
        let devices = client.into_iter().flat_map(|client| &client.devices);
        for (devices, vlan) in devices.clone().filter_map(|it| Some((it, it.vlan?))) {
            if let Some(client) = client
                && let Some(clients) = clients_of(plan, client)
                && let Some(behind) = common(devices, clients)
            {
                add(client.transmit, vlan, &behind, devices.every);
            }
        }
        let Some(server) = server else { continue };
        let known = client.map(|client| client.servers);
        let own = plan.ports[server.transmit].addresses.iter();
        let own = own.map(|own| AddressRange { first: own.address, count: 1 });
        let found: Vec<_> = server.addresses.into_iter().chain(known).collect();
        let found = if found.is_empty() { own.collect() } else { found };
        let vlans = devices.filter_map(|it| it.vlan).chain(server.vlans.iter().copied());
        for vlan in vlans {
            found.iter().for_each(|range| add(server.transmit, vlan, range, 1));
        }
    }
    guests
}

/// Who asks for a router: whom the plan says, or the port itself.
fn asker(plan: &EmulationPlan, client: &Client, next_hop: &NextHop) -> Option<IpAddr> {
    let own = plan.ports[client.transmit].addresses.iter().map(|own| own.address);
    let mut alike = own.filter(|own| own.is_ipv4() == next_hop.first.is_ipv4());
    next_hop.from.or_else(|| alike.next())
}

/// The clients behind the router of this number, which is the only one of what is returned; `None`
/// where there are not so many clients.
fn behind(devices: &Devices, number: u32) -> Option<Devices> {
    let before = number.checked_mul(devices.every)?;
    let count = devices.clients.count.checked_sub(before).filter(|count| *count > 0)?;
    let first = devices.clients.at(before.into());
    Some(Devices {
        clients: AddressRange { first, count },
        every: devices.every.saturating_mul(devices.count),
        count: 1,
        next_hop: None,
        ..*devices
    })
}

/// The clients of a template: those that it names, or the port itself.
pub(in crate::emulation) fn clients_of(
    plan: &EmulationPlan,
    client: &Client,
) -> Option<AddressRange> {
    let own = plan.ports[client.transmit].addresses.first();
    client.addresses.or(own.map(|own| AddressRange { first: own.address, count: 1 }))
}

/// Whether all clients of a template go by devices whose Ethernet addresses are known, or asked for.
pub(in crate::emulation) fn all_go_by(devices: &[Devices], clients: AddressRange) -> bool {
    let knows = |it: &Devices| it.destination.is_some() || it.next_hop.is_some();
    if !devices.iter().all(knows) {
        return false;
    }
    let all = devices.iter().filter(|it| it.every == 1);
    let mut next = 0;
    while next < clients.count {
        let behind =
            |it: &Devices| Some(it.clients.count - it.clients.place_of(clients.at(next.into()))?);
        let Some(count) = all.clone().find_map(behind) else { return false };
        next = next.saturating_add(count.max(1));
    }
    true
}

/// Which clients of a template these devices are told of: every so many of what is returned.
fn common(devices: &Devices, clients: AddressRange) -> Option<AddressRange> {
    let own = devices.clients;
    // The first of the devices' clients that is not before those of the template, and its place
    // among both.
    let (first, place) = match clients.place_of(own.first) {
        Some(place) => (0, place),
        None => {
            let before = own.place_of(clients.first)?;
            let first = before.checked_next_multiple_of(devices.every.max(1))?;
            (first, first - before)
        }
    };
    let left = own.count.checked_sub(first)?.min(clients.count.checked_sub(place)?);
    (left > 0).then(|| AddressRange { first: own.at(first.into()), count: left })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_plan::emulation::MplsLabels;

    fn range(first: &str, count: u32) -> AddressRange {
        AddressRange { first: first.parse().unwrap(), count }
    }

    #[test]
    fn each_router_has_its_clients() {
        let devices = Devices {
            clients: range("16.0.0.1", 5),
            every: 1,
            count: 4,
            vlan: Some(7.into()),
            labels: MplsLabels::default(),
            destination: None,
            source: None,
            next_hop: Some(NextHop { first: "1.1.1.1".parse().unwrap(), from: None }),
        };
        let second = behind(&devices, 1).unwrap();
        assert_eq!((second.clients, second.every), (range("16.0.0.2", 4), 4));
        // 16.0.0.2 alone, as 16.0.0.6 is in another group.
        assert_eq!(common(&second, range("16.0.0.0", 3)), Some(range("16.0.0.2", 1)));
        assert_eq!(common(&second, range("16.0.0.2", 1)), Some(range("16.0.0.2", 1)));
        assert_eq!(common(&second, range("16.0.0.3", 100)), None);
        let first = behind(&devices, 0).unwrap();
        assert_eq!(common(&first, range("16.0.0.3", 3)), Some(range("16.0.0.5", 1)));
        assert_eq!(common(&first, range("16.0.0.2", 3)), None);
        assert_eq!(behind(&Devices { clients: range("16.0.0.1", 1), ..devices }, 1), None);
    }

    #[test]
    fn clients_that_all_go_by_devices_need_no_other_way() {
        let devices = |first, count, every| Devices {
            clients: range(first, count),
            every,
            count: 1,
            vlan: None,
            labels: MplsLabels::default(),
            destination: Some(MacAddress([2, 0, 0, 0, 0, 1])),
            source: None,
            next_hop: None,
        };
        let both = [devices("16.0.0.4", 5, 1), devices("16.0.0.1", 3, 1)];
        assert!(all_go_by(&both, range("16.0.0.1", 8)));
        assert!(!all_go_by(&both, range("16.0.0.1", 9)));
        assert!(!all_go_by(&both, range("16.0.0.0", 2)));
        assert!(!all_go_by(&[devices("16.0.0.1", 4, 2)], range("16.0.0.1", 4)));
        let unknown = Devices { destination: None, ..devices("16.0.0.1", 1, 1) };
        assert!(!all_go_by(&[unknown, devices("16.0.0.1", 4, 1)], range("16.0.0.1", 4)));
    }
}
