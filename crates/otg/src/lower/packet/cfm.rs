//! Connectivity fault management (IEEE 802.1Q-2018 clause 21).

use wirestorm_wire::layout::ValueKind;

use super::bits::{BitWriter, Numbers, length_or};
use super::known::hex;
use super::{ConfigError, Packet, Problems, unsupported};
use crate::view::View;

/// Ethernet type (IEEE 802.1Q-2018 table 21-1).
const ETHER_TYPE: u128 = 0x8902;

/// Bytes of the identifier of a maintenance association in a CCM (section 21.6.5).
const IDENTIFIER: usize = 48;

/// Bytes behind the identifier that ITU-T Y.1731 defines (figure 21-6).
const COUNTERS: usize = 16;

/// Reads a message into the packet.
pub(super) fn read(
    packet: &mut Packet,
    view: View<'_>,
    path: &str,
    problems: &mut Problems,
) -> Result<(), ConfigError> {
    let mut writer = BitWriter::new(packet, problems);
    writer.plain(view, "md_level", 3, path)?;
    writer.plain(view, "version", 5, path)?;
    let code_path = format!("{path}.op_code");
    let code = view.message("op_code").ok_or_else(|| unsupported(&code_path))?;
    let name = code.choice().ok_or_else(|| unsupported(&code_path))?;
    let message_path = format!("{code_path}.{name}");
    let message = code.message(name).ok_or_else(|| unsupported(&message_path))?;
    // Table 21-4.
    let number = match name {
        "ccm" => 1,
        "lbr" => 2,
        _ => 3,
    };
    writer.number(number, 8);
    if name == "ccm" {
        continuity(&mut writer, message, &message_path)?;
    } else {
        // No flags; the first TLV starts 4 bytes behind this field (figures 21-10 and 21-11).
        writer.bytes(&[0, 4]);
        writer.field(message, "transaction_id", &message_path)?;
    }
    for (index, tlv) in message.messages("tlvs").into_iter().enumerate() {
        write_tlv(&mut writer, tlv, &format!("{message_path}.tlvs[{index}]"))?;
    }
    if message.number("append_end_tlv").unwrap_or(1) != 0 {
        writer.number(0, 8);
    }
    writer.finish(Numbers { ether_type: Some(ETHER_TYPE), ..Numbers::default() }, path);
    Ok(())
}

/// Figure 21-6.
fn continuity(writer: &mut BitWriter<'_>, view: View<'_>, path: &str) -> Result<(), ConfigError> {
    let flags_path = format!("{path}.flags");
    let flags = view.message("flags").ok_or_else(|| unsupported(&flags_path))?;
    writer.number(u128::from(flags.number("rdi").unwrap_or(0)), 1);
    writer.number(0, 4);
    writer.plain(flags, "ccm_interval", 3, &flags_path)?;
    // Offset of the first TLV.
    writer.number(70, 8);
    writer.field(view, "sequence_number", path)?;
    writer.field(view, "ma_endpoint_identifier", path)?;
    let path = format!("{path}.ethernet_oam_protocol.cfm");
    let identifier = view.message("ethernet_oam_protocol").and_then(|it| it.message("cfm"));
    let identifier = identifier.ok_or_else(|| unsupported(&path))?;
    let mut bytes = Vec::new();
    if identifier.has("md_name") {
        let path = format!("{path}.md_name");
        let name = identifier.message("md_name").ok_or_else(|| unsupported(&path))?;
        domain_name(name, &path, &mut bytes)?;
    } else {
        // No maintenance domain name (table 21-19).
        bytes.push(1);
    }
    let name_path = format!("{path}.short_ma_name");
    let name = identifier.message("short_ma_name").ok_or_else(|| unsupported(&name_path))?;
    association_name(name, &name_path, &mut bytes)?;
    if bytes.len() > IDENTIFIER {
        let message =
            format!("found {} bytes of names, expected at most {IDENTIFIER}", bytes.len());
        return Err(ConfigError::new(path, message));
    }
    bytes.resize(IDENTIFIER + COUNTERS, 0);
    writer.bytes(&bytes);
    Ok(())
}

/// Table 21-19.
fn domain_name(view: View<'_>, path: &str, out: &mut Vec<u8>) -> Result<(), ConfigError> {
    let (format, name) = match view.choice() {
        Some("domain_name_str") => (2, view.text("domain_name_str").unwrap_or_default().into()),
        Some("mac_addr") => {
            let path = format!("{path}.mac_addr");
            let part = view.message("mac_addr").ok_or_else(|| unsupported(&path))?;
            let mut bytes = mac(part, "mac", &path)?;
            bytes.extend((part.number("id").unwrap_or(0) as u16).to_be_bytes());
            (3, bytes)
        }
        _ => (4, view.text("char_str").unwrap_or_default().as_bytes().to_vec()),
    };
    out.push(format);
    put_with_length(view.message("length"), &name, path, out)
}

/// Table 21-20.
fn association_name(view: View<'_>, path: &str, out: &mut Vec<u8>) -> Result<(), ConfigError> {
    let number = |name: &str| (view.number(name).unwrap_or(0) as u16).to_be_bytes().to_vec();
    let (format, name) = match view.choice() {
        Some("primary_vid") => (1, number("primary_vid")),
        Some("two_oct_int") => (3, number("two_oct_int")),
        Some("rfc_2685_vpn_id") => {
            (4, hex(view.text("rfc_2685_vpn_id").unwrap_or_default(), path)?)
        }
        _ => (2, view.text("char_str").unwrap_or_default().as_bytes().to_vec()),
    };
    out.push(format);
    put_with_length(view.message("length"), &name, path, out)
}

