//! What a flow begins with.

use super::{Server, Template};
use crate::document::error::PlanError;
use crate::document::place::Place;

/// Bytes of the first data of a flow: where each stands, which of its bits are looked at, and what
/// they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBytes(pub Vec<(u8, u8, u8)>);

pub(super) const BYTE: [&str; 3] = ["offset", "mask", "value"];
const EXPECTED: &str = "a text of 1 to 8 bytes, or a list of {offset: 0, value: 71}";

impl FirstBytes {
    /// The most bytes that are looked at.
    pub const COUNT_MAX: usize = 8;
}

pub(super) fn read(place: &Place<'_>) -> Result<FirstBytes, PlanError> {
    let mut bytes: Vec<(u8, u8, u8)> = match place.value().as_str() {
        Some(text) => (0..=u8::MAX).zip(text.bytes()).map(|(at, byte)| (at, 255, byte)).collect(),
        None => place.items("bytes")?.iter().map(read_byte).collect::<Result<_, _>>()?,
    };
    if !(1..=FirstBytes::COUNT_MAX).contains(&bytes.len()) {
        return Err(place.wrong(EXPECTED));
    }
    // In any order they are the same server.
    bytes.sort_unstable();
    match bytes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(place.error(format!("byte {} twice", pair[0].0), "each byte once")),
        None => Ok(FirstBytes(bytes)),
    }
}

fn read_byte(place: &Place<'_>) -> Result<(u8, u8, u8), PlanError> {
    let fields = place.fields(&BYTE)?;
    let offset = fields.need("offset", "where the byte stands, from 0")?.integer(0, 255)?;
    let value = fields.need("value", "what it is")?.integer(0, 255)?;
    let mask = fields.get("mask").map_or(Ok(255), |it| it.integer(1, 255))?;
    Ok((offset as u8, mask as u8, (value & mask) as u8))
}

/// The port at which a server listens, where any server there is told by what flows begin with.
pub(super) fn decide_at(server: &Server, all: &[Template]) -> Option<u16> {
    let is_looked_at = |other: &Server| {
        (other.transmit, other.listen) == (server.transmit, server.listen)
            && other.first_bytes.is_some()
    };
    let mut servers = all.iter().filter_map(|it| it.server.as_ref());
    server.listen.filter(|_| servers.any(is_looked_at))
}
