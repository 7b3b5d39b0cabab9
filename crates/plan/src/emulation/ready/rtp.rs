//! RTP: RFC 3550, G.711 (RFC 3551) from the client to the server.

use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use crate::document::error::PlanError;
use crate::document::place::Place;
use crate::emulation::program::Step;

pub(in crate::emulation) const RTP: [&str; 1] = ["packets"];

/// Ten minutes; each is two steps of a program.
pub(super) const PACKETS_MAX: u64 = 30_000;
/// What a packet lasts.
const INTERVAL: Duration = Duration::from_millis(20);
/// The step between two packets.
pub(super) const PAUSE: Step = Step::Delay { min: INTERVAL, max: INTERVAL };
/// Bytes of that.
const FRAME: usize = 160;

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&RTP)?;
    let packets = fields.get("packets").map_or(Ok(50), |it| it.integer(1, PACKETS_MAX))?;
    let mut lines = Vec::new();
    for number in 0..packets {
        if number > 0 {
            lines.push(Line::Waits { side: Side::Client, step: PAUSE });
        }
        lines.push(Line::client(packet(number as u16)));
    }
    Ok(lines)
}

/// A packet of silence.
pub(super) fn packet(number: u16) -> Vec<u8> {
    // Version 2, type 0 (PCMU).
    let mut packet = vec![0x80, 0];
    packet.extend(number.to_be_bytes());
    packet.extend((u32::from(number) * FRAME as u32).to_be_bytes());
    packet.extend(0x5753_0001_u32.to_be_bytes());
    packet.resize(packet.len() + FRAME, 0xff);
    packet
}
