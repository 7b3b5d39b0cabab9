//! How a record of each link type becomes an Ethernet frame.

use super::LinkType;
use crate::packet::ethertype;

/// How to make an Ethernet frame of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Bytes to take away from the beginning of the record.
    pub strip: usize,
    /// The type of the Ethernet header to be put before the rest, or the length of the rest for
    /// IEEE 802.3; `None` where the rest begins with an Ethernet header of its own.
    pub ethertype: Option<u16>,
    /// Where in those bytes the sender's Ethernet address is, if the record has it.
    pub source: Option<usize>,
}

/// Why a record cannot become an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Wireless frames have other addresses, fragments and encryption.
    #[error(
        "{link_type}: wireless frames cannot be sent on Ethernet; decrypt and convert the \
             capture first, for example with airdecap-ng"
    )]
    Wireless {
        /// What the record begins with.
        link_type: LinkType,
    },
    /// A link type that has no conversion.
    #[error(
        "{link_type}: no way to make Ethernet frames of it; expected Ethernet, raw IP, \
             Linux cooked (SLL, SLL2), NULL, LOOP, PPP, C_HDLC, MPLS or JUNIPER_ETHER"
    )]
    Unsupported {
        /// What the record begins with.
        link_type: LinkType,
    },
    /// The record ends inside its link-layer header.
    #[error("{link_type}: {found} bytes, expected a header of at least {expected}")]
    Truncated {
        /// What the record begins with.
        link_type: LinkType,
        /// Bytes of the record.
        found: usize,
        /// Bytes of its header.
        expected: usize,
    },
    /// The record carries a protocol that has no Ethernet type.
    #[error("{link_type}: protocol {protocol:#06x} has no Ethernet type; expected IPv4 or IPv6")]
    UnknownProtocol {
        /// What the record begins with.
        link_type: LinkType,
        /// The number found: an address family, a PPP protocol, or an IP version.
        protocol: u32,
    },
}

/// How the record `data` of link type `link` becomes an Ethernet frame.
///
/// # Errors
/// Where it cannot; the caller counts the record and goes on, or gives up.
pub fn ethernet_conversion(link: LinkType, data: &[u8]) -> Result<Conversion, LinkError> {
    match link {
        LinkType::EN10MB => Ok(Conversion { strip: 0, ethertype: None, source: None }),
        LinkType::RAW
        | LinkType::RAW_BSD
        | LinkType::RAW_OPENBSD
        | LinkType::IPV4
        | LinkType::IPV6 => ip(link, data, 0),
        LinkType::NULL | LinkType::LOOP => loopback(link, data),
        LinkType::LINUX_SLL => linux_cooked(link, data),
        LinkType::LINUX_SLL2 => linux_cooked_2(link, data),
        LinkType::PPP | LinkType::PPP_SERIAL | LinkType::C_HDLC => point_to_point(link, data, 0),
        LinkType::PPP_PPPD | LinkType::PPP_WITH_DIR => point_to_point(link, data, 1),
        LinkType::PPP_ETHER => Ok(strip(0, ethertype::PPPOE_SESSION)),
        LinkType::MPLS => Ok(strip(0, ethertype::MPLS)),
        LinkType::JUNIPER_ETHER => juniper(link, data),
        LinkType::IEEE802_11
        | LinkType::IEEE802_11_RADIOTAP
        | LinkType::IEEE802_11_AVS
        | LinkType::PRISM_HEADER => Err(LinkError::Wireless { link_type: link }),
        _ => Err(LinkError::Unsupported { link_type: link }),
    }
}

const fn strip(strip: usize, ethertype: u16) -> Conversion {
    Conversion { strip, ethertype: Some(ethertype), source: None }
}

/// An error that says that a header of `expected` bytes is not all there.
const fn truncated(link_type: LinkType, data: &[u8], expected: usize) -> LinkError {
    LinkError::Truncated { link_type, found: data.len(), expected }
}

