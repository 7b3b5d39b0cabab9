//! Ranges of addresses and ports.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use wirestorm_model::address_range::AddressRange;

use super::error::PlanError;
use super::value_at::ValueAt;

pub(crate) const RANGE: &str = "an address, or two such as 16.0.0.1-16.0.0.255";
const PORTS: &str = "ports such as 1024-65535, or one of them";

/// Reads the addresses of clients or servers. Refuses ranges with an address that no host may
/// have.
pub(crate) fn read_hosts(place: &ValueAt<'_>) -> Result<AddressRange, PlanError> {
    let range = read_range(place)?;
    match range.first_unusable() {
        Some(address) => {
            Err(place.unexpected(format!("addresses that a host may have, not {address}")))
        }
        None => Ok(range),
    }
}

/// Reads an address such as `16.0.0.1`, or a range such as `16.0.0.1-16.0.0.255`.
pub(crate) fn read_range(place: &ValueAt<'_>) -> Result<AddressRange, PlanError> {
    let text = place.text(RANGE)?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parse = |text: &str| text.trim().parse::<IpAddr>().ok();
    let count = match (parse(first), parse(last)) {
        (Some(IpAddr::V4(first)), Some(IpAddr::V4(last))) => {
            u128::from(last.to_bits()).checked_sub(first.to_bits().into())
        }
        (Some(IpAddr::V6(first)), Some(IpAddr::V6(last))) => {
            last.to_bits().checked_sub(first.to_bits())
        }
        _ => None,
    };
    let count = count.and_then(|more| u32::try_from(more).ok()?.checked_add(1));
    match (parse(first), count) {
        (Some(first), Some(count)) => Ok(AddressRange { first, count }),
        _ => Err(place.unexpected(format!("{RANGE}, the lower first, at most 2^32 - 1"))),
    }
}

/// Reads a port or a range of ports, from 1.
pub(crate) fn read_ports(place: &ValueAt<'_>) -> Result<RangeInclusive<u16>, PlanError> {
    let text = place.number_text().ok_or_else(|| place.unexpected(PORTS))?;
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let port = |text: &str| text.trim().parse::<u16>().ok();
    match port(first).zip(port(last)) {
        Some((first, last)) if first <= last && first > 0 => Ok(first..=last),
        _ => Err(place.unexpected(PORTS)),
    }
}
