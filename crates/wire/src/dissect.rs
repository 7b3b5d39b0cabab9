//! Dissection of a frame: offsets of its headers and its flow, in one pass.

use crate::capture::LinkType;
use crate::capture::link::{LinkError, ethernet_conversion};
use crate::flow::FlowKey;
use crate::packet::ethernet::HEADER_LENGTH as ETHERNET_LENGTH;
use crate::packet::ipv6_extension::walk_extensions;
use crate::packet::{ethertype, ipv6, protocol};

/// Largest number of tags, label stacks and link headers before the network header.
const ENCAPSULATIONS_MAX: usize = 16;
/// Largest number of labels in an MPLS stack.
const LABELS_MAX: usize = 32;

/// Offsets of the outermost network and transport headers of a frame, and its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dissection {
    /// Offset of the header that [`Self::ethertype`] names; never beyond the end of the frame.
    pub network_offset: u16,
    /// Innermost Ethernet type, behind VLAN tags, MPLS labels, PPPoE and SNAP. For an IEEE 802.3
    /// frame, the length in its place; 0 if there is none.
    pub ethertype: u16,
    /// Offset of the header of [`Self::protocol`], or of the data of a later fragment. Never beyond
    /// the end of the frame; 0 if unknown.
    pub transport_offset: u16,
    /// Protocol behind the IP header and its extensions; 0 if unknown.
    pub protocol: u8,
    /// Class of the frame, with its flow.
    pub class: Class,
}

/// Whether a frame belongs to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An IP packet with its addresses and ports.
    Flow(FlowKey),
    /// Not an IP packet.
    NonFlow,
    /// An IP packet, or an encapsulation of one, that is truncated or contradicts itself.
    Invalid,
}

impl Dissection {
    /// Returns the flow key, if there is one.
    #[inline]
    pub const fn flow(&self) -> Option<&FlowKey> {
        match &self.class {
            Class::Flow(key) => Some(key),
            _ => None,
        }
    }
}

/// Dissects a frame that was captured on a link of type `link`.
///
/// It passes VLAN tags (0x8100, 0x88a8, 0x9100), MPLS, Ethernet over MPLS (RFC 4448, with or
/// without control word), PPPoE sessions, SNAP and all IPv6 extension headers. It does not enter
/// tunnels over IP: the outer addresses are the flow. Later fragments have ports 0. A packet that
/// the snap length truncated is a flow if its ports are there.
#[inline]
pub fn dissect(link: LinkType, data: &[u8]) -> Dissection {
    if link == LinkType::EN10MB {
        match plain_flow(data) {
            Some(key) => plain(key),
            None => ethernet(data),
        }
    } else {
        other_link(link, data)
    }
}

// Three code paths with the same results:
//
// * `plain_flow`: no tag, an IPv4 header without options, TCP or UDP. Most packets are like this.
//   Every field has a fixed offset, one length check covers all of them, and the code is inlined.
// * `ethernet`: IP behind at most one tag, with a check for each header.
// * `encapsulated`: a loop for everything else.

/// Returns the flow of a plain packet, or `None` for other packets.
#[inline]
fn plain_flow(data: &[u8]) -> Option<FlowKey> {
    let frame: &[u8; 38] = data.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let protocol = frame[23];
    let is_plain = half(12) == ethertype::IPV4
        && frame[14] == 0x45
        // The IP header and the ports.
        && half(16) >= 24
        && half(20) & 0x1fff == 0
        && matches!(protocol, protocol::TCP | protocol::UDP);
    let source = [frame[26], frame[27], frame[28], frame[29]];
    let destination = [frame[30], frame[31], frame[32], frame[33]];
    is_plain.then(|| FlowKey::ipv4(source, destination, protocol).with_ports(half(34), half(36)))
}

/// Returns the dissection of a plain packet.
#[inline]
fn plain(key: FlowKey) -> Dissection {
    Dissection {
        network_offset: ETHERNET_LENGTH as u16,
        ethertype: ethertype::IPV4,
        transport_offset: ETHERNET_LENGTH as u16 + 20,
        protocol: key.protocol(),
        class: Class::Flow(key),
    }
}

