//! The template of a stream: padding, addresses and marks.

use wirestorm_wire::capture::LinkType;
use wirestorm_wire::checksum::{ChecksumOutcome, repair};
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::mark;
use wirestorm_wire::packet::{MacAddress, protocol};

use super::document::RuleType;

/// Minimum frame length in TRex, in bytes without FCS. Shorter packets are padded.
pub(super) const FRAME_LENGTH_MIN: usize = 60;

/// Minimum packet length in TRex, in bytes.
pub(super) const PACKET_MIN: usize = 14;

/// Maximum packet length in TRex, in bytes.
pub(super) const PACKET_MAX: usize = 9 * 1_024 + 22;

/// IPv4 identification of TRex's latency streams.
const IDENTIFICATION_LATENCY: u16 = 0xffff;

/// Length of TRex's headers for latency and for tagged packet groups, at the end of a frame.
const HEADER_BYTES: usize = 16;

/// Ethernet addresses of the sending port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Source of frames, unless a stream keeps the source of its packet.
    pub source: MacAddress,
    /// Destination of frames, unless a stream keeps the destination of its packet.
    pub destination: MacAddress,
}

/// Writes the port's addresses, unless the stream's flags keep those of its packet.
pub(super) fn set_addresses(frame: &mut [u8], flags: u32, addresses: &Addresses) {
    /// Keeps the packet's source address.
    const SOURCE_BY_PACKET: u32 = 1;
    /// Destination mode: 0 the port's, 1 the packet's, 2 the resolved address, which is the port's.
    const DESTINATION_MODE: u32 = 0b110;
    const DESTINATION_BY_PACKET: u32 = 0b010;
    if flags & DESTINATION_MODE != DESTINATION_BY_PACKET {
        frame[..6].copy_from_slice(&addresses.destination.0);
    }
    if flags & SOURCE_BY_PACKET == 0 {
        frame[6..12].copy_from_slice(&addresses.source.0);
    }
}

/// Marks a frame as TRex does. Counted frames get a reserved IPv4 identification or IPv6 flow
/// label, and the lowest bit of the type of service. Other frames keep out of the reserved
/// identifications.
///
/// `number` is the group within the rule. Returns `false`, and changes nothing, if the frame has no
/// IP header.
pub(super) fn mark(frame: &mut [u8], rule: Option<RuleType>, number: u16) -> bool {
    match rule {
        Some(RuleType::Latency) => {
            mark::set_identification(frame, |_| IDENTIFICATION_LATENCY.into(), true)
        }
        Some(_) => mark::write(frame, number),
        None => mark::set_identification(frame, unreserved, false),
    }
}

/// Writes TRex's latency header, with the sequence number and time that TRex's simulator writes
/// into every frame.
pub(super) fn latency_header(frame: &mut [u8], number: u16) {
    const MAGIC: u8 = 0xab;
    const GENERATION: u8 = 1;
    let mut header = [0; HEADER_BYTES];
    header[0] = MAGIC;
    header[1] = GENERATION;
    header[2..4].copy_from_slice(&number.to_le_bytes());
    header[4..8].copy_from_slice(&0x1234_5678_u32.to_le_bytes());
    header[8..].copy_from_slice(&0x8899_aabb_ccdd_eeff_u64.to_le_bytes());
    let start = frame.len() - HEADER_BYTES;
    frame[start..].copy_from_slice(&header);
}

/// Writes TRex's header of tagged packet groups, with the sequence number that TRex's simulator
/// writes into every frame.
pub(super) fn group_header(frame: &mut [u8], group: u32) {
    const MAGIC: u32 = 0xe50b_5cc1;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&group.to_le_bytes());
    header[8..12].copy_from_slice(&0xdead_beef_u32.to_le_bytes());
    let start = frame.len() - HEADER_BYTES;
    frame[start..].copy_from_slice(&header);
}

/// Length of the signature at the end of a measured frame.
pub(super) const SIGNATURE_BYTES: usize = 18;

/// Reserves zeros for the signature of a measured frame: a signature is neutral to checksums.
/// Repairs a transport checksum that was correct before.
///
/// # Errors
/// Returns the minimum frame length for these headers.
pub(super) fn reserve_signature(frame: &mut [u8]) -> Result<(), usize> {
    let dissection = dissect(LinkType::EN10MB, frame);
    let transport = usize::from(dissection.transport_offset);
    let headers = match dissection.protocol {
        _ if transport == 0 => usize::from(dissection.network_offset),
        // The data offset counts words of four bytes (RFC 9293 section 3.1).
        protocol::TCP => {
            transport + frame.get(transport + 12).map_or(20, |it| usize::from(it >> 4) * 4)
        }
        protocol::UDP | protocol::ICMP | protocol::ICMPV6 => transport + 8,
        _ => transport,
    };
    let least = headers + SIGNATURE_BYTES;
    if frame.len() < least {
        return Err(least);
    }
    let before = repair(&mut frame.to_vec(), &dissection);
    let start = frame.len() - SIGNATURE_BYTES;
    frame[start..].fill(0);
    // A deliberately wrong checksum stays wrong.
    let is_right = |outcome| matches!(outcome, ChecksumOutcome::Correct | ChecksumOutcome::Absent);
    if is_right(before.network) && before.transport == ChecksumOutcome::Correct {
        repair(frame, &dissection);
    }
    Ok(())
}

fn unreserved(identification: u32) -> u32 {
    match identification >= mark::FIRST.into() {
        true => identification & 0xefff,
        false => identification,
    }
}
