//! Outer headers of tunnels: writes and parses them.

use core::net::IpAddr;

use wirestorm_wire::checksum;
use wirestorm_wire::packet::{ethertype, gtpu, ipv4, ipv6, network_header, protocol, udp};

use super::{Tunnel, TunnelCounters};

/// Length of the tunnel headers over IPv4 and over IPv6, in bytes.
pub(super) const IPV4_LENGTH: usize = ipv4::HEADER_LENGTH_MIN + UDP_AND_GTPU_LENGTH;
pub(super) const IPV6_LENGTH: usize = ipv6::HEADER_LENGTH + UDP_AND_GTPU_LENGTH;
const UDP_AND_GTPU_LENGTH: usize = udp::HEADER_LENGTH + gtpu::HEADER_LENGTH_MIN;

const HOP_LIMIT: u8 = 64;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// ECN bits of a traffic class and their code points (RFC 3168 section 5): Not-ECT, ECT(1) and CE.
const ECN: u8 = 0b11;
const NOT_CAPABLE: u8 = 0b00;
const CAPABLE_1: u8 = 0b01;
const CONGESTED: u8 = 0b11;

/// Parsed fields of an outgoing packet that select and fill its tunnel headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutgoingPacket {
    /// Offset of the packet in its frame.
    pub(super) start: usize,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    traffic_class: u8,
    /// Source port of TCP or UDP, if the packet has one.
    source_port: Option<u16>,
}

impl OutgoingPacket {
    /// Parses the packet of a frame; `None` if it is not IP.
    #[inline]
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let (start, kind) = network_header(frame)?;
        let network = frame.get(start..)?;
        let port = |behind: usize, protocol: u8| {
            let has_ports = matches!(protocol, protocol::TCP | protocol::UDP);
            let port = network.get(behind..)?.first_chunk().filter(|_| has_ports)?;
            Some(u16::from_be_bytes(*port))
        };
        match kind {
            ethertype::IPV4 => {
                let packet = ipv4::Packet::new(network).ok()?;
                let behind = Some(packet.header_length()).filter(|_| !packet.is_fragment());
                Some(Self {
                    start,
                    source: packet.source().into(),
                    destination: packet.destination().into(),
                    traffic_class: packet.type_of_service(),
                    source_port: behind.and_then(|behind| port(behind, packet.protocol())),
                })
            }
            ethertype::IPV6 => {
                let packet = ipv6::Packet::new(network).ok()?;
                Some(Self {
                    start,
                    source: packet.source().into(),
                    destination: packet.destination().into(),
                    traffic_class: packet.traffic_class(),
                    source_port: port(ipv6::HEADER_LENGTH, packet.next_header()),
                })
            }
            _ => None,
        }
    }

    /// Encapsulates the packet of a frame of `length` bytes; returns the new length, or `None` if
    /// the buffer or the length field is too small.
    #[inline]
    pub(super) fn encapsulate(
        &self,
        tunnel: &Tunnel,
        buffer: &mut [u8],
        length: usize,
    ) -> Option<usize> {
        let is_ipv4 = tunnel.to.is_ipv4();
        let (around, kind) = match is_ipv4 {
            true => (IPV4_LENGTH, ethertype::IPV4),
            false => (IPV6_LENGTH, ethertype::IPV6),
        };
        let start = self.start;
        let inner = u16::try_from(length.checked_sub(start)?).ok()?;
        // The IPv4 total length includes the header.
        inner.checked_add(around as u16)?;
        let buffer = buffer.get_mut(..length + around)?;
        buffer.copy_within(start..length, start + around);
        set_ethertype(buffer, start, kind);
        let packet = buffer.get_mut(start..)?;
        let datagram = inner + UDP_AND_GTPU_LENGTH as u16;
        let pseudo_header = self.write_ip(tunnel, packet, datagram)?;
        let datagram_bytes = packet.get_mut(around - UDP_AND_GTPU_LENGTH..)?;
        write_udp_and_gtp(datagram_bytes, self.port(tunnel), datagram, tunnel.teid)?;
        let sum = checksum::combine(checksum::sum(datagram_bytes), pseudo_header);
        // RFC 768: a computed sum of zero is sent as all ones, because zero means no checksum.
        let sum = if sum == 0xffff { 0xffff } else { !sum };
        udp::Packet::new(datagram_bytes).ok()?.set_checksum(sum);
        Some(length + around)
    }

    fn port(&self, tunnel: &Tunnel) -> u16 {
        let source_port = tunnel.source_port.map(u16::from);
        source_port.or(self.source_port).unwrap_or(gtpu::PORT)
    }

    /// Writes the outer IP header; returns the sum of the datagram's pseudo header.
    fn write_ip(&self, tunnel: &Tunnel, packet: &mut [u8], datagram: u16) -> Option<u16> {
        // RFC 6040 section 4.1: the ingress copies the ECN field. The DSCP is copied too.
        let class = self.traffic_class;
        match (tunnel.from, tunnel.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = packet.first_chunk_mut::<{ ipv4::HEADER_LENGTH_MIN }>()?;
                *header = [0; ipv4::HEADER_LENGTH_MIN];
                header[0] = 0x45;
                let mut header = ipv4::Packet::new(header.as_mut_slice()).ok()?;
                header.set_type_of_service(class);
                header.set_total_length(datagram + ipv4::HEADER_LENGTH_MIN as u16);
                // RFC 6864: a packet that is never fragmented needs no identification.
                header.set_fragment(DO_NOT_FRAGMENT);
                header.set_time_to_live(HOP_LIMIT);
                header.set_protocol(protocol::UDP);
                header.set_source(from);
                header.set_destination(to);
                header.fill_checksum();
                Some(header.pseudo_header_sum(datagram))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let header = packet.first_chunk_mut::<{ ipv6::HEADER_LENGTH }>()?;
                header[0] = 0x60;
                let mut header = ipv6::Packet::new(header.as_mut_slice()).ok()?;
                header.set_version_class_label(6 << 28 | u32::from(class) << 20);
                header.set_payload_length(datagram);
                header.set_next_header(protocol::UDP);
                header.set_hop_limit(HOP_LIMIT);
                header.set_source(from);
                header.set_destination(to);
                Some(header.pseudo_header_sum(protocol::UDP, datagram.into()))
            }
            _ => None,
        }
    }
}