/// Dissects IP behind at most one tag directly and passes other frames to the loop.
#[inline(never)]
fn ethernet(data: &[u8]) -> Dissection {
    let mut pass = Dissector { data, vlan: 0 };
    let Some(mut kind) = u16_at(data, ETHERNET_LENGTH - 2) else {
        return no_flow(0, 0, Class::Invalid);
    };
    let mut at = ETHERNET_LENGTH;
    if kind == ethertype::VLAN {
        match pass.vlan_tag(at) {
            NextHeader::Type(next, inner) => (at, kind) = (next, inner),
            _ => return no_flow(at, kind, Class::Invalid),
        }
    }
    match kind {
        ethertype::IPV4 => pass.ipv4(at),
        ethertype::IPV6 => pass.ipv6(at),
        kind => pass.encapsulated(at, kind),
    }
}

#[inline(never)]
fn other_link(link: LinkType, data: &[u8]) -> Dissection {
    let pass = Dissector { data, vlan: 0 };
    match ethernet_conversion(link, data) {
        Ok(conversion) => match conversion.ethertype {
            Some(kind) => pass.encapsulated(conversion.strip, kind),
            None => match pass.ethernet_at(conversion.strip) {
                Some((at, kind)) => pass.encapsulated(at, kind),
                None => no_flow(0, 0, Class::Invalid),
            },
        },
        // Control protocols of PPP and HDLC, or an address family other than IP.
        Err(LinkError::UnknownProtocol { .. }) => no_flow(0, 0, Class::NonFlow),
        Err(_) => no_flow(0, 0, Class::Invalid),
    }
}

/// Returns the dissection of a frame that was parsed up to `at`. An offset above 65,535 clears the
/// type, since offset 0 must not be taken for that header.
fn no_flow(at: usize, ethertype: u16, class: Class) -> Dissection {
    let (network_offset, ethertype) = match u16::try_from(at) {
        Ok(offset) => (offset, ethertype),
        Err(_) => (0, 0),
    };
    Dissection { network_offset, ethertype, transport_offset: 0, protocol: 0, class }
}

#[inline]
fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?))
}

/// State of the pass.
#[derive(Clone, Copy)]
struct Dissector<'a> {
    data: &'a [u8],
    /// Outermost VLAN so far, unless 0.
    vlan: u16,
}

/// Content of a tag, label stack or link header.
enum NextHeader {
    /// Offset and Ethernet type of the next header.
    Type(usize, u16),
    /// A protocol that does not carry IP.
    NotIp,
    /// The frame ends too early.
    Truncated,
}

