//! ICMP errors: parsing of received ones, and the errors that endpoints send.

use core::net::IpAddr;

use wirestorm_wire::checksum;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::network_header;
use wirestorm_wire::packet::{ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp};

use crate::tcp::sequence::SequenceNumber;

/// A received ICMP error for a packet that this host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// Flow of the packet, from the peer to this host.
    pub(crate) key: FlowKey,
    /// Sequence number of the packet if it is TCP.
    pub(crate) sequence: SequenceNumber,
    pub(crate) cause: Cause,
}

/// Cause of an ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The packet is too long: "Fragmentation Needed" of RFC 1191 section 4, "Packet Too Big" of
    /// RFC 4443 section 3.2.
    TooBig {
        /// MTU of the next link in bytes, IP header included. The IPv6 value is unchecked; see
        /// [`IcmpError::is_credible`].
        mtu: u16,
    },
    /// The peer has no listener on the port or does not support the protocol.
    Refused,
    /// No route leads to the peer, or policy forbids it.
    Unreachable,
}

/// RFC 1191 section 3: "A host MUST never reduce its estimate of the Path MTU below 68 octets."
const MTU_MIN_IPV4: u16 = 68;
/// Minimum MTU of IPv6 links (RFC 8200 section 5).
const MTU_MIN_IPV6: u16 = 1_280;

/// Plateau table of RFC 1191 section 7.1, for routers that do not report the MTU.
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];

/// RFC 792 codes for an unreachable protocol or port.
const PROTOCOL_UNREACHABLE: u8 = 2;
const PORT_UNREACHABLE: u8 = 3;
/// RFC 792 code for a packet that needs fragmentation but must not be fragmented.
const FRAGMENTATION_NEEDED: u8 = 4;
/// RFC 4443 section 3.1 code for a port without a listener.
const PORT_UNREACHABLE_IPV6: u8 = 4;
/// RFC 4443 section 3.4 code for an unsupported protocol.
const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
/// "Fragment reassembly time exceeded" of RFC 792 and of RFC 4443 section 3.3.
const REASSEMBLY_TIME_EXCEEDED: u8 = 1;

/// ICMP error that an endpoint sends about a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpErrorMessage {
    /// The port has no listener.
    PortUnreachable,
    /// This host does not support the protocol.
    ProtocolUnknown {
        /// Offset of the protocol field in the packet, in bytes.
        at: u32,
    },
    /// Some fragments did not arrive in time.
    ReassemblyTimeExceeded,
}

impl IcmpErrorMessage {
    pub(crate) const fn type_and_code(self, is_ipv4: bool) -> (u8, u8) {
        match (self, is_ipv4) {
            (Self::PortUnreachable, true) => (icmpv4::DESTINATION_UNREACHABLE, PORT_UNREACHABLE),
            (Self::PortUnreachable, false) => {
                (icmpv6::DESTINATION_UNREACHABLE, PORT_UNREACHABLE_IPV6)
            }
            (Self::ProtocolUnknown { .. }, true) => {
                (icmpv4::DESTINATION_UNREACHABLE, PROTOCOL_UNREACHABLE)
            }
            (Self::ProtocolUnknown { .. }, false) => {
                (icmpv6::PARAMETER_PROBLEM, UNRECOGNIZED_NEXT_HEADER)
            }
            (Self::ReassemblyTimeExceeded, true) => {
                (icmpv4::TIME_EXCEEDED, REASSEMBLY_TIME_EXCEEDED)
            }
            (Self::ReassemblyTimeExceeded, false) => {
                (icmpv6::TIME_EXCEEDED, REASSEMBLY_TIME_EXCEEDED)
            }
        }
    }

    /// Returns the word after the checksum. It is 0 in ICMPv4 messages, which have no pointer here.
    pub(crate) const fn pointer(self, is_ipv4: bool) -> u32 {
        match self {
            Self::ProtocolUnknown { at } if !is_ipv4 => at,
            _ => 0,
        }
    }
}

