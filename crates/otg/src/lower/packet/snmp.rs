//! `SNMPv2c` messages (RFC 1901 section 3, RFC 3416 section 3) in BER (X.690).

use super::bits::{BitWriter, Numbers};
use super::known::hex;
use super::{ConfigError, Packet, Problems, unsupported};
use crate::view::View;

// Tags of RFC 3416 section 3 and RFC 2578 section 7.1.
const INTEGER: u8 = 2;
const OCTET_STRING: u8 = 4;
const NULL: u8 = 5;
const OBJECT_IDENTIFIER: u8 = 6;
const SEQUENCE: u8 = 0x30;
const IP_ADDRESS: u8 = 0x40;
const COUNTER_32: u8 = 0x41;
const UNSIGNED_32: u8 = 0x42;
const TIME_TICKS: u8 = 0x43;
const COUNTER_64: u8 = 0x46;

/// Codes of `error_status` in the order of RFC 3416 section 3.
const ERRORS: [&str; 19] = [
    "no_error",
    "too_big",
    "no_such_name",
    "bad_value",
    "read_only",
    "gen_err",
    "no_access",
    "wrong_type",
    "wrong_length",
    "wrong_encoding",
    "wrong_value",
    "no_creation",
    "inconsistent_value",
    "resource_unavailable",
    "commit_failed",
    "undo_failed",
    "authorization_error",
    "not_writable",
    "inconsistent_name",
];

/// Reads a message into the packet.
pub(super) fn read(
    packet: &mut Packet,
    view: View<'_>,
    path: &str,
    problems: &mut Problems,
) -> Result<(), ConfigError> {
    let mut writer = BitWriter::new(packet, problems);
    let message = open(&mut writer, SEQUENCE);
    integer(&mut writer, view, "version", path)?;
    let community = view.text("community").unwrap_or_default();
    text(&mut writer, OCTET_STRING, community.as_bytes(), path)?;
    let path = format!("{path}.data");
    let data = view.message("data").ok_or_else(|| unsupported(&path))?;
    let name = data.choice().ok_or_else(|| ConfigError::new(&path, "found no choice"))?;
    let path = format!("{path}.{name}");
    let unit = data.message(name).ok_or_else(|| unsupported(&path))?;
    let tag = match name {
        "get_request" => 0xa0,
        "get_next_request" => 0xa1,
        "response" => 0xa2,
        "set_request" => 0xa3,
        "get_bulk_request" => 0xa5,
        "inform_request" => 0xa6,
        "snmpv2_trap" => 0xa7,
        _ => 0xa8,
    };
    let data = open(&mut writer, tag);
    integer(&mut writer, unit, "request_id", &path)?;
    if name == "get_bulk_request" {
        integer(&mut writer, unit, "non_repeaters", &path)?;
        integer(&mut writer, unit, "max_repetitions", &path)?;
    } else {
        let status = unit.enum_name("error_status").unwrap_or("no_error");
        let code = ERRORS.iter().position(|known| *known == status).unwrap_or(0);
        writer.bytes(&[INTEGER, 1, code as u8]);
        integer(&mut writer, unit, "error_index", &path)?;
    }
    let bindings = open(&mut writer, SEQUENCE);
    for (index, binding) in unit.messages("variable_bindings").into_iter().enumerate() {
        let path = format!("{path}.variable_bindings[{index}]");
        let start = open(&mut writer, SEQUENCE);
        object_identifier(&mut writer, binding, "object_identifier", &path)?;
        let path = format!("{path}.value");
        let value = binding.message("value").ok_or_else(|| unsupported(&path))?;
        write_value(&mut writer, value, &path)?;
        close(&mut writer, start, &path)?;
    }
    close(&mut writer, bindings, &path)?;
    close(&mut writer, data, &path)?;
    close(&mut writer, message, &path)?;
    writer.finish(Numbers { udp_port: Some(161), ..Numbers::default() }, &path);
    Ok(())
}

/// Starts a value of a length that is not known; returns the place of its length. The length has
/// two bytes (X.690 section 8.1.3.5).
fn open(writer: &mut BitWriter<'_>, tag: u8) -> usize {
    writer.bytes(&[tag, 0x82]);
    let place = writer.len();
    writer.number(0, 16);
    place
}

fn close(writer: &mut BitWriter<'_>, place: usize, path: &str) -> Result<(), ConfigError> {
    writer.set_length(place, writer.len() - place - 2, path)
}

