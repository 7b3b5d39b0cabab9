//! Sizes of payload, and the bytes that fill it.

use crate::document::error::PlanError;
use crate::document::place::{Fields, Place};

/// Bytes of a message that is put together or made for a protocol, at most.
pub(super) const SIZE_MAX: u64 = 1 << 30;

/// Bytes that one step sends, at most.
pub(super) const SENT_MAX: u64 = u32::MAX as u64;

/// The size of something with so many bytes of its own, and what fills it up.
pub(super) fn read_filling(
    place: &Place<'_>,
    fields: &Fields<'_>,
    own: usize,
    most: u64,
) -> Result<(u32, Vec<u8>), PlanError> {
    let fill = match fields.get("fill") {
        None => Vec::new(),
        Some(place) => place.free_text("a text")?.as_bytes().to_vec(),
    };
    let least = (own as u64).max(1);
    let size = match fields.get("size") {
        Some(size) => size.integer(least, most)?,
        None if own == 0 => return Err(place.error("neither", "text, size, or both")),
        None => least,
    };
    Ok((size as u32, fill))
}
