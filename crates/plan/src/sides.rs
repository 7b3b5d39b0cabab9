//! The side rules of `--split`, which assign each packet to the client or the server side.

use std::ops::RangeInclusive;

use wirestorm_wire::packet::MacAddress;

use crate::edit::{EditError, parse_prefix};

pub use wirestorm_model::sides::{SideRule, SidesOptions};

/// Maximum entries of a list: every packet searches it linearly.
const ENTRIES_MAX: usize = 1024;
const OPTION: &str = "split";

/// Reads the value of `--split`.
///
/// # Errors
/// Returns an error if the rule is unknown or an entry of its list is invalid.
pub fn parse_side_rule(text: &str) -> Result<SideRule, EditError> {
    match text.split_once(':') {
        None => match text {
            "auto" => Ok(SideRule::Auto),
            "first" => Ok(SideRule::First),
            // System ports, RFC 6335 section 6.
            "port" => Ok(SideRule::Port(vec![0..=1023])),
            _ => Err(unknown(text)),
        },
        Some(("port", list)) => parse_list(list, parse_ports).map(SideRule::Port),
        Some(("cidr", list)) => {
            parse_list(list, |entry| parse_prefix(OPTION, entry)).map(SideRule::SourceAddress)
        }
        Some(("mac", list)) => parse_list(list, parse_mac).map(SideRule::SourceMac),
        Some(_) => Err(unknown(text)),
    }
}

fn malformed(found: &str, expected: &'static str) -> EditError {
    EditError::Malformed { option: OPTION, found: found.to_owned(), expected }
}

fn unknown(text: &str) -> EditError {
    malformed(
        text,
        "auto, first, port, port:80,8000-8999, cidr:10.0.0.0/8,... or mac:02:00:00:00:00:01,...",
    )
}

fn parse_list<T>(
    list: &str,
    parse: impl Fn(&str) -> Result<T, EditError>,
) -> Result<Vec<T>, EditError> {
    let found = list.split(',').count();
    if found > ENTRIES_MAX {
        return Err(EditError::TooMany { option: OPTION, found, limit: ENTRIES_MAX });
    }
    list.split(',').map(parse).collect()
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, EditError> {
    let port = |digits: &str| {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        let parsed = digits.parse::<u16>().ok().filter(|_| is_number);
        parsed.ok_or_else(|| malformed(text, "a port or a range of ports, as in 80 or 8000-8999"))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first)?, port(last)?) {
        (first, last) if first <= last => Ok(first..=last),
        _ => Err(malformed(text, "a range that begins with its lower port")),
    }
}

fn parse_mac(text: &str) -> Result<MacAddress, EditError> {
    text.parse().map_err(|_| malformed(text, "a MAC address, as in 02:00:00:00:00:01"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Prefix;

    #[test]
    fn parses_every_side_rule() {
        assert_eq!(parse_side_rule("auto"), Ok(SideRule::Auto));
        assert_eq!(parse_side_rule("first"), Ok(SideRule::First));
        assert_eq!(parse_side_rule("port"), Ok(SideRule::Port(vec![0..=1023])));
        assert_eq!(
            parse_side_rule("port:80,8000-8999"),
            Ok(SideRule::Port(vec![80..=80, 8000..=8999]))
        );
        let prefix = |address: &str, length| Prefix { address: address.parse().unwrap(), length };
        assert_eq!(
            parse_side_rule("cidr:10.0.0.0/8,2001:db8::/32,192.0.2.1"),
            Ok(SideRule::SourceAddress(vec![
                prefix("10.0.0.0", 8),
                prefix("2001:db8::", 32),
                prefix("192.0.2.1", 32),
            ]))
        );
        let macs = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
        assert_eq!(
            parse_side_rule("mac:02:00:00:00:00:01,02-00-00-00-00-02"),
            Ok(SideRule::SourceMac(macs.into()))
        );
    }

    #[test]
    fn invalid_side_rules_name_the_wrong_part() {
        for (text, found) in [
            ("", ""),
            ("bridge", "bridge"),
            ("regex:10.*", "regex:10.*"),
            ("port:", ""),
            ("port:80,+81", "+81"),
            ("port:9-8", "9-8"),
            ("port:65536", "65536"),
            ("cidr:10.0.0.0/8,10.0.0", "10.0.0"),
            ("cidr:10.0.0.0/33", "33"),
            ("mac:02:00:00:00:00", "02:00:00:00:00"),
        ] {
            match parse_side_rule(text) {
                Err(EditError::Malformed { option: "split", found: shown, .. }) => {
                    assert_eq!(shown, found, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let many = format!("port:{}", vec!["80"; 1025].join(","));
        let error = EditError::TooMany { option: "split", found: 1025, limit: 1024 };
        assert_eq!(parse_side_rule(&many), Err(error));
    }
}
