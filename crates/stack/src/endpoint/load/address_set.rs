//! Clients that are switched off: they start no flows, but their existing flows continue.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::frame::octets;
use wirestorm_model::address_range::AddressRange;

/// Set of addresses, as few ranges. IPv4 addresses equal the IPv6 addresses that they map to (RFC
/// 4291 section 2.5.5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// First and last addresses as numbers, sorted, with a gap between ranges.
    ranges: Vec<(u128, u128)>,
}

impl AddressSet {
    /// Adds ranges of first and last addresses. A range whose first address is greater than its
    /// last one is empty.
    pub fn add(&mut self, ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) {
        let mut all: Vec<_> = self.ranges.drain(..).chain(numbers(ranges)).collect();
        all.sort_unstable();
        for (first, last) in all {
            match self.ranges.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => self.ranges.push((first, last)),
            }
        }
    }

    /// Removes ranges.
    pub fn remove(&mut self, ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) {
        let mut gone = Self::default();
        gone.add(ranges);
        let mut gone = gone.ranges.into_iter().peekable();
        let mut left = Vec::new();
        for (mut first, last) in self.ranges.drain(..) {
            let mut is_all_gone = false;
            while let Some(&(from, to)) = gone.peek()
                && from <= last
            {
                if from > first {
                    left.push((first, from - 1));
                }
                first = first.max(to.saturating_add(1));
                if to >= last {
                    // The next range may start within the removed one.
                    is_all_gone = true;
                    break;
                }
                gone.next();
            }
            if !is_all_gone {
                left.push((first, last));
            }
        }
        self.ranges = left;
    }

    /// Whether the set contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        let behind = self.ranges.partition_point(|it| it.0 <= number);
        behind.checked_sub(1).is_some_and(|place| number <= self.ranges[place].1)
    }

    /// Returns the number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }
}

fn number(address: IpAddr) -> u128 {
    u128::from_be_bytes(octets(address))
}

fn numbers(
    ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>,
) -> impl Iterator<Item = (u128, u128)> {
    let ranges = ranges.into_iter().map(|(first, last)| (number(first), number(last)));
    ranges.filter(|(first, last)| first <= last)
}

/// Clients of a template that are switched off, by index.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct SwitchedOff {
    ranges: Vec<Places>,
    /// Number of clients that are on.
    on: u32,
}

/// Range of clients that are off.
#[derive(Clone, Copy, Debug)]
struct Places {
    first: u32,
    last: u32,
    /// Number of clients before the range that are on.
    on_before: u32,
}

impl SwitchedOff {
    /// Returns the clients in a set; `None` if there are none.
    pub(in crate::endpoint) fn of(clients: &AddressRange, set: &AddressSet) -> Option<Self> {
        let count = clients.count.max(1);
        let from = number(clients.first);
        let to = from.saturating_add(u128::from(count - 1));
        let mut ranges: Vec<Places> = Vec::new();
        let mut off = 0;
        for &(first, last) in set.ranges.iter().filter(|it| it.0 <= to && from <= it.1) {
            // Both are clients, whose indices have 32 bits.
            let [first, last] = [first.max(from), last.min(to)].map(|it| (it - from) as u32);
            ranges.push(Places { first, last, on_before: first - off });
            off += last - first + 1;
        }
        (off > 0).then_some(Self { ranges, on: count - off })
    }

    /// Returns the number of clients that are on.
    pub(in crate::endpoint) const fn on(&self) -> u32 {
        self.on
    }

    /// Returns the distance from a client to the next one that is on, with wrap-around; 0 if it is
    /// on itself. `count` is the number of clients; one must be on.
    pub(in crate::endpoint) fn ahead(&self, place: u32, count: u32) -> u32 {
        let behind = self.ranges.partition_point(|it| it.first <= place);
        let within = behind.checked_sub(1).map(|it| self.ranges[it]).filter(|it| place <= it.last);
        match within {
            None => 0,
            Some(Places { last, .. }) if last + 1 < count => last + 1 - place,
            // Wrap to the first client. Ranges have gaps, so the client after a range is on.
            Some(_) => {
                count - place
                    + self.ranges.first().map_or(0, |it| match it.first {
                        0 => it.last + 1,
                        _ => 0,
                    })
            }
        }
    }

    /// Returns the index of the nth client that is on, from 0.
    pub(in crate::endpoint) fn nth(&self, number: u32) -> u32 {
        let before = self.ranges.partition_point(|it| it.on_before <= number);
        let skipped = before.checked_sub(1).map_or(0, |it| {
            let Places { last, on_before, .. } = self.ranges[it];
            last + 1 - on_before
        });
        number + skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use core::net::Ipv4Addr;
    use wirestorm_base::random::Random;

    fn v4(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_set_contains_what_was_added_and_not_removed() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let (mut set, mut expected) = (AddressSet::default(), BTreeSet::new());
            for _ in 0..12 {
                let ranges: Vec<(u32, u32)> =
                    (0..random.below(4)).map(|_| (random.below(40), random.below(40))).collect();
                let addresses = ranges.iter().map(|&(first, last)| (v4(first), v4(last)));
                let numbers = ranges.iter().flat_map(|&(first, last)| first..=last);
                if random.below(2) == 0 {
                    set.add(addresses);
                    expected.extend(numbers);
                } else {
                    set.remove(addresses);
                    numbers.for_each(|it| {
                        expected.remove(&it);
                    });
                }
                let found: BTreeSet<_> = (0..45).filter(|it| set.contains(v4(*it))).collect();
                assert_eq!(found, expected);
                let ends = expected.iter().filter(|it| !expected.contains(&(*it + 1))).count();
                assert_eq!(set.ranges(), ends, "the fewest ranges");
            }
        }
    }

    #[test]
    fn a_set_takes_both_families_and_the_last_address() {
        let mut set = AddressSet::default();
        let [first, last] = ["2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
            .map(|it| it.parse::<IpAddr>().unwrap());
        set.add([(first, last), (v4(1), v4(2))]);
        assert!(set.contains(last) && set.contains(v4(2)) && !set.contains(v4(3)));
        set.remove([(last, last)]);
        assert!(!set.contains(last) && set.contains(first));
        set.remove([(first, last)]);
        assert_eq!(set.ranges(), 1);
    }

    #[test]
    fn indices_follow_from_addresses() {
        let clients = AddressRange { first: v4(100), count: 10 };
        let mut random = Random::new(9);
        for _ in 0..500 {
            let mut set = AddressSet::default();
            set.add((0..random.below(5)).map(|_| {
                let first = 95 + random.below(20);
                (v4(first), v4(first + random.below(4)))
            }));
            let on: Vec<u32> = (0..10).filter(|it| !set.contains(v4(100 + it))).collect();
            let Some(off) = SwitchedOff::of(&clients, &set) else {
                assert_eq!(on.len(), 10);
                continue;
            };
            assert_eq!(off.on() as usize, on.len());
            let nth: Vec<u32> = (0..off.on()).map(|it| off.nth(it)).collect();
            assert_eq!(nth, on);
            for place in (0..10).filter(|_| !on.is_empty()) {
                let next = (place + off.ahead(place, 10)) % 10;
                let expected = on.iter().find(|it| **it >= place).unwrap_or(&on[0]);
                assert_eq!(next, *expected, "behind {place} of {on:?}");
            }
        }
    }
}
