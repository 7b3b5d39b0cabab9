//! What IP headers say, as it is written.

use crate::document::error::PlanError;
use crate::document::place::Place;

/// What is asked of IP; `None`: as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ip {
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
    /// Type of service, or traffic class; its lower two bits are ECN's.
    pub tos: Option<u8>,
}

impl Ip {
    /// This, and what is not asked for here as it is there.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { ttl: self.ttl.or(other.ttl), tos: self.tos.or(other.tos) }
    }
}

pub(super) const IP: [&str; 2] = ["ttl", "tos"];

pub(super) fn read(place: &Place<'_>) -> Result<Ip, PlanError> {
    let fields = place.fields(&IP)?;
    let ttl = fields.get("ttl").map(|it| it.integer(1, 255)).transpose()?;
    let tos = fields.get("tos").map(|it| it.integer(0, 255)).transpose()?;
    Ok(Ip { ttl: ttl.map(|it| it as u8), tos: tos.map(|it| it as u8) })
}
