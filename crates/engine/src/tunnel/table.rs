//! Table of the clients' tunnels.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};
use core::num::NonZeroU16;

use wirestorm_model::tunnel::ClientTunnels;

/// Tunnel of one client, as seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Tunnel endpoint identifier (TEID).
    pub teid: u32,
    /// Outer address of this end.
    pub from: IpAddr,
    /// Outer address of the other end, of the same family.
    pub to: IpAddr,
    /// Outer UDP source port; `None` uses the source port of the inner packet.
    pub source_port: Option<NonZeroU16>,
}

impl Tunnel {
    /// Returns the tunnel as seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }
}

/// Tunnels of clients, stored as ranges: 100,000 clients with consecutive TEIDs are one entry. IPv4
/// clients have IPv4-mapped IPv6 addresses (RFC 4291 section 2.5.5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelTable {
    /// Ranges by their first client; they do not overlap.
    ranges: BTreeMap<u128, Range>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    last: u128,
    /// Tunnel of the first client.
    tunnel: Tunnel,
    /// Difference between the TEIDs of two successive clients.
    step: u32,
}

impl TunnelTable {
    /// Adds tunnels; they replace existing ones of the same clients.
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
            && let Some(step) = before.joined_step(*start, first, &added)
        {
            (before.last, before.step) = (last, step);
            return;
        }
        self.ranges.insert(first, added);
    }

    /// Returns the tunnel of a client.
    #[inline]
    pub fn of(&self, client: IpAddr) -> Option<Tunnel> {
        let client = number(client);
        let (first, range) = self.ranges.range(..=client).next_back()?;
        (client <= range.last).then(|| range.of(client - first))
    }

    /// Returns the number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Returns whether any tunnel runs over IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.ranges.values().any(|range| range.tunnel.from.is_ipv6())
    }

    fn remove(&mut self, first: u128, last: u128) {
        // Cut the range that begins before `first` and reaches into the removed part.
        if let Some((&start, range)) = self.ranges.range_mut(..first).next_back()
            && range.last >= first
        {
            let all = *range;
            range.last = first - 1;
            self.insert_tail(start, all, last);
        }
        while let Some((&start, _)) = self.ranges.range(first..=last).next() {
            let Some(all) = self.ranges.remove(&start) else { break };
            self.insert_tail(start, all, last);
        }
    }

    /// Puts back the part of a range after client `last`.
    fn insert_tail(&mut self, start: u128, range: Range, last: u128) {
        if range.last > last {
            let tunnel = range.of(last + 1 - start);
            self.ranges.insert(last + 1, Range { tunnel, ..range });
        }
    }
}

impl Range {
    fn of(&self, place: u128) -> Tunnel {
        // TEIDs wrap modulo 2^32.
        let teid = self.tunnel.teid.wrapping_add(self.step.wrapping_mul(place as u32));
        Tunnel { teid, ..self.tunnel }
    }

    /// Returns the step of a joined range if `next` continues this one.
    fn joined_step(&self, start: u128, first: u128, next: &Self) -> Option<u32> {
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
    fn teids_increase_from_client_to_client() {
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
    fn record_replaces_a_part_of_a_range() {
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
    fn consecutive_records_join_to_one_range() {
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
