//! Networks of clients.

use std::net::IpAddr;
use std::str::FromStr;

/// A network of clients, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientNetwork {
    address: IpAddr,
    prefix: u8,
}

/// Error of parsing a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a network such as 192.0.2.0/24 or 2001:db8::/32")]
pub struct ClientNetworkError(String);

impl FromStr for ClientNetwork {
    type Err = ClientNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (address, prefix) = text.split_once('/').unzip();
            let address: IpAddr = address.unwrap_or(text).parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.map_or(Some(most), |prefix| prefix.parse().ok())?;
            (prefix <= most).then_some(Self { address, prefix })
        };
        read().ok_or_else(|| ClientNetworkError(text.to_owned()))
    }
}

impl ClientNetwork {
    /// Returns whether an address belongs to the network.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let ((own, width), (other, other_width)) =
            (bits(self.address), bits(address.to_canonical()));
        let host_bits = width - u32::from(self.prefix);
        width == other_width && (host_bits == 128 || own >> host_bits == other >> host_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_contains_its_addresses_alone() {
        let contains = |network: &str, address: &str| {
            network.parse::<ClientNetwork>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("192.0.2.0/24", "192.0.2.255"));
        assert!(contains("192.0.2.0/24", "::ffff:192.0.2.1"));
        assert!(!contains("192.0.2.0/24", "192.0.3.0"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.8"));
        assert!(contains("0.0.0.0/0", "198.51.100.1") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "2001:db8::1"));
        for text in ["", "192.0.2.0/33", "x/8", "192.0.2.0/", "192.0.2.0/-1"] {
            assert!(text.parse::<ClientNetwork>().is_err(), "{text}");
        }
    }
}
