//! Ping: ICMP echo requests and replies (RFC 792, RFC 4443 section 4).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use wirestorm_model::assemble::{Header, Payload, assemble};
use wirestorm_wire::checksum;
use wirestorm_wire::layout::ethernet::ETHERNET;
use wirestorm_wire::layout::icmp::ICMP;
use wirestorm_wire::layout::icmpv6::ICMPV6;
use wirestorm_wire::layout::ipv4::IPV4;
use wirestorm_wire::layout::ipv6::IPV6;
use wirestorm_wire::packet::{
    MacAddress, ethernet, ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol,
};

use crate::frame::network_header;
use crate::host_event::{EchoReply, HostEvent};

/// ICMP or ICMPv6 echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoRequest {
    /// Ethernet addresses of the sender and the next hop.
    pub macs: (MacAddress, MacAddress),
    /// IP address of the sender.
    pub source: IpAddr,
    /// IP address of the target; same address family as `source`.
    pub destination: IpAddr,
    /// Identifier, which distinguishes the requests of different senders.
    pub identifier: u16,
    /// Sequence number, which distinguishes the requests of one sender.
    pub sequence: u16,
    /// Data that the reply returns.
    pub payload: Vec<u8>,
}

impl EchoRequest {
    /// Returns the frame without FCS, or `None` if the families differ or the payload is too long.
    pub fn frame(&self) -> Option<Vec<u8>> {
        self.message([icmpv4::ECHO_REQUEST, icmpv6::ECHO_REQUEST], 0)
    }

    /// Builds a message with the ICMP or ICMPv6 type and a traffic class.
    fn message(&self, [ipv4, ipv6]: [u8; 2], traffic_class: u8) -> Option<Vec<u8>> {
        let mac = |mac: MacAddress| mac.0.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        let outer =
            Header::new(&ETHERNET).with("src", mac(self.macs.0)).with("dst", mac(self.macs.1));
        let message = |layout, kind: u8| {
            Header::new(layout)
                .with("type", u128::from(kind))
                .with("identifier", u128::from(self.identifier))
                .with("sequence_number", u128::from(self.sequence))
        };
        let (headers, length) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let packet = Header::new(&IPV4)
                    .with("tos", u128::from(traffic_class))
                    .with("src", u128::from(source.to_bits()))
                    .with("dst", u128::from(destination.to_bits()));
                ([outer, packet, message(&ICMP, ipv4)], 14 + 20 + 8)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let packet = Header::new(&IPV6)
                    .with("traffic_class", u128::from(traffic_class))
                    .with("src", source.to_bits())
                    .with("dst", destination.to_bits());
                ([outer, packet, message(&ICMPV6, ipv6)], 14 + 40 + 8)
            }
            _ => return None,
        };
        let length = length + self.payload.len();
        let payload = Payload::Bytes(self.payload.clone());
        assemble(&headers, &payload, length).ok().map(|assembled| assembled.frame)
    }
}

/// Handles an ICMP message in a frame that holds a complete IPv4 packet for this host.
pub(crate) fn handle_ipv4(mac: MacAddress, frame: &[u8]) -> Option<HostEvent> {
    let outer = ethernet::Frame::new(frame).ok()?;
    let packet = ipv4::Packet::new(outer.payload()).ok()?;
    let message = icmpv4::Packet::new(packet.payload()).ok()?;
    // RFC 1122 section 3.2.1.2: "A host MUST verify the IP header checksum on every received
    // datagram and silently discard every datagram that has a bad checksum."
    let header = outer.payload().get(..packet.header_length())?;
    let echo = Echo {
        macs: (mac, outer.source()),
        source: packet.source().into(),
        destination: packet.destination().into(),
        traffic_class: packet.type_of_service(),
        hop_limit: packet.time_to_live(),
        identifier: message.identifier(),
        sequence: message.sequence(),
        payload: message.payload(),
        is_right: [header, packet.payload()].map(checksum::checksum) == [0, 0],
    };
    match message.kind() {
        icmpv4::ECHO_REPLY => echo.reply(),
        icmpv4::ECHO_REQUEST => echo.answer(),
        _ => None,
    }
}

