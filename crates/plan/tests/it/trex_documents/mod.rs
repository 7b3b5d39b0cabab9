//! Small documents of streams.

use serde_json::{Value, json};

/// A continuous stream of one packet a second: UDP over IPv4 in 60 bytes.
pub(crate) fn stream() -> Value {
    json!({
        "flags": 0,
        "action_count": 0,
        "enabled": true,
        "self_start": true,
        "start_paused": false,
        "isg": 0.0,
        "core_id": -1,
        "mode": { "type": "continuous", "rate": { "type": "pps", "value": 1 } },
        "packet": { "binary": base64(&udp(60)), "meta": "" },
        "vm": { "instructions": [] },
        "flow_stats": { "enabled": false },
    })
}

/// Returns the stream with another value in one field.
pub(crate) fn with(mut stream: Value, field: &str, value: Value) -> Value {
    stream[field] = value;
    stream
}

pub(crate) fn document(streams: &[Value]) -> String {
    Value::from(streams).to_string()
}

/// A variable that starts at the end of its range from which it moves.
pub(crate) fn flow_var(name: &str, size: u8, op: &str, min: u64, max: u64, step: u64) -> Value {
    json!({
        "type": "flow_var", "name": name, "size": size, "op": op, "step": step,
        "init_value": if op == "dec" { max } else { min }, "min_value": min, "max_value": max,
        "split_to_cores": true, "next_var": null,
    })
}

/// A packet of UDP over IPv4, from 00:00:00:02:00:00 to 00:00:00:01:00:00.
pub(crate) fn udp(length: u16) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0x08, 0x00];
    packet.extend([0x45, 0]);
    packet.extend((length - 14).to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 17, 0, 0, 16, 0, 0, 1, 48, 0, 0, 1]);
    let sum = wirestorm_wire::checksum::checksum(&packet[14..34]);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet.extend([4, 1, 0, 12]);
    packet.extend((length - 34).to_be_bytes());
    packet.resize(length.into(), 0);
    packet
}

/// Encodes bytes as base 64 (RFC 4648 section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            match place <= chunk.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}
