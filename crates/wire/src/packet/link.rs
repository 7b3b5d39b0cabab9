//! What is below IP: Ethernet, VLAN tags, MPLS labels.

use super::{ethernet, ethertype, mpls, vlan};

/// The longest header below IP that is looked behind: two VLAN tags and four MPLS labels or so.
pub const LINK_LENGTH_MAX: usize = 38;

/// Where an Ethernet header's addresses end.
const ADDRESSES: usize = 12;

/// Where the network layer of a frame begins, and its ethertype. Behind MPLS labels, which do not
/// say what follows, it is the packet's version that tells.
#[inline(always)]
pub fn network_header(frame: &[u8]) -> Option<(usize, u16)> {
    let mut start = ethernet::HEADER_LENGTH;
    let mut kind = u16::from_be_bytes(*frame.get(ADDRESSES..)?.first_chunk()?);
    // Two tags at most, as the tables of links hold.
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
