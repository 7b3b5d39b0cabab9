//! Accuracy of the fields of records (RFC 6645 section 7).
//!
//! The RFC calls a record accurate if it has all fields, if the values are in the ranges that the
//! traffic generator set, and if all possible values were found.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::RangeInclusive;

use crate::record::{FieldSet, FlowRecord};

/// Widest range whose values are marked one by one.
const VALUES_MAX: u64 = 1 << 20;

/// A field of records whose values are checked, from whichever elements the exporter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// IPv4 source address as a number. Records of IPv6 have none.
    SourceAddress,
    /// IPv4 destination address as a number. Records of IPv6 have none.
    DestinationAddress,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// Protocol.
    Protocol,
    /// Type of service.
    TypeOfService,
    /// Packets.
    Packets,
    /// Bytes of IP packets.
    Bytes,
    /// Time of the first packet in nanoseconds since 1970.
    First,
    /// Time of the last packet in nanoseconds since 1970.
    Last,
}

impl Field {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceAddress => "source address",
            Self::DestinationAddress => "destination address",
            Self::SourcePort => "source port",
            Self::DestinationPort => "destination port",
            Self::Protocol => "protocol",
            Self::TypeOfService => "type of service",
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::First => "time of the first packet",
            Self::Last => "time of the last packet",
        }
    }

    /// Returns a value as text: an address in its notation.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::SourceAddress | Self::DestinationAddress => {
                Ipv4Addr::from(value as u32).to_string()
            }
            _ => value.to_string(),
        }
    }

    /// Returns the value in a record; `None` if the record has none.
    pub fn of(self, flow: &FlowRecord) -> Option<u64> {
        let if_present = |set, value| flow.present.contains(set).then_some(value);
        let ipv4 = |address| match address {
            IpAddr::V4(address) => if_present(FieldSet::ADDRESSES, u32::from(address).into()),
            IpAddr::V6(_) => None,
        };
        let key = flow.key;
        match self {
            Self::SourceAddress => ipv4(key.source()),
            Self::DestinationAddress => ipv4(key.destination()),
            Self::SourcePort => if_present(FieldSet::PORTS, key.source_port().into()),
            Self::DestinationPort => if_present(FieldSet::PORTS, key.destination_port().into()),
            Self::Protocol => if_present(FieldSet::PROTOCOL, key.protocol().into()),
            Self::TypeOfService => {
                if_present(FieldSet::TYPE_OF_SERVICE, flow.type_of_service.into())
            }
            Self::Packets => if_present(FieldSet::PACKETS, flow.packets),
            Self::Bytes => if_present(FieldSet::BYTES, flow.bytes),
            Self::First => flow.first.map(|time| time.as_nanos()),
            Self::Last => flow.last.map(|time| time.as_nanos()),
        }
    }
}

/// What is expected of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedField {
    /// The field.
    pub field: Field,
    /// Values that the generator sets.
    pub range: RangeInclusive<u64>,
}

/// Checks the fields of records.
#[derive(Debug)]
pub struct Accuracy {
    fields: Vec<(ExpectedField, FieldAccuracy, Vec<u64>)>,
    records: u64,
    accurate_records: u64,
}

/// What the records had in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldAccuracy {
    /// Records with the field.
    pub present: u64,
    /// Records without the field.
    pub missing: u64,
    /// Records whose value is outside the range.
    pub out_of_range: u64,
    /// Least and greatest value; `None` without a value.
    pub values: Option<(u64, u64)>,
    /// Different values in the range that were found; `None` if the range has more than 1,048,576
    /// values, which are not marked.
    pub found_values: Option<u64>,
}

impl Accuracy {
    /// Creates a check of these fields. A range of up to 1,048,576 values takes a bit for each.
    pub fn new(fields: impl IntoIterator<Item = ExpectedField>) -> Self {
        let field = |field: ExpectedField| {
            let count = field.values();
            let words = if count <= VALUES_MAX { count.div_ceil(64) as usize } else { 0 };
            let found_values = (count <= VALUES_MAX).then_some(0);
            let found = FieldAccuracy { found_values, ..FieldAccuracy::default() };
            (field, found, vec![0; words])
        };
        let fields = fields.into_iter().map(field).collect();
        Self { fields, records: 0, accurate_records: 0 }
    }

