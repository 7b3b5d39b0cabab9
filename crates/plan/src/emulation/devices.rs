//! Who is below IP between clients and the rest, as it is written.

use std::net::IpAddr;

use wirestorm_wire::packet::MacAddress;

use super::client::{AddressRange, read_range};
use crate::document::error::PlanError;
use crate::document::place::Place;

/// Devices that clients' frames go by: of the clients in turn the first by the first, the second
/// by the second, and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The clients.
    pub clients: AddressRange,
    /// Only every Nth of these, from the first one on; at least 1.
    pub every: u32,
    /// How many devices; at least 1.
    pub count: u32,
    /// The VLAN of the frames.
    pub vlan: Option<u16>,
    /// Where frames of the first device's clients go, those of the next one to the next address;
    /// `None`: as for other clients.
    pub destination: Option<MacAddress>,
    /// Where they come from, likewise.
    pub source: Option<MacAddress>,
}

pub(super) const DEVICES: [&str; 6] = ["clients", "every", "count", "vlan", "dst", "src"];
const MAC: &str = "an Ethernet address such as 02:00:00:00:00:01";

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Devices>, PlanError> {
    let device = |place: &Place<'_>| {
        let fields = place.fields(&DEVICES)?;
        let mac = |name: &str| fields.get(name).map(|it| read_mac(&it)).transpose();
        let number =
            |name: &str| fields.get(name).map_or(Ok(1), |it| it.integer(1, u32::MAX.into()));
        let (every, count) = (number("every")?, number("count")?);
        let vlan = fields.get("vlan").map(|it| it.integer(0, 4_095)).transpose()?;
        Ok(Devices {
            clients: read_range(&fields.need("clients", "addresses of clients")?)?,
            every: every as u32,
            count: count as u32,
            vlan: vlan.map(|it| it as u16),
            destination: mac("dst")?,
            source: mac("src")?,
        })
    };
    place.items("devices")?.iter().map(device).collect()
}

pub(crate) fn read_mac(place: &Place<'_>) -> Result<MacAddress, PlanError> {
    place.text(MAC)?.parse().map_err(|_| place.wrong(MAC))
}

impl AddressRange {
    /// The place of an address, if it is one of these.
    pub fn place_of(&self, address: IpAddr) -> Option<u32> {
        let place = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                u128::from(address.to_bits()).checked_sub(first.to_bits().into())?
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits().checked_sub(first.to_bits())?
            }
            _ => return None,
        };
        u32::try_from(place).ok().filter(|place| *place < self.count)
    }
}
