//! Messages as JSON.

use std::fmt::Write as _;

use prost::{Message, Name};

use crate::schema::{self, EnumInfo, FieldInfo, Kind, MessageInfo};
use crate::wire::{Fields, Payload, varint};

/// Writes a message in the JSON form of the API: field names as in the models, enums as names,
/// numbers of 64 bits as strings, bytes in base 64. Absent fields are left out.
///
/// gosnappi and snappi read this form.
pub fn to_json<T: Message + Name>(message: &T) -> String {
    let mut out = String::new();
    match schema::find(T::NAME).filter(|_| T::PACKAGE == "otg") {
        Some(info) => write_message(info, &message.encode_to_vec(), &mut out),
        None => out.push_str("{}"),
    }
    out
}

fn write_message(info: &'static MessageInfo, bytes: &[u8], out: &mut String) {
    // The encoder wrote the bytes, so that all fields are well-formed.
    let fields: Vec<_> = Fields::new(bytes).filter_map(Result::ok).collect();
    out.push('{');
    let mut is_first = true;
    for field in info.fields {
        let payloads = || fields.iter().filter(|it| it.number == field.number).map(|it| it.payload);
        let Some(last) = payloads().next_back() else { continue };
        // `unspecified` is an absent value.
        if !field.is_repeated && matches!(field.kind, Kind::Enum(_)) && last == Payload::Varint(0) {
            continue;
        }
        if !is_first {
            out.push(',');
        }
        is_first = false;
        // Writing to a string cannot fail.
        let _ = write!(out, "\"{}\":", field.name);
        if field.is_repeated {
            out.push('[');
            write_items(field, payloads(), out);
            out.push(']');
        } else {
            write_value(field, last, out);
        }
    }
    out.push('}');
}

fn write_items<'a>(
    field: &FieldInfo,
    payloads: impl Iterator<Item = Payload<'a>>,
    out: &mut String,
) {
    let mut is_first = true;
    let mut separate = |out: &mut String| {
        if !is_first {
            out.push(',');
        }
        is_first = false;
    };
    for payload in payloads {
        let is_packable = !matches!(field.kind, Kind::Message(_) | Kind::String | Kind::Bytes);
        let Payload::Bytes(mut packed) = payload else {
            separate(out);
            write_value(field, payload, out);
            continue;
        };
        if !is_packable {
            separate(out);
            write_value(field, payload, out);
            continue;
        }
        while let Some((value, used)) = unpack(field.kind, packed) {
            separate(out);
            write_value(field, value, out);
            packed = packed.get(used..).unwrap_or_default();
        }
    }
}

/// Reads the first value of a packed list; returns it with its length.
fn unpack(kind: Kind, packed: &[u8]) -> Option<(Payload<'_>, usize)> {
    Some(match kind {
        Kind::Float => (Payload::Fixed32(u32::from_le_bytes(*packed.first_chunk()?)), 4),
        Kind::Double => (Payload::Fixed64(u64::from_le_bytes(*packed.first_chunk()?)), 8),
        _ => {
            let (value, used) = varint(packed)?;
            (Payload::Varint(value), used)
        }
    })
}

fn write_value(field: &FieldInfo, payload: Payload<'_>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (field.kind, payload) {
        (Kind::Bool, Payload::Varint(value)) => write!(out, "{}", value != 0),
        (Kind::Int32, Payload::Varint(value)) => write!(out, "{}", value as i32),
        (Kind::Uint32, Payload::Varint(value)) => write!(out, "{}", value as u32),
        (Kind::Uint64, Payload::Varint(value)) => write!(out, "\"{value}\""),
        (Kind::Float, Payload::Fixed32(bits)) => {
            let value = f32::from_bits(bits);
            match value.is_finite() {
                true => write!(out, "{value}"),
                false => write!(out, "\"{}\"", special(f64::from(value))),
            }
        }
        (Kind::Double, Payload::Fixed64(bits)) => {
            let value = f64::from_bits(bits);
            match value.is_finite() {
                true => write!(out, "{value}"),
                false => write!(out, "\"{}\"", special(value)),
            }
        }
        (Kind::String, Payload::Bytes(bytes)) => {
            let text = serde_json::to_string(&String::from_utf8_lossy(bytes));
            out.push_str(&text.unwrap_or_default());
            Ok(())
        }
        (Kind::Bytes, Payload::Bytes(bytes)) => {
            write_base64(bytes, out);
            Ok(())
        }
        (Kind::Enum(_), Payload::Varint(value)) => {
            let name = |values: &EnumInfo| values.name(i32::try_from(value).ok()?);
            let name = field.values().and_then(name).unwrap_or("unspecified");
            write!(out, "\"{name}\"")
        }
        (Kind::Message(_), Payload::Bytes(bytes)) => {
            if let Some(info) = field.message() {
                write_message(info, bytes, out);
            }
            Ok(())
        }
        _ => write!(out, "null"),
    };
}

/// Returns the name of a number that JSON does not have, as in the JSON form of protobuf.
const fn special(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn write_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.push('"');
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                let value = group >> (18 - 6 * digit) & 63;
                out.push(char::from(DIGITS[value as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Config, GetCaptureResponse, MetricsResponse, Warning};
    use crate::{from_json, from_protobuf};

    #[test]
    fn json_survives_both_ways() {
        let text = concat!(
            r#"{"ports":[{"location":"eth\"1","name":"p"}],"#,
            r#""flows":[{"tx_rx":{"choice":"port","port":{"tx_name":"p","rx_names":["p","q"]}},"#,
            r#""packet":[{"choice":"udp","udp":{"src_port":{"choice":"values","values":[1,2]}}}],"#,
            r#""rate":{"choice":"percentage","percentage":12.5},"#,
            r#""duration":{"choice":"burst","burst":{"bursts":1,"packets":1,"gap":12,"#,
            r#""inter_burst_gap":{"choice":"nanoseconds","nanoseconds":2.5}}},"name":"f"}]}"#
        );
        let (config, warnings) = from_json::<Config>(text).unwrap();
        assert_eq!(warnings, []);
        assert_eq!(to_json(&config), text);
    }

    #[test]
    fn numbers_of_64_bits_are_texts() {
        let text = r#"{"choice":"flow_metrics","flow_metrics":[{"name":"f","frames_tx":"7"}]}"#;
        let (response, _) = from_json::<MetricsResponse>(text).unwrap();
        assert_eq!(to_json(&response), text);
    }

    #[test]
    fn lists_of_texts_and_bytes_are_written() {
        let warning = Warning { warnings: vec!["a".into(), "b".into()] };
        assert_eq!(to_json(&warning), r#"{"warnings":["a","b"]}"#);
        for (bytes, text) in [(&b"f"[..], "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v")] {
            let (response, _) = from_protobuf::<GetCaptureResponse>(
                &GetCaptureResponse { response_bytes: bytes.to_vec() }.encode_to_vec(),
            )
            .unwrap();
            assert_eq!(to_json(&response), format!("{{\"response_bytes\":\"{text}\"}}"));
        }
    }
}
