//! Addresses and ports of clients' flows.

use core::net::IpAddr;
use core::ops::RangeInclusive;

use wirestorm_model::address_range::AddressRange;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_wire::flow::FlowKey;

use super::address_set::SwitchedOff;
use crate::frame::octets;
use wirestorm_base::random::Random;

/// The tuples of a template's flows, one after the other. Where one is in use, the next free port
/// of the same client and server is taken, so each pair of them has all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuples {
    /// Client addresses, of the same family as the servers.
    pub clients: AddressRange,
    /// Order in which clients connect.
    pub order: ClientOrder,
    /// Server addresses.
    pub servers: AddressRange,
    /// Selection of a client's server.
    pub pairing: Pairing,
    /// Server port.
    pub server_port: u16,
    /// Source ports of clients.
    pub client_ports: RangeInclusive<u16>,
    /// Consecutive flows of a client with one server; at least 1. Random clients and servers are
    /// drawn for each flow.
    pub consecutive_flows: u32,
    /// Number of flows after which the tuples repeat, except for random parts; `None`: after all
    /// tuples.
    pub reuse_after: Option<u64>,
}

/// Ends of a flow that a program starts.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Origin {
    pub(in crate::endpoint) client: IpAddr,
    /// Client port; `None`: a port of the template.
    pub(in crate::endpoint) port: Option<u16>,
    /// Address and port of the server; `None`: those of the template.
    pub(in crate::endpoint) server: Option<(IpAddr, u16)>,
}

/// Ports tried for a flow.
const PORTS_MAX: u32 = 64;

impl Tuples {
    /// Returns the number of the first flow, from `number` on, whose client is on; `None` if all
    /// are off.
    pub(in crate::endpoint) fn next_switched_on(
        &self,
        number: u64,
        off: &SwitchedOff,
    ) -> Option<u64> {
        if off.on() == 0 {
            return None;
        }
        if self.order == ClientOrder::Random {
            return Some(number);
        }
        let each = u64::from(self.consecutive_flows.max(1));
        let clients = self.clients.count.max(1);
        let mut number = number;
        // Search to the end of the repeated sequence, then once through all of it.
        for _ in 0..2 {
            let again = self.reuse_after.map(|flows| flows.max(1));
            let within = again.map_or(number, |flows| number % flows);
            let turn = within / each;
            let ahead = off.ahead((turn % u64::from(clients)) as u32, clients);
            if ahead == 0 {
                return Some(number);
            }
            let next = (turn + u64::from(ahead)) * each;
            match again.filter(|flows| next >= *flows) {
                None => return Some(number - within + next),
                Some(flows) => number = number - within + flows,
            }
        }
        None
    }

    /// Whether no part is random.
    #[inline]
    pub(in crate::endpoint) fn is_round_robin(&self) -> bool {
        self.order == ClientOrder::RoundRobin && self.pairing != Pairing::Random
    }