/// Handles an ICMPv6 message in a frame. The answer to a request for all nodes comes from the
/// host's address `source` (RFC 4443 section 4.2).
pub(crate) fn handle_ipv6(mac: MacAddress, source: Ipv6Addr, frame: &[u8]) -> Option<HostEvent> {
    let outer = ethernet::Frame::new(frame).ok()?;
    let packet = ipv6::Packet::new(outer.payload()).ok()?;
    let message = icmpv6::Packet::new(packet.payload()).ok()?;
    let echo = Echo {
        macs: (mac, outer.source()),
        source: packet.source().into(),
        destination: source.into(),
        traffic_class: packet.traffic_class(),
        hop_limit: packet.hop_limit(),
        identifier: message.identifier(),
        sequence: message.sequence(),
        payload: message.payload(),
        is_right: is_icmpv6_checksum_valid(&packet),
    };
    match message.kind() {
        icmpv6::ECHO_REPLY if source == packet.destination() => echo.reply(),
        icmpv6::ECHO_REQUEST => echo.answer(),
        _ => None,
    }
}

/// Whether the checksum of the ICMPv6 message in a packet is correct.
pub(crate) fn is_icmpv6_checksum_valid(packet: &ipv6::Packet<&[u8]>) -> bool {
    // The payload length has 16 bits, so the cast loses nothing.
    let length = packet.payload().len() as u32;
    let addresses = packet.pseudo_header_sum(protocol::ICMPV6, length);
    checksum::combine(checksum::sum(packet.payload()), addresses) == 0xffff
}

/// Whether a frame is an echo request or reply, for any destination.
pub(crate) fn is_echo(frame: &[u8]) -> bool {
    let Some((start, kind)) = network_header(frame) else { return false };
    let Some(network) = frame.get(start..) else { return false };
    let type_of = |payload: &[u8]| payload.first().copied();
    match kind {
        ethertype::IPV4 => ipv4::Packet::new(network).is_ok_and(|packet| {
            let echoes = [icmpv4::ECHO_REQUEST, icmpv4::ECHO_REPLY].map(Some);
            packet.protocol() == protocol::ICMP && echoes.contains(&type_of(packet.payload()))
        }),
        ethertype::IPV6 => ipv6::Packet::new(network).is_ok_and(|packet| {
            let echoes = [icmpv6::ECHO_REQUEST, icmpv6::ECHO_REPLY].map(Some);
            packet.next_header() == protocol::ICMPV6 && echoes.contains(&type_of(packet.payload()))
        }),
        _ => false,
    }
}

/// A received echo request or reply.
struct Echo<'a> {
    /// Ethernet addresses of this host and of the sender.
    macs: (MacAddress, MacAddress),
    source: IpAddr,
    destination: IpAddr,
    traffic_class: u8,
    hop_limit: u8,
    identifier: u16,
    sequence: u16,
    payload: &'a [u8],
    /// Whether the checksums are correct.
    is_right: bool,
}