impl Dissector<'_> {
    /// Parses headers from type `kind` at offset `at` until a network header.
    #[inline(never)]
    fn encapsulated(mut self, mut at: usize, mut kind: u16) -> Dissection {
        for _ in 0..=ENCAPSULATIONS_MAX {
            let inside = match kind {
                ethertype::IPV4 => return self.ipv4(at),
                ethertype::IPV6 => return self.ipv6(at),
                ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::STACKED_VLAN => {
                    self.vlan_tag(at)
                }
                ethertype::MPLS | ethertype::MPLS_UPSTREAM => self.mpls(at),
                ethertype::PPPOE_SESSION => self.pppoe(at),
                0..=ethertype::LENGTH_MAX => self.logical_link(at),
                _ => NextHeader::NotIp,
            };
            match inside {
                NextHeader::Type(next, inner) => (at, kind) = (next, inner),
                NextHeader::NotIp => return no_flow(at, kind, Class::NonFlow),
                NextHeader::Truncated => return no_flow(at, kind, Class::Invalid),
            }
        }
        no_flow(at, kind, Class::Invalid)
    }

    /// Reads an Ethernet header at `at`. Returns the offset behind it and its type.
    fn ethernet_at(&self, at: usize) -> Option<(usize, u16)> {
        let end = at + ETHERNET_LENGTH;
        Some((end, u16_at(self.data, end - 2)?))
    }

    /// IEEE 802.1Q section 9.6: priority, drop eligibility and identifier; then a type.
    #[inline]
    fn vlan_tag(&mut self, at: usize) -> NextHeader {
        let (Some(control), Some(kind)) = (u16_at(self.data, at), u16_at(self.data, at + 2)) else {
            return NextHeader::Truncated;
        };
        if self.vlan == 0 {
            self.vlan = control & 0x0fff;
        }
        NextHeader::Type(at + 4, kind)
    }

    /// RFC 3032 section 2.1: label, class, bottom-of-stack bit, time to live. No field names the
    /// payload; its first four bits identify IP (RFC 4928 section 3).
    fn mpls(&self, mut at: usize) -> NextHeader {
        for _ in 0..LABELS_MAX {
            let Some(bottom) = self.data.get(at + 2).map(|byte| byte & 1 != 0) else {
                return NextHeader::Truncated;
            };
            at += 4;
            if bottom {
                return match self.data.get(at).map(|byte| byte >> 4) {
                    Some(4) => NextHeader::Type(at, ethertype::IPV4),
                    Some(6) => NextHeader::Type(at, ethertype::IPV6),
                    Some(_) => self.ethernet_over_mpls(at),
                    None => NextHeader::Truncated,
                };
            }
        }
        NextHeader::NotIp
    }

    /// RFC 4448 section 4.6: the control word is optional; its first 16 bits are sent as zero. An
    /// address may begin with zeros too, so the first position with a plausible type is used.
    fn ethernet_over_mpls(&self, at: usize) -> NextHeader {
        let control_word = self.data.get(at..at + 2) == Some(&[0, 0]);
        let starts = [control_word.then_some(at + 4), Some(at)];
        for start in starts.into_iter().flatten() {
            if let Some((inner, kind)) = self.ethernet_at(start)
                && is_plausible_type(kind, self.data.len() - inner)
            {
                return NextHeader::Type(inner, kind);
            }
        }
        NextHeader::NotIp
    }

    /// RFC 2516 section 4: version and type, code, session, length; then a PPP protocol.
    fn pppoe(&self, at: usize) -> NextHeader {
        match (self.data.get(at..at + 2), u16_at(self.data, at + 6)) {
            (Some([0x11, 0]), Some(0x0021)) => NextHeader::Type(at + 8, ethertype::IPV4),
            (Some([0x11, 0]), Some(0x0057)) => NextHeader::Type(at + 8, ethertype::IPV6),
            (Some(_), Some(_)) => NextHeader::NotIp,
            _ => NextHeader::Truncated,
        }
    }

    /// IEEE 802.2: only SNAP with the Ethernet organisation code carries IP.
    fn logical_link(&self, at: usize) -> NextHeader {
        match self.data.get(at..at + 6) {
            Some([0xaa, 0xaa, 0x03, 0, 0, 0]) => match u16_at(self.data, at + 6) {
                Some(kind) => NextHeader::Type(at + 8, kind),
                None => NextHeader::Truncated,
            },
            _ => NextHeader::NotIp,
        }
    }

    /// RFC 791 section 3.1.
    #[inline]
    fn ipv4(&self, at: usize) -> Dissection {
        self.dissection(at, ethertype::IPV4, self.ipv4_flow(at))
    }

    /// Returns the flow and the length of the IP header.
    #[inline]
    fn ipv4_flow(&self, at: usize) -> Option<(FlowKey, usize)> {
        let packet = self.data.get(at..)?;
        let header: &[u8; 20] = packet.first_chunk()?;
        let header_length = usize::from(header[0] & 0x0f) * 4;
        if header[0] >> 4 != 4 || header_length < 20 {
            return None;
        }
        // With segmentation offload, captures on the sender have length zero.
        let total_length = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
            0 => packet.len(),
            total_length if total_length < header_length => return None,
            total_length => total_length.min(packet.len()),
        };
        let transport = packet.get(header_length..total_length)?;
        let [_, _, _, _, _, _, fragment_high, fragment_low, _, protocol, ..] = *header;
        let source = [header[12], header[13], header[14], header[15]];
        let destination = [header[16], header[17], header[18], header[19]];
        let mut key = FlowKey::ipv4(source, destination, protocol);
        let later_fragment = u16::from_be_bytes([fragment_high, fragment_low]) & 0x1fff != 0;
        if !later_fragment {
            let (source, destination) = ports(protocol, transport)?;
            key = key.with_ports(source, destination);
        }
        Some((key, header_length))
    }

    /// RFC 8200 section 3.
    #[inline(never)]
    fn ipv6(&self, at: usize) -> Dissection {
        self.dissection(at, ethertype::IPV6, self.ipv6_flow(at))
    }

    /// Returns the flow and the length of the IP headers.
    #[inline]
    fn ipv6_flow(&self, at: usize) -> Option<(FlowKey, usize)> {
        let packet = self.data.get(at..)?;
        let header: &[u8; 40] = packet.first_chunk()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        // Zero means a jumbogram, or segmentation offload on the sender.
        let end = match usize::from(u16::from_be_bytes([header[4], header[5]])) {
            0 => packet.len(),
            payload_length => (40 + payload_length).min(packet.len()),
        };
        let packet = packet.get(..end)?;
        let extensions = walk_extensions(packet, ipv6::HEADER_LENGTH, header[6])?;
        let (source, rest) = header[8..].split_first_chunk()?;
        let mut key = FlowKey::ipv6(*source, *rest.first_chunk()?, extensions.protocol);
        if !extensions.is_later_fragment {
            let transport = packet.get(extensions.end..)?;
            let (source, destination) = ports(extensions.protocol, transport)?;
            key = key.with_ports(source, destination);
        }
        Some((key, extensions.end))
    }

    /// Creates the dissection in one place, since a copy costs as much as the creation.
    #[inline]
    fn dissection(&self, at: usize, ethertype: u16, flow: Option<(FlowKey, usize)>) -> Dissection {
        if let Some((key, length)) = flow
            && let Ok(network_offset) = u16::try_from(at)
            && let Ok(transport_offset) = u16::try_from(at + length)
        {
            return Dissection {
                network_offset,
                ethertype,
                transport_offset,
                protocol: key.protocol(),
                class: Class::Flow(key.with_vlan(self.vlan)),
            };
        }
        no_flow(at, ethertype, Class::Invalid)
    }
}

