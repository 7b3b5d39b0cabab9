//! Byte ranges as field names: `bytes[42..44]`.

use std::ops::Range;

use wirestorm_model::stream::{ByteOrder, Write};

/// Maximum bytes of a range that acts as one field.
pub(super) const WIDTH_MAX: usize = 16;

/// Parses the range of a name. Offsets count from 0; a range has 1 to [`WIDTH_MAX`] bytes.
pub(super) fn range(name: &str) -> Option<Range<usize>> {
    let (start, end) = name.strip_prefix("bytes[")?.strip_suffix(']')?.split_once("..")?;
    let range: Range<usize> = start.parse().ok()?..end.parse().ok()?;
    (1..=WIDTH_MAX).contains(&range.len()).then_some(range)
}

/// Returns the write of a variable to these bytes, in network byte order.
pub(super) fn write(range: &Range<usize>, variable: usize) -> Write {
    let (offset, width) = (range.start, range.len());
    let mask = u128::MAX >> (128 - bits(range));
    Write { variable, offset, width, add: 0, shift: 0, mask, order: ByteOrder::Network }
}

/// Returns the number of bits in the range.
pub(super) fn bits(range: &Range<usize>) -> u32 {
    8 * range.len() as u32
}
