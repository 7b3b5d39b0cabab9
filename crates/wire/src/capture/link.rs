//! Conversion of records of each link type to Ethernet frames.

use super::LinkType;
use crate::packet::ethertype;

/// How to convert a record to an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Bytes to remove from the start of the record.
    pub strip: usize,
    /// Ethernet type of the header to prepend, or the length of the rest for IEEE 802.3. `None` if
    /// the rest begins with an Ethernet header.
    pub ethertype: Option<u16>,
    /// Offset of the sender's Ethernet address in the removed bytes, if there is one.
    pub source: Option<usize>,
}

/// Error if a record cannot become an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Wireless frames differ in addresses, fragmentation and encryption.
    #[error(
        "{link_type}: wireless frames cannot be sent on Ethernet; decrypt and convert the \
             capture first, for example with airdecap-ng"
    )]
    Wireless {
        /// Link type of the record.
        link_type: LinkType,
    },
    /// The link type has no conversion.
    #[error(
        "{link_type}: no conversion to Ethernet; expected Ethernet, raw IP, \
             Linux cooked (SLL, SLL2), NULL, LOOP, PPP, C_HDLC, MPLS or JUNIPER_ETHER"
    )]
    Unsupported {
        /// Link type of the record.
        link_type: LinkType,
    },
    /// The record ends within its link-layer header.
    #[error("{link_type}: {found} bytes, expected a header of at least {expected}")]
    Truncated {
        /// Link type of the record.
        link_type: LinkType,
        /// Bytes of the record.
        found: usize,
        /// Length of the header.
        expected: usize,
    },
    /// The protocol of the record has no Ethernet type.
    #[error("{link_type}: protocol {protocol:#06x} has no Ethernet type; expected IPv4 or IPv6")]
    UnknownProtocol {
        /// Link type of the record.
        link_type: LinkType,
        /// Address family, PPP protocol or IP version.
        protocol: u32,
    },
}

/// Returns how to convert the record `data` of link type `link` to an Ethernet frame.
///
/// # Errors
/// If there is no conversion. The caller decides whether to skip the record.
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

/// Returns the error for a truncated header of `expected` bytes.
const fn truncated(link_type: LinkType, data: &[u8], expected: usize) -> LinkError {
    LinkError::Truncated { link_type, found: data.len(), expected }
}

fn u16_at(link: LinkType, data: &[u8], at: usize) -> Result<u16, LinkError> {
    match data.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => Ok(u16::from_be_bytes(*bytes)),
        None => Err(truncated(link, data, at + 2)),
    }
}

/// Converts an IP packet behind `at` bytes; its version selects the Ethernet type.
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

/// Converts a record with a 4-byte address family. `NULL` has the byte order of the capturing
/// machine, `LOOP` network order. No family exceeds 255, so the value shows the order.
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

/// Converts a Linux protocol number: an Ethernet type, or a small number for an IEEE 802.3 frame,
/// whose Ethernet header has the length instead.
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

/// Hardware type of Ethernet (RFC 826).
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

/// Converts PPP (RFC 1661) with or without address and control (RFC 1662), or Cisco HDLC, behind
/// `at` bytes. The first byte is 0xff for PPP, and 0x0f or 0x8f for Cisco HDLC.
fn point_to_point(link: LinkType, data: &[u8], at: usize) -> Result<Conversion, LinkError> {
    let address = u16_at(link, data, at)?;
    let (protocol, header) = match address {
        0xff03 => (u16_at(link, data, at + 2)?, at + 4),
        _ if link == LinkType::C_HDLC || matches!(address >> 8, 0x0f | 0x8f) => {
            return Ok(strip(at + 4, u16_at(link, data, at + 2)?));
        }
        // PPP omits the first byte of the protocol if it is zero and compression is on.
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

/// Converts a record with Juniper's header: magic (3 bytes), flags, optional length and extensions.
/// An Ethernet frame follows, or an IP packet if a flag says so.
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
    fn loopback_families_of_all_systems_convert_in_both_byte_orders() {
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
    fn cooked_captures_without_an_ethernet_address_have_no_source() {
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
    fn point_to_point_links_convert_in_every_framing() {
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
    fn juniper_frames_follow_their_extensions() {
        let header = |flags| [0x4d, 0x47, 0x43, flags, 0, 2, 0xff, 0xff];
        let ethernet = Conversion { strip: 8, ethertype: None, source: None };
        assert_eq!(converted(LinkType::JUNIPER_ETHER, &header(0x81)), Ok(ethernet));
        let ip = strip(8, ethertype::IPV4);
        assert_eq!(converted(LinkType::JUNIPER_ETHER, &header(0x82)), Ok(ip));
        assert!(converted(LinkType::JUNIPER_ETHER, &[1, 2, 3, 4]).is_err());
    }

    #[test]
    fn records_without_an_ethernet_form_are_rejected() {
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
