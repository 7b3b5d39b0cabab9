//! Bytes that are named by their offsets: `bytes[42..44]`.

use std::ops::Range;

use wirestorm_model::stream::{ByteOrder, Write};

/// The most bytes that are named as one field.
pub(super) const WIDTH_MAX: usize = 16;

/// The bytes that a name tells, from 0; at least one, at most [`WIDTH_MAX`].
pub(super) fn range(name: &str) -> Option<Range<usize>> {
    let (start, end) = name.strip_prefix("bytes[")?.strip_suffix(']')?.split_once("..")?;
    let range: Range<usize> = start.parse().ok()?..end.parse().ok()?;
    (1..=WIDTH_MAX).contains(&range.len()).then_some(range)
}

/// How they are written as a number.
pub(super) fn write(range: &Range<usize>, variable: usize) -> Write {
    let (offset, width) = (range.start, range.len());
    let mask = u128::MAX >> (128 - bits(range));
    Write { variable, offset, width, add: 0, shift: 0, mask, order: ByteOrder::Network }
}

/// How many bits they are.
pub(super) fn bits(range: &Range<usize>) -> u32 {
    8 * range.len() as u32
}
