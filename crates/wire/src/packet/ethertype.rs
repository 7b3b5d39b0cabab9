//! Ethernet types, from the IEEE registry.

/// IPv4, RFC 894.
pub const IPV4: u16 = 0x0800;
/// ARP, RFC 826.
pub const ARP: u16 = 0x0806;
/// Customer VLAN tag, IEEE 802.1Q.
pub const VLAN: u16 = 0x8100;
/// IPv6, RFC 2464.
pub const IPV6: u16 = 0x86dd;
/// MPLS with a downstream-assigned label, RFC 5332.
pub const MPLS: u16 = 0x8847;
/// MPLS with an upstream-assigned label, RFC 5332.
pub const MPLS_UPSTREAM: u16 = 0x8848;
/// PPPoE discovery, RFC 2516.
pub const PPPOE_DISCOVERY: u16 = 0x8863;
/// PPPoE session, RFC 2516.
pub const PPPOE_SESSION: u16 = 0x8864;
/// Service VLAN tag, IEEE 802.1ad.
pub const SERVICE_VLAN: u16 = 0x88a8;
/// Outer VLAN tag from before IEEE 802.1ad.
pub const STACKED_VLAN: u16 = 0x9100;

/// Least value that is a type; lower values up to [`LENGTH_MAX`] are lengths.
pub const TYPE_MIN: u16 = 0x0600;
/// Greatest value that is the length of an IEEE 802.3 frame.
pub const LENGTH_MAX: u16 = 1500;

/// Returns whether this type announces a VLAN tag.
#[inline]
pub const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, VLAN | SERVICE_VLAN | STACKED_VLAN)
}