/// Returns the error for a packet of an unsupported protocol; `packet` starts at its IP header.
/// Returns `None` if the protocol is supported, if no protocol follows, or if an earlier header is
/// invalid.
pub(crate) fn unknown_protocol(packet: &[u8]) -> Option<(FlowKey, IcmpErrorMessage)> {
    let (key, at) = if packet.first()? >> 4 == 4 {
        let view = ipv4::Packet::new(packet).ok().filter(ipv4::Packet::is_whole)?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        let key = FlowKey::ipv4(source, destination, view.protocol());
        (key, ipv4::field::PROTOCOL.start)
    } else {
        let view = ipv6::Packet::new(packet).ok().filter(ipv6::Packet::is_whole)?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        let extensions = view.extensions().filter(|it| !it.must_discard && !it.is_routed)?;
        (FlowKey::ipv6(source, destination, extensions.protocol), extensions.protocol_at)
    };
    let is_known = match key.protocol() {
        protocol::TCP | protocol::UDP => true,
        protocol::ICMP => key.version() == 4,
        protocol::ICMPV6 | protocol::NO_NEXT_HEADER => key.version() == 6,
        _ => false,
    };
    (!is_known).then_some((key, IcmpErrorMessage::ProtocolUnknown { at: at as u32 }))
}

/// Returns the flow key of a packet about which an ICMP error is allowed, or `None`; `packet`
/// starts at its IP header.
///
/// RFC 1122 section 3.2.2 and RFC 4443 section 2.4 forbid errors about errors. Of ICMP packets,
/// this accepts only echo requests, so that no error type can be missed.
pub(crate) fn flow_for_icmp_error(packet: &[u8]) -> Option<FlowKey> {
    let (key, kind) = if packet.first()? >> 4 == 4 {
        let view = ipv4::Packet::new(packet).ok()?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        (FlowKey::ipv4(source, destination, view.protocol()), view.payload().first().copied())
    } else {
        let view = ipv6::Packet::new(packet).ok()?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        let extensions = view.extensions()?;
        let key = FlowKey::ipv6(source, destination, extensions.protocol);
        (key, view.transport(&extensions).first().copied())
    };
    let may_be = match key.protocol() {
        protocol::ICMP => kind == Some(icmpv4::ECHO_REQUEST),
        protocol::ICMPV6 => kind == Some(icmpv6::ECHO_REQUEST),
        _ => true,
    };
    may_be.then_some(key)
}

impl IcmpError {
    /// Whether the reported MTU is valid.
    ///
    /// RFC 8201 section 4: "If a node receives a Packet Too Big message reporting a next-hop MTU
    /// that is less than the IPv6 minimum link MTU, it must discard it."
    pub(crate) fn is_credible(&self) -> bool {
        let is_ipv6 = self.key.version() == 6;
        !matches!(self.cause, Cause::TooBig { mtu } if is_ipv6 && mtu < MTU_MIN_IPV6)
    }

    /// Parses an ICMP error about a TCP or UDP packet. Returns `None` for other frames and damaged
    /// ones.
    pub(crate) fn read(frame: &[u8]) -> Option<Self> {
        let (start, kind) = network_header(frame)?;
        let network = frame.get(start..)?;
        match kind {
            ethertype::IPV4 => Self::read_ipv4(network),
            ethertype::IPV6 => Self::read_ipv6(network),
            _ => None,
        }
    }

    fn read_ipv4(network: &[u8]) -> Option<Self> {
        let packet = ipv4::Packet::new(network).ok()?;
        if packet.protocol() != protocol::ICMP || packet.is_fragment() || !packet.is_whole() {
            return None;
        }
        let message = icmpv4::Packet::new(packet.payload()).ok()?;
        let is_it = message.kind() == icmpv4::DESTINATION_UNREACHABLE
            && checksum::sum(packet.payload()) == 0xffff;
        let original = ipv4::Packet::new(message.payload()).ok().filter(|_| is_it)?;
        if original.fragment_offset() > 0 {
            // A later fragment has no ports; the router reports the first fragment as well.
            return None;
        }
        let key = |source, destination| FlowKey::ipv4(source, destination, original.protocol());
        let key = key(original.destination().octets(), original.source().octets());
        let transport = message.payload().get(original.header_length()..)?;
        let cause = match (message.code(), message.sequence()) {
            (FRAGMENTATION_NEEDED, 0) => {
                let is_less = |plateau: &&u16| **plateau < original.total_length();
                Cause::TooBig { mtu: *PLATEAUS.iter().find(is_less)? }
            }
            (FRAGMENTATION_NEEDED, mtu) => Cause::TooBig { mtu: mtu.max(MTU_MIN_IPV4) },
            (PROTOCOL_UNREACHABLE | PORT_UNREACHABLE, _) => Cause::Refused,
            _ => Cause::Unreachable,
        };
        Self::of_flow(key, transport, cause)
    }