/// Returns whether the pass knows the type `kind`, or `kind` is an IEEE 802.3 length within `room`.
const fn is_plausible_type(kind: u16, room: usize) -> bool {
    use ethertype::{ARP, IPV4, IPV6, LENGTH_MAX, MPLS, MPLS_UPSTREAM, PPPOE_DISCOVERY};
    ethertype::is_vlan(kind)
        || (3 <= kind && kind <= LENGTH_MAX && kind as usize <= room)
        || matches!(kind, ARP | IPV4 | IPV6 | MPLS | MPLS_UPSTREAM)
        || matches!(kind, PPPOE_DISCOVERY | ethertype::PPPOE_SESSION)
}

/// Returns the ports, or ICMP type and code; `None` if they are truncated.
#[inline]
fn ports(protocol: u8, transport: &[u8]) -> Option<(u16, u16)> {
    match protocol {
        protocol::ICMP | protocol::ICMPV6 => {
            let [kind, code] = *transport.first_chunk()?;
            Some((u16::from(kind), u16::from(code)))
        }
        _ if protocol::has_ports(protocol) => {
            let [a, b, c, d] = *transport.first_chunk()?;
            Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
        }
        _ => Some((0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::IpAddr;

    const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

    /// Returns an Ethernet frame with the given tags, which end with an Ethernet type.
    fn frame(tags: &[u8], packet: &[u8]) -> Vec<u8> {
        [&ADDRESSES[..], tags, packet].concat()
    }

    fn ipv4(protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
        let length = 20 + transport.len() as u16;
        let mut packet = [0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        [&packet, transport].concat()
    }

    fn udp() -> Vec<u8> {
        ipv4(17, 0, &[0x04, 0x00, 0x00, 0x35, 0, 10, 0, 0, b'h', b'i'])
    }

    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = [0; 40];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        packet[6] = next;
        packet[8] = 0xfd;
        packet[23] = 1;
        packet[24] = 0xfd;
        packet[39] = 2;
        [&packet, payload].concat()
    }

    fn of(data: &[u8]) -> Dissection {
        dissect(LinkType::EN10MB, data)
    }

    /// Asserts that `data` has the flow of [`udp`] on `vlan` and its IP header at `network_offset`.
    fn assert_is_udp(data: &[u8], network_offset: u16, vlan: u16) {
        let found = of(data);
        let key = *found.flow().unwrap_or_else(|| panic!("{found:?} of {data:02x?}"));
        assert_eq!((key.source_port(), key.destination_port(), key.vlan()), (1024, 53, vlan));
        assert_eq!(found.network_offset, network_offset);
        assert_eq!(found.transport_offset, network_offset + 20);
        assert_eq!((found.ethertype, found.protocol), (ethertype::IPV4, protocol::UDP));
    }

    #[test]
    fn every_encapsulation_leads_to_the_same_flow() {
        assert_is_udp(&frame(&[8, 0], &udp()), 14, 0);
        assert_is_udp(&frame(&[0x81, 0, 0x60, 7, 8, 0], &udp()), 18, 7);
        assert_is_udp(&frame(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 8, 0], &udp()), 22, 9);
        assert_is_udp(&frame(&[0x91, 0, 0, 9, 0x91, 0, 0, 7, 8, 0], &udp()), 22, 9);
        // A priority tag has VLAN 0, which is not a VLAN.
        assert_is_udp(&frame(&[0x81, 0, 0x60, 0, 8, 0], &udp()), 18, 0);
        assert_is_udp(&frame(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &udp()), 22, 0);
        let pppoe = [0x88, 0x64, 0x11, 0, 0, 1, 0, 32, 0, 0x21];
        assert_is_udp(&frame(&pppoe, &udp()), 22, 0);
        let snap = [0, 38, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        assert_is_udp(&frame(&snap, &udp()), 22, 0);
    }

    #[test]
    fn ethernet_over_mpls_is_found_with_and_without_a_control_word() {
        let inner = frame(&[0x81, 0, 0, 5, 8, 0], &udp());
        let with = [&[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0][..], &inner].concat();
        assert_is_udp(&frame(&with, &[]), 14 + 8 + 18, 5);
        let without = [&[0x88, 0x47, 0, 1, 1, 64][..], &inner].concat();
        assert_is_udp(&frame(&without, &[]), 14 + 4 + 18, 5);
    }

    #[test]
    fn all_ipv6_extension_headers_are_walked() {
        let udp = [0x04, 0, 0, 0x35, 0, 8, 0, 0];
        let chain = [
            &[43, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &[60, 0, 0, 0, 0, 0, 0, 0],
            &[51, 0, 0, 0, 0, 0, 0, 0],
            &[44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[17, 0, 0, 1, 0, 0, 0, 9],
            &udp,
        ]
        .concat();
        let found = of(&frame(&[0x86, 0xdd], &ipv6(protocol::HOP_BY_HOP, &chain)));
        let key = found.flow().copied().unwrap();
        assert_eq!((key.source_port(), key.destination_port(), key.protocol()), (1024, 53, 17));
        assert_eq!(usize::from(found.transport_offset), 14 + 40 + chain.len() - udp.len());
        assert_eq!(key.source(), "fd00::1".parse::<IpAddr>().unwrap());
        assert_eq!(key.destination(), "fd00::2".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn plain_and_general_paths_agree_for_every_changed_bit() {
        for transport in [udp(), ipv4(6, 0x4000, &[1; 20]), ipv4(17, 0, &[9; 4])] {
            let good = frame(&[8, 0], &transport);
            assert!(plain_flow(&good).is_some());
            for at in 0..good.len() {
                for bit in 0..8 {
                    let mut other = good.clone();
                    other[at] ^= 1 << bit;
                    assert_eq!(of(&other), ethernet(&other), "byte {at}, bit {bit}");
                }
            }
            for length in 0..good.len() {
                assert_eq!(of(&good[..length]), ethernet(&good[..length]), "{length} bytes");
            }
        }
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let later = of(&frame(&[8, 0], &ipv4(17, 0x2001, &[1, 2, 3])));
        assert_eq!(later.flow().map(|key| (key.source_port(), key.protocol())), Some((0, 17)));
        let first = of(&frame(&[8, 0], &ipv4(17, 0x2000, &[4, 0, 0, 0x35])));
        assert_eq!(first.flow().map(FlowKey::source_port), Some(1024));
        let six = ipv6(44, &[17, 0, 0, 8, 0, 0, 0, 9, 0xff]);
        let later = of(&frame(&[0x86, 0xdd], &six));
        assert_eq!(later.flow().map(|key| (key.source_port(), key.protocol())), Some((0, 17)));
    }

    #[test]
    fn icmp_has_type_and_code_in_place_of_ports() {
        let found = of(&frame(&[8, 0], &ipv4(1, 0, &[3, 4, 0, 0])));
        let key = found.flow().unwrap();
        assert_eq!((key.source_port(), key.destination_port()), (3, 4));
    }

    #[test]
    fn frames_without_ip_have_no_flow() {
        for (tags, offset, ethertype) in [
            (&[0x08, 0x06][..], 14, ethertype::ARP),
            (&[0x00, 0x26, 0x42, 0x42, 0x03][..], 14, 0x26),
            (&[0x81, 0, 0, 1, 0x08, 0x06], 18, ethertype::ARP),
            (&[0x88, 0x63, 0x11, 0x09], 14, ethertype::PPPOE_DISCOVERY),
            (&[0x88, 0x64, 0x11, 0, 0, 1, 0, 4, 0xc0, 0x21], 14, ethertype::PPPOE_SESSION),
        ] {
            let found = of(&frame(tags, &[0; 50]));
            assert_eq!(found.class, Class::NonFlow, "{tags:02x?}");
            assert_eq!((found.network_offset, found.ethertype), (offset, ethertype));
        }
    }

    #[test]
    fn contradictory_packets_are_invalid() {
        let mut short_header = udp();
        short_header[0] = 0x44;
        let mut short_total = udp();
        short_total[3] = 19;
        let mut wrong_version = udp();
        wrong_version[0] = 0x65;
        let mut no_room_for_ports = udp();
        no_room_for_ports[3] = 22;
        for packet in [short_header, short_total, wrong_version, no_room_for_ports] {
            assert_eq!(of(&frame(&[8, 0], &packet)).class, Class::Invalid, "{packet:02x?}");
        }
        let endless_tags = [0x81, 0, 0, 1].repeat(40);
        assert_eq!(of(&frame(&endless_tags, &udp())).class, Class::Invalid);
        let endless_extensions = ipv6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(40));
        assert_eq!(of(&frame(&[0x86, 0xdd], &endless_extensions)).class, Class::Invalid);
    }

    #[test]
    fn padding_behind_the_ip_packet_is_not_read_as_ports() {
        let mut packet = ipv4(17, 0, &[]);
        packet.extend([0; 26]);
        assert_eq!(of(&frame(&[8, 0], &packet)).class, Class::Invalid);
    }

    #[test]
    fn other_link_types_lead_to_the_same_flow() {
        let packet = udp();
        let flow = of(&frame(&[8, 0], &packet)).class;
        let sll = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
        let sll2 = [8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        for (link, header) in [
            (LinkType::RAW, &[][..]),
            (LinkType::IPV4, &[]),
            (LinkType::NULL, &[2, 0, 0, 0]),
            (LinkType::LOOP, &[0, 0, 0, 2]),
            (LinkType::LINUX_SLL, &sll),
            (LinkType::LINUX_SLL2, &sll2),
            (LinkType::C_HDLC, &[0x0f, 0, 8, 0]),
            (LinkType::PPP_SERIAL, &[0xff, 3, 0, 0x21]),
            (LinkType::PPP, &[0, 0x21]),
            (LinkType::PPP, &[0x21]),
            (LinkType::JUNIPER_ETHER, &[0x4d, 0x47, 0x43, 0x83, 0, 2, 0xff, 0xff]),
        ] {
            let data = [header, &packet].concat();
            let found = dissect(link, &data);
            assert_eq!(found.class, flow, "{link}");
            assert_eq!(usize::from(found.network_offset), header.len(), "{link}");
        }
        assert_eq!(dissect(LinkType::USER0, &packet).class, Class::Invalid);
        assert_eq!(dissect(LinkType::PPP, &[0xc0, 0x21, 1, 1]).class, Class::NonFlow);
    }
}
