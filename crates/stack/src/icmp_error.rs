//! What routers and hosts say of packets that did not arrive.

use core::net::IpAddr;

use wirestorm_wire::checksum;
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::{ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp};

use crate::frame::network_header;
use crate::tcp::sequence::SequenceNumber;

/// A packet of ours did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// The flow that it is of, from the peer to us.
    pub(crate) key: FlowKey,
    /// Of TCP: the number of its first byte.
    pub(crate) sequence: SequenceNumber,
    pub(crate) cause: Cause,
}

/// Why it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is too long: "Fragmentation Needed" of RFC 1191 section 4, "Packet Too Big" of RFC 4443
    /// section 3.2.
    TooBig {
        /// The longest packet, IP header included, that the next link takes, in bytes. Over IPv6 it
        /// is as it was said.
        mtu: u16,
    },
    /// The peer has nobody who waits for it: its port, or the protocol.
    Refused,
    /// No way leads to the peer, or none that it may take.
    Unreachable,
}

/// RFC 1191 section 3: "A host MUST never reduce its estimate of the Path MTU below 68 octets."
const MTU_MIN_IPV4: u16 = 68;
/// That of all links of IPv6 (RFC 8200 section 5).
const MTU_MIN_IPV6: u16 = 1_280;

/// RFC 1191 section 7.1: lengths that links have, for routers that do not tell theirs.
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];

/// Codes of RFC 792 for what cannot be reached: who waits for the protocol, or at the port.
const PROTOCOL_UNREACHABLE: u8 = 2;
const PORT_UNREACHABLE: u8 = 3;
/// A packet must not be fragmented, and has to be.
const FRAGMENTATION_NEEDED: u8 = 4;
/// The code of RFC 4443 section 3.1 for a port where nobody waits.
const PORT_UNREACHABLE_IPV6: u8 = 4;
/// The code of RFC 4443 section 3.4 for a protocol that nobody speaks.
const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
/// "Fragment reassembly time exceeded" of RFC 792 and of RFC 4443 section 3.3.
const REASSEMBLY_TIME_EXCEEDED: u8 = 1;

/// What is said to others of their packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Nobody waits at the port.
    PortUnreachable,
    /// Nobody speaks the protocol.
    ProtocolUnknown {
        /// Where the packet names it, in bytes from its beginning.
        at: u32,
    },
    /// Not all fragments came in time.
    ReassemblyTimeExceeded,
}

impl Message {
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

    /// What is behind the checksum. Messages of IPv4 point to nothing.
    pub(crate) const fn pointer(self, is_ipv4: bool) -> u32 {
        match self {
            Self::ProtocolUnknown { at } if !is_ipv4 => at,
            _ => 0,
        }
    }
}

/// What is to be said of a packet, from its IP header on, of a protocol that nobody here speaks;
/// `None` where somebody does, or no protocol follows, or the packet is to be discarded for what
/// comes before that.
pub(crate) fn unknown_protocol(packet: &[u8]) -> Option<(FlowKey, Message)> {
    let (key, at) = if packet.first()? >> 4 == 4 {
        let view = ipv4::Packet::new(packet).ok().filter(ipv4::Packet::is_whole)?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        let key = FlowKey::ipv4(source, destination, view.protocol());
        (key, ipv4::field::PROTOCOL.start)
    } else {
        let view = ipv6::Packet::new(packet).ok().filter(ipv6::Packet::is_whole)?;
        let (source, destination) = (view.source().octets(), view.destination().octets());
        let extensions = view.extensions().filter(|it| !it.is_refused && !it.is_routed)?;
        (FlowKey::ipv6(source, destination, extensions.protocol), extensions.protocol_at)
    };
    let is_known = match key.protocol() {
        protocol::TCP | protocol::UDP => true,
        protocol::ICMP => key.version() == 4,
        protocol::ICMPV6 | protocol::NO_NEXT_HEADER => key.version() == 6,
        _ => false,
    };
    (!is_known).then_some((key, Message::ProtocolUnknown { at: at as u32 }))
}