/// Writes the UDP and GTP-U headers, without the checksum.
fn write_udp_and_gtp(datagram: &mut [u8], port: u16, length: u16, teid: u32) -> Option<()> {
    let (head, behind) = datagram.split_at_mut_checked(udp::HEADER_LENGTH)?;
    let mut head = udp::Packet::new(head).ok()?;
    head.set_source_port(port);
    head.set_destination_port(gtpu::PORT);
    head.set_length(length);
    head.set_checksum(0);
    let mut header = gtpu::Packet::new(behind).ok()?;
    header.set_flags(gtpu::PLAIN_FLAGS);
    header.set_message_type(gtpu::G_PDU);
    header.set_length(length - UDP_AND_GTPU_LENGTH as u16);
    header.set_teid(teid);
    Some(())
}

/// Sets the EtherType before the header that begins at `start`; an MPLS label stack has none.
fn set_ethertype(frame: &mut [u8], start: usize, kind: u16) {
    // The third byte of the last MPLS label is odd (RFC 3032 section 2.1, bottom of stack); the
    // first byte of both EtherTypes is even.
    let behind = frame.get_mut(start.saturating_sub(2)..start);
    if let Some(behind) = behind.filter(|behind| behind.first().is_some_and(|it| it & 1 == 0)) {
        behind.copy_from_slice(&kind.to_be_bytes());
    }
}

/// Result of parsing a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived<'a> {
    /// Neither TCP nor UDP: passes unchanged.
    Other,
    /// Packet in a tunnel.
    Within(InnerPacket<'a>),
}

/// Packet in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InnerPacket<'a> {
    link: &'a [u8],
    packet: &'a [u8],
    is_ipv4: bool,
    /// New ECN field, if it differs from the packet's.
    ecn: Option<u8>,
    /// Whether the outer UDP checksum covers it.
    pub(super) is_covered: bool,
}

