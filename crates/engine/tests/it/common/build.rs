//! Hand-made frames with correct checksums, and a receiver's check of them.

use wirestorm_wire::checksum::{combine, pseudo_header_ipv4, pseudo_header_ipv6, sum};
use wirestorm_wire::packet::{ethertype, protocol};

pub(crate) const CLIENT: [u8; 4] = [10, 0, 0, 1];
pub(crate) const SERVER: [u8; 4] = [192, 0, 2, 7];
pub(crate) const CLIENT6: [u8; 16] = [0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(crate) const SERVER6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
pub(crate) const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Builds an Ethernet frame with `tags` before the EtherType `kind`.
pub(crate) fn frame(tags: &[u8], kind: u16, packet: &[u8]) -> Vec<u8> {
    [&MACS[..], tags, &kind.to_be_bytes(), packet].concat()
}

/// Builds a VLAN tag with its EtherType.
pub(crate) fn tag(kind: u16, control: u16) -> Vec<u8> {
    [kind.to_be_bytes(), control.to_be_bytes()].concat()
}

/// Builds an IPv4 packet from client to server.
pub(crate) fn ipv4(protocol: u8, options: &[u8], fragment: u16, payload: &[u8]) -> Vec<u8> {
    let header_length = 20 + options.len();
    let mut header = vec![0x40 | (header_length / 4) as u8, 0];
    header.extend(((header_length + payload.len()) as u16).to_be_bytes());
    header.extend([0x12, 0x34]);
    header.extend(fragment.to_be_bytes());
    header.extend([64, protocol, 0, 0]);
    header.extend(CLIENT);
    header.extend(SERVER);
    header.extend(options);
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&header, payload].concat()
}

/// Builds an IPv6 packet from client to server; the last of `extensions` names the protocol.
pub(crate) fn ipv6(next: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend(((extensions.len() + payload.len()) as u16).to_be_bytes());
    header.extend([next, 64]);
    header.extend(CLIENT6);
    header.extend(SERVER6);
    [&header, extensions, payload].concat()
}

/// Computes the checksum at `at` of a transport header that has zero there.
pub(crate) fn with_checksum(mut segment: Vec<u8>, at: usize, number: u8, is_ipv6: bool) -> Vec<u8> {
    let pseudo = match number {
        protocol::ICMP | protocol::IGMP => 0,
        _ if is_ipv6 => pseudo_header_ipv6(CLIENT6, SERVER6, number, segment.len() as u32),
        _ => pseudo_header_ipv4(CLIENT, SERVER, number, segment.len() as u16),
    };
    let checksum = match !combine(pseudo, sum(&segment)) {
        0 if number == protocol::UDP => 0xffff,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    segment
}

pub(crate) fn tcp(flags: u8, payload: &[u8], is_ipv6: bool) -> Vec<u8> {
    let mut header = vec![0xc0, 0x01, 0, 80, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9];
    header.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    with_checksum([&header, payload].concat(), 16, protocol::TCP, is_ipv6)
}

pub(crate) fn udp(payload: &[u8], is_ipv6: bool) -> Vec<u8> {
    let mut header = vec![0xc0, 0x01, 0, 53];
    header.extend((8 + payload.len() as u16).to_be_bytes());
    header.extend([0, 0]);
    with_checksum([&header, payload].concat(), 6, protocol::UDP, is_ipv6)
}

/// Builds an ICMP or ICMPv6 echo request.
pub(crate) fn echo(payload: &[u8], is_ipv6: bool) -> Vec<u8> {
    let (kind, number) = if is_ipv6 { (128, protocol::ICMPV6) } else { (8, protocol::ICMP) };
    let header = [kind, 0, 0, 0, 0, 1, 0, 2];
    with_checksum([&header, payload].concat(), 2, number, is_ipv6)
}

/// Verifies the checksums of the IP packet at `network`: of the header and of the payload. `None`
/// means no checksum, or an incomplete packet.
pub(crate) fn received(frame: &[u8], network: usize) -> (Option<bool>, Option<bool>) {
    let Some(packet) = frame.get(network..).filter(|packet| packet.len() >= 20) else {
        return (None, None);
    };
    let half = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => {
            let header_length = usize::from(packet[0] & 15) * 4;
            let Some(header) = packet.get(..header_length) else { return (None, None) };
            let length = usize::from(half(2).unwrap_or_default());
            let is_right = sum(header) == 0xffff;
            let Some(segment) = packet.get(header_length..length) else {
                return (Some(is_right), None);
            };
            let (source, destination) = (&packet[12..16], &packet[16..20]);
            let covered = pseudo_header_ipv4(
                source.try_into().unwrap(),
                destination.try_into().unwrap(),
                packet[9],
                segment.len() as u16,
            );
            let is_fragment = half(6).unwrap_or_default() & 0x3fff != 0;
            let transport = if is_fragment { None } else { check(segment, packet[9], covered) };
            (Some(is_right), transport)
        }
        Some(6) if packet.len() >= 40 => {
            let Some(length) = half(4).map(|length| 40 + usize::from(length)) else {
                return (None, None);
            };
            let (mut next, mut at) = (packet[6], 40);
            // The tests build only hop-by-hop and destination options.
            while matches!(next, 0 | 60) {
                let Some([following, units]) = packet.get(at..at + 2) else { return (None, None) };
                (next, at) = (*following, at + 8 + usize::from(*units) * 8);
            }
            let Some(segment) = packet.get(at..length) else { return (None, None) };
            let (source, destination) = (&packet[8..24], &packet[24..40]);
            let covered = pseudo_header_ipv6(
                source.try_into().unwrap(),
                destination.try_into().unwrap(),
                next,
                segment.len() as u32,
            );
            (None, check(segment, next, covered))
        }
        _ => (None, None),
    }
}

fn check(segment: &[u8], number: u8, covered: u16) -> Option<bool> {
    let (at, covered) = match number {
        protocol::TCP => (16, covered),
        protocol::ICMPV6 => (2, covered),
        protocol::ICMP | protocol::IGMP => (2, 0),
        protocol::UDP => {
            let length = usize::from(u16::from_be_bytes([*segment.get(4)?, *segment.get(5)?]));
            if length != segment.len() {
                return Some(false);
            }
            (6, covered)
        }
        _ => return None,
    };
    let field = segment.get(at..at + 2)?;
    if number == protocol::UDP && field == [0, 0] {
        return None;
    }
    Some(combine(covered, sum(segment)) == 0xffff)
}

/// Returns the EtherType of a packet.
pub(crate) fn kind(is_ipv6: bool) -> u16 {
    if is_ipv6 { ethertype::IPV6 } else { ethertype::IPV4 }
}
