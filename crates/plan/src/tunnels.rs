//! Parses the `tunnels` field of a port: GTP-U tunnels of clients.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use wirestorm_model::address_range::AddressRange;
use wirestorm_model::tunnel::ClientTunnels;
use wirestorm_wire::prefix::Prefix;

use crate::document::error::PlanError;
use crate::document::range::read_range;
use crate::document::value_at::{Fields, ValueAt};

pub(crate) const TUNNEL: [&str; 6] = ["clients", "teid", "teid_step", "src", "dst", "source_port"];

/// Reads the tunnels of a port. A missing tunnel end defaults to the port's own address of the same
/// family in `own`.
pub(crate) fn read(place: &ValueAt<'_>, local: &[Prefix]) -> Result<Vec<ClientTunnels>, PlanError> {
    let mut all = Vec::new();
    // Client ranges so far: first address to last address.
    let mut taken: BTreeMap<IpAddr, IpAddr> = BTreeMap::new();
    for item in place.items("tunnels")? {
        let fields = item.fields(&TUNNEL)?;
        let tunnels = read_one(&item, &fields, local)?;
        let before = taken.range(..=tunnels.last).next_back();
        if let Some((first, _)) = before.filter(|(_, last)| **last >= tunnels.first) {
            let clients = fields.required("clients", "addresses of clients")?;
            let message = format!("{} already has a tunnel", (*first).max(tunnels.first));
            return Err(clients.message_error(message));
        }
        taken.insert(tunnels.first, tunnels.last);
        all.push(tunnels);
    }
    Ok(all)
}

fn read_one(
    place: &ValueAt<'_>,
    fields: &Fields<'_>,
    local: &[Prefix],
) -> Result<ClientTunnels, PlanError> {
    let clients = read_range(&fields.required("clients", "addresses of clients")?)?;
    let number = |place: &ValueAt<'_>| Ok(place.integer(0, u32::MAX.into())? as u32);
    let teid_place = fields.required("teid", "a tunnel endpoint identifier")?;
    let teid = number(&teid_place)?;
    let teid_step = fields.get("teid_step").map_or(Ok(1), |it| number(&it))?;
    let port = fields.get("source_port").map(|it| it.integer(1, u16::MAX.into())).transpose()?;
    let (from, to) = read_endpoints(place, fields, local)?;
    let tunnels = ClientTunnels {
        first: clients.first,
        last: last_address(&clients),
        teid,
        teid_step,
        from,
        to,
        source_port: port.and_then(|port| NonZeroU16::new(port as u16)),
    };
    check_teid_range(&teid_place, &tunnels, clients.count)?;
    Ok(tunnels)
}

/// Checks that the last client's tunnel endpoint identifier fits 32 bits. `place` is that of the
/// first client's identifier.
fn check_teid_range(
    place: &ValueAt<'_>,
    tunnels: &ClientTunnels,
    count: u32,
) -> Result<(), PlanError> {
    let last = tunnels.teid_last();
    if last <= u32::MAX.into() {
        return Ok(());
    }
    Err(place.message_error(format!(
        "found {}: with a step of {} the last of {count} clients gets {last}, expected at most {}",
        tunnels.teid,
        tunnels.teid_step,
        u32::MAX
    )))
}

fn read_endpoints(
    place: &ValueAt<'_>,
    fields: &Fields<'_>,
    local: &[Prefix],
) -> Result<(IpAddr, IpAddr), PlanError> {
    const ADDRESS: &str = "an IP address";
    let address = |name: &str| -> Result<_, PlanError> {
        let Some(place) = fields.get(name) else { return Ok(None) };
        let address =
            place.text(ADDRESS)?.parse::<IpAddr>().map_err(|_| place.unexpected(ADDRESS))?;
        Ok(Some((place, address)))
    };
    let local_end = |other: IpAddr| {
        let mut alike = local.iter().filter(|prefix| prefix.address.is_ipv4() == other.is_ipv4());
        let address = alike.next().map(|prefix| prefix.address);
        address.ok_or_else(|| {
            let family = if other.is_ipv4() { "IPv4" } else { "IPv6" };
            let found = format!("one end, {other}");
            place.error(found, format!("the other, or an address of {family} of the port"))
        })
    };
    match (address("src")?, address("dst")?) {
        (Some((_, from)), Some((place, to))) if from.is_ipv4() != to.is_ipv4() => {
            Err(place.unexpected(format!("an address of the family of {from}")))
        }
        (Some((_, from)), Some((_, to))) => Ok((from, to)),
        (None, Some((_, to))) => Ok((local_end(to)?, to)),
        (Some((_, from)), None) => Ok((from, local_end(from)?)),
        (None, None) => Err(place.error("no end of the tunnel", "dst, src, or both")),
    }
}

fn last_address(range: &AddressRange) -> IpAddr {
    let more = range.count.saturating_sub(1);
    match range.first {
        IpAddr::V4(first) => IpAddr::from(first.to_bits().saturating_add(more).to_be_bytes()),
        IpAddr::V6(first) => {
            IpAddr::from(first.to_bits().saturating_add(more.into()).to_be_bytes())
        }
    }
}
