//! RTP: RFC 3550, G.711 (RFC 3551) from the client to the server.

use serde_json::{Value, json};

use super::commands::steps;
use crate::document::error::PlanError;
use crate::document::place::Place;
use crate::emulation::program::Step;

pub(in crate::emulation) const RTP: [&str; 1] = ["packets"];

/// Ten minutes.
pub(super) const PACKETS_MAX: u64 = 30_000;
/// Bytes of a packet's 20 ms.
const FRAME: usize = 160;
/// Of the packet.
pub(super) const PACKET: usize = HEADER + FRAME;
const HEADER: usize = 12;

/// The programs of client and server.
pub(super) fn read(place: &Place<'_>) -> Result<[Vec<Step>; 2], PlanError> {
    let fields = place.fields(&RTP)?;
    let packets = fields.get("packets").map_or(Ok(50), |it| it.integer(1, PACKETS_MAX))?;
    let mut client = begin();
    if packets > 1 {
        let mut repeated = vec![packet("send_datagram", &[])];
        repeated.extend(go_on());
        repeated.push(pause());
        client.push(json!({"repeat": {"times": packets - 1, "steps": repeated}}));
    }
    client.push(packet("send_datagram", &[]));
    let server = vec![Step::ReceiveDatagrams { count: packets, clear: true }];
    Ok([steps(client, place)?, server])
}

/// What a source of packets begins with; RTSP tells of the first two.
pub(super) fn begin() -> Vec<Value> {
    vec![
        json!({"set": {"sequence": 0}}),
        json!({"set": {"timestamp": 0}}),
        // RFC 3550 section 5.1: it is drawn, so that no two sources of a session are the same.
        json!({"set": {"source": {"random": {"max": u32::MAX}}}}),
    ]
}

/// Sends a packet of silence by this step, behind these bytes.
pub(super) fn packet(step: &str, before: &[u8]) -> Value {
    // Version 2, type 0 (PCMU).
    let header = [&[0x80, 0][..], &[0; HEADER - 2]].concat();
    let bytes = [before, &header, &[0xff; FRAME]].concat();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let field = |at: usize, width: u16, value: &str| json!({"offset": before.len() + at, "width": width, "value": value});
    let fields = [field(2, 2, "sequence"), field(4, 4, "timestamp"), field(8, 4, "source")];
    json!({step: {"hex": hex, "fields": fields}})
}

/// The next packet's numbers.
pub(super) fn go_on() -> [Value; 2] {
    [json!({"add": {"sequence": 1}}), json!({"add": {"timestamp": FRAME}})]
}

/// The time between two packets. Steps wait until the millisecond behind their time, and begin a
/// little behind one: so it is 20 ms.
pub(super) fn pause() -> Value {
    json!({"delay": "19500us"})
}
