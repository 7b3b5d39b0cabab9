//! RSVP Path messages (RFC 2205 section 3.1, RFC 3209 section 4).

use wirestorm_model::assemble::Value;
use wirestorm_wire::checksum::checksum;

use super::bits::{BitWriter, Numbers, length_or};
use super::known::hex;
use super::{ConfigError, OpenChecksum, Packet, Problems, unsupported};
use crate::view::View;

/// Bytes of an object's header (RFC 2205 section 3.1.2).
const OBJECT_HEADER: usize = 4;

/// Offset of the checksum in the common header.
const CHECKSUM: usize = 2;

/// Reads a message into the packet.
pub(super) fn read(
    packet: &mut Packet,
    view: View<'_>,
    path: &str,
    problems: &mut Problems,
) -> Result<(), ConfigError> {
    let (header, varying) = (packet.headers.len(), packet.varying.len());
    let mut writer = BitWriter::new(packet, problems);
    writer.plain(view, "version", 4, path)?;
    let is_capable = view.enum_name("flag") == Some("refresh_reduction_capable");
    writer.number(u128::from(is_capable), 4);
    // Path, the only message of the models.
    writer.number(1, 8);
    let checksum = writer.field(view, "rsvp_checksum", path)?;
    writer.field(view, "time_to_live", path)?;
    writer.field(view, "reserved", path)?;
    writer.number(0, 16);
    let objects_path = format!("{path}.message_type.path.objects");
    let objects = view.message("message_type").and_then(|it| it.message("path"));
    let objects = objects.map(|path| path.messages("objects")).unwrap_or_default();
    for (index, object) in objects.into_iter().enumerate() {
        write_object(&mut writer, object, &format!("{objects_path}[{index}].class_num"))?;
    }
    let length = length_or(view.message("rsvp_length"), writer.len());
    writer.set_length(6, length, path)?;
    let is_wrong = checksum == Value::WrongChecksum;
    if is_wrong || checksum == Value::Auto {
        let (sum, end) = (writer.sum(is_wrong), writer.len());
        writer.set_length(CHECKSUM, usize::from(sum), path)?;
        if writer.packet().varying.len() > varying {
            let open = OpenChecksum { header, offset: CHECKSUM, end, is_wrong };
            writer.packet().checksums.push(open);
        }
    }
    writer.finish(Numbers { ip_protocol: Some(46), ..Numbers::default() }, path);
    Ok(())
}

impl BitWriter<'_> {
    /// Returns the Internet checksum of the header, whose checksum is still 0.
    fn sum(&self, is_wrong: bool) -> u16 {
        let sum = checksum(self.written());
        // The wrong sum is one greater, as in `Step::WrongChecksum`.
        if is_wrong { !wirestorm_wire::checksum::combine(!sum, 1) } else { sum }
    }
}

/// Writes an object. Class numbers and types are those of RFC 2205 appendix A and RFC 3209.
fn write_object(
    writer: &mut BitWriter<'_>,
    object: View<'_>,
    path: &str,
) -> Result<(), ConfigError> {
    let Some(class) = object.message("class_num") else { return Err(unsupported(path)) };
    let name = class.choice().ok_or_else(|| unsupported(path))?;
    let path = format!("{path}.{name}");
    let part = class.message(name).ok_or_else(|| unsupported(&path))?;
    let start = writer.len();
    writer.number(0, 16);
    if name == "custom" {
        writer.field(part, "type", &path)?;
        writer.bytes(&hex(part.text("bytes").unwrap_or_default(), &format!("{path}.bytes"))?);
        let length = length_or(part.message("length"), writer.len() - start);
        return writer.set_length(start, length, &path);
    }
    let path = format!("{path}.c_type");
    let kind = part.message("c_type").ok_or_else(|| unsupported(&path))?;
    let form = kind.choice().ok_or_else(|| unsupported(&path))?;
    let path = format!("{path}.{form}");
    let inner = kind.message(form).ok_or_else(|| unsupported(&path))?;
    let (class, c_type) = match (name, form) {
        ("session", _) => (1, 7),
        ("rsvp_hop", _) => (3, 1),
        ("time_values", _) => (5, 1),
        ("sender_template", _) => (11, 7),
        ("sender_tspec", _) => (12, 2),
        ("label_request", _) => (19, 1),
        ("explicit_route", _) => (20, 1),
        ("record_route", _) => (21, 1),
        ("session_attribute", "lsp_tunnel") => (207, 7),
        ("session_attribute", _) => (207, 1),
        _ => return Err(unsupported(path)),
    };
    writer.number(class, 8);
    writer.number(c_type, 8);
    debug_assert_eq!(writer.len(), start + OBJECT_HEADER);
    match name {
        "session" => {
            for field in ["ipv4_tunnel_end_point_address", "reserved", "tunnel_id"] {
                writer.field(inner, field, &path)?;
            }
            let path = format!("{path}.extended_tunnel_id");
            let id = inner.message("extended_tunnel_id").ok_or_else(|| unsupported(&path))?;
            writer.field(id, id.choice().unwrap_or("as_integer"), &path)?;
        }
        "sender_tspec" => traffic(writer, inner, &path)?,
        "session_attribute" => attribute(writer, inner, form, &path)?,
        "explicit_route" => explicit_route(writer, inner, &path)?,
        "record_route" => record_route(writer, inner, &path)?,
        // All fields are patterns, in their order.
        _ => {
            for field in inner.info.fields {
                writer.field(inner, field.name, &path)?;
            }
        }
    }
    let length = length_or(part.message("length"), writer.len() - start);
    writer.set_length(start, length, &path)
}

