//! UDP echo datagrams (RFC 862): path probes and their replies.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use wirestorm_model::assemble::{Header, Payload, assemble};
use wirestorm_wire::checksum;
use wirestorm_wire::layout::ethernet::ETHERNET;
use wirestorm_wire::layout::ipv4::IPV4;
use wirestorm_wire::layout::ipv6::IPV6;
use wirestorm_wire::layout::udp::UDP;
use wirestorm_wire::packet::{MacAddress, ethernet, ethertype, ipv4, ipv6, protocol, udp};

/// A UDP datagram in a frame without VLAN tags, IP options and extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Ethernet addresses of the sender and the next hop.
    pub macs: (MacAddress, MacAddress),
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver; same address family as `source`.
    pub destination: SocketAddr,
    /// Data of the datagram.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Parses the datagram in a frame. Returns `None` if there is none or if it is truncated or a
    /// fragment. With `verifies`, a wrong checksum also gives `None`.
    pub fn read(frame: &'a [u8], verifies: bool) -> Option<Self> {
        let outer = ethernet::Frame::new(frame).ok()?;
        let packet = frame.get(ethernet::HEADER_LENGTH..)?;
        let (source, destination, transport, addresses) = match outer.ethertype() {
            ethertype::IPV4 => {
                let ip = ipv4::Packet::new(packet).ok()?;
                // Only the first fragment has ports, and the UDP checksum covers all fragments.
                let is_whole = ip.is_whole() && !ip.is_fragment() && ip.protocol() == protocol::UDP;
                let start = ip.header_length();
                let transport = packet.get(start..usize::from(ip.total_length()))?;
                let addresses = ip.pseudo_header_sum(transport.len() as u16);
                let ends: (IpAddr, IpAddr) = (ip.source().into(), ip.destination().into());
                is_whole.then_some((ends.0, ends.1, transport, addresses))?
            }
            ethertype::IPV6 => {
                let ip = ipv6::Packet::new(packet).ok()?;
                let is_udp = ip.next_header() == protocol::UDP;
                let length = usize::from(ip.payload_length());
                let transport = packet.get(ipv6::HEADER_LENGTH..)?.get(..length)?;
                let addresses = ip.pseudo_header_sum(protocol::UDP, length as u32);
                let ends: (IpAddr, IpAddr) = (ip.source().into(), ip.destination().into());
                is_udp.then_some((ends.0, ends.1, transport, addresses))?
            }
            _ => return None,
        };
        let header = udp::Packet::new(transport).ok()?;
        let is_whole = usize::from(header.length()) == transport.len();
        // A zero checksum means that the sender computed none (RFC 768).
        let is_right = !verifies
            || header.checksum() == 0
            || checksum::combine(checksum::sum(transport), addresses) == 0xffff;
        if !is_whole || !is_right {
            return None;
        }
        Some(Self {
            macs: (outer.source(), outer.destination()),
            source: SocketAddr::new(source, header.source_port()),
            destination: SocketAddr::new(destination, header.destination_port()),
            payload: transport.get(udp::HEADER_LENGTH..)?,
        })
    }

    /// Returns the same datagram with source and destination swapped.
    ///
    /// RFC 862: "When a datagram is received, the data from it is sent back in an answering
    /// datagram."
    #[must_use]
    pub fn reply(self) -> Self {
        Self {
            macs: (self.macs.1, self.macs.0),
            source: self.destination,
            destination: self.source,
            payload: self.payload,
        }
    }

    /// Returns the frame without FCS, or `None` if the families differ or the payload is too long.
    pub fn frame(&self) -> Option<Vec<u8>> {
        let mac = |mac: MacAddress| mac.0.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        let outer =
            Header::new(&ETHERNET).with("src", mac(self.macs.0)).with("dst", mac(self.macs.1));
        let (packet, length) = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let packet = Header::new(&IPV4)
                    .with("src", u128::from(source.to_bits()))
                    .with("dst", u128::from(destination.to_bits()));
                (packet, 20)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let packet = Header::new(&IPV6)
                    .with("src", source.to_bits())
                    .with("dst", destination.to_bits());
                (packet, ipv6::HEADER_LENGTH)
            }
            _ => return None,
        };
        let datagram = Header::new(&UDP)
            .with("src_port", u128::from(self.source.port()))
            .with("dst_port", u128::from(self.destination.port()));
        let length = ethernet::HEADER_LENGTH + length + udp::HEADER_LENGTH + self.payload.len();
        let payload = Payload::Bytes(self.payload.to_vec());
        assemble(&[outer, packet, datagram], &payload, length).ok().map(|it| it.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram<'a>(ends: [&str; 2], payload: &'a [u8]) -> Datagram<'a> {
        Datagram {
            macs: (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])),
            source: ends[0].parse().unwrap(),
            destination: ends[1].parse().unwrap(),
            payload,
        }
    }

    const IPV4_ENDS: [&str; 2] = ["10.0.0.1:50000", "10.0.0.2:7"];
    const IPV6_ENDS: [&str; 2] = ["[2001:db8::1]:50000", "[2001:db8::2]:7"];

    #[test]
    fn answer_returns_the_payload_with_addresses_swapped() {
        for ends in [IPV4_ENDS, IPV6_ENDS] {
            for length in [0, 1, 56, 1400] {
                let payload: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
                let sent = datagram(ends, &payload);
                let frame = sent.frame().unwrap();
                let received = Datagram::read(&frame, true).unwrap();
                assert_eq!(received, sent);
                let frame = received.reply().frame().unwrap();
                let answer = Datagram::read(&frame, true).unwrap();
                assert_eq!((answer.source, answer.destination), (sent.destination, sent.source));
                assert_eq!((answer.macs.0, answer.macs.1), (sent.macs.1, sent.macs.0));
                assert_eq!(answer.payload, payload);
            }
        }
        assert_eq!(datagram([IPV4_ENDS[0], IPV6_ENDS[1]], &[]).frame(), None);
    }

    #[test]
    fn fragments_are_not_datagrams() {
        // "More fragments", and an offset of 8 bytes.
        for field in [[0x20, 0], [0, 1]] {
            let mut frame = datagram(IPV4_ENDS, b"short").frame().unwrap();
            frame[20..22].copy_from_slice(&field);
            assert_eq!(Datagram::read(&frame, true), None, "{field:?}");
        }
    }

    #[test]
    fn padding_is_not_payload() {
        let mut frame = datagram(IPV4_ENDS, b"short").frame().unwrap();
        frame.resize(60, 0);
        assert_eq!(Datagram::read(&frame, true).unwrap().payload, b"short");
    }

    #[test]
    fn read_verifies_checksums_on_request_and_never_panics() {
        for ends in [IPV4_ENDS, IPV6_ENDS] {
            let mut frame = datagram(ends, &[7; 56]).frame().unwrap();
            let last = frame.len() - 1;
            frame[last] ^= 1;
            assert_eq!(Datagram::read(&frame, true), None);
            assert!(Datagram::read(&frame, false).is_some());
            frame[last] ^= 1;
            for length in 0..frame.len() {
                assert_eq!(Datagram::read(&frame[..length], false), None, "{length}");
                for bit in 0..8 {
                    frame[length] ^= 1 << bit;
                    let _ = Datagram::read(&frame, true);
                    let _ = Datagram::read(&frame, false);
                    frame[length] ^= 1 << bit;
                }
            }
        }
    }
}
