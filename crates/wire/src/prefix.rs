//! Address prefixes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that begin with the same bits, RFC 4632 section 3.1 and RFC 4291 section 2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Any of these addresses.
    pub address: IpAddr,
    /// Bits that they have in common; more than an address has counts as all.
    pub length: u8,
}

impl Prefix {
    /// Every IPv4 address.
    pub const ALL_IPV4: Self = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), length: 0 };
    /// Every IPv6 address.
    pub const ALL_IPV6: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 0 };

    /// One address alone.
    pub const fn host(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether `address` is one of these.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                (prefix.to_bits() ^ address.to_bits()) & mask_ipv4(self.length) == 0
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => {
                (prefix.to_bits() ^ address.to_bits()) & mask_ipv6(self.length) == 0
            }
            _ => false,
        }
    }

    /// Whether `address` is that of all hosts of a network of these addresses (RFC 919 section 7): the
    /// last one of IPv4, where there are more than two (RFC 3021 section 2.1).
    #[inline]
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(last) = address else { return false };
        let hosts = !mask_ipv4(self.length);
        hosts > 1 && last.to_bits() & hosts == hosts && self.contains(address)
    }
}

/// The bits of an IPv4 address that a prefix of `length` bits fixes.
#[inline]
pub const fn mask_ipv4(length: u8) -> u32 {
    match u32::BITS.checked_sub(length as u32) {
        Some(u32::BITS) => 0,
        Some(host_bits) => u32::MAX << host_bits,
        None => u32::MAX,
    }
}

/// The bits of an IPv6 address that a prefix of `length` bits fixes.
#[inline]
pub const fn mask_ipv6(length: u8) -> u128 {
    match u128::BITS.checked_sub(length as u32) {
        Some(u128::BITS) => 0,
        Some(host_bits) => u128::MAX << host_bits,
        None => u128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: &str, length: u8) -> Prefix {
        Prefix { address: address.parse().expect("an address"), length }
    }

    #[test]
    fn the_last_address_of_a_network_is_that_of_all() {
        for (network, address, expected) in [
            (prefix("10.0.0.1", 24), "10.0.0.255", true),
            (prefix("10.0.0.1", 24), "10.0.1.255", false),
            (prefix("10.0.0.1", 16), "10.0.0.255", false),
            (prefix("10.0.0.1", 16), "10.0.255.255", true),
            (prefix("10.0.0.1", 30), "10.0.0.3", true),
            (prefix("10.0.0.0", 31), "10.0.0.1", false),
            (prefix("10.0.0.1", 32), "10.0.0.1", false),
            (prefix("0.0.0.0", 0), "255.255.255.255", true),
            (prefix("2001:db8::", 112), "2001:db8::ffff", false),
        ] {
            assert_eq!(network.is_broadcast(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_prefix_holds_the_addresses_that_begin_like_it() {
        let ten = prefix("10.255.0.0", 8);
        assert!(ten.contains("10.1.2.3".parse().unwrap()));
        assert!(!ten.contains("11.1.2.3".parse().unwrap()));
        assert!(!ten.contains("::10.1.2.3".parse().unwrap()));
        let documentation = prefix("2001:db8::", 33);
        assert!(documentation.contains("2001:db8:7fff::1".parse().unwrap()));
        assert!(!documentation.contains("2001:db8:8000::1".parse().unwrap()));
    }

    #[test]
    fn the_shortest_prefix_holds_every_address_of_its_version_and_the_longest_one() {
        assert!(Prefix::ALL_IPV4.contains("255.1.2.3".parse().unwrap()));
        assert!(!Prefix::ALL_IPV4.contains("::".parse().unwrap()));
        assert!(Prefix::ALL_IPV6.contains("ffff::".parse().unwrap()));
        for length in [32, 200] {
            assert!(prefix("10.0.0.1", length).contains("10.0.0.1".parse().unwrap()));
            assert!(!prefix("10.0.0.1", length).contains("10.0.0.0".parse().unwrap()));
        }
        assert!(!prefix("::1", 128).contains("::".parse().unwrap()));
    }
}