/// RFC 2210 section 3.1.
fn traffic(writer: &mut BitWriter<'_>, view: View<'_>, path: &str) -> Result<(), ConfigError> {
    for field in view.info.fields {
        match field.message() {
            Some(_) => {
                writer.field(view, field.name, path)?;
            }
            None => {
                let rate = view.float(field.name).unwrap_or(0.0);
                writer.number(u128::from(rate.to_bits()), 32);
            }
        }
    }
    Ok(())
}

/// RFC 3209 section 4.7.
fn attribute(
    writer: &mut BitWriter<'_>,
    view: View<'_>,
    form: &str,
    path: &str,
) -> Result<(), ConfigError> {
    if form == "lsp_tunnel_ra" {
        for field in ["exclude_any", "include_any", "include_all"] {
            let path = format!("{path}.{field}");
            let bytes = hex(view.text(field).unwrap_or_default(), &path)?;
            let padding = 4_usize.checked_sub(bytes.len());
            let padding =
                padding.ok_or_else(|| ConfigError::new(path, "expected at most 4 bytes"))?;
            writer.bytes(&[0; 4][..padding]);
            writer.bytes(&bytes);
        }
    }
    writer.plain(view, "setup_priority", 8, path)?;
    writer.plain(view, "holding_priority", 8, path)?;
    let flag = match view.message("flags").and_then(|flags| flags.choice()) {
        Some("local_protection_desired") => 1,
        Some("label_recording_desired") => 2,
        Some("se_style_desired") => 4,
        Some("bandwidth_protection_desired") => 8,
        Some("node_protection_desired") => 16,
        _ => 0,
    };
    writer.number(flag, 8);
    let name = view.text("session_name").unwrap_or_default();
    let length = length_or(view.message("name_length"), name.len());
    if name.len() > 255 || length > 255 {
        return Err(ConfigError::new(format!("{path}.session_name"), "expected at most 255 bytes"));
    }
    writer.number(length as u128, 8);
    writer.bytes(name.as_bytes());
    writer.bytes(&[0; 3][..name.len().next_multiple_of(4) - name.len()]);
    Ok(())
}

/// RFC 3209 section 4.3.
fn explicit_route(
    writer: &mut BitWriter<'_>,
    view: View<'_>,
    path: &str,
) -> Result<(), ConfigError> {
    for (index, object) in view.messages("subobjects").into_iter().enumerate() {
        let path = format!("{path}.subobjects[{index}].type");
        let kind = object.message("type").ok_or_else(|| unsupported(&path))?;
        let name = kind.choice().unwrap_or("ipv4_prefix");
        let path = format!("{path}.{name}");
        let part = kind.message(name).ok_or_else(|| unsupported(&path))?;
        let is_prefix = name == "ipv4_prefix";
        writer.field(part, "l_bit", &path)?;
        writer.number(if is_prefix { 1 } else { 32 }, 7);
        let length = length_or(part.message("length"), if is_prefix { 8 } else { 4 });
        writer.number(length as u128 & 0xff, 8);
        if is_prefix {
            writer.field(part, "ipv4_address", &path)?;
            writer.plain(part, "prefix", 8, &path)?;
            writer.number(0, 8);
        } else {
            writer.plain(part, "as_number", 16, &path)?;
        }
    }
    Ok(())
}

/// RFC 3209 section 4.4.
fn record_route(writer: &mut BitWriter<'_>, view: View<'_>, path: &str) -> Result<(), ConfigError> {
    for (index, object) in view.messages("subobjects").into_iter().enumerate() {
        let path = format!("{path}.subobjects[{index}].type");
        let kind = object.message("type").ok_or_else(|| unsupported(&path))?;
        let name = kind.choice().unwrap_or("ipv4_address");
        let path = format!("{path}.{name}");
        let part = kind.message(name).ok_or_else(|| unsupported(&path))?;
        let is_address = name == "ipv4_address";
        writer.number(if is_address { 1 } else { 3 }, 8);
        let length = length_or(part.message("length"), 8);
        writer.number(length as u128 & 0xff, 8);
        if is_address {
            writer.field(part, "ipv4_address", &path)?;
            writer.field(part, "prefix_length", &path)?;
            let flag = match part.message("flags").and_then(|flags| flags.choice()) {
                Some("local_protection_available") => 1,
                Some("local_protection_in_use") => 2,
                _ => 0,
            };
            writer.number(flag, 8);
        } else {
            writer.field(part, "flags", &path)?;
            writer.field(part, "c_type", &path)?;
            let label = part.message("label").ok_or_else(|| unsupported(&path))?;
            let path = format!("{path}.label");
            if label.choice() == Some("as_hex") {
                let bytes = hex(label.text("as_hex").unwrap_or_default(), &path)?;
                let number = bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
                writer.number(number & u128::from(u32::MAX), 32);
            } else {
                writer.plain(label, "as_integer", 32, &path)?;
            }
        }
    }
    Ok(())
}
