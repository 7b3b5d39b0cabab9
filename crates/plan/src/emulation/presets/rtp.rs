//! RTP (RFC 3550) with G.711 (RFC 3551): one packet each 20 ms.

use serde_json::{Value, json};
use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;

use super::commands::steps;
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

pub(in crate::emulation) const RTP: [&str; 1] = ["packets"];

/// Maximum number of packets: ten minutes.
pub(super) const PACKETS_MAX: u64 = 30_000;
/// Default port. RFC 3551 section 8: "port numbers 5004 and 5005 have been registered for use with
/// this profile".
pub(super) const PORT: u16 = 5004;
/// Payload of a packet in bytes: 20 ms of G.711.
const FRAME: usize = 160;
/// Length of a packet in bytes.
pub(super) const PACKET: usize = HEADER + FRAME;
const HEADER: usize = 12;

/// Returns the programs of client and server.
pub(super) fn read(place: &ValueAt<'_>) -> Result<[Vec<Step>; 2], PlanError> {
    let fields = place.fields(&RTP)?;
    let packets = fields.get("packets").map_or(Ok(50), |it| it.integer(1, PACKETS_MAX))?;
    let server = vec![Step::ReceiveDatagrams { count: packets, clear: true }];
    Ok([steps(source(packets), place)?, server])
}

/// Returns the programs of client and server for a call: `packets` packets each way.
pub(super) fn two_way(packets: u64, place: &ValueAt<'_>) -> Result<[Vec<Step>; 2], PlanError> {
    /// Time that a side still receives after its last packet.
    const LATE: &str = "200ms";
    let mut client = source(packets);
    client.push(json!({"delay": LATE}));
    let mut server = vec![json!({"receive_datagrams": 1})];
    server.extend(client.iter().cloned());
    Ok([steps(client, place)?, steps(server, place)?])
}

/// Returns the steps that send `packets` packets.
fn source(packets: u64) -> Vec<Value> {
    let mut source_steps = begin();
    if packets > 1 {
        let mut repeated = vec![packet("send_datagram", &[])];
        repeated.extend(go_on());
        repeated.push(pause());
        source_steps.push(json!({"repeat": {"times": packets - 1, "steps": repeated}}));
    }
    source_steps.push(packet("send_datagram", &[]));
    source_steps
}

/// Returns the steps that set sequence number, timestamp and source. RTSP announces the first two.
pub(super) fn begin() -> Vec<Value> {
    vec![
        json!({"set": {"sequence": 0}}),
        json!({"set": {"timestamp": 0}}),
        // RFC 3550 section 5.1: random, so that the sources of a session differ.
        json!({"set": {"source": {"random": {"max": u32::MAX}}}}),
    ]
}

/// Returns a step of kind `step` that sends `before` and a packet of silence.
pub(super) fn packet(step: &str, before: &[u8]) -> Value {
    // Version 2, type 0 (PCMU).
    let header = [&[0x80, 0][..], &[0; HEADER - 2]].concat();
    let bytes = [before, &header, &[0xff; FRAME]].concat();
    let field = |at: usize, width: u16, value: &str| json!({"offset": before.len() + at, "width": width, "value": value});
    let fields = [field(2, 2, "sequence"), field(4, 4, "timestamp"), field(8, 4, "source")];
    json!({step: {"hex": hex(&bytes), "fields": fields}})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Length in bytes of the RTCP packet of [`bye`].
pub(super) const BYE: usize = 16;

/// Returns a step of kind `step` that sends `before` and the end of the source: an empty RTCP
/// receiver report, and BYE (RFC 3550 sections 6.1 and 6.6).
pub(super) fn bye(step: &str, before: &[u8]) -> Value {
    const REPORT_AND_BYE: [u8; BYE] = [0x80, 201, 0, 1, 0, 0, 0, 0, 0x81, 203, 0, 1, 0, 0, 0, 0];
    let bytes = [before, &REPORT_AND_BYE].concat();
    let field = |at: usize| json!({"offset": before.len() + at, "width": 4, "value": "source"});
    json!({step: {"hex": hex(&bytes), "fields": [field(4), field(12)]}})
}

/// Returns the steps that advance sequence number and timestamp to the next packet.
pub(super) fn go_on() -> [Value; 2] {
    [json!({"add": {"sequence": 1}}), json!({"add": {"timestamp": FRAME}})]
}

/// Returns the duration of `packets` packets.
pub(super) const fn lasts(packets: u64) -> Duration {
    Duration::from_millis(20 * packets)
}

/// Returns the delay between two packets. A delay ends at the next full millisecond and starts
/// shortly after one, so 19.5 ms become 20 ms.
pub(super) fn pause() -> Value {
    json!({"delay": "19500us"})
}
