//! Who connects to whom, from which port.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::RangeInclusive;

use wirestorm_wire::flow::FlowKey;

use crate::frame::octets;

/// Addresses that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// The first.
    pub first: IpAddr,
    /// How many, at least 1; behind the greatest address of its family comes the least.
    pub count: u32,
}

impl AddressRange {
    /// Whether an address is one of these.
    #[inline]
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let offset = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().wrapping_sub(first.to_bits()).into()
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits().wrapping_sub(first.to_bits())
            }
            _ => return false,
        };
        offset < u128::from(self.count.max(1))
    }

    /// The address at a place, which counts from 0 and round.
    #[inline]
    fn at(&self, place: u64) -> IpAddr {
        let offset = (place % u64::from(self.count.max(1))) as u32;
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(offset)).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits().wrapping_add(u128::from(offset))).into()
            }
        }
    }
}

/// The tuples of a template's connections, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuples {
    /// Clients; of the same family as the servers.
    pub clients: AddressRange,
    /// Servers.
    pub servers: AddressRange,
    /// The port they connect to.
    pub server_port: u16,
    /// Ports they connect from.
    pub client_ports: RangeInclusive<u16>,
}

impl Tuples {
    /// The tuple of the connection `number`, as its answers have it: every client's turn, then
    /// the next server for each of them, then the next port.
    #[inline]
    pub(super) fn answers_to(&self, number: u64, protocol: u8) -> FlowKey {
        let clients = u64::from(self.clients.count.max(1));
        let servers = u64::from(self.servers.count.max(1));
        let ports = u64::from(self.client_ports.end().saturating_sub(*self.client_ports.start()));
        let (turn, client) = (number / clients, number % clients);
        let port = *self.client_ports.start() + (turn / servers % (ports + 1)) as u16;
        let key = match (self.servers.at(client + turn % servers), self.clients.at(client)) {
            (IpAddr::V4(server), IpAddr::V4(client)) => {
                FlowKey::ipv4(server.octets(), client.octets(), protocol)
            }
            (server, client) => FlowKey::ipv6(octets(server), octets(client), protocol),
        };
        key.with_ports(self.server_port, port)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        let ports = self.client_ports.end().saturating_sub(*self.client_ports.start());
        u64::from(self.clients.count) * u64::from(self.servers.count) * (u64::from(ports) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use wirestorm_wire::packet::protocol;

    #[test]
    fn every_tuple_comes_once_before_any_comes_again() {
        let range = |first: &str, count| AddressRange { first: first.parse().unwrap(), count };
        for (clients, servers) in [("16.0.0.254", "48.0.0.1"), ("2001:db8::fffe", "2001:db8:1::1")]
        {
            let tuples = Tuples {
                clients: range(clients, 3),
                servers: range(servers, 4),
                server_port: 80,
                client_ports: 65_530..=65_535,
            };
            let count = tuples.count();
            assert_eq!(count, 3 * 4 * 6);
            let all: BTreeSet<_> =
                (0..count).map(|it| tuples.answers_to(it, protocol::TCP)).collect();
            assert_eq!(all.len() as u64, count);
            assert_eq!(
                tuples.answers_to(count, protocol::TCP),
                tuples.answers_to(0, protocol::TCP)
            );
            assert!(all.iter().all(|key| key.source_port() == 80));
        }
    }
}
