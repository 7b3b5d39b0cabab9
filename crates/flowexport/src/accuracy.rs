//! Accuracy of the fields of records (RFC 6645 section 7).
//!
//! The RFC calls a record accurate if it has all fields, if the values are in the ranges that the
//! traffic generator set, and if all possible values were found.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::element::FieldId;
use crate::record::Record;

/// Widest range whose values are marked one by one.
const VALUES_MAX: u64 = 1 << 20;

/// What is expected of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedField {
    /// The field, of at most 8 bytes.
    pub id: FieldId,
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
    /// Records without the field, or with more than 8 bytes of it.
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
    pub fn check(&mut self, record: &Record<'_>) {
        self.records += 1;
        let mut is_accurate = true;
        for (expected, found, marks) in &mut self.fields {
            let Some(value) = record.unsigned(expected.id) else {
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
    use crate::element;
    use crate::record::{Content, Counting, FieldSet, FlowRecord, Source};
    use crate::template::{Template, TemplateField};
    use crate::{Record, Version};
    use wirestorm_wire::flow::FlowKey;

    #[test]
    fn fields_that_are_missing_out_of_range_or_incomplete_are_counted() {
        let field = |id, length| TemplateField { id, length, is_scope: false };
        let fields = vec![field(element::VLAN, 2), field(element::PROTOCOL, 1)];
        let template = Template::new(256, fields).unwrap();
        let exporter = "192.0.2.1:2055".parse().unwrap();
        let source = Source { exporter, version: Version::NetflowV9, domain: 0, agent: None };
        let flow = FlowRecord {
            key: FlowKey::ipv4([0; 4], [0; 4], 6),
            packets: 0,
            bytes: 0,
            first: None,
            last: None,
            input_interface: 0,
            output_interface: 0,
            sampling_interval: 0,
            tcp_flags: 0,
            type_of_service: 0,
            is_reverse: false,
            counting: Counting::Delta,
            present: FieldSet::EMPTY,
        };
        let expected = |id, range| ExpectedField { id, range };
        let mut accuracy = Accuracy::new([
            expected(element::VLAN, 10..=13),
            expected(element::PROTOCOL, 0..=u64::MAX),
            expected(element::SOURCE_PORT, 0..=0),
        ]);
        for bytes in [[0, 10, 6], [0, 12, 17], [0, 12, 6], [1, 0, 6]] {
            let content = Content::Fields { template: &template, bytes: &bytes, positions: &[] };
            accuracy.check(&Record { source: &source, flow: &flow, content });
        }
        let found: Vec<_> = accuracy.fields().collect();
        let [(vlan, vlans), (_, protocols), (_, ports)] = found[..] else { panic!("three fields") };
        assert_eq!((vlans.present, vlans.out_of_range, vlans.values), (4, 1, Some((10, 256))));
        assert_eq!((vlans.found_values, vlans.missing_values(vlan)), (Some(2), Some(2)));
        assert_eq!((protocols.values, protocols.found_values), (Some((6, 17)), None));
        assert_eq!((ports.missing, ports.present), (4, 0));
        assert_eq!((accuracy.records(), accuracy.accurate_records()), (4, 0));
    }
}
