//! Link-layer headers below IP: Ethernet, VLAN tags, MPLS labels.

use super::{ethernet, ethertype, mpls, vlan};

/// Longest supported link-layer header in bytes, such as Ethernet, two VLAN tags and four MPLS
/// labels.
pub const LINK_LENGTH_MAX: usize = 38;

/// Length of the two Ethernet addresses.
const ADDRESSES: usize = 12;

/// Returns the offset of a frame's network header and its Ethernet type. Behind MPLS labels, which
/// name no protocol, the IP version determines the type.
#[inline(always)]
pub fn network_header(frame: &[u8]) -> Option<(usize, u16)> {
    let mut start = ethernet::HEADER_LENGTH;
    let mut kind = u16::from_be_bytes(*frame.get(ADDRESSES..)?.first_chunk()?);
    // At most two tags, as `LINK_LENGTH_MAX` assumes.
    for _ in 0..2 {
        if !matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN) {
            break;
        }
        let tag = vlan::Tag::new(frame.get(start..)?).ok()?;
        kind = tag.ethertype();
        start += vlan::TAG_LENGTH;
    }
    if kind == ethertype::MPLS {
        loop {
            let label = mpls::Entry::new(frame.get(start..)?).ok()?;
            start += mpls::ENTRY_LENGTH;
            if label.is_bottom() {
                break;
            }
            if start > LINK_LENGTH_MAX {
                return None;
            }
        }
        kind = match frame.get(start)? >> 4 {
            4 => ethertype::IPV4,
            6 => ethertype::IPV6,
            _ => return None,
        };
    }
    Some((start, kind))
}
