//! Ranges of addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Consecutive addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    /// First address.
    pub first: IpAddr,
    /// Number of addresses, at least 1. The range wraps at the last address of its family.
    pub count: u32,
}

impl AddressRange {
    /// Returns whether the range contains an address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.offset_of(address).is_some()
    }

    /// Returns the index of an address in the range, from 0.
    #[inline]
    pub fn offset_of(&self, address: IpAddr) -> Option<u32> {
        let offset = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().wrapping_sub(first.to_bits()).into()
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits().wrapping_sub(first.to_bits())
            }
            _ => return None,
        };
        (offset < u128::from(self.count.max(1))).then_some(offset as u32)
    }

    /// Returns the address at an index, modulo the number of addresses.
    #[inline]
    pub fn at(&self, place: u64) -> IpAddr {
        let offset = (place % u64::from(self.count.max(1))) as u32;
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(offset)).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits().wrapping_add(u128::from(offset))).into()
            }
        }
    }
}

impl core::fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.count {
            1 => write!(formatter, "{}", self.first),
            count => write!(formatter, "{} and the next {}", self.first, count - 1),
        }
    }
}

impl AddressRange {
    /// Returns the first address in the range that no host may have. These are the unspecified
    /// address, IPv4 multicast and broadcast (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.2).
    /// IPv6 multicast is allowed, since TRex profiles have hosts there.
    pub fn first_unusable(&self) -> Option<IpAddr> {
        const UNUSABLE: [[Ipv4Addr; 2]; 3] = [
            [Ipv4Addr::UNSPECIFIED; 2],
            [Ipv4Addr::new(224, 0, 0, 0), Ipv4Addr::new(239, 255, 255, 255)],
            [Ipv4Addr::BROADCAST; 2],
        ];
        let more = self.count.saturating_sub(1);
        match self.first {
            IpAddr::V4(first) => {
                // A range that wraps contains the broadcast address, so saturation finds it.
                let last = Ipv4Addr::from_bits(first.to_bits().saturating_add(more));
                let within = UNUSABLE.into_iter().find(|[from, to]| first <= *to && last >= *from);
                within.map(|[from, _]| first.max(from).into())
            }
            IpAddr::V6(first) => {
                let wraps = first.to_bits().checked_add(more.into()).is_none();
                (first.is_unspecified() || wraps).then_some(Ipv6Addr::UNSPECIFIED.into())
            }
        }
    }

    /// Returns the range without its first `skipped` addresses.
    pub fn skip(self, skipped: u32) -> Self {
        let skipped = skipped.min(self.count);
        let first = match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(skipped)).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits().wrapping_add(skipped.into())).into()
            }
        };
        Self { first, count: self.count - skipped }
    }

    /// Returns whether the ranges have an address in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.offset_of(other.first).is_some() || other.offset_of(self.first).is_some()
    }

    /// Returns whether the range contains all of the other one.
    pub fn contains_range(&self, other: &Self) -> bool {
        let place = self.offset_of(other.first);
        place.is_some_and(|place| other.count <= self.count - place)
    }
}