/// Reason to drop a frame, as the counter to increment.
pub(super) type DropReason = fn(&mut TunnelCounters) -> &mut u64;

impl<'a> Arrived<'a> {
    /// Parses a received frame; `verifies` checks the outer UDP checksum.
    #[inline]
    pub(super) fn of(frame: &'a [u8], verifies: bool) -> Result<Self, DropReason> {
        let Some((start, kind)) = network_header(frame) else { return Ok(Self::Other) };
        let (link, network) = frame.split_at(start);
        let Outer { transport, class, pseudo_header } = match kind {
            ethertype::IPV4 => match parse_outer_ipv4(network, verifies)? {
                Some(behind) => behind,
                None => return Ok(Self::Other),
            },
            ethertype::IPV6 => match parse_outer_ipv6(network, verifies)? {
                Some(behind) => behind,
                None => return Ok(Self::Other),
            },
            _ => return Ok(Self::Other),
        };
        let datagram = udp::Packet::new(transport).map_err(|_| TRUNCATED)?;
        if datagram.destination_port() != gtpu::PORT {
            return Err(|counters| &mut counters.other_port);
        }
        let datagram_bytes = transport.get(..datagram.length().into()).ok_or(TRUNCATED)?;
        let is_covered = datagram.checksum() != 0;
        if let Some(pseudo_header) = pseudo_header
            && is_covered
            && checksum::combine(pseudo_header, checksum::sum(datagram_bytes)) != CHECKSUM_GOOD
        {
            return Err(|counters| &mut counters.bad_checksum);
        }
        let message = datagram_bytes.get(udp::HEADER_LENGTH..).ok_or(TRUNCATED)?;
        let message = gtpu::Packet::new(message).map_err(|_| TRUNCATED)?;
        if !message.is_g_pdu() {
            return Err(|counters| &mut counters.other_message);
        }
        let length = message.payload().ok_or(TRUNCATED)?.len();
        // The packet is at the end of the message, behind optional headers.
        let end = UDP_AND_GTPU_LENGTH + usize::from(message.length());
        let packet = transport.get(end - length..end).ok_or(TRUNCATED)?;
        InnerPacket::new(link, packet, class, is_covered).map(Self::Within)
    }
}

/// Parsed outer IP header.
struct Outer<'a> {
    /// Payload of the outer packet.
    transport: &'a [u8],
    class: u8,
    /// Sum of the pseudo header, if the UDP checksum is verified.
    pseudo_header: Option<u16>,
}

/// Sum over all bytes that a correct checksum covers, including the checksum.
const CHECKSUM_GOOD: u16 = 0xffff;

const TRUNCATED: DropReason = |counters| &mut counters.truncated;
const BAD_IP: DropReason = |counters| &mut counters.bad_ip;
const FRAGMENT: DropReason = |counters| &mut counters.fragments;
const NOT_ECN_CAPABLE: DropReason = |counters| &mut counters.not_ecn_capable;

/// Parses the outer IPv4 header; `None` if the payload is neither TCP nor UDP.
fn parse_outer_ipv4(network: &[u8], verifies: bool) -> Result<Option<Outer<'_>>, DropReason> {
    let packet = ipv4::Packet::new(network).map_err(|_| BAD_IP)?;
    if !packet.is_whole() || packet.checksum() != packet.computed_checksum() {
        return Err(BAD_IP);
    }
    let range = packet.header_length()..usize::from(packet.total_length());
    let transport = network.get(range).ok_or(BAD_IP)?;
    let outer = Outer {
        transport,
        class: packet.type_of_service(),
        pseudo_header: verifies.then(|| packet.pseudo_header_sum(transport.len() as u16)),
    };
    check_transport(packet.protocol(), packet.is_fragment(), outer)
}

