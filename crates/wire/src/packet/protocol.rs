//! IPv4 protocol and IPv6 next header numbers, from the IANA registry.

/// IPv6 hop-by-hop options, RFC 8200 section 4.3.
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4, RFC 792.
pub const ICMP: u8 = 1;
/// IGMP, RFC 9776.
pub const IGMP: u8 = 2;
/// IPv4 in IP, RFC 2003.
pub const IPV4: u8 = 4;
/// TCP, RFC 9293.
pub const TCP: u8 = 6;
/// UDP, RFC 768.
pub const UDP: u8 = 17;
/// DCCP, RFC 4340.
pub const DCCP: u8 = 33;
/// IPv6 in IP, RFC 2473.
pub const IPV6: u8 = 41;
/// IPv6 routing header, RFC 8200 section 4.4.
pub const ROUTING: u8 = 43;
/// IPv6 fragment header, RFC 8200 section 4.5.
pub const FRAGMENT: u8 = 44;
/// GRE, RFC 2784.
pub const GRE: u8 = 47;
/// ESP, RFC 4303: an encrypted payload follows.
pub const ESP: u8 = 50;
/// Authentication header, RFC 4302.
pub const AUTHENTICATION: u8 = 51;
/// ICMP for IPv6, RFC 4443.
pub const ICMPV6: u8 = 58;
/// Nothing follows, RFC 8200 section 4.7.
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 destination options, RFC 8200 section 4.6.
pub const DESTINATION_OPTIONS: u8 = 60;
/// OSPF, RFC 2328.
pub const OSPF: u8 = 89;
/// VRRP, RFC 9568.
pub const VRRP: u8 = 112;
/// SCTP, RFC 9260.
pub const SCTP: u8 = 132;
/// Mobile IPv6, RFC 6275.
pub const MOBILITY: u8 = 135;
/// UDP-Lite, RFC 3828.
pub const UDP_LITE: u8 = 136;
/// Host Identity Protocol, RFC 7401.
pub const HOST_IDENTITY: u8 = 139;
/// Shim6, RFC 5533.
pub const SHIM6: u8 = 140;

/// Returns whether the protocol's header begins with two 16-bit ports.
#[inline]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}