fn text(writer: &mut BitWriter<'_>, tag: u8, bytes: &[u8], path: &str) -> Result<(), ConfigError> {
    let place = open(writer, tag);
    writer.bytes(bytes);
    close(writer, place, path)
}

/// Writes an integer of the width of its field, so that all frames have the same length.
fn integer(
    writer: &mut BitWriter<'_>,
    view: View<'_>,
    name: &str,
    path: &str,
) -> Result<(), ConfigError> {
    number(writer, INTEGER, view, name, path)
}

fn number(
    writer: &mut BitWriter<'_>,
    tag: u8,
    view: View<'_>,
    name: &str,
    path: &str,
) -> Result<(), ConfigError> {
    let is_unsigned = matches!(tag, COUNTER_32 | UNSIGNED_32 | TIME_TICKS | COUNTER_64);
    let bytes: u8 = match tag {
        COUNTER_64 => 8,
        _ if name == "version" => 1,
        _ => 4,
    };
    // A leading zero keeps the number positive (X.690 section 8.3).
    writer.bytes(&[tag, bytes + u8::from(is_unsigned)]);
    if is_unsigned {
        writer.number(0, 8);
    }
    writer.field(view, name, path)?;
    Ok(())
}

fn object_identifier(
    writer: &mut BitWriter<'_>,
    view: View<'_>,
    name: &str,
    path: &str,
) -> Result<(), ConfigError> {
    let found = view.text(name).unwrap_or_default();
    let bytes = encode_identifier(found).ok_or_else(|| {
        let message = format!("found {found:?}, expected an object identifier such as 1.3.6.1");
        ConfigError::new(format!("{path}.{name}"), message)
    })?;
    text(writer, OBJECT_IDENTIFIER, &bytes, path)
}

/// X.690 section 8.19.
fn encode_identifier(text: &str) -> Option<Vec<u8>> {
    let mut arcs = text.trim_start_matches('.').split('.').map(|arc| arc.parse::<u32>().ok());
    let (first, second) = (arcs.next()??, arcs.next()??);
    if first > 2 || first < 2 && second > 39 {
        return None;
    }
    let mut bytes = Vec::new();
    put_arc(u64::from(first) * 40 + u64::from(second), &mut bytes);
    for arc in arcs {
        put_arc(u64::from(arc?), &mut bytes);
    }
    Some(bytes)
}

fn put_arc(arc: u64, bytes: &mut Vec<u8>) {
    let groups = (64 - arc.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        bytes.push((arc >> (7 * group) & 0x7f) as u8 | more);
    }
}

fn write_value(writer: &mut BitWriter<'_>, view: View<'_>, path: &str) -> Result<(), ConfigError> {
    match view.choice() {
        Some(name @ "integer_value") => integer(writer, view, name, path),
        Some(name @ "counter_value") => number(writer, COUNTER_32, view, name, path),
        Some(name @ "timeticks_value") => number(writer, TIME_TICKS, view, name, path),
        Some(name @ "big_counter_value") => number(writer, COUNTER_64, view, name, path),
        Some(name @ "unsigned_integer_value") => number(writer, UNSIGNED_32, view, name, path),
        Some(name @ "ip_address_value") => number(writer, IP_ADDRESS, view, name, path),
        Some(name @ "object_identifier_value") => object_identifier(writer, view, name, path),
        Some("string_value") => {
            let path = format!("{path}.string_value");
            let string = view.message("string_value").ok_or_else(|| unsupported(&path))?;
            let bytes = match string.choice() {
                Some("raw") => hex(string.text("raw").unwrap_or_default(), &path)?,
                _ => string.text("ascii").unwrap_or_default().as_bytes().to_vec(),
            };
            text(writer, OCTET_STRING, &bytes, &path)
        }
        Some("arbitrary_value") => {
            let path = format!("{path}.arbitrary_value");
            writer.bytes(&hex(view.text("arbitrary_value").unwrap_or_default(), &path)?);
            Ok(())
        }
        _ => {
            writer.bytes(&[NULL, 0]);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_seven_bits_a_byte() {
        let encoded = encode_identifier("1.3.6.1.4.1.2680.1").unwrap();
        assert_eq!(encoded, [0x2b, 6, 1, 4, 1, 0x94, 0x78, 1]);
        assert_eq!(encode_identifier("0.1").unwrap(), [1]);
        assert_eq!(encode_identifier("2.999").unwrap(), [0x88, 0x37]);
        for text in ["", "1", "3.1", "1.40", "1.x", "1.3."] {
            assert_eq!(encode_identifier(text), None, "{text}");
        }
    }
}
