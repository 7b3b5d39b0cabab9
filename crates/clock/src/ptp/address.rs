//! Addresses of PTP ports on a network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Multicast group over UDP and IPv4 (annex C).
pub const IPV4_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 129);
/// Multicast group over UDP and IPv6 with link-local scope (annex D).
pub const IPV6_GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x181);
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