    /// Checks a record.
    pub fn check(&mut self, flow: &FlowRecord) {
        self.records += 1;
        let mut is_accurate = true;
        for (expected, found, marks) in &mut self.fields {
            let Some(value) = expected.field.of(flow) else {
                found.missing += 1;
                is_accurate = false;
                continue;
            };
            found.present += 1;
            let (least, greatest) = found.values.unwrap_or((value, value));
            found.values = Some((least.min(value), greatest.max(value)));
            if !expected.range.contains(&value) {
                found.out_of_range += 1;
                is_accurate = false;
                continue;
            }
            let index = value - expected.range.start();
            if let Some(word) = marks.get_mut((index / 64) as usize) {
                let bit = 1 << (index % 64);
                let is_new = *word & bit == 0;
                *word |= bit;
                found.found_values = found.found_values.map(|count| count + u64::from(is_new));
            }
        }
        self.accurate_records += u64::from(is_accurate);
    }

    /// Iterates over the expected fields, with what was found.
    pub fn fields(&self) -> impl Iterator<Item = (&ExpectedField, &FieldAccuracy)> {
        self.fields.iter().map(|(expected, found, _)| (expected, found))
    }

    /// Returns the number of checked records.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of records that have all fields with values in their ranges.
    pub const fn accurate_records(&self) -> u64 {
        self.accurate_records
    }
}

impl ExpectedField {
    /// Returns the number of values in the range; saturates.
    pub fn values(&self) -> u64 {
        match self.range.is_empty() {
            true => 0,
            false => (self.range.end() - self.range.start()).saturating_add(1),
        }
    }
}

impl FieldAccuracy {
    /// Returns how many values of the range were not found; `None` if they are not marked.
    pub fn missing_values(&self, expected: &ExpectedField) -> Option<u64> {
        self.found_values.map(|found| expected.values().saturating_sub(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Counting;
    use wirestorm_base::time::Instant;
    use wirestorm_wire::flow::FlowKey;

    fn record(source: [u8; 4], packets: u64) -> FlowRecord {
        FlowRecord {
            key: FlowKey::ipv4(source, [192, 0, 2, 1], 17).with_ports(5, 7),
            packets,
            bytes: 0,
            first: None,
            last: Some(Instant::from_nanos(9)),
            input_interface: 0,
            output_interface: 0,
            sampling_interval: 0,
            tcp_flags: 0,
            type_of_service: 0,
            is_reverse: false,
            counting: Counting::Delta,
            present: FieldSet::ADDRESSES | FieldSet::PACKETS | FieldSet::PROTOCOL,
        }
    }

    #[test]
    fn fields_that_are_missing_out_of_range_or_incomplete_are_counted() {
        let expected = |field, range| ExpectedField { field, range };
        let sources = 0x0a00_000a..=0x0a00_000d;
        let mut accuracy = Accuracy::new([
            expected(Field::SourceAddress, sources),
            expected(Field::Packets, 0..=u64::MAX),
            expected(Field::SourcePort, 0..=0),
        ]);
        for (last, packets) in [(10, 6), (12, 17), (12, 6), (200, 6)] {
            accuracy.check(&record([10, 0, 0, last], packets));
        }
        let found: Vec<_> = accuracy.fields().collect();
        let [(source, sources), (_, packets), (_, ports)] = found[..] else { panic!("3 fields") };
        let values = Some((0x0a00_000a, 0x0a00_00c8));
        assert_eq!((sources.present, sources.out_of_range, sources.values), (4, 1, values));
        assert_eq!((sources.found_values, sources.missing_values(source)), (Some(2), Some(2)));
        assert_eq!((packets.values, packets.found_values), (Some((6, 17)), None));
        assert_eq!((ports.missing, ports.present), (4, 0));
        assert_eq!((accuracy.records(), accuracy.accurate_records()), (4, 0));
    }

    #[test]
    fn record_is_accurate_with_all_fields_in_their_ranges() {
        let field = |(field, value)| ExpectedField { field, range: value..=value };
        let fields = [(Field::Packets, 3), (Field::Protocol, 17), (Field::Last, 9)];
        let mut accuracy = Accuracy::new(fields.map(field));
        accuracy.check(&record([10, 0, 0, 1], 3));
        accuracy.check(&record([10, 0, 0, 1], 4));
        assert_eq!((accuracy.records(), accuracy.accurate_records()), (2, 1));
        assert_eq!(Field::First.of(&record([0; 4], 1)), None);
        assert_eq!(Field::SourceAddress.text(0x0a00_0001), "10.0.0.1");
    }
}