fn u16_at(link: LinkType, data: &[u8], at: usize) -> Result<u16, LinkError> {
    match data.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => Ok(u16::from_be_bytes(*bytes)),
        None => Err(truncated(link, data, at + 2)),
    }
}

/// An IP packet behind `at` bytes; its version says which.
fn ip(link: LinkType, data: &[u8], at: usize) -> Result<Conversion, LinkError> {
    let Some(first) = data.get(at) else { return Err(truncated(link, data, at + 1)) };
    match first >> 4 {
        4 => Ok(strip(at, ethertype::IPV4)),
        6 => Ok(strip(at, ethertype::IPV6)),
        version => {
            Err(LinkError::UnknownProtocol { link_type: link, protocol: u32::from(version) })
        }
    }
}

/// An address family of four bytes. `NULL` has the order of the capturing machine, `LOOP` that
/// of the network; no family is greater than 255, so the order can be told.
fn loopback(link: LinkType, data: &[u8]) -> Result<Conversion, LinkError> {
    let Some(bytes) = data.first_chunk() else { return Err(truncated(link, data, 4)) };
    let little = u32::from_le_bytes(*bytes);
    let family = if little > 0xff { little.swap_bytes() } else { little };
    match family {
        2 => Ok(strip(4, ethertype::IPV4)),
        // Linux; NetBSD and OpenBSD; FreeBSD; macOS.
        10 | 24 | 28 | 30 => Ok(strip(4, ethertype::IPV6)),
        protocol => Err(LinkError::UnknownProtocol { link_type: link, protocol }),
    }
}

/// A protocol number of Linux: an Ethernet type, or one of the small numbers that stand for
/// frames of IEEE 802.3, whose Ethernet header holds the length instead.
fn linux_protocol(
    link: LinkType,
    data: &[u8],
    header: usize,
    protocol: u16,
) -> Result<u16, LinkError> {
    const ETH_P_802_3: u16 = 1;
    const ETH_P_802_2: u16 = 4;
    let rest = data.len().saturating_sub(header);
    match protocol {
        ethertype::TYPE_MIN.. => Ok(protocol),
        ETH_P_802_3 | ETH_P_802_2 if rest <= usize::from(ethertype::LENGTH_MAX) => Ok(rest as u16),
        _ => Err(LinkError::UnknownProtocol { link_type: link, protocol: u32::from(protocol) }),
    }
}

/// The hardware type of Ethernet (RFC 826), and of what Linux treats alike.
const ARPHRD_ETHER: u8 = 1;
const ETHERNET_ADDRESS_LENGTH: u8 = 6;

/// LINKTYPE_LINUX_SLL: packet type, ARPHRD type, address length, address (8 bytes), protocol.
fn linux_cooked(link: LinkType, data: &[u8]) -> Result<Conversion, LinkError> {
    const LENGTH: usize = 16;
    let Some(header) = data.first_chunk::<LENGTH>() else {
        return Err(truncated(link, data, LENGTH));
    };
    let protocol =
        linux_protocol(link, data, LENGTH, u16::from_be_bytes([header[14], header[15]]))?;
    let source = (header[2..6] == [0, ARPHRD_ETHER, 0, ETHERNET_ADDRESS_LENGTH]).then_some(6);
    Ok(Conversion { strip: LENGTH, ethertype: Some(protocol), source })
}

/// LINKTYPE_LINUX_SLL2: protocol, reserved, interface index, ARPHRD type, packet type, address
/// length, address (8 bytes).
fn linux_cooked_2(link: LinkType, data: &[u8]) -> Result<Conversion, LinkError> {
    const LENGTH: usize = 20;
    let Some(header) = data.first_chunk::<LENGTH>() else {
        return Err(truncated(link, data, LENGTH));
    };
    let protocol = linux_protocol(link, data, LENGTH, u16::from_be_bytes([header[0], header[1]]))?;
    let has_source = header[8..10] == [0, ARPHRD_ETHER] && header[11] == ETHERNET_ADDRESS_LENGTH;
    let source = has_source.then_some(12);
    Ok(Conversion { strip: LENGTH, ethertype: Some(protocol), source })
}

