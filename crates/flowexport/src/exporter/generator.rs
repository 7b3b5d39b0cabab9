//! Flows from a seed.

use core::ops::RangeInclusive;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use crate::record::{Counting, FieldSet, FlowRecord};

/// What the flows of a [`FlowGenerator`] are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowGeneratorOptions {
    /// Seed of everything but the keys' uniqueness. Default: 1.
    pub seed: u64,
    /// IP versions. Default: [`Family::Ipv4`].
    pub family: Family,
    /// Packets of a flow; an empty range counts as its start. Default: 1 to 100.
    pub packets: RangeInclusive<u32>,
    /// Bytes of an IP packet; an empty range counts as its start. Default: 64 to 1500.
    pub packet_length: RangeInclusive<u16>,
    /// Longest time from the first to the last packet. Default: 30 s.
    pub duration_max: Duration,
    /// VLAN of all flows; 0 for none. Default: 0.
    pub vlan: u16,
}

/// IP versions of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All flows over IPv4.
    #[default]
    Ipv4,
    /// All flows over IPv6.
    Ipv6,
    /// Flows over IPv4 and IPv6, chosen by the seed.
    Both,
}

impl Default for FlowGeneratorOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            family: Family::default(),
            packets: 1..=100,
            packet_length: 64..=1_500,
            duration_max: Duration::from_secs(30),
            vlan: 0,
        }
    }
}

/// Source of flows: the same number always gives the same flow.
#[derive(Clone, Debug)]
pub struct FlowGenerator {
    options: FlowGeneratorOptions,
}

impl FlowGenerator {
    /// Flows with different keys; further numbers repeat them.
    pub const KEYS: u64 = (1 << 24) * SOURCE_PORTS;

    /// Creates a generator.
    pub const fn new(options: FlowGeneratorOptions) -> Self {
        Self { options }
    }

    /// Returns flow number `index`, which ended at most 1.1 s before `now`, since 1970.
    ///
    /// The source is 10.0.0.0/8 or fd00::/104 with a port from 1024 up, both linear in `index`. The
    /// destination, the protocol (TCP or UDP), the type of service and the counters are random.
    #[inline]
    pub fn flow(&self, index: u64, now: Instant) -> FlowRecord {
        let FlowGeneratorOptions { seed, family, packets, packet_length, .. } = &self.options;
        let mut random = Random(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (fields, counts, times) = (random.next(), random.next(), random.next());

        let host = (index % (1 << 24)) as u32;
        let [_, a, b, c] = host.to_be_bytes();
        let source_port = 1_024 + (index >> 24) % SOURCE_PORTS;
        let is_tcp = fields & 1 != 0;
        let protocol = if is_tcp { protocol::TCP } else { protocol::UDP };
        let destination = (fields >> 8) as u16;
        let [d, e] = destination.to_be_bytes();
        let is_ipv6 = match family {
            Family::Ipv4 => false,
            Family::Ipv6 => true,
            Family::Both => fields & 2 != 0,
        };
        let key = match is_ipv6 {
            true => FlowKey::ipv6(
                [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c],
                [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, d, e],
                protocol,
            ),
            false => FlowKey::ipv4([10, a, b, c], [198, 18, d, e], protocol),
        };
        let destination_port = PORTS[(fields >> 24) as usize % PORTS.len()];
        let key = key.with_ports(source_port as u16, destination_port).with_vlan(self.options.vlan);

        let packets = within(counts as u32, *packets.start(), *packets.end());
        let (least, most) = (*packet_length.start(), *packet_length.end());
        let length = within((counts >> 32) as u32, least.into(), most.into());
        let duration_max = self.options.duration_max.as_nanos().saturating_add(1);
        let duration = match packets {
            // The first packet is the last one.
            1 => 0,
            _ => ((u128::from(times) * u128::from(duration_max)) >> 64) as u64,
        };
        let last = now.saturating_sub(Duration::from_nanos(fields >> 34));
        FlowRecord {
            key,
            packets: packets.into(),
            bytes: u64::from(packets) * u64::from(length),
            first: Some(last.saturating_sub(Duration::from_nanos(duration))),
            last: Some(last),
            input_interface: 1 + (fields >> 32) as u32 % 48,
            output_interface: 1 + (fields >> 40) as u32 % 48,
            sampling_interval: 0,
            // SYN, ACK, PSH and perhaps FIN.
            tcp_flags: if is_tcp { 0x1a | (fields >> 2) as u16 & 1 } else { 0 },
            type_of_service: ((fields >> 4) & 7) as u8 * 0x20,
            is_reverse: false,
            counting: Counting::Delta,
            present: PRESENT,
        }
    }
}

/// Destination ports.
const PORTS: [u16; 8] = [53, 80, 123, 443, 993, 5_060, 8_080, 8_443];
const SOURCE_PORTS: u64 = 64_512;

const PRESENT: FieldSet = {
    let mut all = FieldSet::EMPTY;
    let mut index = 0;
    while index < FieldSet::NAMES.len() {
        all = all.union(FieldSet::NAMES[index].0);
        index += 1;
    }
    all
};

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Maps a random number to `least..=most`.
#[inline(always)]
fn within(random: u32, least: u32, most: u32) -> u32 {
    let count = u64::from(most.saturating_sub(least)) + 1;
    least + ((u64::from(random) * count) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    const NOW: Instant = Instant::from_nanos(1_800_000_000_000_000_000);

    #[test]
    fn flows_are_reproducible_and_their_keys_unique() {
        let options = FlowGeneratorOptions { family: Family::Both, ..Default::default() };
        let generator = FlowGenerator::new(options.clone());
        let other = FlowGenerator::new(FlowGeneratorOptions { seed: 2, ..options });
        let mut keys = BTreeSet::new();
        for index in (0..10_000).chain((1 << 24)..(1 << 24) + 10_000) {
            let flow = generator.flow(index, NOW);
            assert_eq!(flow, generator.flow(index, NOW));
            assert!(keys.insert(flow.key), "{index}");
            assert!((1..=100).contains(&flow.packets));
            assert!((64..=1_500).contains(&(flow.bytes / flow.packets)));
            assert!(flow.first <= flow.last && flow.last <= Some(NOW));
        }
        assert_eq!(keys.iter().map(FlowKey::version).collect::<BTreeSet<u8>>(), [4, 6].into());
        assert!((0..100).any(|index| generator.flow(index, NOW) != other.flow(index, NOW)));
    }
}
