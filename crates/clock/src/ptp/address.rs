//! Addresses of PTP ports on a network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Multicast group over UDP and IPv4 (annex C).
pub const IPV4_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 129);
/// Multicast group over UDP and IPv6 with global scope, as linuxptp uses by default (annex D).
pub const IPV6_GROUP: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 0x181);
/// Multicast address over Ethernet (annex E).
pub const ETHERNET_GROUP: [u8; 6] = [0x01, 0x1b, 0x19, 0, 0, 0];

/// Address of one PTP port. The UDP port follows from the kind of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Over Ethernet.
    Mac([u8; 6]),
    /// Over UDP.
    Ip(IpAddr),
}

/// Receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// All PTP ports of the network.
    Multicast,
    /// One PTP port.
    Unicast(Address),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// Reads an IP address, or a MAC address with colons.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ip(address));
        }
        let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|it| it.is_ascii_hexdigit());
        let byte = |part| u8::from_str_radix(part, 16).ok().filter(|_| is_byte(part));
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        bytes.and_then(|bytes| Some(Self::Mac(bytes.try_into().ok()?))).ok_or_else(|| {
            format!("{text:?}: expected an IP address, or a MAC address such as 02:00:00:00:00:01")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_address_is_read_again() {
        for text in ["10.0.0.1", "fd77::1", "02:57:53:00:0a:01"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "10.0.0", "2:57:53:0:a:1", "02:57:53:00:0a", "02:57:53:00:0a:+1", "host"] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}
