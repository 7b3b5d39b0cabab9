//! Parsers for the values of single edit options.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use wirestorm_wire::packet::MacAddress;

use super::error::EditError;
use super::{
    MacSubstitution, PortReplacement, Prefix, PrefixReplacement, TimeToLiveEdit,
    TruncatedFrameAction,
};

/// Maximum entries of a list: every packet searches it linearly.
pub(super) const ENTRIES_MAX: usize = 1024;

pub(super) fn malformed(option: &'static str, found: &str, expected: &'static str) -> EditError {
    EditError::Malformed { option, found: found.to_owned(), expected }
}

/// Parses a number in `range`: decimal, or hexadecimal with the prefix `0x`.
pub(super) fn number<T>(
    option: &'static str,
    text: &str,
    range: RangeInclusive<u64>,
    expected: &'static str,
) -> Result<T, EditError>
where
    T: TryFrom<u64>,
{
    let text = text.trim();
    let parsed = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    };
    parsed
        .filter(|number| range.contains(number))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| malformed(option, text, expected))
}

/// Appends to a list, up to [`ENTRIES_MAX`] entries.
fn push<T>(option: &'static str, list: &mut Vec<T>, entry: T) -> Result<(), EditError> {
    if list.len() >= ENTRIES_MAX {
        return Err(EditError::TooMany { option, found: list.len() + 1, limit: ENTRIES_MAX });
    }
    list.push(entry);
    Ok(())
}

/// Parses port mappings: `80:8080`, `8000,8080:80`, `1-100:49148`, or a comma-separated list.
///
/// # Errors
/// Returns an error for an invalid port, or if the last ports have no new port.
pub fn parse_port_map(option: &'static str, text: &str) -> Result<Vec<PortReplacement>, EditError> {
    const EXPECTED: &str = "ports and their new port, as in 80:8080, 8000,8080:80 or 1-100:4000";
    let port = |text: &str| number(option, text, 0..=65_535, "a port, 0 to 65535");
    let mut mappings = Vec::new();
    let mut waiting = Vec::new();
    for item in text.split(',') {
        let (range, to) = match item.split_once(':') {
            Some((range, to)) => (range, Some(to)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (port(first)?, port(last)?),
            None => (port(range)?, port(range)?),
        };
        if first > last {
            return Err(malformed(option, range, "a range that begins with its lower port"));
        }
        push(option, &mut waiting, (first, last))?;
        if let Some(to) = to {
            let to = port(to)?;
            for (first, last) in waiting.drain(..) {
                push(option, &mut mappings, PortReplacement { first, last, to })?;
            }
        }
    }
    if waiting.is_empty() { Ok(mappings) } else { Err(malformed(option, text, EXPECTED)) }
}

/// Parses `10.0.0.0/8`, `2001:db8::/32`, or an address alone. IPv6 prefixes may have brackets.
///
/// # Errors
/// Returns an error for an invalid address, or a prefix length beyond that of the address.
pub fn parse_prefix(option: &'static str, text: &str) -> Result<Prefix, EditError> {
    const EXPECTED: &str = "an address or a prefix, as in 10.0.0.0/8 or 2001:db8::/32";
    let bare = text.trim();
    let bare = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(bare);
    let (address, length) = match bare.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (bare, None),
    };
    let address: IpAddr = address.parse().map_err(|_| malformed(option, text, EXPECTED))?;
    let (bits, expected) = match address {
        IpAddr::V4(_) => (32, "a prefix length of 0 to 32"),
        IpAddr::V6(_) => (128, "a prefix length of 0 to 128"),
    };
    let length = match length {
        Some(length) => number(option, length, 0..=bits, expected)?,
        None => bits as u8,
    };
    Ok(Prefix { address, length })
}

/// Splits two prefixes at their colon; IPv6 needs brackets.
fn split_pair<'a>(
    option: &'static str,
    text: &'a str,
    expected: &'static str,
) -> Result<(&'a str, &'a str), EditError> {
    let text = text.trim();
    let pair = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => text.split_once(':'),
    };
    pair.ok_or_else(|| malformed(option, text, expected))
}