    /// Returns the tuples for the flow `number`, as in received packets, in the order to try them.
    /// `origin` gives fixed ends, if any. Random clients are among those that are on.
    ///
    /// `first_port` is the offset of the first flow's port among the client ports.
    ///
    /// In round robin, each client has a turn, then each client uses the next server, then the next
    /// port. A longer turn uses as many ports as it has flows.
    #[inline]
    pub(in crate::endpoint) fn tuples_for(
        &self,
        number: u64,
        first_port: u32,
        origin: Option<Origin>,
        protocol: u8,
        off: Option<&SwitchedOff>,
        random: &mut Random,
    ) -> impl Iterator<Item = FlowKey> {
        let clients = u64::from(self.clients.count.max(1));
        let servers = u64::from(self.servers.count.max(1));
        let client = origin.map(|it| it.client);
        let is_in_turn = client.is_none() && self.order == ClientOrder::RoundRobin;
        let number = self.reuse_after.map_or(number, |flows| number % flows.max(1));
        let each = if is_in_turn { u64::from(self.consecutive_flows.max(1)) } else { 1 };
        let (number, within) = (number / each, number % each);
        let client_place = match (client, self.order) {
            (Some(client), _) => self.clients.offset_of(client).map_or(0, u64::from),
            (None, ClientOrder::RoundRobin) => number % clients,
            (None, ClientOrder::Random) => match off {
                None => random.below(self.clients.count).into(),
                Some(off) => off.nth(random.below(off.on())).into(),
            },
        };
        let turn = if is_in_turn { number / clients } else { number };
        let (server_place, port_turn) = match self.pairing {
            Pairing::RoundRobin => (client_place + turn % servers, turn / servers),
            Pairing::Random => (random.below(self.servers.count).into(), turn),
            Pairing::Fixed => (client_place, turn),
        };
        let port_turn = port_turn * each + within;
        let port = origin.and_then(|it| it.port);
        let ports = port.map_or(self.client_ports.clone(), |it| it..=it);
        let first = *ports.start();
        let ports = u32::from(ports.end().saturating_sub(first)) + 1;
        let port_place = match client.is_none() && self.is_round_robin() {
            true => ((port_turn + u64::from(first_port)) % u64::from(ports)) as u32,
            false => random.below(ports),
        };
        let client = client.unwrap_or_else(|| self.clients.at(client_place));
        let usual = || (self.servers.at(server_place), self.server_port);
        let (server, server_port) = origin.and_then(|it| it.server).unwrap_or_else(usual);
        let key = match (server, client) {
            (IpAddr::V4(server), IpAddr::V4(client)) => {
                FlowKey::ipv4(server.octets(), client.octets(), protocol)
            }
            (server, client) => FlowKey::ipv6(octets(server), octets(client), protocol),
        };
        let port = move |step| first + ((port_place + step) % ports) as u16;
        // A client and a server of different families cannot connect.
        let tried = if server.is_ipv4() == client.is_ipv4() { ports.min(PORTS_MAX) } else { 0 };
        (0..tried).map(move |step| key.with_ports(server_port, port(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::address_set::AddressSet;
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use wirestorm_wire::packet::protocol;

    fn tuples(clients: &str, servers: &str) -> Tuples {
        let range = |first: &str, count| AddressRange { first: first.parse().unwrap(), count };
        Tuples {
            clients: range(clients, 3),
            order: ClientOrder::RoundRobin,
            servers: range(servers, 4),
            pairing: Pairing::RoundRobin,
            server_port: 80,
            client_ports: 65_530..=65_535,
            consecutive_flows: 1,
            reuse_after: None,
        }
    }

    const FAMILIES: [(&str, &str); 2] =
        [("16.0.0.254", "48.0.0.1"), ("2001:db8::fffe", "2001:db8:1::1")];

    fn first(tuples: &Tuples, number: u64) -> FlowKey {
        let random = &mut Random::new(number);
        tuples.tuples_for(number, 0, None, protocol::TCP, None, random).next().unwrap()
    }

    #[test]
    fn every_tuple_is_used_once_before_any_repeats() {
        for (clients, servers) in FAMILIES {
            for (pairing, count) in [(Pairing::RoundRobin, 3 * 4 * 6), (Pairing::Fixed, 3 * 6)] {
                let tuples = Tuples { pairing, ..tuples(clients, servers) };
                let all: BTreeSet<_> = (0..count).map(|it| first(&tuples, it)).collect();
                assert_eq!(all.len() as u64, count);
                assert_eq!(first(&tuples, count), first(&tuples, 0));
                assert!(all.iter().all(|key| key.source_port() == 80));
            }
        }
    }

    #[test]
    fn the_first_port_only_rotates_the_ports() {
        let tuples = tuples(FAMILIES[0].0, FAMILIES[0].1);
        let key = |number, first_port| {
            let random = &mut Random::new(number);
            tuples.tuples_for(number, first_port, None, protocol::TCP, None, random).next().unwrap()
        };
        let ends = |key: &FlowKey| (key.destination(), key.source());
        for first_port in 0..6 {
            let all: Vec<_> = (0..3 * 4 * 6).map(|number| key(number, first_port)).collect();
            assert_eq!(all[0].destination_port(), 65_530 + first_port as u16);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3 * 4 * 6);
            let usual = (0..3 * 4 * 6).map(|number| ends(&key(number, 0)));
            assert!(usual.eq(all.iter().map(ends)));
        }
    }

    #[test]
    fn flows_of_a_turn_share_client_and_server() {
        for (clients, servers) in FAMILIES {
            let tuples = Tuples { consecutive_flows: 2, ..tuples(clients, servers) };
            let turns: Vec<_> = (0..8).map(|it| first(&tuples, it)).collect();
            for turn in turns.chunks(2) {
                let pairs: BTreeSet<_> =
                    turn.iter().map(|it| (it.destination(), it.source())).collect();
                let ports: Vec<_> = turn.iter().map(FlowKey::destination_port).collect();
                assert_eq!((pairs.len(), ports), (1, [65_530, 65_531].to_vec()));
            }
            // Three clients, then the first one with its next server.
            let of = |number: usize| (turns[number].destination(), turns[number].source());
            assert_eq!(of(0).0, of(6).0);
            assert_ne!(of(0).1, of(6).1);
            let all: BTreeSet<_> = (0..3 * 4 * 6).map(|it| first(&tuples, it)).collect();
            assert_eq!(all.len(), 3 * 4 * 6);
        }
    }

    #[test]
    fn tuples_repeat_after_the_given_number() {
        for turn in [1, 2] {
            let (clients, servers) = FAMILIES[0];
            let tuples = Tuples {
                consecutive_flows: turn,
                reuse_after: Some(7),
                ..tuples(clients, servers)
            };
            let all: BTreeSet<_> = (0..70).map(|it| first(&tuples, it)).collect();
            assert_eq!(all.len(), 7);
            assert_eq!(first(&tuples, 7), first(&tuples, 0));
        }
    }

    #[test]
    fn fixed_pairing_keeps_pairs() {
        for (clients, servers) in FAMILIES {
            let tuples = Tuples { pairing: Pairing::Fixed, ..tuples(clients, servers) };
            for order in [ClientOrder::RoundRobin, ClientOrder::Random] {
                let tuples = Tuples { order, ..tuples.clone() };
                let pairs: BTreeSet<_> = (0..100)
                    .map(|it| first(&tuples, it))
                    .map(|key| (key.destination(), key.source()))
                    .collect();
                let expected: BTreeSet<_> =
                    (0..3).map(|it| (tuples.clients.at(it), tuples.servers.at(it))).collect();
                assert_eq!(pairs, expected);
            }
        }
    }

    #[test]
    fn random_tuples_are_uniform() {
        let tuples = Tuples {
            order: ClientOrder::Random,
            pairing: Pairing::Random,
            ..tuples(FAMILIES[0].0, FAMILIES[0].1)
        };
        let mut random = Random::new(1);
        let mut counts = alloc::collections::BTreeMap::new();
        for number in 0..72_000 {
            let key = tuples
                .tuples_for(number, 0, None, protocol::UDP, None, &mut random)
                .next()
                .unwrap();
            *counts.entry(key).or_insert(0) += 1;
        }
        // Each of 72 is expected 1,000 times, with a standard deviation of 31.
        assert_eq!(counts.len(), 3 * 4 * 6);
        assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn further_ports_wrap_around() {
        let tuples = tuples(FAMILIES[0].0, FAMILIES[0].1);
        // The fifth port of the first client.
        let number = 4 * 3 * 4;
        let tried: Vec<_> =
            tuples.tuples_for(number, 0, None, protocol::TCP, None, &mut Random::new(0)).collect();
        let ports: Vec<_> = tried.iter().map(FlowKey::destination_port).collect();
        assert_eq!(ports, [65_534, 65_535, 65_530, 65_531, 65_532, 65_533]);
        let pairs: BTreeSet<_> = tried.iter().map(|it| (it.source(), it.destination())).collect();
        assert_eq!(pairs.len(), 1);
    }

    #[test]
    fn a_fixed_client_uses_all_servers() {
        let tuples = tuples(FAMILIES[0].0, FAMILIES[0].1);
        let client: IpAddr = "16.0.0.255".parse().unwrap();
        let of = |client| Origin { client, port: None, server: None };
        let mut random = Random::new(0);
        let mut servers = BTreeSet::new();
        for number in 0..4 {
            let key = tuples
                .tuples_for(number, 0, Some(of(client)), protocol::TCP, None, &mut random)
                .next()
                .unwrap();
            assert_eq!(key.destination(), client);
            servers.insert(key.source());
        }
        assert_eq!(servers.len(), 4);
        let other: IpAddr = "2001:db8::1".parse().unwrap();
        let none =
            tuples.tuples_for(0, 0, Some(of(other)), protocol::TCP, None, &mut random).next();
        assert_eq!(none, None, "of another family");
        let server = ("48.0.0.99".parse().unwrap(), 50_000);
        let to = Origin { server: Some(server), ..of(client) };
        let keys = tuples.tuples_for(0, 0, Some(to), protocol::TCP, None, &mut random);
        assert!({ keys }.all(|key| (key.source(), key.source_port()) == server));
        // A fixed port may be outside the template's ports, and is the only one tried.
        let from = Origin { port: Some(2_000), ..to };
        let keys = tuples.tuples_for(7, 0, Some(from), protocol::TCP, None, &mut random);
        assert_eq!(keys.map(|key| key.destination_port()).collect::<Vec<_>>(), [2_000]);
    }

    fn off(tuples: &Tuples, places: &[u64]) -> Option<SwitchedOff> {
        let mut set = AddressSet::default();
        set.add(places.iter().map(|it| (tuples.clients.at(*it), tuples.clients.at(*it))));
        SwitchedOff::of(&tuples.clients, &set)
    }

    #[test]
    fn clients_that_are_off_are_skipped() {
        for (clients, servers) in FAMILIES {
            for turn in [1, 2] {
                let tuples = Tuples { consecutive_flows: turn, ..tuples(clients, servers) };
                let all = 3 * 4 * 6;
                for places in [&[1][..], &[0, 2], &[2]] {
                    let off = off(&tuples, places).unwrap();
                    let mut next = 0;
                    let mut found = Vec::new();
                    while let Some(number) =
                        tuples.next_switched_on(next, &off).filter(|it| *it < all)
                    {
                        found.push(number);
                        next = number + 1;
                    }
                    let is_on = |number: &u64| {
                        let client = first(&tuples, *number).destination();
                        places.iter().all(|it| tuples.clients.at(*it) != client)
                    };
                    // The other flows are the same as if all clients were on, in the same order.
                    let expected: Vec<u64> = (0..all).filter(is_on).collect();
                    assert_eq!(found, expected, "{places:?} off");
                }
                assert_eq!(tuples.next_switched_on(0, &off(&tuples, &[0, 1, 2]).unwrap()), None);
                assert!(off(&tuples, &[]).is_none());
            }
        }
    }

    #[test]
    fn repeated_tuples_skip_clients_that_are_off() {
        let tuples = Tuples { reuse_after: Some(2), ..tuples(FAMILIES[0].0, FAMILIES[0].1) };
        // The third client never has a turn.
        assert_eq!(tuples.next_switched_on(6, &off(&tuples, &[0, 1]).unwrap()), None);
        let off = off(&tuples, &[0]).unwrap();
        let numbers: Vec<_> = (6..10).map(|it| tuples.next_switched_on(it, &off)).collect();
        assert_eq!(numbers, [7, 7, 9, 9].map(Some));
    }

    #[test]
    fn random_clients_are_uniform_among_those_on() {
        let tuples = Tuples { order: ClientOrder::Random, ..tuples(FAMILIES[1].0, FAMILIES[1].1) };
        let off = off(&tuples, &[1]).unwrap();
        let mut random = Random::new(1);
        let mut counts = alloc::collections::BTreeMap::new();
        for number in 0..2_000 {
            assert_eq!(tuples.next_switched_on(number, &off), Some(number));
            let mut keys =
                tuples.tuples_for(number, 0, None, protocol::TCP, Some(&off), &mut random);
            *counts.entry(keys.next().unwrap().destination()).or_insert(0) += 1;
        }
        let expected = [0, 2].map(|it| tuples.clients.at(it));
        assert!(counts.keys().eq(&expected), "{counts:?}");
        // A standard deviation of 22.
        assert!(counts.values().all(|count| (880..1_120).contains(count)), "{counts:?}");
    }
}
