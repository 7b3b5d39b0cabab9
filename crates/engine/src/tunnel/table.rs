//! Which tunnel a client has.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};
use core::num::NonZeroU16;

use wirestorm_model::tunnel::ClientTunnels;

/// The tunnel of one client, seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Its tunnel endpoint identifier.
    pub teid: u32,
    /// This end.
    pub from: IpAddr,
    /// The other one, of the same family.
    pub to: IpAddr,
    /// The port of UDP that packets come from; `None`: the one that the packet within comes from.
    pub source_port: Option<NonZeroU16>,
}

impl Tunnel {
    /// The same seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }
}

/// The tunnels of clients, as ranges: those of 100,000 clients whose identifiers count are one entry.
/// Clients of IPv4 are those of IPv6 that they are mapped to (RFC 4291 section 2.5.5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelTable {
    /// By the first client; one range ends before the next one begins.
    ranges: BTreeMap<u128, Range>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    last: u128,
    /// The first client's.
    tunnel: Tunnel,
    /// What is added to the identifier for each next one.
    step: u32,
}

impl TunnelTable {
    /// Tells of clients' tunnels, which take the place of those that they have.
    pub fn insert(&mut self, tunnels: &ClientTunnels) {
        let (first, last) = (number(tunnels.first), number(tunnels.last));
        if last < first {
            return;
        }
        self.remove(first, last);
        let &ClientTunnels { teid, from, to, source_port, teid_step: step, .. } = tunnels;
        let added = Range { last, tunnel: Tunnel { teid, from, to, source_port }, step };
        let before = self.ranges.range_mut(..first).next_back();
        if let Some((start, before)) = before
            && let Some(step) = before.continued_by(*start, first, &added)
        {
            (before.last, before.step) = (last, step);
            return;
        }
        self.ranges.insert(first, added);
    }

    /// The tunnel of a client.
    #[inline]
    pub fn of(&self, client: IpAddr) -> Option<Tunnel> {
        let client = number(client);
        let (first, range) = self.ranges.range(..=client).next_back()?;
        (client <= range.last).then(|| range.of(client - first))
    }

    /// How many ranges it has.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Whether any of the tunnels is over IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.ranges.values().any(|range| range.tunnel.from.is_ipv6())
    }

    fn remove(&mut self, first: u128, last: u128) {
        // The one that begins before and ends within or behind.
        if let Some((&start, range)) = self.ranges.range_mut(..first).next_back()
            && range.last >= first
        {
            let all = *range;
            range.last = first - 1;
            self.put_back(start, all, last);
        }
        while let Some((&start, _)) = self.ranges.range(first..=last).next() {
            let Some(all) = self.ranges.remove(&start) else { break };
            self.put_back(start, all, last);
        }
    }

    /// What of a range is behind a client.
    fn put_back(&mut self, start: u128, range: Range, last: u128) {
        if range.last > last {
            let tunnel = range.of(last + 1 - start);
            self.ranges.insert(last + 1, Range { tunnel, ..range });
        }
    }
}

impl Range {
    fn of(&self, place: u128) -> Tunnel {
        // Modulo 2^32, as identifiers are.
        let teid = self.tunnel.teid.wrapping_add(self.step.wrapping_mul(place as u32));
        Tunnel { teid, ..self.tunnel }
    }

    /// The step of both as one range, where `next` goes on with what this is.
    fn continued_by(&self, start: u128, first: u128, next: &Self) -> Option<u32> {
        let others = |tunnel: &Tunnel| (tunnel.from, tunnel.to, tunnel.source_port);
        let is_next = self.last + 1 == first && others(&self.tunnel) == others(&next.tunnel);
        let step = match (start == self.last, first == next.last) {
            (true, true) => next.tunnel.teid.wrapping_sub(self.tunnel.teid),
            (true, false) => next.step,
            (false, true) => self.step,
            (false, false) if self.step == next.step => self.step,
            (false, false) => return None,
        };
        let expected = Self { step, ..*self }.of(first - start);
        (is_next && expected == next.tunnel).then_some(step)
    }
}

impl<'a> FromIterator<&'a ClientTunnels> for TunnelTable {
    fn from_iter<T: IntoIterator<Item = &'a ClientTunnels>>(all: T) -> Self {
        let mut table = Self::default();
        all.into_iter().for_each(|tunnels| table.insert(tunnels));
        table
    }
}

fn number(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const FIRST: u32 = 0x1000_0000;

    fn client(place: u32) -> IpAddr {
        Ipv4Addr::from_bits(FIRST + place).into()
    }

    fn tunnels(first: u32, last: u32, teid: u32, teid_step: u32) -> ClientTunnels {
        ClientTunnels {
            first: client(first),
            last: client(last),
            teid,
            teid_step,
            from: "1.1.1.11".parse().unwrap(),
            to: "12.2.2.2".parse().unwrap(),
            source_port: NonZeroU16::new(5_000),
        }
    }

    fn teids(table: &TunnelTable, count: u32) -> alloc::vec::Vec<Option<u32>> {
        (0..count).map(|place| Some(table.of(client(place))?.teid)).collect()
    }

    #[test]
    fn identifiers_count_from_client_to_client() {
        let table: TunnelTable = [tunnels(1, 3, 10, 5)].iter().collect();
        assert_eq!(teids(&table, 5), [None, Some(10), Some(15), Some(20), None]);
        let last: TunnelTable = [tunnels(0, 1, u32::MAX, 1)].iter().collect();
        assert_eq!(teids(&last, 2), [Some(u32::MAX), Some(0)]);
        let six: ClientTunnels = ClientTunnels {
            first: "2001:db8::1".parse().unwrap(),
            last: "2001:db8::ffff:ffff".parse().unwrap(),
            ..tunnels(0, 0, 7, 1)
        };
        let table: TunnelTable = [six].iter().collect();
        assert_eq!(table.of("2001:db8::3".parse().unwrap()).unwrap().teid, 9);
        assert_eq!(table.of("2001:db9::".parse().unwrap()), None);
    }

    #[test]
    fn a_record_takes_the_place_of_a_part_of_a_range() {
        let mut table: TunnelTable = [tunnels(0, 9, 100, 1)].iter().collect();
        table.insert(&tunnels(4, 4, 7, 0));
        assert_eq!(table.ranges(), 3);
        let some = |teid: u32| Some(teid);
        let mut expected: alloc::vec::Vec<_> = (100..110).map(some).collect();
        expected[4] = Some(7);
        assert_eq!(teids(&table, 10), expected);
        table.insert(&tunnels(3, 6, 1, 1));
        expected.splice(3..7, (1..5).map(some));
        assert_eq!(teids(&table, 10), expected);
        table.insert(&tunnels(0, 9, 100, 1));
        assert_eq!((table.ranges(), teids(&table, 1)), (1, alloc::vec![Some(100)]));
    }

    #[test]
    fn records_that_count_are_one_range() {
        let records: alloc::vec::Vec<_> =
            (0..100_000).map(|place| tunnels(place, place, 7 + place, 0)).collect();
        let table: TunnelTable = records.iter().collect();
        assert_eq!(table.ranges(), 1);
        assert_eq!(table.of(client(99_999)).unwrap().teid, 100_006);
        let mut other = table.clone();
        let to = "12.2.2.3".parse().unwrap();
        other.insert(&ClientTunnels { to, ..tunnels(100_000, 100_000, 100_007, 0) });
        assert_eq!(other.ranges(), 2);
    }
}
