//! Who is below IP between clients and the rest, as it is written.

use std::net::IpAddr;

use wirestorm_wire::packet::MacAddress;

use super::client::{AddressRange, read_range};
use crate::document::error::PlanError;
use crate::document::place::{Fields, Place};

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
    /// Devices that are asked for their Ethernet addresses instead, each for its own.
    pub next_hop: Option<NextHop>,
}

/// Routers that are asked for their Ethernet addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The address of the first one; the next ones have the next addresses.
    pub first: IpAddr,
    /// Who asks, and answers for this address meanwhile; `None`: the port itself.
    pub from: Option<IpAddr>,
}

/// An address that a port answers for beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The port, by its place in the plan.
    pub port: usize,
    /// In which VLAN.
    pub vlan: Option<u16>,
    /// The address.
    pub address: IpAddr,
}

pub(super) const DEVICES: [&str; 8] =
    ["clients", "every", "count", "vlan", "dst", "src", "next_hop", "next_hop_from"];
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
            next_hop: read_next_hop(&fields)?,
        })
    };
    place.items("devices")?.iter().map(device).collect()
}

fn read_next_hop(fields: &Fields<'_>) -> Result<Option<NextHop>, PlanError> {
    const ADDRESS: &str = "an IP address";
    let address = |name: &str| -> Result<_, PlanError> {
        let Some(place) = fields.get(name) else { return Ok(None) };
        let address = place.text(ADDRESS)?.parse::<IpAddr>().map_err(|_| place.wrong(ADDRESS))?;
        Ok(Some((place, address)))
    };
    match (address("next_hop")?, address("next_hop_from")?) {
        (None, None) => Ok(None),
        (None, Some((place, _))) => Err(place.says("belongs to next_hop, which is not there")),
        (Some((place, _)), _) if fields.get("dst").is_some() => {
            Err(place.error("dst as well", "one of them: the next hop's Ethernet address is asked"))
        }
        (Some((_, first)), Some((place, from))) if first.is_ipv4() != from.is_ipv4() => {
            Err(place.wrong(format!("an address of the family of {first}")))
        }
        (Some((_, first)), from) => Ok(Some(NextHop { first, from: from.map(|(_, from)| from) })),
    }
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