    fn read_ipv6(network: &[u8]) -> Option<Self> {
        let packet = ipv6::Packet::new(network).ok()?;
        if packet.next_header() != protocol::ICMPV6 || !packet.is_whole() {
            return None;
        }
        let end = ipv6::HEADER_LENGTH + usize::from(packet.payload_length());
        let bytes = network.get(ipv6::HEADER_LENGTH..end)?;
        let sum = packet.pseudo_header_sum(protocol::ICMPV6, bytes.len() as u32);
        let message = icmpv6::Packet::new(bytes).ok()?;
        let cause = match (message.kind(), message.code()) {
            (icmpv6::PACKET_TOO_BIG, _) => {
                Cause::TooBig { mtu: u16::try_from(message.rest()).unwrap_or(u16::MAX) }
            }
            (icmpv6::DESTINATION_UNREACHABLE, PORT_UNREACHABLE_IPV6) => Cause::Refused,
            (icmpv6::DESTINATION_UNREACHABLE, _) => Cause::Unreachable,
            _ => return None,
        };
        let is_it = checksum::combine(sum, checksum::sum(bytes)) == 0xffff;
        let original = ipv6::Packet::new(message.payload()).ok().filter(|_| is_it)?;
        // The quoted packet may be a fragment.
        let extensions = original.extensions().filter(|it| !it.is_later_fragment)?;
        let key = |source, destination| FlowKey::ipv6(source, destination, extensions.protocol);
        let key = key(original.destination().octets(), original.source().octets());
        Self::of_flow(key, message.payload().get(extensions.end..)?, cause)
    }

    fn of_flow(key: FlowKey, transport: &[u8], cause: Cause) -> Option<Self> {
        if !matches!(key.protocol(), protocol::TCP | protocol::UDP) {
            return None;
        }
        // RFC 792: the error quotes at least eight bytes of the transport.
        let &[a, b, c, d, e, f, g, h] = transport.first_chunk::<8>()?;
        let key = key.with_ports(u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]));
        Some(Self { key, sequence: SequenceNumber(u32::from_be_bytes([e, f, g, h])), cause })
    }
}

