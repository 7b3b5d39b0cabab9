//! Damage to payloads.

use wirestorm_wire::packet::{protocol, tcp, udp};

use super::frame::{Frame, OVERWRITE_MAX};
use super::random::Random;
use wirestorm_model::edit::Fuzz;

/// How many kinds of damage there are.
const ACTIONS: u32 = 11;

/// Damages one of `fuzz.factor` packets: loses it, cuts it within its payload, or overwrites up
/// to 16 bytes at the beginning, in the middle or at the end of the payload with zeros, random
/// bytes or ones. Lengths in headers stay. What has no payload above its transport header is at
/// most lost. Returns whether the frame is still to be sent.
pub(super) fn damage(fuzz: Fuzz, number: u64, frame: &mut Frame) -> bool {
    let mut random = Random::for_packet(fuzz.seed, number);
    let draw = random.next();
    let factor = fuzz.factor.max(1);
    if !draw.is_multiple_of(factor) {
        return true;
    }
    let Some(start) = payload_start(frame) else { return true };
    let end = frame.packet_end();
    let action = (draw / factor) % ACTIONS;
    if action == 0 {
        return false;
    }
    let Some(length) = end.checked_sub(start).filter(|length| *length > 0) else { return true };
    if action == 1 {
        frame.shorten(start + random.next() as usize % length);
        return true;
    }
    let count = length.min(OVERWRITE_MAX);
    let at = match (action - 2) / 3 {
        0 => start,
        1 => start + (length - count) / 2,
        _ => end - count,
    };
    let mut new = [0_u8; OVERWRITE_MAX];
    for byte in &mut new {
        *byte = match (action - 2) % 3 {
            0 => 0,
            1 => random.next() as u8,
            _ => 0xff,
        };
    }
    if let Some(new) = new.get(..count) {
        frame.overwrite(at, new);
    }
    true
}

/// Where the payload of the transport protocol begins; `None` where there is none to be found.
fn payload_start(frame: &Frame) -> Option<usize> {
    let transport = frame.transport?;
    let header = match transport.protocol {
        protocol::TCP => {
            let [length] = frame.bytes_at(transport.offset + tcp::field::DATA_OFFSET.start)?;
            usize::from(length >> 4).max(5) * 4
        }
        protocol::UDP => udp::HEADER_LENGTH,
        // Type, code and checksum.
        protocol::ICMP | protocol::ICMPV6 | protocol::IGMP => 4,
        _ => 0,
    };
    Some(transport.offset + header)
}
