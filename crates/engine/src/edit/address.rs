//! Edits of IP addresses, by prefix and by seed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_wire::packet::{ipv4, ipv6};

use super::frame::{Frame, Kind};
use super::random::Random;
use wirestorm_model::edit::{EditOptions, PrefixReplacement};
use wirestorm_wire::prefix::{mask_ipv4, mask_ipv6};

/// New IP addresses.
#[derive(Clone, Debug)]
pub(super) struct AddressEdits {
    is_empty: bool,
    source: [Mappings; 2],
    destination: [Mappings; 2],
    /// Mask for each 32-bit word of an address, derived from the seed.
    mask: Option<[u8; 4]>,
    keep_groups: bool,
    keep_group_macs: bool,
}

/// Prefix mappings by IP version.
#[derive(Clone, Debug)]
struct Mappings {
    ipv4: Arc<[Mapping<u32>]>,
    ipv6: Arc<[Mapping<u128>]>,
}

/// Prefix mapping: if the bits of an address under `mask` equal `from`, they become `to`, and the
/// bits under `host_mask` stay.
#[derive(Clone, Copy, Debug)]
struct Mapping<T> {
    mask: T,
    from: T,
    to: T,
    host_mask: T,
}

/// First octet of 224.0.0.0/4, the multicast range (RFC 5771); addresses above are reserved.
const GROUPS_IPV4: u8 = 0xe0;
const ARP_SENDER: usize = 14;
const ARP_TARGET: usize = 24;

impl AddressEdits {
    pub(super) fn new(options: &EditOptions) -> Self {
        let lists = [&options.source_addresses, &options.destination_addresses];
        let is_unmapped = lists.into_iter().flatten().all(Vec::is_empty);
        Self {
            is_empty: is_unmapped && options.address_seed.is_none(),
            source: options.source_addresses.each_ref().map(|list| Mappings::new(list)),
            destination: options.destination_addresses.each_ref().map(|list| Mappings::new(list)),
            mask: options.address_seed.map(Random::address_mask),
            keep_groups: options.keep_group_addresses,
            keep_group_macs: options.keep_group_macs,
        }
    }

    #[inline]
    pub(super) fn edit(&self, frame: &mut Frame) {
        if self.is_empty {
            return;
        }
        let side = frame.side & 1;
        let (source, destination) = (&self.source[side], &self.destination[side]);
        match frame.kind {
            Kind::Ipv4 => {
                self.edit_ipv4(frame, ipv4::field::SOURCE.start, &source.ipv4, false);
                self.edit_ipv4(frame, ipv4::field::DESTINATION.start, &destination.ipv4, true);
                self.follow_ipv4_group(frame);
            }
            Kind::Ipv6 => {
                self.edit_ipv6(frame, ipv6::field::SOURCE.start, &source.ipv6, false);
                self.edit_ipv6(frame, ipv6::field::DESTINATION.start, &destination.ipv6, true);
                self.follow_ipv6_group(frame);
            }
            Kind::Arp => {
                self.edit_ipv4(frame, ARP_SENDER, &source.ipv4, false);
                self.edit_ipv4(frame, ARP_TARGET, &destination.ipv4, true);
            }
            Kind::Other => {}
        }
    }

    fn edit_ipv4(&self, frame: &mut Frame, at: usize, mappings: &[Mapping<u32>], to: bool) {
        let Some(old) = frame.bytes_at::<4>(frame.network + at) else { return };
        let is_broadcast = old == [0xff; 4];
        if self.keep_groups && (is_group_ipv4(old) || is_broadcast) {
            return;
        }
        let mut bits = u32::from_be_bytes(old);
        if let Some(mapping) = mappings.iter().find(|entry| bits & entry.mask == entry.from) {
            bits = mapping.to | bits & mapping.host_mask;
        }
        let mut new = bits.to_be_bytes();
        if let Some(mask) = self.mask {
            let is_unicast = new[0] < GROUPS_IPV4;
            let is_group = is_group_ipv4(new);
            new = mixed(new, mask);
            // Multicast stays multicast, and unicast stays unicast.
            if is_group {
                new[0] = GROUPS_IPV4 | new[0] & 0x0f;
            } else if is_unicast && new[0] >= GROUPS_IPV4 {
                new[0] &= 0x7f;
            }
        }
        frame.set_address(at, new, to);
    }