/// Returns the largest segment size (without options) that fits into a packet of `mtu` bytes.
pub(crate) fn segment_size(key: &FlowKey, mtu: u16) -> u16 {
    let ip = match key.source() {
        IpAddr::V4(_) => ipv4::HEADER_LENGTH_MIN,
        IpAddr::V6(_) => ipv6::HEADER_LENGTH,
    };
    mtu.saturating_sub((ip + tcp::HEADER_LENGTH_MIN) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Builds "fragmentation needed" that quotes 28 bytes of a packet of 1,500 bytes from 10.0.0.2,
    /// port 80.
    fn ipv4_message(mtu: u16, protocol: u8) -> Vec<u8> {
        unreachable_ipv4(4, mtu, protocol, 0)
    }

    /// Builds an unreachable message with a code, about a packet with a fragment offset.
    fn unreachable_ipv4(code: u8, mtu: u16, protocol: u8, place: u8) -> Vec<u8> {
        let original = [
            &[0x45, 0, 5, 220, 0, 0, 0, place, 64, protocol, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1][..],
            &[0, 80, 4, 0, 0, 0, 0, 7],
        ]
        .concat();
        let [high, low] = mtu.to_be_bytes();
        let mut message = [&[3, code, 0, 0, 0, 0, high, low][..], &original].concat();
        let sum = checksum::checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        let length = (20 + message.len()) as u8;
        let ip = [0x45, 0, 0, length, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 9, 10, 0, 0, 2];
        [&[2; 12][..], &[8, 0], &ip, &message].concat()
    }

    fn ipv6_message(mtu: u32) -> Vec<u8> {
        error_ipv6([2, 0], mtu, &[])
    }

    /// Builds an ICMPv6 error of a type and code, about a TCP packet with extension headers.
    fn error_ipv6(kind: [u8; 2], rest: u32, extensions: &[u8]) -> Vec<u8> {
        let (client, server, router) = ([0xfd; 16], [0xfe; 16], [0xfc; 16]);
        let header = |length: u8, next, from: &[u8; 16], to: &[u8; 16]| {
            [&[0x60, 0, 0, 0, 0, length, next, 64][..], from, to].concat()
        };
        let transport = [0, 80, 4, 0, 0, 0, 0, 7];
        let next = if extensions.is_empty() { protocol::TCP } else { protocol::FRAGMENT };
        let original = [&header(200, next, &server, &client)[..], extensions, &transport].concat();
        let mut message = [&kind[..], &[0, 0], &rest.to_be_bytes(), &original].concat();
        let length = message.len() as u32;
        let pseudo = checksum::pseudo_header_ipv6(router, server, protocol::ICMPV6, length);
        let sum = !checksum::combine(pseudo, checksum::sum(&message));
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let ip = header(length as u8, protocol::ICMPV6, &router, &server);
        [&[2; 12][..], &[0x86, 0xdd], &ip, &message].concat()
    }

    #[test]
    fn error_gives_flow_and_mtu() {
        let key = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::TCP);
        let expected = |mtu| {
            let (key, cause) = (key.with_ports(1_024, 80), Cause::TooBig { mtu });
            Some(IcmpError { key, sequence: SequenceNumber(7), cause })
        };
        assert_eq!(IcmpError::read(&ipv4_message(1_300, protocol::TCP)), expected(1_300));
        assert_eq!(IcmpError::read(&ipv4_message(60, protocol::TCP)), expected(68));
        // Routers older than RFC 1191 do not report the MTU.
        assert_eq!(IcmpError::read(&ipv4_message(0, protocol::TCP)), expected(1_492));
        assert_eq!(IcmpError::read(&ipv4_message(1_300, protocol::ICMP)), None);

        let key = FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP).with_ports(1_024, 80);
        let because = |cause| Some(IcmpError { key, sequence: SequenceNumber(7), cause });
        let too_big = |mtu| because(Cause::TooBig { mtu });
        assert_eq!(IcmpError::read(&ipv6_message(1_400)), too_big(1_400));
        assert_eq!(IcmpError::read(&ipv6_message(200)), too_big(200));
        assert_eq!(IcmpError::read(&ipv6_message(100_000)), too_big(u16::MAX));
        for (mtu, expected) in [(0, false), (1_279, false), (1_280, true)] {
            let error = IcmpError::read(&ipv6_message(mtu)).unwrap();
            assert_eq!(error.is_credible(), expected, "{mtu}");
        }
        assert!(IcmpError::read(&ipv4_message(68, protocol::TCP)).unwrap().is_credible());
    }

    #[test]
    fn refused_and_unreachable_are_distinguished() {
        let cause = |message: &[u8]| IcmpError::read(message).map(|it| it.cause);
        for (code, expected) in [
            (0, Cause::Unreachable),
            (1, Cause::Unreachable),
            (2, Cause::Refused),
            (3, Cause::Refused),
            (13, Cause::Unreachable),
        ] {
            let message = unreachable_ipv4(code, 0, protocol::UDP, 0);
            assert_eq!(cause(&message), Some(expected), "code {code}");
        }
        for (code, expected) in
            [(0, Cause::Unreachable), (3, Cause::Unreachable), (4, Cause::Refused)]
        {
            assert_eq!(
                cause(&error_ipv6([1, code], 0, &[])),
                Some(expected),
                "code {code} of IPv6"
            );
        }
        // "Time exceeded", and an echo request.
        assert_eq!(cause(&error_ipv6([3, 0], 0, &[])), None);
        assert_eq!(cause(&error_ipv6([128, 0], 0, &[])), None);
    }

    #[test]
    fn only_errors_about_first_fragments_are_read() {
        let of_fragment = |place: u8| error_ipv6([2, 0], 1_300, &[6, 0, 0, place, 0, 0, 0, 1]);
        let key = FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP).with_ports(1_024, 80);
        assert_eq!(IcmpError::read(&of_fragment(1)).map(|it| it.key), Some(key));
        assert_eq!(IcmpError::read(&of_fragment(9)), None);
        assert!(IcmpError::read(&unreachable_ipv4(3, 0, protocol::UDP, 0)).is_some());
        assert_eq!(IcmpError::read(&unreachable_ipv4(3, 0, protocol::UDP, 1)), None);
    }

    #[test]
    fn damaged_and_truncated_errors_are_ignored() {
        for message in [ipv4_message(1_300, protocol::TCP), ipv6_message(1_400)] {
            for length in 0..message.len() {
                assert_eq!(IcmpError::read(&message[..length]), None);
            }
            let mut damaged = message.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert_eq!(IcmpError::read(&damaged), None);
        }
    }
}
