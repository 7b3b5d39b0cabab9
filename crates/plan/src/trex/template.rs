//! A stream's first frame: padding, addresses, marks.

use wirestorm_wire::capture::LinkType;
use wirestorm_wire::checksum::{Outcome, repair};
use wirestorm_wire::dissect::dissect;
use wirestorm_wire::mark;
use wirestorm_wire::packet::{MacAddress, protocol};

use super::document::RuleType;

/// What TRex pads frames to, and cuts them to at least; in bytes without FCS.
pub(super) const FRAME_LENGTH_MIN: usize = 60;

/// The shortest packet that TRex takes.
pub(super) const PACKET_MIN: usize = 14;

/// The longest packet that TRex takes.
pub(super) const PACKET_MAX: usize = 9 * 1_024 + 22;

/// TRex's identification of latency streams.
const IDENTIFICATION_LATENCY: u16 = 0xffff;

/// The bytes of TRex's headers of latency and of tagged packet groups, at the end of a frame.
const HEADER_BYTES: usize = 16;

/// The addresses of the port that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Whom frames come from, unless a stream keeps its packet's.
    pub source: MacAddress,
    /// Whom frames go to, unless a stream keeps its packet's.
    pub destination: MacAddress,
}

/// Puts the port's addresses where a stream's flags leave them to it.
pub(super) fn address(frame: &mut [u8], flags: u32, addresses: &Addresses) {
    /// The source address is the packet's.
    const SOURCE_BY_PACKET: u32 = 1;
    /// Which destination: 0 the port's, 1 the packet's, 2 the resolved one, which is the port's.
    const DESTINATION_MODE: u32 = 0b110;
    const DESTINATION_BY_PACKET: u32 = 0b010;
    if flags & DESTINATION_MODE != DESTINATION_BY_PACKET {
        frame[..6].copy_from_slice(&addresses.destination.0);
    }
    if flags & SOURCE_BY_PACKET == 0 {
        frame[6..12].copy_from_slice(&addresses.source.0);
    }
}

/// Marks a frame as TRex does: what is counted by the IPv4 identification or IPv6 flow label,
/// and by the lowest bit of the type of service. What is not counted is kept out of the
/// identifications that are reserved for that.
///
/// `number` tells apart what is counted by the same rule. Frames without an IP header are left
/// as they are; returns whether there was one.
pub(super) fn mark(frame: &mut [u8], rule: Option<RuleType>, number: u16) -> bool {
    match rule {
        Some(RuleType::Latency) => mark::identify(frame, |_| IDENTIFICATION_LATENCY.into(), true),
        Some(_) => mark::write(frame, number),
        None => mark::identify(frame, unreserved, false),
    }
}

/// Writes the header by which TRex measures latency, with the sequence number and the time that
/// its simulator writes into every frame.
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

/// Writes the header by which TRex tells tagged packet groups, with the sequence number that its
/// simulator writes into every frame.
pub(super) fn group_header(frame: &mut [u8], group: u32) {
    const MAGIC: u32 = 0xe50b_5cc1;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&group.to_le_bytes());
    header[8..12].copy_from_slice(&0xdead_beef_u32.to_le_bytes());
    let start = frame.len() - HEADER_BYTES;
    frame[start..].copy_from_slice(&header);
}

/// Bytes at the end of a frame that a measured stream's signature takes.
pub(super) const SIGNATURE_BYTES: usize = 18;

/// Puts zeros where the signature of a measured frame will be: a signature is zero to checksums.
/// A transport checksum that was right is right again.
///
/// # Errors
/// The length that a frame with these headers has to have at least.
pub(super) fn make_room(frame: &mut [u8]) -> Result<(), usize> {
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
    // What is wrong on purpose stays wrong.
    let is_right = |outcome| matches!(outcome, Outcome::Right | Outcome::Absent);
    if is_right(before.network) && before.transport == Outcome::Right {
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
