//! Fuzzing of payloads.

use wirestorm_wire::packet::{protocol, tcp, udp};

use super::frame::{Frame, OVERWRITE_MAX};
use super::random::Random;
use wirestorm_model::edit::Fuzz;

/// Number of fuzzing actions.
const ACTIONS: u32 = 11;

/// Fuzzes one of `fuzz.factor` packets: drops it, cuts its payload, or overwrites up to 16 payload
/// bytes. The overwritten bytes are at the start, middle or end, and become zeros, random bytes or
/// ones. Header lengths stay. A packet without a payload can only be dropped. Returns whether to
/// send the frame.
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

/// Returns the offset of the transport payload; `None` if there is no transport header.
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