/// Parses prefix mappings: `10.0.0.0/8:172.16.0.0/12`, `[2001:db8:1::/48]:[2001:db8:2::/48]`, or a
/// comma-separated list.
///
/// # Errors
/// Returns an error for an invalid prefix, or if the two differ in IP version.
pub fn parse_prefix_mappings(
    option: &'static str,
    text: &str,
) -> Result<Vec<PrefixReplacement>, EditError> {
    const EXPECTED: &str = "a prefix and its new prefix, as in 10.0.0.0/8:172.16.0.0/12 or \
                            [2001:db8:1::/48]:[2001:db8:2::/48]";
    let mut mappings = Vec::new();
    for item in text.split(',') {
        let (from, to) = split_pair(option, item, EXPECTED)?;
        let (from, to) = (parse_prefix(option, from)?, parse_prefix(option, to)?);
        if from.address.is_ipv4() != to.address.is_ipv4() {
            return Err(malformed(option, item, "two prefixes of the same version of IP"));
        }
        push(option, &mut mappings, PrefixReplacement { from, to })?;
    }
    Ok(mappings)
}

/// Parses the client's and the server's address: `10.10.0.1:10.10.0.2` or
/// `[2001:db8::1]:[2001:db8::2]`.
///
/// # Errors
/// Returns an error for an invalid address, or if the two differ in IP version.
pub fn parse_endpoints(option: &'static str, text: &str) -> Result<[IpAddr; 2], EditError> {
    const EXPECTED: &str =
        "the client's and the server's address, as in 10.0.0.1:10.0.0.2 or [fd00::1]:[fd00::2]";
    let (client, server) = split_pair(option, text, EXPECTED)?;
    let bare = |text: &str| {
        let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().map_err(|_| malformed(option, text, EXPECTED))
    };
    let (client, server) = (bare(client)?, bare(server)?);
    if client.is_ipv4() != server.is_ipv4() {
        return Err(malformed(option, text, "two addresses of the same version of IP"));
    }
    Ok([client, server])
}

fn mac_address(option: &'static str, text: &str) -> Result<MacAddress, EditError> {
    MacAddress::from_str(text.trim()).map_err(|_| {
        malformed(option, text, "a MAC address: six pairs of hexadecimal digits and colons")
    })
}

/// Parses `02:00:00:00:00:01`, or two addresses with a comma: for the primary and the secondary
/// side.
///
/// # Errors
/// Returns an error for an invalid address, or for more than two.
pub fn parse_mac_addresses(option: &'static str, text: &str) -> Result<[MacAddress; 2], EditError> {
    match text.split_once(',') {
        None => mac_address(option, text).map(|address| [address; 2]),
        Some((primary, secondary)) => {
            Ok([mac_address(option, primary)?, mac_address(option, secondary)?])
        }
    }
}

/// Parses `02:00:00:00:00:01,02:00:00:00:00:02`: an address and its replacement.
///
/// # Errors
/// Returns an error unless there are exactly two addresses.
pub fn parse_mac_substitution(
    option: &'static str,
    text: &str,
) -> Result<MacSubstitution, EditError> {
    let pair = text.split_once(',');
    let (from, to) =
        pair.ok_or_else(|| malformed(option, text, "two MAC addresses: the old and the new"))?;
    Ok(MacSubstitution { from: mac_address(option, from)?, to: mac_address(option, to)? })
}

/// Parses a TTL edit: `64` sets, `+1` adds, `-1` subtracts.
///
/// # Errors
/// Returns an error for an invalid number, or one above 255.
pub fn parse_time_to_live(option: &'static str, text: &str) -> Result<TimeToLiveEdit, EditError> {
    let value = |digits: &str| {
        let digits = if digits.is_empty() { text } else { digits };
        number(option, digits, 0..=255, "a number of 0 to 255, or + or - and such a number")
    };
    let text = text.trim();
    if let Some(more) = text.strip_prefix('+') {
        value(more).map(TimeToLiveEdit::Add)
    } else if let Some(less) = text.strip_prefix('-') {
        value(less).map(TimeToLiveEdit::Subtract)
    } else {
        value(text).map(TimeToLiveEdit::Set)
    }
}

/// Parses `pad`, `trunc` or `del`.
///
/// # Errors
/// Returns an error for any other word.
pub fn parse_captured_short(
    option: &'static str,
    text: &str,
) -> Result<TruncatedFrameAction, EditError> {
    match text {
        "pad" => Ok(TruncatedFrameAction::Pad),
        "trunc" => Ok(TruncatedFrameAction::Truncate),
        "del" => Ok(TruncatedFrameAction::Delete),
        _ => Err(malformed(option, text, "pad, trunc or del")),
    }
}
