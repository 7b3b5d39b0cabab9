//! What makes packets belong together.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::protocol;

/// The key of a unidirectional flow: addresses, ports, protocol and VLAN.
///
/// tcpreplay does not count the VLAN: a caller that wants its counts sets [`Self::vlan`] to 0.
/// It also gives ports to TCP and UDP alone, where here SCTP, DCCP and UDP-Lite have theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    source: [u8; 16],
    destination: [u8; 16],
    /// The source port; the type for ICMP; 0 for protocols without ports and for fragments but
    /// the first.
    pub source_port: u16,
    /// The destination port; the code for ICMP; 0 for protocols without ports and for fragments
    /// but the first.
    pub destination_port: u16,
    /// The outermost VLAN identifier; 0 where there is no tag, or a priority tag alone.
    pub vlan: u16,
    /// The protocol behind the IP headers and their extensions.
    pub protocol: u8,
    /// 4 or 6.
    version: u8,
}

impl FlowKey {
    /// A flow over IPv4, without ports and VLAN.
    #[inline]
    pub const fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8) -> Self {
        Self {
            source: wide(source),
            destination: wide(destination),
            source_port: 0,
            destination_port: 0,
            vlan: 0,
            protocol,
            version: 4,
        }
    }

    /// A flow over IPv6, without ports and VLAN.
    #[inline]
    pub const fn ipv6(source: [u8; 16], destination: [u8; 16], protocol: u8) -> Self {
        Self {
            source,
            destination,
            source_port: 0,
            destination_port: 0,
            vlan: 0,
            protocol,
            version: 6,
        }
    }

    /// The version of IP: 4 or 6.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// The sender's address.
    pub const fn source(&self) -> IpAddr {
        address(self.source, self.version)
    }

    /// The receiver's address.
    pub const fn destination(&self) -> IpAddr {
        address(self.destination, self.version)
    }

    /// The same flow on no VLAN.
    #[must_use]
    pub const fn without_vlan(mut self) -> Self {
        self.vlan = 0;
        self
    }

    /// The key of the answers. ICMP keeps type and code in place of ports; a request becomes
    /// its reply and a reply its request, all other types stay.
    #[inline]
    #[must_use]
    pub const fn reversed(self) -> Self {
        let (source_port, destination_port) = match self.protocol {
            protocol::ICMP | protocol::ICMPV6 => {
                (answering_type(self.protocol, self.source_port), self.destination_port)
            }
            _ => (self.destination_port, self.source_port),
        };
        Self {
            source: self.destination,
            destination: self.source,
            source_port,
            destination_port,
            vlan: self.vlan,
            protocol: self.protocol,
            version: self.version,
        }
    }

    /// The one of both directions whose source is the less: the key of the conversation.
    #[inline]
    #[must_use]
    pub fn conversation(self) -> Self {
        let reversed = self.reversed();
        if (self.source, self.source_port) <= (reversed.source, reversed.source_port) {
            self
        } else {
            reversed
        }
    }

    /// A hash that differs with every field; the same on every machine and in every run.
    ///
    /// It is not meant to withstand somebody who searches for collisions and knows the seed.
    #[inline]
    pub const fn hash64(&self, seed: u64) -> u64 {
        // The constants are fractional digits of pi: odd-looking numbers with nothing up the
        // sleeve. Each word is changed by one before it is multiplied, so that zeros, of which
        // IPv4 has many, do not wipe out their partner.
        let [a, b, c, d, e] = self.words();
        let source = folded_product(a ^ 0x243f_6a88_85a3_08d3 ^ seed, b ^ 0x1319_8a2e_0370_7344);
        let destination =
            folded_product(c ^ 0xa409_3822_299f_31d0, d ^ 0x082e_fa98_ec4e_6c89 ^ seed);
        let sum = source.wrapping_add(destination.rotate_left(23)) ^ e;
        let mixed = folded_product(sum ^ 0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6d);
        folded_product(mixed ^ seed, 0xc0ac_29b7_c97c_50dd)
    }

    /// A hash that is the same for both directions of a conversation: for splitting traffic so
    /// that a conversation stays together.
    #[inline]
    pub fn symmetric_hash64(&self, seed: u64) -> u64 {
        self.conversation().hash64(seed)
    }

    /// All fields in five words.
    #[inline]
    const fn words(&self) -> [u64; 5] {
        let ports = (self.source_port as u64) << 48 | (self.destination_port as u64) << 32;
        let rest = (self.vlan as u64) << 16 | (self.protocol as u64) << 8 | self.version as u64;
        let [source_high, source_low] = halves(self.source);
        let [destination_high, destination_low] = halves(self.destination);
        [source_high, source_low, destination_high, destination_low, ports | rest]
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.words() {
            state.write_u64(word);
        }
    }
}

#[inline]
const fn wide([a, b, c, d]: [u8; 4]) -> [u8; 16] {
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

const fn address(bytes: [u8; 16], version: u8) -> IpAddr {
    match (version, bytes) {
        (4, [a, b, c, d, ..]) => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::V6(Ipv6Addr::from_bits(u128::from_be_bytes(bytes))),
    }
}

#[inline]
const fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}

/// Both halves of the product, one upon the other: every bit of the operands reaches every bit
/// of the result.
#[inline]
const fn folded_product(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The ICMP type that answers `kind`, or `kind` itself: RFC 792, RFC 950, RFC 4443.
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
        FlowKey { source_port: kind, ..FlowKey::ipv4(source, destination, protocol::ICMP) }
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
        let six = FlowKey::ipv6(four.source, four.destination, protocol::TCP);
        assert_ne!(four, six);
        assert_ne!(four.hash64(0), six.hash64(0));
        assert_eq!(four.source(), IpAddr::V4(Ipv4Addr::new(1, 2, 3, 4)));
        assert!(six.source().is_ipv6());
    }

    #[test]
    fn neighbouring_keys_spread_evenly_over_buckets_by_any_eight_bits() {
        // 4,096 hosts and ports that count up, as a generator makes them; 256 buckets of 64
        // would be perfect, and 8 standard deviations of chance are 64.
        for shift in [0, 8, 24, 32, 48, 56] {
            let mut buckets = [0_u32; 256];
            for host in 0..256_u16 {
                for port in 0..64 {
                    let [high, low] = host.to_be_bytes();
                    let mut key = FlowKey::ipv4([10, 0, high, low], [10, 0, 0, 1], protocol::UDP);
                    key.source_port = 1_024 + port;
                    buckets[(key.hash64(0) >> shift) as usize & 0xff] += 1;
                }
            }
            let (least, most) = (buckets.iter().min().unwrap(), buckets.iter().max().unwrap());
            assert!(*least > 16 && *most < 128, "bits from {shift}: {least} to {most}");
        }
    }

    #[test]
    fn keys_that_count_up_have_different_hashes() {
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
            FlowKey { source_port: ports.0 % 140, destination_port: ports.1, vlan, ..key }
        }
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
        }

        #[test]
        fn one_changed_bit_changes_the_hash(key in any_key(), seed: u64, bit in 0..128_usize) {
            let mut other = key;
            other.source[bit / 8] ^= 1 << (bit % 8);
            let changed = (key.hash64(seed) ^ other.hash64(seed)).count_ones();
            prop_assert!((8..=56).contains(&changed), "{} bits changed", changed);
            prop_assert_ne!(key.hash64(seed), key.hash64(seed ^ 1));
        }
    }
}