/// Appends a length of one byte and the value.
fn put_with_length(
    length: Option<View<'_>>,
    value: &[u8],
    path: &str,
    out: &mut Vec<u8>,
) -> Result<(), ConfigError> {
    let length = u8::try_from(length_or(length, value.len()));
    let too_long = |_| ConfigError::new(path, "expected a length of at most 255 bytes");
    out.push(length.map_err(too_long)?);
    out.extend(value);
    Ok(())
}

fn mac(view: View<'_>, name: &str, path: &str) -> Result<Vec<u8>, ConfigError> {
    let text = view.text(name).unwrap_or_default();
    let number = ValueKind::Mac.parse(text).map_err(|_| {
        let message = format!("found {text:?}, expected an Ethernet address");
        ConfigError::new(format!("{path}.{name}"), message)
    })?;
    Ok(number.to_be_bytes()[10..].to_vec())
}

/// Section 21.5.1.
fn write_tlv(writer: &mut BitWriter<'_>, tlv: View<'_>, path: &str) -> Result<(), ConfigError> {
    let name = tlv.choice().unwrap_or("sender_id");
    let part_path = format!("{path}.{name}");
    let part = tlv.message(name).ok_or_else(|| unsupported(&part_path))?;
    // Table 21-6.
    let (kind, value) = match name {
        "port_status" => {
            let is_up = part.enum_name("status") != Some("port_blocked");
            (2, vec![if is_up { 2 } else { 1 }])
        }
        "data" => (3, hex(part.text("data").unwrap_or_default(), &part_path)?),
        "interface_status" => {
            // Table 21-11.
            const STATES: [&str; 7] =
                ["up", "down", "testing", "unknown", "dormant", "not_present", "lower_layer_down"];
            let status = part.enum_name("status").unwrap_or("up");
            let place = STATES.iter().position(|state| *state == status).unwrap_or(0);
            (4, vec![place as u8 + 1])
        }
        _ => (1, sender(part, &part_path)?),
    };
    writer.number(kind, 8);
    let start = writer.len();
    let length = tlv.message("length").filter(|_| tlv.has("length"));
    let is_given = length.is_some_and(|length| length.choice() != Some("auto"));
    if is_given {
        writer.field(tlv, "length", path)?;
    } else {
        writer.number(0, 16);
        writer.set_length(start, value.len(), path)?;
    }
    writer.bytes(&value);
    Ok(())
}

/// Section 21.5.3.
fn sender(view: View<'_>, path: &str) -> Result<Vec<u8>, ConfigError> {
    if !view.has("chassis_id") {
        return Ok(vec![0]);
    }
    let path = format!("{path}.chassis_id");
    let chassis = view.message("chassis_id").ok_or_else(|| unsupported(&path))?;
    let text = |name: &str| chassis.text(name).unwrap_or_default().as_bytes().to_vec();
    // IEEE 802.1AB-2016 table 8-2.
    let (kind, id) = match chassis.choice() {
        Some(name @ "chassis_component") => (1, text(name)),
        Some(name @ "interface_alias") => (2, text(name)),
        Some(name @ "port_component") => (3, text(name)),
        Some("network_address") => {
            let path = format!("{path}.network_address");
            let part = chassis.message("network_address").ok_or_else(|| unsupported(&path))?;
            (5, network_address(part, &path)?)
        }
        Some(name @ "interface_name") => (6, text(name)),
        Some(name @ "locally_assigned") => (7, text(name)),
        _ => (4, mac(chassis, "mac_address", &path)?),
    };
    let mut out = Vec::new();
    put_with_length(chassis.message("length"), &id, &path, &mut out)?;
    // The length does not include the subtype behind it.
    out.insert(1, kind);
    let path = format!("{path}.management_address_domain");
    if !chassis.has("management_address_domain") {
        out.push(0);
        return Ok(out);
    }
    let domain = chassis.message("management_address_domain").ok_or_else(|| unsupported(&path))?;
    let identifier = hex(domain.text("domain").unwrap_or_default(), &path)?;
    put_with_length(domain.message("length"), &identifier, &path, &mut out)?;
    let path = format!("{path}.management_address");
    if !domain.has("management_address") {
        out.push(0);
        return Ok(out);
    }
    let address = domain.message("management_address").ok_or_else(|| unsupported(&path))?;
    let bytes = hex(address.text("address").unwrap_or_default(), &path)?;
    put_with_length(address.message("length"), &bytes, &path, &mut out)?;
    Ok(out)
}

fn network_address(view: View<'_>, path: &str) -> Result<Vec<u8>, ConfigError> {
    let name = if view.choice() == Some("ipv6") { "ipv6" } else { "ipv4" };
    let text = view.text(name).unwrap_or_default();
    let kind = if name == "ipv6" { ValueKind::Ipv6 } else { ValueKind::Ipv4 };
    let number = kind.parse(text).map_err(|_| {
        let message = format!("found {text:?}, expected an {name} address");
        ConfigError::new(format!("{path}.{name}"), message)
    })?;
    let bytes = number.to_be_bytes();
    let (family, bytes) = if name == "ipv6" { (2, &bytes[..]) } else { (1, &bytes[12..]) };
    Ok([&[family], bytes].concat())
}