/// From whom to whom a packet is, from its IP header on, and what it carries; `None` where nothing
/// may be said of it.
///
/// RFC 1122 section 3.2.2 and RFC 4443 section 2.4: no error is answered with an error. Of ICMP
/// only questions are answered here, so that no type is forgotten.
pub(crate) fn may_be_told_of(packet: &[u8]) -> Option<FlowKey> {
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
    /// Whether what it says may be true.
    ///
    /// RFC 8201 section 4: "If a node receives a Packet Too Big message reporting a next-hop MTU that
    /// is less than the IPv6 minimum link MTU, it must discard it."
    pub(crate) fn is_credible(&self) -> bool {
        let is_ipv6 = self.key.version() == 6;
        !matches!(self.cause, Cause::TooBig { mtu } if is_ipv6 && mtu < MTU_MIN_IPV6)
    }

    /// What a frame says of a packet of TCP or UDP; `None` where it says nothing of the kind, or is
    /// damaged.
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
            // Its ports are in another fragment, of which the same is said.
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
        // It may be a fragment.
        let extensions = original.extensions().filter(|it| !it.is_later_fragment)?;
        let key = |source, destination| FlowKey::ipv6(source, destination, extensions.protocol);
        let key = key(original.destination().octets(), original.source().octets());
        Self::of_flow(key, message.payload().get(extensions.end..)?, cause)
    }

    fn of_flow(key: FlowKey, transport: &[u8], cause: Cause) -> Option<Self> {
        if !matches!(key.protocol(), protocol::TCP | protocol::UDP) {
            return None;
        }
        // RFC 792: at least so many bytes of it are there.
        let &[a, b, c, d, e, f, g, h] = transport.first_chunk::<8>()?;
        let key = key.with_ports(u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]));
        Some(Self { key, sequence: SequenceNumber(u32::from_be_bytes([e, f, g, h])), cause })
    }
}

/// The longest segment, without options, for which there is room in a packet of so many bytes.
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

    /// A message that carries the first 28 bytes of a packet of 1,500 from 10.0.0.2, port 80.
    fn ipv4_message(mtu: u16, protocol: u8) -> Vec<u8> {
        unreachable_ipv4(4, mtu, protocol, 0)
    }

    /// One with a code, of a packet that is a fragment from a place on.
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

    /// One of a type and code, of a packet of TCP with extension headers.
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
    fn the_flow_and_the_length_are_told() {
        let key = FlowKey::ipv4([10, 0, 0, 1], [10, 0, 0, 2], protocol::TCP);
        let expected = |mtu| {
            let (key, cause) = (key.with_ports(1_024, 80), Cause::TooBig { mtu });
            Some(IcmpError { key, sequence: SequenceNumber(7), cause })
        };
        assert_eq!(IcmpError::read(&ipv4_message(1_300, protocol::TCP)), expected(1_300));
        assert_eq!(IcmpError::read(&ipv4_message(60, protocol::TCP)), expected(68));
        // A router of before RFC 1191 does not say.
        assert_eq!(IcmpError::read(&ipv4_message(0, protocol::TCP)), expected(1_492));
        assert_eq!(IcmpError::read(&ipv4_message(1_300, protocol::ICMP)), None);

        let key = FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP).with_ports(1_024, 80);
        let because = |cause| Some(IcmpError { key, sequence: SequenceNumber(7), cause });
        let told = |mtu| because(Cause::TooBig { mtu });
        assert_eq!(IcmpError::read(&ipv6_message(1_400)), told(1_400));
        assert_eq!(IcmpError::read(&ipv6_message(200)), told(200));
        assert_eq!(IcmpError::read(&ipv6_message(100_000)), told(u16::MAX));
        for (mtu, expected) in [(0, false), (1_279, false), (1_280, true)] {
            let error = IcmpError::read(&ipv6_message(mtu)).unwrap();
            assert_eq!(error.is_credible(), expected, "{mtu}");
        }
        assert!(IcmpError::read(&ipv4_message(68, protocol::TCP)).unwrap().is_credible());
    }

    #[test]
    fn who_cannot_be_reached_is_told_from_who_does_not_want_to() {
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
        // That the hop limit was used up, and a question.
        assert_eq!(cause(&error_ipv6([3, 0], 0, &[])), None);
        assert_eq!(cause(&error_ipv6([128, 0], 0, &[])), None);
    }

    #[test]
    fn only_a_first_fragment_has_ports() {
        let of_fragment = |place: u8| error_ipv6([2, 0], 1_300, &[6, 0, 0, place, 0, 0, 0, 1]);
        let key = FlowKey::ipv6([0xfd; 16], [0xfe; 16], protocol::TCP).with_ports(1_024, 80);
        assert_eq!(IcmpError::read(&of_fragment(1)).map(|it| it.key), Some(key));
        assert_eq!(IcmpError::read(&of_fragment(9)), None);
        assert!(IcmpError::read(&unreachable_ipv4(3, 0, protocol::UDP, 0)).is_some());
        assert_eq!(IcmpError::read(&unreachable_ipv4(3, 0, protocol::UDP, 1)), None);
    }

    #[test]
    fn what_is_damaged_or_cut_short_says_nothing() {
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
