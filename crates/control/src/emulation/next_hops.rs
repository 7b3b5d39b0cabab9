//! Routers that clients are behind: asked for their Ethernet addresses, each in its VLAN.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_plan::emulation::{AddressRange, Client, Devices, EmulationPlan, NextHop, Vlans};
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use super::error::EmulationError;
use super::neighbours::at;
use crate::host::{HostError, Silence, Station};

/// Hosts beside those of the ports themselves, by port and VLAN.
pub(super) struct NextHops {
    stations: BTreeMap<(usize, Option<Vlans>), Station>,
    /// Routers that have answered.
    known: BTreeMap<(usize, Option<Vlans>, IpAddr), MacAddress>,
}

impl NextHops {
    /// Lets ports answer for what a plan has beside their own addresses. `interfaces`: of each port
    /// that is used, its name and Ethernet address.
    pub(super) fn open(
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
        let mut stations: BTreeMap<_, Station> = BTreeMap::new();
        for ((port, vlan), addresses) in addresses {
            let Some(Some((interface, _))) = interfaces.get(port) else { continue };
            let alone = |address: IpAddr| {
                let length = if address.is_ipv4() { 32 } else { 128 };
                Prefix { address, length }
            };
            let addresses = addresses.into_iter().map(alone).collect();
            let station = Station::open_in(interface, vlan, addresses, Vec::new())?;
            stations.insert((port, vlan), station);
        }
        // All hear the announcements, so that ports find each other, which do not answer yet.
        for station in stations.values_mut() {
            station.announce().map_err(HostError::from)?;
        }
        Ok(Self { stations, known: BTreeMap::new() })
    }

    /// The devices of a template's clients, with the Ethernet addresses of all routers; of routers
    /// that no client is behind nothing is asked.
    pub(super) fn resolve(
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
                if !has_any(&own, clients) {
                    continue;
                }
                let router =
                    at(&AddressRange { first: next_hop.first, count: devices.count }, number);
                let key = (client.transmit, devices.vlan, router);
                let mac = match self.known.get(&key) {
                    Some(mac) => *mac,
                    None => {
                        let station = self.stations.get_mut(&(client.transmit, devices.vlan));
                        // Both were seen to when this was opened.
                        let (Some(station), Some(from)) = (station, asker(plan, client, &next_hop))
                        else {
                            continue;
                        };
                        let mac = station.ask(from, router, &mut *goes_on)?;
                        self.known.insert(key, mac);
                        mac
                    }
                };
                found.push(Devices { destination: Some(mac), ..own });
            }
        }
        Ok(found)
    }

    /// Those that go on answering. What a port answers for in no VLAN it does itself.
    pub(super) fn into_stations(self, plan: &EmulationPlan) -> Vec<Station> {
        let owns = |port: usize, station: &Station| {
            let own = &plan.ports[port].addresses;
            let is_own = |it: &Prefix| own.iter().any(|own| own.address == it.address);
            station.host().addresses.iter().all(is_own)
        };
        let others = self.stations.into_iter();
        others
            .filter(|((port, vlan), station)| vlan.is_some() || !owns(*port, station))
            .map(|(_, station)| station)
            .collect()
    }
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
    let first = at(&devices.clients, before);
    Some(Devices {
        clients: AddressRange { first, count },
        every: devices.every.saturating_mul(devices.count),
        count: 1,
        next_hop: None,
        ..*devices
    })
}

/// Whether a router has any of these clients behind it.
fn has_any(devices: &Devices, clients: AddressRange) -> bool {
    let (every, count) = (u64::from(devices.every), u64::from(clients.count));
    // The first of the router's clients that is not before those of the template.
    match (devices.clients.place_of(clients.first), clients.place_of(devices.clients.first)) {
        (_, Some(_)) => true,
        (Some(place), None) => {
            let place = u64::from(place);
            let next = place.next_multiple_of(every);
            next < u64::from(devices.clients.count) && next - place < count
        }
        (None, None) => false,
    }
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
        assert!(has_any(&second, range("16.0.0.0", 3)));
        assert!(has_any(&second, range("16.0.0.2", 1)));
        assert!(!has_any(&second, range("16.0.0.3", 100)));
        let first = behind(&devices, 0).unwrap();
        assert!(has_any(&first, range("16.0.0.3", 3)), "16.0.0.5");
        assert!(!has_any(&first, range("16.0.0.2", 3)));
        assert_eq!(behind(&Devices { clients: range("16.0.0.1", 1), ..devices }, 1), None);
    }
}
