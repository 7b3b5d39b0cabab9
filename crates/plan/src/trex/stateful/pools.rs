//! Address pools.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirestorm_model::address_range::AddressRange;

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

const POOL: [&str; 6] =
    ["ip_start", "ip_end", "ip_offset", "dir", "distribution", "per_core_distribution"];

/// Addresses of clients or servers.
#[derive(Clone, Copy, Debug)]
pub(in crate::trex) struct Pool {
    pub(in crate::trex) first: Ipv4Addr,
    pub(in crate::trex) count: u32,
    /// Address offset between one pair of ports and the next.
    pub(in crate::trex) offset: Ipv4Addr,
    /// Whether addresses are random instead of round robin.
    pub(in crate::trex) is_random: bool,
}

pub(super) fn read(place: &ValueAt<'_>) -> Result<Pool, PlanError> {
    let fields = place.fields(&POOL)?;
    let address = |name: &str| read_address(&fields.required(name, "an IPv4 address")?);
    let (first, last) = (address("ip_start")?, address("ip_end")?);
    let Some(more) = last.to_bits().checked_sub(first.to_bits()) else {
        return Err(place.message_error(format!("ip_end {last} is before ip_start {first}")));
    };
    let distribution = fields.required("distribution", "seq or rand")?;
    let is_random = match distribution.text("seq or rand")? {
        "seq" => false,
        "rand" => true,
        _ => return Err(distribution.unexpected("seq or rand")),
    };
    Ok(Pool { first, count: more.saturating_add(1), offset: address("ip_offset")?, is_random })
}

impl Pool {
    /// Returns the addresses of a pair of ports. `prefix` holds the upper 96 bits for IPv6.
    pub(in crate::trex) fn range(&self, pair: u32, prefix: Option<[u8; 16]>) -> AddressRange {
        AddressRange { first: self.moved(self.first, pair, prefix), count: self.count }
    }

    /// Returns an explicit range of addresses for a pair of ports.
    pub(super) fn between(
        &self,
        first: &ValueAt<'_>,
        last: &ValueAt<'_>,
        pair: u32,
        prefix: Option<[u8; 16]>,
    ) -> Result<AddressRange, PlanError> {
        let (from, to) = (read_address(first)?, read_address(last)?);
        let more = to.to_bits().checked_sub(from.to_bits());
        let more = more.ok_or_else(|| last.unexpected(format!("{from} or a later address")))?;
        let count = more.saturating_add(1);
        Ok(AddressRange { first: self.moved(from, pair, prefix), count })
    }

    fn moved(&self, address: Ipv4Addr, pair: u32, prefix: Option<[u8; 16]>) -> IpAddr {
        let offset = self.offset.to_bits().wrapping_mul(pair);
        let address = address.to_bits().wrapping_add(offset);
        match prefix {
            None => Ipv4Addr::from_bits(address).into(),
            Some(prefix) => in_network(prefix.into(), Ipv4Addr::from_bits(address)).into(),
        }
    }
}

/// Returns the IPv6 address that TRex derives from an IPv4 address. The first 96 bits are the
/// network's, the last 32 bits the IPv4 address.
pub fn in_network(network: Ipv6Addr, address: Ipv4Addr) -> Ipv6Addr {
    let upper = network.to_bits() & !u128::from(u32::MAX);
    Ipv6Addr::from_bits(upper | u128::from(address.to_bits()))
}

pub(in crate::trex) fn read_address(place: &ValueAt<'_>) -> Result<Ipv4Addr, PlanError> {
    let text = place.text("an IPv4 address")?;
    text.parse().map_err(|_| place.unexpected("an IPv4 address"))
}
