//! ARP for IPv4 over Ethernet, RFC 826.

use super::field::{ipv4, mac, uint};
use super::{Layout, Number, Space};
use crate::packet::ethertype;

/// ARP request or reply.
pub static ARP: Layout = Layout::new(
    "arp",
    "ARP for IPv4 over Ethernet, RFC 826",
    &[
        uint("hardware_type", 0, 16).default(1),
        uint("protocol_type", 16, 16).default(ethertype::IPV4 as u128),
        uint("hardware_length", 32, 8).default(6),
        uint("protocol_length", 40, 8).default(4),
        uint("operation", 48, 16).default(1),
        mac("sender_hardware_addr", 64),
        ipv4("sender_protocol_addr", 112),
        mac("target_hardware_addr", 144),
        ipv4("target_protocol_addr", 192),
    ],
)
.numbers(&[Number::new(Space::EtherType, ethertype::ARP)]);
