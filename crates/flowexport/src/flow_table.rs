//! Flow records summed per key, and their comparison with the flows that were sent.

use alloc::vec::Vec;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wirestorm_base::time::Instant;
use wirestorm_wire::flow::FlowKey;

use crate::record::{Counting, FieldSet, FlowRecord};

/// A constant seed is sufficient: the bound on the table also limits the cost of collisions.
const SEED: u64 = 0x666c_6f77_7461;

/// Limits and settings of a flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableOptions {
    /// Keys; records of further ones are counted in [`FlowTable::refused`]. A key needs about 100
    /// bytes. Default: 4,000,000.
    pub flows_max: usize,
    /// Whether the VLAN is part of the key. Default: false, since many exporters do not report it.
    pub with_vlan: bool,
    /// Whether packets and bytes are multiplied by the sampling interval. Default: true.
    pub scale_sampled: bool,
}

impl Default for FlowTableOptions {
    fn default() -> Self {
        Self { flows_max: 4_000_000, with_vlan: false, scale_sampled: true }
    }
}

/// Sums of the records of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSums {
    /// Records with the key.
    pub records: u32,
    /// Packets of all records.
    pub packets: u64,
    /// Bytes of all records.
    pub bytes: u64,
    /// Earliest time of a first packet since 1970; [`Instant::MAX`] if no record has one.
    pub first: Instant,
    /// Latest time of a last packet since 1970; [`Instant::ZERO`] if no record has one.
    pub last: Instant,
}

/// Bounded table of the flows that an exporter reported.
#[derive(Debug)]
pub struct FlowTable {
    flows: HashTable<Flow>,
    options: FlowTableOptions,
    without_key: u64,
    refused: u64,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    sums: FlowSums,
    /// Whether the current comparison has found the key among the sent flows.
    is_compared: bool,
}

/// A flow that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFlow {
    /// Its key.
    pub key: FlowKey,
    /// Its packets.
    pub packets: u64,
    /// Its bytes, counted like the exporter counts them: IP packets for NetFlow and IPFIX.
    pub bytes: u64,
}

/// How sent flows differ from reported flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Sent flows, without repetitions of a key.
    pub sent: Amount,
    /// Sent flows as reported: their keys with the reported packets and bytes.
    pub captured: Amount,
    /// Reported flows that were not sent.
    pub unexpected: Amount,
    /// Sent flows with several records.
    pub split_flows: u64,
    /// Sent flows without a record.
    pub missing_flows: u64,
    /// Captured flows with another number of packets.
    pub packets_differ: u64,
    /// Captured flows with another number of bytes.
    pub bytes_differ: u64,
    /// Sent flows whose key has been sent already. They are not compared.
    pub repeated_keys: u64,
    /// Some flows that differ, at most as many as the caller asked for.
    pub examples: Vec<Difference>,
}

/// Numbers of flows, packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Flows.
    pub flows: u64,
    /// Packets of the flows.
    pub packets: u64,
    /// Bytes of the flows.
    pub bytes: u64,
}

/// A flow that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its key.
    pub key: FlowKey,
    /// What was sent; `None` if the flow is unexpected.
    pub sent: Option<SentFlow>,
    /// What was reported; `None` if the flow is missing.
    pub reported: Option<FlowSums>,
}

impl FlowTable {
    /// Creates an empty table.
    pub const fn new(options: FlowTableOptions) -> Self {
        Self { flows: HashTable::new(), options, without_key: 0, refused: 0 }
    }