impl Echo<'_> {
    fn reply(&self) -> Option<HostEvent> {
        self.is_right.then(|| {
            HostEvent::EchoReply(EchoReply {
                source: self.source,
                identifier: self.identifier,
                sequence: self.sequence,
                hop_limit: self.hop_limit,
                payload: self.payload.to_vec(),
            })
        })
    }

    /// Answers a request with its own traffic class.
    ///
    /// RFC 1349 section 5.1: "An ICMP reply message is sent with the same value in the TOS field as
    /// was used in the corresponding ICMP request message." The answer does the same with the IPv6
    /// traffic class.
    fn answer(&self) -> Option<HostEvent> {
        if !self.is_right || self.source.is_multicast() {
            return None;
        }
        let answer = EchoRequest {
            macs: self.macs,
            source: self.destination,
            destination: self.source,
            identifier: self.identifier,
            sequence: self.sequence,
            payload: self.payload.to_vec(),
        };
        let kinds = [icmpv4::ECHO_REPLY, icmpv6::ECHO_REPLY];
        answer.message(kinds, self.traffic_class).map(HostEvent::Reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use alloc::vec;
    use wirestorm_wire::prefix::Prefix;

    fn host(last: u8, addresses: [&str; 2]) -> Host {
        let addresses = addresses.map(|text| Prefix { address: text.parse().unwrap(), length: 24 });
        Host {
            mac: MacAddress([2, 0, 0, 0, 0, last]),
            addresses: addresses.into(),
            ..Host::default()
        }
    }

    #[test]
    fn echo_request_is_answered_with_its_payload() {
        let (a, b) = (host(1, ["10.0.0.1", "2001:db8::1"]), host(2, ["10.0.0.2", "2001:db8::2"]));
        for place in 0..2 {
            for length in [0, 1, 56, 1400] {
                let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
                let request = EchoRequest {
                    macs: (a.mac, b.mac),
                    source: a.addresses[place].address,
                    destination: b.addresses[place].address,
                    identifier: 7,
                    sequence: 65_535,
                    payload: payload.clone(),
                };
                let frame = request.frame().unwrap();
                let HostEvent::Reply(answer) = b.handle_frame(&frame) else { panic!("no answer") };
                let HostEvent::EchoReply(reply) = a.handle_frame(&answer) else {
                    panic!("no reply")
                };
                assert_eq!((reply.source, reply.identifier), (request.destination, 7));
                assert_eq!((reply.sequence, reply.payload), (65_535, payload));
                // The host ignores damaged frames and frames for other hosts.
                let mut damaged = frame.clone();
                *damaged.last_mut().unwrap() ^= 1;
                assert_eq!(b.handle_frame(&damaged), HostEvent::Ignored);
                // The hop limit: only the IPv4 header has a checksum that covers it.
                let mut damaged = frame.clone();
                damaged[[22, 21][place]] ^= 1;
                assert_eq!(b.handle_frame(&damaged) == HostEvent::Ignored, place == 0);
                assert_eq!(a.handle_frame(&frame), HostEvent::Ignored);
            }
        }
    }

    #[test]
    fn echo_reply_has_the_traffic_class_of_its_request() {
        let (a, b) = (host(1, ["10.0.0.1", "2001:db8::1"]), host(2, ["10.0.0.2", "2001:db8::2"]));
        for (place, kind) in [icmpv4::ECHO_REQUEST, icmpv6::ECHO_REQUEST].into_iter().enumerate() {
            let request = EchoRequest {
                macs: (a.mac, b.mac),
                source: a.addresses[place].address,
                destination: b.addresses[place].address,
                identifier: 7,
                sequence: 1,
                payload: vec![1, 2, 3],
            };
            for class in [0, 0xb8, 0x2e] {
                let HostEvent::Reply(answer) =
                    b.handle_frame(&request.message([kind; 2], class).unwrap())
                else {
                    panic!("no answer")
                };
                let packet = &answer[ethernet::HEADER_LENGTH..];
                let found = match place {
                    0 => ipv4::Packet::new(packet).unwrap().type_of_service(),
                    _ => ipv6::Packet::new(packet).unwrap().traffic_class(),
                };
                assert_eq!(found, class);
            }
        }
    }

    #[test]
    fn request_to_all_nodes_is_answered_from_an_address_of_the_same_scope() {
        let mut b = host(2, ["10.0.0.2", "2001:db8::2"]);
        let to_all = |source: &str| EchoRequest {
            macs: (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([0x33, 0x33, 0, 0, 0, 1])),
            source: source.parse().unwrap(),
            destination: "ff02::1".parse().unwrap(),
            identifier: 7,
            sequence: 1,
            payload: vec![1, 2, 3],
        };
        let answer_to = |b: &Host, source: &str| {
            let a = host(1, ["10.0.0.1", source]);
            let HostEvent::Reply(answer) = b.handle_frame(&to_all(source).frame().unwrap()) else {
                panic!("no answer")
            };
            let HostEvent::EchoReply(reply) = a.handle_frame(&answer) else { panic!("no reply") };
            reply.source
        };
        assert_eq!(answer_to(&b, "fe80::1"), b.addresses[1].address);
        let link_local = Prefix { address: "fe80::2".parse().unwrap(), length: 64 };
        b.addresses.push(link_local);
        assert_eq!(answer_to(&b, "fe80::1"), link_local.address);
        assert_eq!(answer_to(&b, "2001:db8::1"), b.addresses[1].address);
        // A reply to all nodes is no reply to this host. Without an IPv6 address there is no
        // answer.
        let all = to_all("fe80::1").message([icmpv4::ECHO_REPLY, icmpv6::ECHO_REPLY], 0).unwrap();
        assert_eq!(b.handle_frame(&all), HostEvent::Ignored);
        b.addresses.truncate(1);
        assert_eq!(b.handle_frame(&to_all("fe80::1").frame().unwrap()), HostEvent::Ignored);
    }
}
