//! Addresses and gateways of a port that acts as a host.

use std::net::IpAddr;

use wirestorm_wire::prefix::Prefix;

use super::error::PlanError;
use super::value_at::ValueAt;

/// Accepted notation of an address, for error messages.
pub(crate) const ADDRESS: &str =
    "an address with the length of its network's prefix, such as 10.0.0.1/24 or 2001:db8::1/64";

pub(crate) const GATEWAY: &str = "the address of a router, such as 10.0.0.254";

/// Parses an address with its prefix length, such as `10.0.0.1/24`. Without a length, the prefix
/// covers the whole address (32 or 128 bits).
pub fn parse_address(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(longest);
    (length <= longest).then_some(Prefix { address, length })
}

/// Reads a port's own addresses: one, or a list.
pub(crate) fn read_addresses(place: &ValueAt<'_>) -> Result<Vec<Prefix>, PlanError> {
    one_or_many(place, |place| {
        parse_address(place.text(ADDRESS)?).ok_or_else(|| place.unexpected(ADDRESS))
    })
}

/// Reads a port's gateways: one, or a list.
pub(crate) fn read_gateways(place: &ValueAt<'_>) -> Result<Vec<IpAddr>, PlanError> {
    one_or_many(place, |place| place.text(GATEWAY)?.parse().map_err(|_| place.unexpected(GATEWAY)))
}

fn one_or_many<T>(
    place: &ValueAt<'_>,
    read: impl Fn(&ValueAt<'_>) -> Result<T, PlanError>,
) -> Result<Vec<T>, PlanError> {
    if place.value().is_array() {
        return place.items("a list of addresses")?.iter().map(read).collect();
    }
    Ok(vec![read(place)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_with_and_without_prefix_length() {
        let address = parse_address("10.0.0.1/24").unwrap();
        assert_eq!((address.address, address.length), ("10.0.0.1".parse().unwrap(), 24));
        assert_eq!(parse_address("2001:db8::1/64").unwrap().length, 64);
        assert_eq!(parse_address("2001:db8::1").unwrap().length, 128);
        for wrong in ["", "10.0.0.1/33", "10.0.0/24", "10.0.0.1/", "2001:db8::/129"] {
            assert!(parse_address(wrong).is_none(), "{wrong}");
        }
    }
}
