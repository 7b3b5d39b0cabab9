//! Flow keys and their hashes.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::protocol;

/// The key of a unidirectional flow: addresses, ports, protocol and VLAN.
///
/// tcpreplay ignores the VLAN; use [`Self::without_vlan`] to get its counts. It also reads ports
/// only for TCP and UDP, while this key has them for SCTP, DCCP and UDP-Lite too.
///
/// Keys are ordered by addresses, then ports.
// The fields are whole words: a key that is written byte by byte cannot be loaded word by word
// until its stores leave the store buffer. That stall costs more than the hash.
#[derive(Clone, Copy, Debug, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Big-endian; an IPv4 address is in the upper half of the first word.
    source: [u64; 2],
    destination: [u64; 2],
    /// From the highest bits: ports (16 each), VLAN (16), protocol (8), IP version (8).
    rest: u64,
}

// The derived version compares both words of an address at once and needs them in memory. A new key
// is in registers.
impl PartialEq for FlowKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let ([a, b], [c, d]) = (self.source, self.destination);
        let ([e, f], [g, h]) = (other.source, other.destination);
        (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) | (self.rest ^ other.rest) == 0
    }
}

const SOURCE_PORT_SHIFT: u32 = 48;
const DESTINATION_PORT_SHIFT: u32 = 32;
const VLAN_SHIFT: u32 = 16;
const PROTOCOL_SHIFT: u32 = 8;

impl FlowKey {
    /// Creates a flow over IPv4, without ports and VLAN.
    #[inline]
    pub const fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8) -> Self {
        Self {
            source: [(u32::from_be_bytes(source) as u64) << 32, 0],
            destination: [(u32::from_be_bytes(destination) as u64) << 32, 0],
            rest: (protocol as u64) << PROTOCOL_SHIFT | 4,
        }
    }

    /// Creates a flow over IPv6, without ports and VLAN.
    #[inline]
    pub const fn ipv6(source: [u8; 16], destination: [u8; 16], protocol: u8) -> Self {
        Self {
            source: words(source),
            destination: words(destination),
            rest: (protocol as u64) << PROTOCOL_SHIFT | 6,
        }
    }

    /// Returns the flow with these ports, or with the ICMP type and code instead.
    #[inline]
    #[must_use]
    pub const fn with_ports(mut self, source: u16, destination: u16) -> Self {
        self.rest = self.rest & (u64::MAX >> 32)
            | (source as u64) << SOURCE_PORT_SHIFT
            | (destination as u64) << DESTINATION_PORT_SHIFT;
        self
    }

    /// Returns the flow on the VLAN `vlan`; 0 means no VLAN.
    #[inline]
    #[must_use]
    pub const fn with_vlan(mut self, vlan: u16) -> Self {
        self.rest = self.rest & !(0xffff << VLAN_SHIFT) | (vlan as u64) << VLAN_SHIFT;
        self
    }

    /// Returns the flow without VLAN.
    #[inline]
    #[must_use]
    pub const fn without_vlan(self) -> Self {
        self.with_vlan(0)
    }

    /// Returns the source port; the type for ICMP; 0 for protocols without ports and for later
    /// fragments.
    #[inline]
    pub const fn source_port(&self) -> u16 {
        (self.rest >> SOURCE_PORT_SHIFT) as u16
    }

    /// Returns the destination port; the code for ICMP; 0 for protocols without ports and for later
    /// fragments.
    #[inline]
    pub const fn destination_port(&self) -> u16 {
        (self.rest >> DESTINATION_PORT_SHIFT) as u16
    }

    /// Returns the outermost VLAN identifier; 0 without a tag or with only a priority tag.
    #[inline]
    pub const fn vlan(&self) -> u16 {
        (self.rest >> VLAN_SHIFT) as u16
    }

    /// Returns the protocol behind the IP headers and their extensions.
    #[inline]
    pub const fn protocol(&self) -> u8 {
        (self.rest >> PROTOCOL_SHIFT) as u8
    }

    /// Returns the IP version: 4 or 6.
    #[inline]
    pub const fn version(&self) -> u8 {
        self.rest as u8
    }

    /// Returns the source address.
    pub const fn source(&self) -> IpAddr {
        address(self.source, self.version())
    }

    /// Returns the destination address.
    pub const fn destination(&self) -> IpAddr {
        address(self.destination, self.version())
    }

    /// Returns the key of the reverse direction. ICMP keeps type and code instead of ports: a
    /// request becomes its reply and a reply its request; other types stay.
    #[inline]
    #[must_use]
    pub const fn reversed(self) -> Self {
        let (source, destination) = (self.source_port(), self.destination_port());
        let swapped = Self { source: self.destination, destination: self.source, rest: self.rest };
        match self.protocol() {
            protocol @ (protocol::ICMP | protocol::ICMPV6) => {
                swapped.with_ports(answering_type(protocol, source), destination)
            }
            _ => swapped.with_ports(destination, source),
        }
    }

    /// Returns the key of the conversation: of both directions, the one with the lower source.
    #[inline]
    #[must_use]
    pub fn conversation(self) -> Self {
        let reversed = self.reversed();
        if (self.source, self.source_port()) <= (reversed.source, reversed.source_port()) {
            self
        } else {
            reversed
        }
    }

    /// Returns a hash over all fields, the same on every machine and in every run.
    ///
    /// It does not resist an attacker who knows the seed and searches for collisions.
    #[inline]
    pub const fn hash64(&self, seed: u64) -> u64 {
        // The constants are digits of pi. Each word is XORed with one before the multiplication,
        // since IPv4 keys have many zeros and a zero factor would erase the other word.
        let ([a, b], [c, d], e) = (self.source, self.destination, self.rest);
        let source = folded_product(a ^ 0x243f_6a88_85a3_08d3 ^ seed, b ^ 0x1319_8a2e_0370_7344);
        let destination =
            folded_product(c ^ 0xa409_3822_299f_31d0, d ^ 0x082e_fa98_ec4e_6c89 ^ seed);
        finish(source.wrapping_add(destination.rotate_left(23)) ^ e, seed)
    }

    /// Returns a hash that is the same for both directions, to keep conversations together when
    /// traffic is split.
    #[inline]
    pub const fn symmetric_hash64(&self, seed: u64) -> u64 {
        let (source, destination) = (self.source_port(), self.destination_port());
        // ICMP's type belongs to neither end: use the lower one of request and reply.
        let (source, destination, message) = match self.protocol() {
            protocol @ (protocol::ICMP | protocol::ICMPV6) => {
                let answer = answering_type(protocol, source);
                let kind = if answer < source { answer } else { source };
                (0, 0, (kind as u64) << 48 | (destination as u64) << 32)
            }
            _ => (source, destination, 0),
        };
        // A sum does not depend on the order and is cheaper than a comparison.
        let ends = endpoint_hash(self.source, source, seed).wrapping_add(endpoint_hash(
            self.destination,
            destination,
            seed,
        ));
        finish(ends ^ message ^ self.rest & 0xffff_ffff, seed)
    }
}

