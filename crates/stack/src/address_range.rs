//! Ranges of addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.place_of(address).is_some()
    }

    /// The place of an address.
    #[inline]
    pub(crate) fn place_of(&self, address: IpAddr) -> Option<u64> {
        let offset = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().wrapping_sub(first.to_bits()).into()
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits().wrapping_sub(first.to_bits())
            }
            _ => return None,
        };
        (offset < u128::from(self.count.max(1))).then_some(offset as u64)
    }

    /// The address at a place, which counts from 0 and round.
    #[inline]
    pub(crate) fn at(&self, place: u64) -> IpAddr {
        let offset = (place % u64::from(self.count.max(1))) as u32;
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(offset)).into(),
            IpAddr::V6(first) => {
                Ipv6Addr::from_bits(first.to_bits().wrapping_add(u128::from(offset))).into()
            }
        }
    }
}
