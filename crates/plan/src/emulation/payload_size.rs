//! Parses the size and the fill pattern of a payload.

use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};

/// Maximum length in bytes of a message that a preset protocol builds.
pub(super) const SIZE_MAX: u64 = 1 << 30;

/// Maximum number of bytes that a step sends.
pub(super) const SEND_BYTES_MAX: u64 = u32::MAX as u64;

/// Reads the fields `size` and `fill` of a payload that has `text_length` bytes of text. Returns
/// the size and the fill pattern.
///
/// # Errors
/// The size is less than `text_length` or more than `most`, or the payload is empty.
pub(super) fn read_size_and_fill(
    place: &ValueAt<'_>,
    fields: &Fields<'_>,
    text_length: usize,
    most: u64,
) -> Result<(u32, Vec<u8>), PlanError> {
    let fill = match fields.get("fill") {
        None => Vec::new(),
        Some(place) => place.string("a text")?.as_bytes().to_vec(),
    };
    let least = (text_length as u64).max(1);
    let size = match fields.get("size") {
        Some(size) => size.integer(least, most)?,
        None if text_length == 0 => return Err(place.error("neither", "text, size, or both")),
        None => least,
    };
    Ok((size as u32, fill))
}
