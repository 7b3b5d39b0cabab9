//! Correction of the checksums of a frame.

use super::{Change, combine, sum, udp_checksum};
use crate::dissect::{Class, Dissection};
use crate::packet::{ethertype, icmpv4, icmpv6, ipv4, ipv6, protocol, tcp, udp};

/// Result of the correction for the checksums of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The IPv4 header checksum.
    pub network: ChecksumOutcome,
    /// The checksum of TCP, UDP, ICMP, ICMPv6 or IGMP.
    pub transport: ChecksumOutcome,
}

/// Result for one checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumOutcome {
    /// No checksum exists: not IP, an IPv6 header, a protocol without a checksum, or UDP over IPv4
    /// with checksum zero.
    Absent,
    /// The checksum was correct.
    Correct,
    /// The checksum was wrong and is now correct.
    Repaired,
    /// The checksum is unchanged, for this reason.
    Unchanged(UnchangedReason),
}

/// Reason why a checksum stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnchangedReason {
    /// The frame does not hold the whole packet, or its lengths contradict each other.
    Incomplete,
    /// The frame holds a fragment, but the checksum covers the whole packet.
    Fragment,
    /// The checksum covers a final destination in a routing header.
    Routed,
    /// SCTP, UDP-Lite or DCCP, which have other kinds of checksum.
    UnsupportedProtocol,
}

/// Corrects the checksums of the packet that `dissection` found in `frame`.
///
/// The IPv4 header checksum is corrected if the whole header is there. The transport checksum needs
/// the whole packet; otherwise it stays and the result has the reason. Packets inside tunnels and
/// ICMP errors stay unchanged.
pub fn repair(frame: &mut [u8], dissection: &Dissection) -> Repair {
    let absent = Repair { network: ChecksumOutcome::Absent, transport: ChecksumOutcome::Absent };
    let incomplete = ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
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
        let left = ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
        return Repair { network: left, transport: left };
    };
    let network = match packet.computed_checksum() {
        computed if computed == packet.checksum() => ChecksumOutcome::Correct,
        computed => {
            packet.set_checksum(computed);
            ChecksumOutcome::Repaired
        }
    };
    let (start, end) = (packet.header_length(), usize::from(packet.total_length()));
    let protocol = packet.protocol();
    let transport = if packet.is_fragment() {
        unchanged_or_absent(protocol, UnchangedReason::Fragment)
    } else if !packet.is_whole() {
        unchanged_or_absent(protocol, UnchangedReason::Incomplete)
    } else {
        let length = (end - start) as u16;
        let pseudo_header = packet.pseudo_header_sum(length);
        let transport = bytes.get_mut(start..end).unwrap_or_default();
        repair_transport(transport, protocol, pseudo_header, Version::Four)
    };
    Repair { network, transport }
}

fn repair_ipv6(bytes: &mut [u8]) -> ChecksumOutcome {
    let incomplete = ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
    let Ok(packet) = ipv6::Packet::new(&mut *bytes) else { return incomplete };
    let Some(extensions) = packet.extensions() else { return incomplete };
    let protocol = extensions.protocol;
    if extensions.is_fragment {
        return unchanged_or_absent(protocol, UnchangedReason::Fragment);
    }
    if extensions.is_routed {
        return unchanged_or_absent(protocol, UnchangedReason::Routed);
    }
    if !packet.is_whole() {
        return unchanged_or_absent(protocol, UnchangedReason::Incomplete);
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

/// Returns the offset of a protocol's checksum and whether it covers the pseudo-header.
const fn checksum_field(protocol: u8, version: Version) -> Option<(usize, bool)> {
    match (protocol, version) {
        (protocol::TCP, _) => Some((tcp::field::CHECKSUM.start, true)),
        (protocol::UDP, _) => Some((udp::field::CHECKSUM.start, true)),
        (protocol::ICMPV6, Version::Six) => Some((icmpv6::field::CHECKSUM.start, true)),
        // RFC 9776 section 4.1.1: IGMP has its checksum at the same offset as ICMP.
        (protocol::ICMP | protocol::IGMP, Version::Four) => {
            Some((icmpv4::field::CHECKSUM.start, false))
        }
        _ => None,
    }
}

/// Returns the result for a transport checksum that cannot be computed.
const fn unchanged_or_absent(protocol: u8, reason: UnchangedReason) -> ChecksumOutcome {
    match protocol {
        protocol::SCTP | protocol::UDP_LITE | protocol::DCCP => {
            ChecksumOutcome::Unchanged(UnchangedReason::UnsupportedProtocol)
        }
        protocol::TCP | protocol::UDP | protocol::ICMP | protocol::ICMPV6 | protocol::IGMP => {
            ChecksumOutcome::Unchanged(reason)
        }
        _ => ChecksumOutcome::Absent,
    }
}

/// Corrects the checksum of a whole segment, datagram or message.
fn repair_transport(
    mut transport: &mut [u8],
    protocol: u8,
    mut pseudo_header: u16,
    version: Version,
) -> ChecksumOutcome {
    let Some((at, covers_pseudo_header)) = checksum_field(protocol, version) else {
        return unchanged_or_absent(protocol, UnchangedReason::UnsupportedProtocol);
    };
    if protocol == protocol::UDP {
        let Ok(datagram) = udp::Packet::new(&*transport) else {
            return ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
        };
        // RFC 768: an all zero checksum "means that the transmitter generated no checksum". RFC
        // 8200 section 8.1 does not allow this over IPv6.
        if datagram.checksum() == 0 && version == Version::Four {
            return ChecksumOutcome::Absent;
        }
        // The datagram may be shorter than the IP payload. The pseudo-header has the UDP length.
        let (found, length) = (transport.len(), usize::from(datagram.length()));
        let Some(shorter) = transport.get_mut(..length).filter(|_| length >= udp::HEADER_LENGTH)
        else {
            return ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
        };
        pseudo_header = !Change::NONE.word16(found as u16, length as u16).apply(!pseudo_header);
        transport = shorter;
    }
    let Some(found) = transport.get(at..at + 2).map(sum) else {
        return ChecksumOutcome::Unchanged(UnchangedReason::Incomplete);
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
    if computed == found { ChecksumOutcome::Correct } else { ChecksumOutcome::Repaired }
}