/// Returns the hash of an address and its port.
#[inline]
const fn endpoint_hash([high, low]: [u64; 2], port: u16, seed: u64) -> u64 {
    let low = low ^ (port as u64) << 40;
    folded_product(high ^ 0x243f_6a88_85a3_08d3 ^ seed, low ^ 0x1319_8a2e_0370_7344)
}

/// Mixes all input bits into all output bits.
#[inline]
const fn finish(gathered: u64, seed: u64) -> u64 {
    let mixed = folded_product(gathered ^ 0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6d);
    folded_product(mixed ^ seed, 0xc0ac_29b7_c97c_50dd)
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in [self.source, self.destination].into_iter().flatten() {
            state.write_u64(word);
        }
        state.write_u64(self.rest);
    }
}

#[inline]
const fn words(address: [u8; 16]) -> [u64; 2] {
    let number = u128::from_be_bytes(address);
    [(number >> 64) as u64, number as u64]
}

const fn address([high, low]: [u64; 2], version: u8) -> IpAddr {
    match version {
        4 => IpAddr::V4(Ipv4Addr::from_bits((high >> 32) as u32)),
        _ => IpAddr::V6(Ipv6Addr::from_bits((high as u128) << 64 | low as u128)),
    }
}

/// Returns both halves of the product XORed: every input bit affects every output bit.
#[inline]
const fn folded_product(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns the ICMP type that answers `kind`, or `kind` itself (RFC 792, RFC 950, RFC 4443).
#[inline]
const fn answering_type(protocol: u8, kind: u16) -> u16 {
    match (protocol, kind) {
        (protocol::ICMP, 0) => 8,
        (protocol::ICMP, 8) => 0,
        (protocol::ICMP, 13 | 15 | 17) | (protocol::ICMPV6, 128) => kind + 1,
        (protocol::ICMP, 14 | 16 | 18) | (protocol::ICMPV6, 129) => kind - 1,
        _ => kind,
    }
}

const _: () = assert!(size_of::<FlowKey>() == 40);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn ping(source: [u8; 4], destination: [u8; 4], kind: u16) -> FlowKey {
        FlowKey::ipv4(source, destination, protocol::ICMP).with_ports(kind, 0)
    }

    #[test]
    fn a_ping_and_its_answer_are_one_conversation() {
        let (request, reply) =
            (ping([10, 0, 0, 1], [10, 0, 0, 2], 8), ping([10, 0, 0, 2], [10, 0, 0, 1], 0));
        assert_eq!(request.reversed(), reply);
        assert_eq!(request.symmetric_hash64(1), reply.symmetric_hash64(1));
        assert_ne!(request.hash64(1), reply.hash64(1));
    }

    #[test]
    fn an_ipv4_address_is_not_the_ipv6_address_with_the_same_bytes() {
        let four = FlowKey::ipv4([1, 2, 3, 4], [5, 6, 7, 8], protocol::TCP);
        let wide = |[a, b, c, d]: [u8; 4]| [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let six = FlowKey::ipv6(wide([1, 2, 3, 4]), wide([5, 6, 7, 8]), protocol::TCP);
        assert_ne!(four, six);
        assert_ne!(four.hash64(0), six.hash64(0));
        assert_eq!(four.source(), IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4)));
        assert!(six.source().is_ipv6());
    }

    #[test]
    fn consecutive_keys_spread_evenly_over_buckets() {
        // 256 hosts with 64 consecutive ports, as a generator creates them, in 256 buckets. The
        // ideal is 64 per bucket; the limits are 8 standard deviations away.
        for (shift, symmetric) in
            [0, 8, 24, 32, 48, 56].into_iter().flat_map(|shift| [(shift, false), (shift, true)])
        {
            let mut buckets = [0_u32; 256];
            for host in 0..256_u16 {
                for port in 0..64 {
                    let [high, low] = host.to_be_bytes();
                    let key = FlowKey::ipv4([10, 0, high, low], [10, 0, 0, 1], protocol::UDP)
                        .with_ports(1_024 + port, 53);
                    let hash = if symmetric { key.symmetric_hash64(0) } else { key.hash64(0) };
                    buckets[(hash >> shift) as usize & 0xff] += 1;
                }
            }
            let (least, most) = (buckets.iter().min().unwrap(), buckets.iter().max().unwrap());
            assert!(*least > 16 && *most < 128, "bits from {shift}: {least} to {most}");
        }
    }

    #[test]
    fn consecutive_keys_have_different_hashes() {
        let mut seen = BTreeSet::new();
        for number in 0..100_000_u32 {
            let key = FlowKey::ipv4(number.to_be_bytes(), [10, 0, 0, 1], protocol::TCP);
            assert!(seen.insert(key.hash64(7)) && seen.insert(key.reversed().hash64(7)));
        }
    }

    prop_compose! {
        fn any_key()(
            source: [u8; 16], destination: [u8; 16], ports: (u16, u16), vlan in 0..4096_u16,
            protocol in prop::sample::select(&[1_u8, 6, 17, 47, 58, 132]), four: bool,
        ) -> FlowKey {
            let key = if four {
                FlowKey::ipv4(*source.first_chunk().unwrap(), *destination.first_chunk().unwrap(), protocol)
            } else {
                FlowKey::ipv6(source, destination, protocol)
            };
            key.with_ports(ports.0 % 140, ports.1).with_vlan(vlan)
        }
    }

    #[test]
    fn a_key_returns_the_fields_it_was_made_of() {
        let key = FlowKey::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 17).with_ports(9, 10).with_vlan(11);
        let six = FlowKey::ipv6([1; 16], [2; 16], 6).with_vlan(7).with_ports(1, 2).without_vlan();
        for (key, ports, vlan, protocol, version) in
            [(key, (9, 10), 11, 17, 4), (six, (1, 2), 0, 6, 6)]
        {
            assert_eq!((key.source_port(), key.destination_port()), ports);
            assert_eq!((key.vlan(), key.protocol(), key.version()), (vlan, protocol, version));
        }
        assert_eq!(six.destination(), IpAddr::from([2; 16]));
        assert!(key < FlowKey::ipv4([1, 2, 4, 0], [0; 4], 0), "the order of addresses");
    }

    proptest! {
        #[test]
        fn reversing_twice_changes_nothing(key in any_key()) {
            prop_assert_eq!(key.reversed().reversed(), key);
        }

        #[test]
        fn both_directions_are_the_same_conversation(key in any_key(), seed: u64) {
            prop_assert_eq!(key.conversation(), key.reversed().conversation());
            prop_assert_eq!(key.symmetric_hash64(seed), key.reversed().symmetric_hash64(seed));
            let (source, destination) = (key.source_port(), key.destination_port());
            for other in [
                key.with_vlan(key.vlan() ^ 1),
                key.with_ports(source, destination ^ 1),
                key.with_ports(source ^ 0x40, destination),
            ] {
                prop_assert_ne!(key.symmetric_hash64(seed), other.symmetric_hash64(seed));
            }
        }

        #[test]
        fn one_changed_bit_changes_the_hash(key in any_key(), seed: u64, bit in 0..128_usize) {
            let mut other = key;
            other.source[bit / 64] ^= 1 << (bit % 64);
            let changed = (key.hash64(seed) ^ other.hash64(seed)).count_ones();
            prop_assert!((8..=56).contains(&changed), "{} bits changed", changed);
            prop_assert_ne!(key.hash64(seed), key.hash64(seed ^ 1));
        }
    }
}