    /// Adds a record to the sums of its key.
    ///
    /// Records that count since the start of the flow ([`Counting::Total`]) replace the sums instead.
    pub fn add(&mut self, record: &FlowRecord) {
        if !record.present.contains(FieldSet::ADDRESSES) {
            self.without_key += 1;
            return;
        }
        let factor = match self.options.scale_sampled {
            true => u64::from(record.sampling_interval.max(1)),
            false => 1,
        };
        let (packets, bytes) =
            (record.packets.saturating_mul(factor), record.bytes.saturating_mul(factor));
        let key = self.table_key(record.key);
        let has_room = self.flows.len() < self.options.flows_max;
        let entry = self.flows.entry(
            key.hash64(SEED),
            |flow| flow.key == key,
            |flow| flow.key.hash64(SEED),
        );
        let sums = match entry {
            Entry::Occupied(flow) => &mut flow.into_mut().sums,
            Entry::Vacant(place) if has_room => {
                let flow = Flow { key, sums: FlowSums::EMPTY, is_compared: false };
                &mut place.insert(flow).into_mut().sums
            }
            Entry::Vacant(_) => {
                self.refused += 1;
                return;
            }
        };
        sums.records = sums.records.saturating_add(1);
        match record.counting {
            Counting::Delta => {
                sums.packets = sums.packets.saturating_add(packets);
                sums.bytes = sums.bytes.saturating_add(bytes);
            }
            Counting::Total => {
                sums.packets = sums.packets.max(packets);
                sums.bytes = sums.bytes.max(bytes);
            }
        }
        sums.first = record.first.map_or(sums.first, |first| first.min(sums.first));
        sums.last = record.last.map_or(sums.last, |last| last.max(sums.last));
    }

    /// Returns the sums of a key.
    pub fn find(&self, key: FlowKey) -> Option<&FlowSums> {
        let key = self.table_key(key);
        self.flows.find(key.hash64(SEED), |flow| flow.key == key).map(|flow| &flow.sums)
    }

    /// Iterates over all keys, in an order that depends on the keys alone.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &FlowSums)> {
        self.flows.iter().map(|flow| (flow.key, &flow.sums))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the number of records without addresses, which are not in the table.
    pub const fn without_key(&self) -> u64 {
        self.without_key
    }

    /// Returns the number of records whose key was not added because the table was full.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Removes all flows and keeps the memory.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.without_key = 0;
        self.refused = 0;
    }

    /// Compares the reported flows with the sent ones, and lists at most `examples_max` differences.
    pub fn compare(
        &mut self,
        sent: impl IntoIterator<Item = SentFlow>,
        examples_max: usize,
    ) -> Comparison {
        for flow in &mut self.flows {
            flow.is_compared = false;
        }
        let mut comparison = Comparison::default();
        // A key that was sent twice is found by its mark, or here if it is missing.
        let mut missing: HashTable<FlowKey> = HashTable::new();
        for flow in sent {
            let key = self.table_key(flow.key);
            let hash = key.hash64(SEED);
            match self.flows.find_mut(hash, |flow| flow.key == key) {
                Some(found) if !found.is_compared => {
                    found.is_compared = true;
                    comparison.add_captured(&flow, &found.sums, examples_max);
                }
                Some(_) => comparison.repeated_keys += 1,
                None => match missing.entry(hash, |it| *it == key, |it| it.hash64(SEED)) {
                    Entry::Occupied(_) => comparison.repeated_keys += 1,
                    Entry::Vacant(place) => {
                        place.insert(key);
                        comparison.add_missing(&flow, examples_max);
                    }
                },
            }
        }
        for flow in self.flows.iter().filter(|flow| !flow.is_compared) {
            comparison.unexpected.add(flow.sums.packets, flow.sums.bytes);
            comparison.add_example(flow.key, None, Some(flow.sums), examples_max);
        }
        comparison
    }

    const fn table_key(&self, key: FlowKey) -> FlowKey {
        if self.options.with_vlan { key } else { key.without_vlan() }
    }
}

impl Default for FlowTable {
    /// Creates an empty table with the default limits.
    fn default() -> Self {
        Self::new(FlowTableOptions::default())
    }
}

impl FlowSums {
    const EMPTY: Self =
        Self { records: 0, packets: 0, bytes: 0, first: Instant::MAX, last: Instant::ZERO };
}

impl Comparison {
    /// Returns whether the exporter reported exactly what was sent.
    pub const fn is_exact(&self) -> bool {
        self.missing_flows == 0
            && self.unexpected.flows == 0
            && self.packets_differ == 0
            && self.bytes_differ == 0
    }

    fn add_captured(&mut self, sent: &SentFlow, sums: &FlowSums, examples_max: usize) {
        self.sent.add(sent.packets, sent.bytes);
        self.captured.add(sums.packets, sums.bytes);
        self.split_flows += u64::from(sums.records > 1);
        let (packets, bytes) = (sums.packets != sent.packets, sums.bytes != sent.bytes);
        self.packets_differ += u64::from(packets);
        self.bytes_differ += u64::from(bytes);
        if packets || bytes {
            self.add_example(sent.key, Some(*sent), Some(*sums), examples_max);
        }
    }