    fn edit_ipv6(&self, frame: &mut Frame, at: usize, mappings: &[Mapping<u128>], to: bool) {
        let Some(old) = frame.bytes_at::<16>(frame.network + at) else { return };
        if self.keep_groups && old[0] == 0xff {
            return;
        }
        let mut bits = u128::from_be_bytes(old);
        if let Some(mapping) = mappings.iter().find(|entry| bits & entry.mask == entry.from) {
            bits = mapping.to | bits & mapping.host_mask;
        }
        let mut new = bits.to_be_bytes();
        if let Some(mask) = self.mask {
            let before = new;
            for word in new.as_chunks_mut::<4>().0 {
                *word = mixed(*word, mask);
            }
            if before[0] == 0xff {
                // Flags and scope of a multicast address stay (RFC 4291 section 2.7).
                [new[0], new[1]] = [before[0], before[1]];
            } else if new[0] == 0xff {
                new[0] = 0x7f;
            }
        }
        frame.set_address(at, new, to);
    }

    /// Copies the low 23 bits of the group to its Ethernet address (RFC 1112 section 6.4).
    fn follow_ipv4_group(&self, frame: &mut Frame) {
        let at = frame.network + ipv4::field::DESTINATION.start;
        let Some(group) = frame.bytes_at(at).filter(|address| is_group_ipv4(*address)) else {
            return;
        };
        if !self.keep_group_macs && frame.bytes_at(0) == Some([0x01, 0x00, 0x5e]) {
            let [_, second, third, fourth] = group;
            frame.write(3, &[second & 0x7f, third, fourth]);
        }
    }

    /// Copies the last four bytes of the group to its Ethernet address (RFC 2464 section 7).
    fn follow_ipv6_group(&self, frame: &mut Frame) {
        let at = frame.network + ipv6::field::DESTINATION.start;
        let is_group = frame.bytes_at(at) == Some([0xff]);
        if is_group
            && !self.keep_group_macs
            && frame.bytes_at(0) == Some([0x33, 0x33])
            && let Some(last) = frame.bytes_at::<4>(at + 12)
        {
            frame.write(2, &last);
        }
    }
}

impl Mappings {
    fn new(mappings: &[PrefixReplacement]) -> Self {
        let ipv4 = mappings.iter().filter_map(|PrefixReplacement { from, to }| {
            let (IpAddr::V4(from_address), IpAddr::V4(to_address)) = (from.address, to.address)
            else {
                return None;
            };
            let (mask, network_mask) = (mask_ipv4(from.length), mask_ipv4(to.length));
            Some(Mapping {
                mask,
                from: from_address.to_bits() & mask,
                to: to_address.to_bits() & network_mask,
                host_mask: !network_mask,
            })
        });
        let ipv6 = mappings.iter().filter_map(|PrefixReplacement { from, to }| {
            let (IpAddr::V6(from_address), IpAddr::V6(to_address)) = (from.address, to.address)
            else {
                return None;
            };
            let (mask, network_mask) = (mask_ipv6(from.length), mask_ipv6(to.length));
            Some(Mapping {
                mask,
                from: from_address.to_bits() & mask,
                to: to_address.to_bits() & network_mask,
                host_mask: !network_mask,
            })
        });
        Self { ipv4: ipv4.collect(), ipv6: ipv6.collect() }
    }
}

/// Mixes an address word with a mask as tcpreplay does on little-endian machines; the result is the
/// same on all machines.
const fn mixed(word: [u8; 4], mask: [u8; 4]) -> [u8; 4] {
    let (word, mask) = (u32::from_le_bytes(word), u32::from_le_bytes(mask));
    (word ^ mask).wrapping_sub(word & mask).to_le_bytes()
}

const fn is_group_ipv4(address: [u8; 4]) -> bool {
    address[0] & 0xf0 == GROUPS_IPV4
}