fn parse_outer_ipv6(network: &[u8], verifies: bool) -> Result<Option<Outer<'_>>, DropReason> {
    let packet = ipv6::Packet::new(network).map_err(|_| BAD_IP)?;
    let extensions = packet.extensions().filter(|_| packet.is_whole()).ok_or(BAD_IP)?;
    let end = ipv6::HEADER_LENGTH + usize::from(packet.payload_length());
    let transport = network.get(extensions.end..end).ok_or(BAD_IP)?;
    let outer = Outer {
        transport,
        class: packet.traffic_class(),
        pseudo_header: verifies
            .then(|| packet.pseudo_header_sum(extensions.protocol, transport.len() as u32)),
    };
    check_transport(extensions.protocol, extensions.is_fragment, outer)
}

fn check_transport(
    protocol: u8,
    is_fragment: bool,
    outer: Outer<'_>,
) -> Result<Option<Outer<'_>>, DropReason> {
    match protocol {
        protocol::TCP => Err(|counters| &mut counters.not_udp),
        protocol::UDP if is_fragment => Err(FRAGMENT),
        protocol::UDP => Ok(Some(outer)),
        _ => Ok(None),
    }
}

impl<'a> InnerPacket<'a> {
    /// Parses a packet that arrived in a tunnel with the outer traffic class `class`.
    fn new(
        link: &'a [u8],
        packet: &'a [u8],
        class: u8,
        is_covered: bool,
    ) -> Result<Self, DropReason> {
        const BAD: DropReason = |counters| &mut counters.inner_not_ip;
        let (is_ipv4, is_whole, packet_class) = match packet.first().ok_or(BAD)? >> 4 {
            4 => {
                let packet = ipv4::Packet::new(packet).map_err(|_| BAD)?;
                (true, packet.is_whole(), packet.type_of_service())
            }
            6 => {
                let packet = ipv6::Packet::new(packet).map_err(|_| BAD)?;
                (false, packet.is_whole(), packet.traffic_class())
            }
            _ => return Err(BAD),
        };
        if !is_whole {
            return Err(BAD);
        }
        let inner = packet_class & ECN;
        let ecn = decapsulated_ecn(inner, class & ECN).ok_or::<DropReason>(NOT_ECN_CAPABLE)?;
        let ecn = Some(ecn).filter(|ecn| *ecn != inner);
        Ok(Self { link, packet, is_ipv4, ecn, is_covered })
    }

    /// Writes the frame without the tunnel headers.
    #[inline]
    pub(super) fn decapsulate(&self, frame: &mut alloc::vec::Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(self.link);
        frame.extend_from_slice(self.packet);
        let start = self.link.len();
        let kind = if self.is_ipv4 { ethertype::IPV4 } else { ethertype::IPV6 };
        set_ethertype(frame, start, kind);
        if let Some(ecn) = self.ecn {
            set_ecn(&mut frame[start..], ecn);
        }
    }
}

/// Returns the ECN field after decapsulation, or `None` to drop the packet. RFC 6040 section 4.2:
/// "If the inner ECN field is Not-ECT and the outer ECN field is CE, the decapsulator MUST drop the
/// packet". If the inner packet supports ECN, the result is "the more severe marking of the outer
/// and inner ECN fields, where the ranking of severity from highest to lowest is CE, ECT(1),
/// ECT(0), Not-ECT."
const fn decapsulated_ecn(inner: u8, outer: u8) -> Option<u8> {
    match (inner, outer) {
        (NOT_CAPABLE, CONGESTED) => None,
        (NOT_CAPABLE, _) => Some(NOT_CAPABLE),
        (CONGESTED, _) | (_, CONGESTED) => Some(CONGESTED),
        (CAPABLE_1, _) | (_, CAPABLE_1) => Some(CAPABLE_1),
        _ => Some(inner),
    }
}

fn set_ecn(packet: &mut [u8], ecn: u8) {
    if let Ok(mut packet) = ipv4::Packet::new(&mut *packet) {
        // A wrong checksum stays wrong.
        let is_right = packet.checksum() == packet.computed_checksum();
        packet.set_type_of_service(packet.type_of_service() & !ECN | ecn);
        if is_right {
            packet.fill_checksum();
        }
    } else if let Ok(mut packet) = ipv6::Packet::new(packet) {
        packet.set_traffic_class(packet.traffic_class() & !ECN | ecn);
    }
}