    fn add_missing(&mut self, sent: &SentFlow, examples_max: usize) {
        self.sent.add(sent.packets, sent.bytes);
        self.missing_flows += 1;
        self.add_example(sent.key, Some(*sent), None, examples_max);
    }

    fn add_example(
        &mut self,
        key: FlowKey,
        sent: Option<SentFlow>,
        reported: Option<FlowSums>,
        examples_max: usize,
    ) {
        if self.examples.len() < examples_max {
            self.examples.push(Difference { key, sent, reported });
        }
    }
}

impl Amount {
    fn add(&mut self, packets: u64, bytes: u64) {
        self.flows += 1;
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::packet::protocol;

    fn key(host: u8) -> FlowKey {
        FlowKey::ipv4([10, 0, 0, host], [10, 0, 1, 1], protocol::UDP).with_ports(1_024, 53)
    }

    fn record(host: u8, packets: u64, bytes: u64) -> FlowRecord {
        FlowRecord {
            key: key(host),
            packets,
            bytes,
            first: Some(Instant::from_nanos(u64::from(host))),
            last: None,
            input_interface: 0,
            output_interface: 0,
            sampling_interval: 0,
            tcp_flags: 0,
            type_of_service: 0,
            is_reverse: false,
            counting: Counting::Delta,
            present: FieldSet::ADDRESSES,
        }
    }

    fn sent(host: u8, packets: u64, bytes: u64) -> SentFlow {
        SentFlow { key: key(host), packets, bytes }
    }

    #[test]
    fn the_records_of_a_key_are_summed_and_compared() {
        let mut table = FlowTable::default();
        for record in [record(1, 2, 200), record(1, 3, 300), record(2, 1, 90), record(9, 4, 400)] {
            table.add(&record);
        }
        let flows = [sent(1, 5, 500), sent(2, 1, 100), sent(3, 7, 700), sent(1, 5, 500)];
        let comparison = table.compare(flows, 2);
        let expected = Comparison {
            sent: Amount { flows: 3, packets: 13, bytes: 1_300 },
            captured: Amount { flows: 2, packets: 6, bytes: 590 },
            unexpected: Amount { flows: 1, packets: 4, bytes: 400 },
            split_flows: 1,
            missing_flows: 1,
            packets_differ: 0,
            bytes_differ: 1,
            repeated_keys: 1,
            examples: comparison.examples.clone(),
        };
        assert_eq!(comparison, expected);
        assert!(!comparison.is_exact());
        assert_eq!(comparison.examples.len(), 2);
        assert_eq!(comparison.examples[1].reported, None);
        // A second comparison starts anew.
        let flows = [sent(1, 5, 500), sent(2, 1, 90), sent(9, 4, 400)];
        let comparison = table.compare(flows, 9);
        assert!(comparison.is_exact());
        assert_eq!((comparison.captured.flows, comparison.repeated_keys), (3, 0));
    }

    #[test]
    fn totals_replace_each_other_and_samples_are_multiplied() {
        let mut table = FlowTable::default();
        for packets in [3, 5] {
            table.add(&FlowRecord { counting: Counting::Total, ..record(1, packets, 0) });
            table.add(&FlowRecord { sampling_interval: 100, ..record(2, packets, 0) });
        }
        assert_eq!(table.find(key(1)).unwrap().packets, 5);
        assert_eq!(table.find(key(2).with_vlan(7)).unwrap().packets, 800);
    }

    #[test]
    fn keys_beyond_the_limit_and_records_without_one_are_counted() {
        let options = FlowTableOptions { flows_max: 2, ..FlowTableOptions::default() };
        let mut table = FlowTable::new(options);
        for host in [1, 2, 3, 1] {
            table.add(&record(host, 1, 1));
        }
        table.add(&FlowRecord { present: FieldSet::EMPTY, ..record(1, 1, 1) });
        assert_eq!((table.len(), table.refused(), table.without_key()), (2, 1, 1));
    }
}
