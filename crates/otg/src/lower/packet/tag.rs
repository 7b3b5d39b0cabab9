//! Metric tags: bits of the frame by whose values the receiver counts.

use wirestorm_model::stream::FrameBits;

use super::super::problems::ConfigError;
use crate::view::View;

/// Bits of the frame by whose values frames are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricTag {
    /// Name in the metrics.
    pub name: String,
    /// Offset from the start of the frame, in bits.
    pub bit_offset: usize,
    /// Number of bits; 1 to 128.
    pub bit_length: usize,
}

impl MetricTag {
    /// Returns the place of the tag in the frame.
    pub const fn bits(&self) -> FrameBits {
        FrameBits { bit_offset: self.bit_offset, bit_length: self.bit_length }
    }
}

/// Reads the tags of a field; offsets count from the start of the field.
pub(super) fn read(
    view: View<'_>,
    field_bits: usize,
    path: &str,
) -> Result<Vec<MetricTag>, ConfigError> {
    let mut tags = Vec::new();
    for (index, tag) in view.messages("metric_tags").into_iter().enumerate() {
        let path = format!("{path}.metric_tags[{index}]");
        let name = tag.text("name").unwrap_or_default().to_owned();
        let bit_offset = tag.number("offset").unwrap_or(0) as usize;
        let bit_length = tag.number("length").unwrap_or(1) as usize;
        if !(1..=128).contains(&bit_length) || bit_offset.saturating_add(bit_length) > field_bits {
            return Err(ConfigError::new(
                path,
                format!(
                    "found {bit_length} bits from bit {bit_offset}, expected 1 to 128 of the \
                     {field_bits} bits of the field"
                ),
            ));
        }
        tags.push(MetricTag { name, bit_offset, bit_length });
    }
    Ok(tags)
}
