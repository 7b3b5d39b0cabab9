//! Making the checksums of a frame right.

use super::{Change, combine, sum, udp_checksum};
use crate::dissect::{Class, Dissection};
use crate::packet::{ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp, udp};

/// What became of the checksums of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// That of the IPv4 header.
    pub network: Outcome,
    /// That of TCP, UDP, ICMP, ICMPv6 or IGMP.
    pub transport: Outcome,
}

/// What became of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is none: not IP, the IPv6 header, a protocol without, UDP over IPv4 that was sent
    /// without.
    Absent,
    /// It was right.
    Right,
    /// It was wrong, and is right now.
    Repaired,
    /// It was left as it was.
    Left(Left),
}

/// Why a checksum was left as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The frame does not hold all of the packet, or its lengths contradict each other.
    Incomplete,
    /// The frame holds a fragment, and the checksum covers the whole packet.
    Fragment,
    /// The checksum covers a final destination that is in a routing header.
    Routed,
    /// SCTP, UDP-Lite or DCCP, whose checksums are of another kind.
    OtherKind,
}

/// Makes the checksums right of the packet that `dissection` found in `frame`.
///
/// That of the IPv4 header is made right wherever the header is there. That of the transport
/// layer needs the whole packet; where it is not there it is left, and the answer says why.
/// Packets inside of tunnels and ICMP errors stay as they are.
pub fn repair(frame: &mut [u8], dissection: &Dissection) -> Repair {
    let absent = Repair { network: Outcome::Absent, transport: Outcome::Absent };
    let incomplete = Outcome::Left(Left::Incomplete);
    let packet = frame.get_mut(usize::from(dissection.network_offset)..).unwrap_or_default();
    match (dissection.ethertype, dissection.class) {
        (_, Class::NonFlow) => absent,
        (ethertype::IPV4, _) => repair_ipv4(packet),
        (ethertype::IPV6, _) => Repair { transport: repair_ipv6(packet), ..absent },
        _ => Repair { transport: incomplete, ..absent },
    }
}

fn repair_ipv4(bytes: &mut [u8]) -> Repair {
    let Ok(mut packet) = ipv4::Packet::new(&mut *bytes) else {
        let left = Outcome::Left(Left::Incomplete);
        return Repair { network: left, transport: left };
    };
    let network = match packet.computed_checksum() {
        computed if computed == packet.checksum() => Outcome::Right,
        computed => {
            packet.set_checksum(computed);
            Outcome::Repaired
        }
    };
    let (start, end) = (packet.header_length(), usize::from(packet.total_length()));
    let protocol = packet.protocol();
    let transport = if packet.is_fragment() {
        left_or_absent(protocol, Left::Fragment)
    } else if !packet.is_whole() {
        left_or_absent(protocol, Left::Incomplete)
    } else {
        let length = (end - start) as u16;
        let pseudo_header = packet.pseudo_header_sum(length);
        let transport = bytes.get_mut(start..end).unwrap_or_default();
        repair_transport(transport, protocol, pseudo_header, Version::Four)
    };
    Repair { network, transport }
}

fn repair_ipv6(bytes: &mut [u8]) -> Outcome {
    let incomplete = Outcome::Left(Left::Incomplete);
    let Ok(packet) = ipv6::Packet::new(&mut *bytes) else { return incomplete };
    let Some(extensions) = packet.extensions() else { return incomplete };
    let protocol = extensions.protocol;
    if extensions.is_fragment {
        return left_or_absent(protocol, Left::Fragment);
    }
    if extensions.is_routed {
        return left_or_absent(protocol, Left::Routed);
    }
    if !packet.is_whole() {
        return left_or_absent(protocol, Left::Incomplete);
    }
    let end = ipv6::HEADER_LENGTH + usize::from(packet.payload_length());
    let Some(length) = end.checked_sub(extensions.end) else { return incomplete };
    let pseudo_header = packet.pseudo_header_sum(protocol, length as u32);
    let transport = bytes.get_mut(extensions.end..end).unwrap_or_default();
    repair_transport(transport, protocol, pseudo_header, Version::Six)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Four,
    Six,
}

/// Where the checksum of a protocol is, and whether it covers the pseudo header.
const fn checksum_field(protocol: u8, version: Version) -> Option<(usize, bool)> {
    match (protocol, version) {
        (protocol::TCP, _) => Some((tcp::field::CHECKSUM.start, true)),
        (protocol::UDP, _) => Some((udp::field::CHECKSUM.start, true)),
        (protocol::ICMPV6, Version::Six) => Some((icmpv6::field::CHECKSUM.start, true)),
        // RFC 9776 section 4.1.1: IGMP has its checksum where ICMP has it.
        (protocol::ICMP | protocol::IGMP, Version::Four) => {
            Some((icmpv4::field::CHECKSUM.start, false))
        }
        _ => None,
    }
}

/// What to say of a transport checksum that cannot be computed.
const fn left_or_absent(protocol: u8, reason: Left) -> Outcome {
    match protocol {
        protocol::SCTP | protocol::UDP_LITE | protocol::DCCP => Outcome::Left(Left::OtherKind),
        protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMPV6 | protocol::IGMP => {
            Outcome::Left(reason)
        }
        _ => Outcome::Absent,
    }
}

/// Repairs a whole segment, datagram or message.
fn repair_transport(
    mut transport: &mut [u8],
    protocol: u8,
    mut pseudo_header: u16,
    version: Version,
) -> Outcome {
    let Some((at, covers_pseudo_header)) = checksum_field(protocol, version) else {
        return left_or_absent(protocol, Left::OtherKind);
    };
    if protocol == protocol::UDP {
        let Ok(datagram) = udp::Packet::new(&*transport) else {
            return Outcome::Left(Left::Incomplete);
        };
        // RFC 768: an all zero checksum "means that the transmitter generated no checksum".
        // RFC 8200 section 8.1 takes that away from IPv6.
        if datagram.checksum() == 0 && version == Version::Four {
            return Outcome::Absent;
        }
        // The datagram may be shorter than what IP carries; both lengths are in the sum.
        let (found, length) = (transport.len(), usize::from(datagram.length()));
        let Some(shorter) = transport.get_mut(..length).filter(|_| length >= udp::HEADER_LENGTH)
        else {
            return Outcome::Left(Left::Incomplete);
        };
        pseudo_header = !Change::NONE.word16(found as u16, length as u16).apply(!pseudo_header);
        transport = shorter;
    }
    let Some(found) = transport.get(at..at + 2).map(sum) else {
        return Outcome::Left(Left::Incomplete);
    };
    if let Some(field) = transport.get_mut(at..at + 2) {
        field.fill(0);
    }
    let covered = if covers_pseudo_header { pseudo_header } else { 0 };
    let mut computed = !combine(covered, sum(transport));
    if protocol == protocol::UDP {
        computed = udp_checksum(computed);
    }
    if let Some(field) = transport.get_mut(at..at + 2) {
        field.copy_from_slice(&computed.to_be_bytes());
    }
    if computed == found { Outcome::Right } else { Outcome::Repaired }
}
