//! Buffers of a profile, which programs refer to by index.

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::trex::document::from_base64;

const BUFFER: [&str; 3] = ["base", "size", "fill"];

/// Bytes to send: `text`, extended to `size` by repeats of `fill`.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    pub(super) text: Vec<u8>,
    pub(super) size: u32,
    pub(super) fill: Vec<u8>,
}

pub(super) fn read_buffer(place: &ValueAt<'_>) -> Result<Bytes, PlanError> {
    let bytes = |place: &ValueAt<'_>| {
        let text = place.text("bytes in base 64")?;
        from_base64(text).ok_or_else(|| place.unexpected("bytes in base 64"))
    };
    if place.value().is_string() {
        let text = bytes(place)?;
        return Ok(Bytes { size: text.len() as u32, text, fill: Vec::new() });
    }
    let fields = place.fields(&BUFFER)?;
    let text = bytes(&fields.required("base", "bytes in base 64")?)?;
    let size = fields.required("size", "the size in bytes after filling")?;
    let size = size.integer(text.len() as u64, u32::MAX.into())? as u32;
    let fill = fields.get("fill").map_or(Ok(Vec::new()), |it| bytes(&it))?;
    Ok(Bytes { text, size, fill })
}

/// Returns the entry whose index a field gives.
pub(super) fn entry<'a, T>(
    place: &ValueAt<'_>,
    list: &'a [T],
    what: &str,
) -> Result<&'a T, PlanError> {
    let number = place.value().as_u64().and_then(|it| usize::try_from(it).ok());
    number.and_then(|number| list.get(number)).ok_or_else(|| {
        place.unexpected(format!("the number of one of the {} {what}, from 0", list.len()))
    })
}
