//! Address prefixes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address prefix (RFC 4632 section 3.1, RFC 4291 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Any address with this prefix.
    pub address: IpAddr,
    /// Prefix length in bits; a greater value counts as all bits of the address.
    pub length: u8,
}

impl Prefix {
    /// Every IPv4 address.
    pub const ALL_IPV4: Self = Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), length: 0 };
    /// Every IPv6 address.
    pub const ALL_IPV6: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 0 };

    /// Returns the prefix of a single address.
    pub const fn host(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Returns whether `address` has this prefix.
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

    /// Returns whether `address` is a broadcast address of this network (RFC 919 section 7). That
    /// is the last IPv4 address if there are more than two (RFC 3021 section 2.1).
    #[inline]
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(last) = address else { return false };
        let hosts = !mask_ipv4(self.length);
        hosts > 1 && last.to_bits() & hosts == hosts && self.contains(address)
    }
}

/// Returns the network mask of an IPv4 prefix of `length` bits.
#[inline]
pub const fn mask_ipv4(length: u8) -> u32 {
    match u32::BITS.checked_sub(length as u32) {
        Some(u32::BITS) => 0,
        Some(host_bits) => u32::MAX << host_bits,
        None => u32::MAX,
    }
}

/// Returns the network mask of an IPv6 prefix of `length` bits.
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
    fn the_last_address_of_a_network_is_its_broadcast_address() {
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
    fn a_prefix_contains_the_addresses_with_its_bits() {
        let ten = prefix("10.255.0.0", 8);
        assert!(ten.contains("10.1.2.3".parse().unwrap()));
        assert!(!ten.contains("11.1.2.3".parse().unwrap()));
        assert!(!ten.contains("::10.1.2.3".parse().unwrap()));
        let documentation = prefix("2001:db8::", 33);
        assert!(documentation.contains("2001:db8:7fff::1".parse().unwrap()));
        assert!(!documentation.contains("2001:db8:8000::1".parse().unwrap()));
    }

    #[test]
    fn prefixes_of_length_zero_and_of_full_length_contain_all_or_one_address() {
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
