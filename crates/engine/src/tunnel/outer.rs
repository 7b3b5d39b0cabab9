//! The headers around a packet: written, and looked behind.

use core::net::IpAddr;

use wirestorm_wire::checksum;
use wirestorm_wire::packet::{ethertype, gtpu, ipv4, ipv6, network_header, protocol, udp};

use super::{Tunnel, TunnelCounters};

/// Bytes around a packet in a tunnel over IPv4, and over IPv6.
pub(super) const IPV4_LENGTH: usize = ipv4::HEADER_LENGTH_MIN + BEHIND_IP;
pub(super) const IPV6_LENGTH: usize = ipv6::HEADER_LENGTH + BEHIND_IP;
const BEHIND_IP: usize = udp::HEADER_LENGTH + gtpu::HEADER_LENGTH_MIN;

const HOP_LIMIT: u8 = 64;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// The bits of a traffic class that tell of congestion, and what they say (RFC 3168 section 5): that
/// nobody would understand it, one of two marks of who would, or that there was some.
const ECN: u8 = 0b11;
const NOT_CAPABLE: u8 = 0b00;
const CAPABLE_1: u8 = 0b01;
const CONGESTED: u8 = 0b11;

/// A packet that leaves, as far as it decides on its tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    /// Where it begins in its frame.
    pub(super) start: usize,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    traffic_class: u8,
    /// Where it says where it comes from.
    source_port: Option<u16>,
}

impl Leaving {
    /// The packet of a frame; `None` where there is none of IP.
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

    /// Puts the packet of a frame of so many bytes into a tunnel; returns how many they are then, or
    /// nothing where the buffer or a packet has no room for them.
    #[inline]
    pub(super) fn put_into(
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
        // The length of a packet of IPv4 is that with its header.
        inner.checked_add(around as u16)?;
        let buffer = buffer.get_mut(..length + around)?;
        buffer.copy_within(start..length, start + around);
        set_ethertype(buffer, start, kind);
        let packet = buffer.get_mut(start..)?;
        let datagram = inner + BEHIND_IP as u16;
        let pseudo_header = self.write_ip(tunnel, packet, datagram)?;
        let datagram_bytes = packet.get_mut(around - BEHIND_IP..)?;
        write_udp_and_gtp(datagram_bytes, self.port(tunnel), datagram, tunnel.teid)?;
        let sum = checksum::combine(checksum::sum(datagram_bytes), pseudo_header);
        // RFC 768: a sum of zero is sent as all ones, since zero says that there is none.
        let sum = if sum == 0xffff { 0xffff } else { !sum };
        udp::Packet::new(datagram_bytes).ok()?.set_checksum(sum);
        Some(length + around)
    }

    fn port(&self, tunnel: &Tunnel) -> u16 {
        let own = tunnel.source_port.map(u16::from);
        own.or(self.source_port).unwrap_or(gtpu::PORT)
    }

