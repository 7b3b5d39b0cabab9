//! Which side a packet belongs to, as `--split` says.

use std::ops::RangeInclusive;

use wirestorm_wire::packet::MacAddress;

use crate::edit::{EditError, Prefix, parse_prefix};

/// How the client's side is told from the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidesPlan {
    /// What makes a packet one of the primary side.
    pub rule: SideRule,
    /// The rule's packets are of the secondary side instead.
    pub reverse: bool,
    /// What is not IP is of the primary side rather than of the secondary.
    pub non_ip_is_primary: bool,
    /// Conversations that are remembered at most.
    pub conversations_max: usize,
}

/// What makes a packet one of the primary (client) side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRule {
    /// `auto`: its sender is the client of its conversation, as far as the packets tell.
    Auto,
    /// `first`: its sender sent the first packet of its conversation.
    First,
    /// `port` or `port:80,8000-8999`: its destination port, of TCP or UDP, is one of these.
    Port(Vec<RangeInclusive<u16>>),
    /// `cidr:10.0.0.0/8,2001:db8::/32`: its source address has one of these prefixes.
    SourceAddress(Vec<Prefix>),
    /// `mac:02:00:00:00:00:01,...`: its source Ethernet address is one of these.
    SourceMac(Vec<MacAddress>),
}

/// The most entries of one list: they are searched for every packet.
const ENTRIES_MAX: usize = 1024;
const OPTION: &str = "split";

impl SideRule {
    /// Reads the value of `--split`.
    ///
    /// # Errors
    /// Where the word is none of these, or an entry of its list makes no sense.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        match text.split_once(':') {
            None => match text {
                "auto" => Ok(Self::Auto),
                "first" => Ok(Self::First),
                // The ports of the system's services, RFC 6335 section 6.
                "port" => Ok(Self::Port(vec![0..=1023])),
                _ => Err(unknown(text)),
            },
            Some(("port", list)) => entries(list, parse_ports).map(Self::Port),
            Some(("cidr", list)) => {
                entries(list, |entry| parse_prefix(OPTION, entry)).map(Self::SourceAddress)
            }
            Some(("mac", list)) => entries(list, parse_mac).map(Self::SourceMac),
            Some(_) => Err(unknown(text)),
        }
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

fn entries<T>(
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

    #[test]
    fn each_rule_reads_as_it_is_written() {
        assert_eq!(SideRule::parse("auto"), Ok(SideRule::Auto));
        assert_eq!(SideRule::parse("first"), Ok(SideRule::First));
        assert_eq!(SideRule::parse("port"), Ok(SideRule::Port(vec![0..=1023])));
        assert_eq!(
            SideRule::parse("port:80,8000-8999"),
            Ok(SideRule::Port(vec![80..=80, 8000..=8999]))
        );
        let prefix = |address: &str, length| Prefix { address: address.parse().unwrap(), length };
        assert_eq!(
            SideRule::parse("cidr:10.0.0.0/8,2001:db8::/32,192.0.2.1"),
            Ok(SideRule::SourceAddress(vec![
                prefix("10.0.0.0", 8),
                prefix("2001:db8::", 32),
                prefix("192.0.2.1", 32),
            ]))
        );
        let macs = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
        assert_eq!(
            SideRule::parse("mac:02:00:00:00:00:01,02-00-00-00-00-02"),
            Ok(SideRule::SourceMac(macs.into()))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_was_found() {
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
            match SideRule::parse(text) {
                Err(EditError::Malformed { option: "split", found: shown, .. }) => {
                    assert_eq!(shown, found, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let many = format!("port:{}", vec!["80"; 1025].join(","));
        let error = EditError::TooMany { option: "split", found: 1025, limit: 1024 };
        assert_eq!(SideRule::parse(&many), Err(error));
    }
}
