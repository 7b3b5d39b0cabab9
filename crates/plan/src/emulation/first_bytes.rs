//! Parses `first_bytes` of a server.

use super::types::FirstBytes;
use super::types::{Server, Template};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

pub(super) const BYTE: [&str; 3] = ["offset", "mask", "value"];
const EXPECTED: &str = "a text of 1 to 8 bytes, or a list of {offset: 0, value: 71}";

pub(super) fn read(place: &ValueAt<'_>) -> Result<FirstBytes, PlanError> {
    let mut bytes: Vec<(u8, u8, u8)> = match place.value().as_str() {
        Some(text) => (0..=u8::MAX).zip(text.bytes()).map(|(at, byte)| (at, 255, byte)).collect(),
        None => place.items("bytes")?.iter().map(read_byte).collect::<Result<_, _>>()?,
    };
    if !(1..=FirstBytes::COUNT_MAX).contains(&bytes.len()) {
        return Err(place.unexpected(EXPECTED));
    }
    // The order does not matter; sorted lists compare as equal.
    bytes.sort_unstable();
    match bytes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(place.error(format!("byte {} twice", pair[0].0), "each byte once")),
        None => Ok(FirstBytes(bytes)),
    }
}

/// Reads the value of a byte under a mask. A value with bits outside the mask could never match.
pub(crate) fn read_masked(place: &ValueAt<'_>, mask: u8) -> Result<u8, PlanError> {
    let value = place.integer(0, 255)? as u8;
    if value & !mask != 0 {
        return Err(place.error(
            format!("{value:#04x}"),
            format!(
                "no bits outside the mask {mask:#04x}, because no masked byte has them, such as \
                 {:#04x}",
                value & mask
            ),
        ));
    }
    Ok(value)
}

fn read_byte(place: &ValueAt<'_>) -> Result<(u8, u8, u8), PlanError> {
    let fields = place.fields(&BYTE)?;
    let offset = fields.required("offset", "the offset of the byte, from 0")?.integer(0, 255)?;
    let value = fields.required("value", "the value of the byte")?;
    let mask = fields.get("mask").map_or(Ok(255), |it| it.integer(1, 255))? as u8;
    Ok((offset as u8, mask, read_masked(&value, mask)?))
}

/// Returns the listening port of a server if first bytes select a server there; `None` otherwise.
pub(super) fn first_bytes_port(server: &Server, all: &[Template]) -> Option<u16> {
    let has_first_bytes = |other: &Server| {
        (other.transmit, other.listen) == (server.transmit, server.listen)
            && other.first_bytes.is_some()
    };
    let mut servers = all.iter().filter_map(|it| it.server.as_ref());
    server.listen.filter(|_| servers.any(has_first_bytes))
}