/// PPP (RFC 1661) with or without address and control (RFC 1662), or Cisco's HDLC, behind `at`
/// bytes. The first byte tells them apart: 0xff is PPP, 0x0f and 0x8f are Cisco's.
fn point_to_point(link: LinkType, data: &[u8], at: usize) -> Result<Conversion, LinkError> {
    let address = u16_at(link, data, at)?;
    let (protocol, header) = match address {
        0xff03 => (u16_at(link, data, at + 2)?, at + 4),
        _ if link == LinkType::C_HDLC || matches!(address >> 8, 0x0f | 0x8f) => {
            return Ok(strip(at + 4, u16_at(link, data, at + 2)?));
        }
        // A protocol is compressed to one byte where its first byte would be zero.
        _ if address & 0x0100 != 0 => (address >> 8, at + 1),
        protocol => (protocol, at + 2),
    };
    match protocol {
        0x0021 => Ok(strip(header, ethertype::IPV4)),
        0x0057 => Ok(strip(header, ethertype::IPV6)),
        0x0281 => Ok(strip(header, ethertype::MPLS)),
        _ => Err(LinkError::UnknownProtocol { link_type: link, protocol: u32::from(protocol) }),
    }
}

/// Juniper's header: magic (3 bytes), flags, and where a flag says so the length of extensions
/// and they themselves; then the Ethernet frame, or an IP packet where a flag says so.
fn juniper(link: LinkType, data: &[u8]) -> Result<Conversion, LinkError> {
    const MAGIC: [u8; 3] = [0x4d, 0x47, 0x43];
    const EXTENSIONS: u8 = 0x80;
    const NO_LINK_LAYER: u8 = 0x02;
    let Some([a, b, c, flags]) = data.first_chunk() else { return Err(truncated(link, data, 4)) };
    if [*a, *b, *c] != MAGIC {
        let protocol = u32::from_be_bytes([0, *a, *b, *c]);
        return Err(LinkError::UnknownProtocol { link_type: link, protocol });
    }
    let mut header = 4;
    if flags & EXTENSIONS != 0 {
        header += 2 + usize::from(u16_at(link, data, 4)?);
    }
    if header > data.len() {
        return Err(truncated(link, data, header));
    }
    if flags & NO_LINK_LAYER != 0 {
        return ip(link, data, header);
    }
    Ok(Conversion { strip: header, ethertype: None, source: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: [u8; 1] = [0x45];

    fn converted(link: LinkType, header: &[u8]) -> Result<Conversion, LinkError> {
        ethernet_conversion(link, &[header, &IPV4].concat())
    }

    #[test]
    fn loopback_families_are_those_of_every_system_in_both_orders() {
        for (family, kind) in [
            (2, ethertype::IPV4),
            (10, ethertype::IPV6),
            (24, ethertype::IPV6),
            (28, ethertype::IPV6),
            (30, ethertype::IPV6),
        ] {
            for header in [[family, 0, 0, 0], [0, 0, 0, family]] {
                assert_eq!(converted(LinkType::NULL, &header), Ok(strip(4, kind)));
                assert_eq!(converted(LinkType::LOOP, &header), Ok(strip(4, kind)));
            }
        }
        let (link_type, protocol) = (LinkType::NULL, 7);
        assert_eq!(
            converted(link_type, &[7, 0, 0, 0]),
            Err(LinkError::UnknownProtocol { link_type, protocol })
        );
    }

    #[test]
    fn cooked_captures_keep_the_address_of_the_sender() {
        let sll = [0, 4, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0, 0x86, 0xdd];
        let expected = Conversion { source: Some(6), ..strip(16, ethertype::IPV6) };
        assert_eq!(converted(LinkType::LINUX_SLL, &sll), Ok(expected));
        let sll2 = [8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0];
        let expected = Conversion { source: Some(12), ..strip(20, ethertype::IPV4) };
        assert_eq!(converted(LinkType::LINUX_SLL2, &sll2), Ok(expected));
    }

    #[test]
    fn an_address_that_is_not_ethernets_is_none() {
        // Loopback (772), and an address of another length.
        let sll = |kind: u16, length| {
            let [high, low] = kind.to_be_bytes();
            [0, 0, high, low, 0, length, 2, 3, 4, 5, 6, 7, 0, 0, 8, 0]
        };
        let sll2 = |kind: u16, length| {
            let [high, low] = kind.to_be_bytes();
            [8, 0, 0, 0, 0, 0, 0, 1, high, low, 0, length, 2, 3, 4, 5, 6, 7, 0, 0]
        };
        for (kind, length) in [(772, 6), (1, 0), (1, 8), (32, 6)] {
            let nameless = Ok(strip(16, ethertype::IPV4));
            assert_eq!(converted(LinkType::LINUX_SLL, &sll(kind, length)), nameless);
            let nameless = Ok(strip(20, ethertype::IPV4));
            assert_eq!(converted(LinkType::LINUX_SLL2, &sll2(kind, length)), nameless);
        }
    }

    #[test]
    fn cooked_frames_of_ieee_802_3_get_their_length() {
        let mut sll = [0; 16];
        sll[15] = 4;
        assert_eq!(converted(LinkType::LINUX_SLL, &sll).map(|c| c.ethertype), Ok(Some(1)));
    }

    #[test]
    fn point_to_point_links_lead_to_ip_in_every_framing() {
        for (link, header, kind) in [
            (LinkType::PPP, &[0x00, 0x57][..], ethertype::IPV6),
            (LinkType::PPP, &[0xff, 0x03, 0x00, 0x21], ethertype::IPV4),
            (LinkType::PPP_SERIAL, &[0x8f, 0, 0x86, 0xdd], ethertype::IPV6),
            (LinkType::C_HDLC, &[0xff, 0x03, 0x02, 0x81], ethertype::MPLS),
            (LinkType::C_HDLC, &[0x0f, 0, 0x88, 0x47], ethertype::MPLS),
            (LinkType::PPP_WITH_DIR, &[1, 0xff, 0x03, 0x00, 0x21], ethertype::IPV4),
            (LinkType::PPP_PPPD, &[0, 0x21], ethertype::IPV4),
        ] {
            assert_eq!(converted(link, header), Ok(strip(header.len(), kind)), "{link}");
        }
    }

    #[test]
    fn juniper_frames_are_found_behind_their_extensions() {
        let header = |flags| [0x4d, 0x47, 0x43, flags, 0, 2, 0xff, 0xff];
        let ethernet = Conversion { strip: 8, ethertype: None, source: None };
        assert_eq!(converted(LinkType::JUNIPER_ETHER, &header(0x81)), Ok(ethernet));
        let ip = strip(8, ethertype::IPV4);
        assert_eq!(converted(LinkType::JUNIPER_ETHER, &header(0x82)), Ok(ip));
        assert!(converted(LinkType::JUNIPER_ETHER, &[1, 2, 3, 4]).is_err());
    }

    #[test]
    fn what_has_no_ethernet_form_is_refused_with_a_word() {
        let link_type = LinkType::IEEE802_11_RADIOTAP;
        assert_eq!(converted(link_type, &[]), Err(LinkError::Wireless { link_type }));
        let link_type = LinkType::USER0;
        assert_eq!(converted(link_type, &[]), Err(LinkError::Unsupported { link_type }));
        let (link_type, protocol) = (LinkType::RAW, 5);
        assert_eq!(
            ethernet_conversion(link_type, &[0x50]),
            Err(LinkError::UnknownProtocol { link_type, protocol })
        );
        let cut = ethernet_conversion(LinkType::LINUX_SLL2, &[0; 19]);
        let message = alloc::string::ToString::to_string(&cut.unwrap_err());
        assert_eq!(message, "LINUX_SLL2 (276): 19 bytes, expected a header of at least 20");
    }
}