    /// Returns the sum of the datagram's pseudo header.
    fn write_ip(&self, tunnel: &Tunnel, packet: &mut [u8], datagram: u16) -> Option<u16> {
        // RFC 6040 section 4.1: an ingress copies the field of ECN; and what is urgent within is so
        // outside, too.
        let class = self.traffic_class;
        match (tunnel.from, tunnel.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = packet.first_chunk_mut::<{ ipv4::HEADER_LENGTH_MIN }>()?;
                *header = [0; ipv4::HEADER_LENGTH_MIN];
                header[0] = 0x45;
                let mut header = ipv4::Packet::new(header.as_mut_slice()).ok()?;
                header.set_type_of_service(class);
                header.set_total_length(datagram + ipv4::HEADER_LENGTH_MIN as u16);
                // RFC 6864: what is never fragmented needs no identification.
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

/// Writes both headers, without the checksum.
fn write_udp_and_gtp(datagram: &mut [u8], port: u16, length: u16, teid: u32) -> Option<()> {
    let (head, behind) = datagram.split_at_mut_checked(udp::HEADER_LENGTH)?;
    let mut head = udp::Packet::new(head).ok()?;
    head.set_source_port(port);
    head.set_destination_port(gtpu::PORT);
    head.set_length(length);
    head.set_checksum(0);
    let mut header = gtpu::Packet::new(behind).ok()?;
    header.set_flags(gtpu::PLAIN_FLAGS);
    header.set_message_type(gtpu::USER_PACKET);
    header.set_length(length - BEHIND_IP as u16);
    header.set_teid(teid);
    Some(())
}

/// Says what is behind the header below IP, which ends at `start`; labels of MPLS do not say it.
fn set_ethertype(frame: &mut [u8], start: usize, kind: u16) {
    // The last label's third byte is odd (RFC 3032 section 2.1: the bottom of the stack), that of both
    // types is even.
    let behind = frame.get_mut(start.saturating_sub(2)..start);
    if let Some(behind) = behind.filter(|behind| behind.first().is_some_and(|it| it & 1 == 0)) {
        behind.copy_from_slice(&kind.to_be_bytes());
    }
}

/// What a frame that arrived is to a port with tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived<'a> {
    /// It is nothing that comes in tunnels.
    Other,
    /// It comes in one.
    Within(Within<'a>),
}

/// A packet in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within<'a> {
    link: &'a [u8],
    packet: &'a [u8],
    is_ipv4: bool,
    /// What it is to say of congestion, where that is not what it says.
    ecn: Option<u8>,
    /// Whether a checksum covers it.
    pub(super) is_covered: bool,
}

/// Why a frame is not taken out of its tunnel: what counts that.
pub(super) type Refused = fn(&mut TunnelCounters) -> &mut u64;

impl<'a> Arrived<'a> {
    /// What a frame is; `verifies`: whether the checksum of a datagram is to be right.
    #[inline]
    pub(super) fn of(frame: &'a [u8], verifies: bool) -> Result<Self, Refused> {
        let Some((start, kind)) = network_header(frame) else { return Ok(Self::Other) };
        let (link, network) = frame.split_at(start);
        let Outer { transport, class, pseudo_header } = match kind {
            ethertype::IPV4 => match behind_ipv4(network, verifies)? {
                Some(behind) => behind,
                None => return Ok(Self::Other),
            },
            ethertype::IPV6 => match behind_ipv6(network, verifies)? {
                Some(behind) => behind,
                None => return Ok(Self::Other),
            },
            _ => return Ok(Self::Other),
        };
        let datagram = udp::Packet::new(transport).map_err(|_| CUT_SHORT)?;
        if datagram.destination_port() != gtpu::PORT {
            return Err(|counters| &mut counters.other_port);
        }
        let whole = transport.get(..datagram.length().into()).ok_or(CUT_SHORT)?;
        let is_covered = datagram.checksum() != 0;
        if let Some(pseudo_header) = pseudo_header
            && is_covered
            && checksum::combine(pseudo_header, checksum::sum(whole)) != CHECKSUM_GOOD
        {
            return Err(|counters| &mut counters.bad_checksum);
        }
        let message = whole.get(udp::HEADER_LENGTH..).ok_or(CUT_SHORT)?;
        let message = gtpu::Packet::new(message).map_err(|_| CUT_SHORT)?;
        if !message.is_user_packet() {
            return Err(|counters| &mut counters.other_message);
        }
        let length = message.payload().ok_or(CUT_SHORT)?.len();
        // It is what the message ends with.
        let end = BEHIND_IP + usize::from(message.length());
        let packet = transport.get(end - length..end).ok_or(CUT_SHORT)?;
        Within::new(link, packet, class, is_covered).map(Self::Within)
    }
}

/// What is around a tunnel.
struct Outer<'a> {
    /// Behind IP.
    transport: &'a [u8],
    class: u8,
    /// The sum of the pseudo header, with which a datagram's checksum is right, where that is looked at.
    pseudo_header: Option<u16>,
}

/// The sum over all that a right checksum covers, and itself.
const CHECKSUM_GOOD: u16 = 0xffff;

const CUT_SHORT: Refused = |counters| &mut counters.cut_short;
const BAD_IP: Refused = |counters| &mut counters.bad_ip;
const FRAGMENT: Refused = |counters| &mut counters.fragments;
const NOT_ECN_CAPABLE: Refused = |counters| &mut counters.not_ecn_capable;

/// What is behind a header of IPv4, and its traffic class; nothing of what is not for transports.
fn behind_ipv4(network: &[u8], verifies: bool) -> Result<Option<Outer<'_>>, Refused> {
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
    behind_ip(packet.protocol(), packet.is_fragment(), outer)
}

fn behind_ipv6(network: &[u8], verifies: bool) -> Result<Option<Outer<'_>>, Refused> {
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
    behind_ip(extensions.protocol, extensions.is_fragment, outer)
}

fn behind_ip(
    protocol: u8,
    is_fragment: bool,
    outer: Outer<'_>,
) -> Result<Option<Outer<'_>>, Refused> {
    match protocol {
        protocol::TCP => Err(|counters| &mut counters.not_udp),
        protocol::UDP if is_fragment => Err(FRAGMENT),
        protocol::UDP => Ok(Some(outer)),
        _ => Ok(None),
    }
}

impl<'a> Within<'a> {
    /// A packet that came in a tunnel with a traffic class.
    fn new(link: &'a [u8], packet: &'a [u8], class: u8, is_covered: bool) -> Result<Self, Refused> {
        const BAD: Refused = |counters| &mut counters.bad_inner;
        let (is_ipv4, is_whole, own) = match packet.first().ok_or(BAD)? >> 4 {
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
        let inner = own & ECN;
        let ecn = ecn_behind(inner, class & ECN).ok_or::<Refused>(NOT_ECN_CAPABLE)?;
        let ecn = Some(ecn).filter(|ecn| *ecn != inner);
        Ok(Self { link, packet, is_ipv4, ecn, is_covered })
    }

    /// Writes its frame without the tunnel.
    #[inline]
    pub(super) fn take_out(&self, frame: &mut alloc::vec::Vec<u8>) {
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

/// What a packet says of congestion behind a tunnel; nothing: it is dropped. RFC 6040 section 4.2:
/// "If the inner ECN field is Not-ECT and the outer ECN field is CE, the decapsulator MUST drop the
/// packet", and otherwise where the inner one supports ECN, it is "the more severe marking of the
/// outer and inner ECN fields, where the ranking of severity from highest to lowest is CE, ECT(1),
/// ECT(0), Not-ECT."
const fn ecn_behind(inner: u8, outer: u8) -> Option<u8> {
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
        // One that is wrong stays so.
        let is_right = packet.checksum() == packet.computed_checksum();
        packet.set_type_of_service(packet.type_of_service() & !ECN | ecn);
        if is_right {
            packet.fill_checksum();
        }
    } else if let Ok(mut packet) = ipv6::Packet::new(packet) {
        packet.set_traffic_class(packet.traffic_class() & !ECN | ecn);
    }
}
