//! Headers with a layout in `wirestorm_wire::layout`.

use wirestorm_model::assemble::{Header, Value};
use wirestorm_wire::layout::{
    Layout, ValueKind, arp, custom, ethernet, gre, gtp, icmp, icmpv6, igmp, ipv4, ipv6, mpls, ppp,
    tcp, udp, vlan, vxlan,
};

use super::fields::{FieldReader, number};
use super::pattern::{self, Pattern};
use super::{ConfigError, HeaderTag, Packet, Place, Problems, tag, unsupported};
use crate::view::View;

/// The value of `vlan.tpid` that the models use for no value.
const TPID_UNSET: u128 = 0xffff;

/// Reads a header into the packet; returns whether it has a layout.
pub(super) fn read(
    packet: &mut Packet,
    choice: &str,
    view: View<'_>,
    is_last: bool,
    path: &str,
    problems: &mut Problems,
) -> Result<bool, ConfigError> {
    let Some(layout) = layout(choice) else { return Ok(false) };
    let mut header = Header::new(layout);
    let mut reader = FieldReader { packet, problems };
    match choice {
        "custom" => bytes(&mut header, view, path, &mut reader)?,
        "icmp" | "icmpv6" => {
            let path = format!("{path}.echo");
            let echo = view.message("echo").ok_or_else(|| unsupported(&path))?;
            reader.all(&mut header, echo, &[], &path);
        }
        "vlan" => {
            reader.all(&mut header, view, &["tpid"], path);
            tag_protocol(&mut header, view, is_last, path, &mut reader)?;
        }
        "ipv4" => {
            reader.all(&mut header, view, &[], path);
            priority(&mut header, view, path, &mut reader);
            options(&mut header, view, path, &mut reader)?;
        }
        "ipv6" => {
            reader.all(&mut header, view, &[], path);
            if view.has("dst_usids") {
                return Err(unsupported(format!("{path}.dst_usids")));
            }
        }
        "gre" => generic_encapsulation(&mut header, view, path, &mut reader)?,
        "gtpv1" => tunnel(&mut header, view, path, &mut reader)?,
        "ppp" => {
            reader.all(&mut header, view, &[], path);
            for field in ["address", "control"] {
                if header.values.iter().all(|(name, _)| *name != field) {
                    header.values.push((field.into(), Value::Auto));
                }
            }
        }
        "ipv6_extension_header" => routing(&mut header, view, path, &mut reader)?,
        _ => reader.all(&mut header, view, &[], path),
    }
    packet.push(header, path);
    Ok(true)
}

fn layout(choice: &str) -> Option<&'static Layout> {
    Some(match choice {
        "custom" => &custom::CUSTOM,
        "ethernet" => &ethernet::ETHERNET,
        "vlan" => &vlan::VLAN,
        "vxlan" => &vxlan::VXLAN,
        "ipv4" => &ipv4::IPV4,
        "ipv6" => &ipv6::IPV6,
        "ipv6_extension_header" => &ipv6::ROUTING,
        "tcp" => &tcp::TCP,
        "udp" => &udp::UDP,
        "gre" => &gre::GRE,
        "gtpv1" => &gtp::GTPV1,
        "arp" => &arp::ARP,
        "icmp" => &icmp::ICMP,
        "icmpv6" => &icmpv6::ICMPV6,
        "ppp" => &ppp::PPP,
        "igmpv1" => &igmp::IGMPV1,
        "mpls" => &mpls::MPLS,
        _ => return None,
    })
}

/// Parses hexadecimal digits; spaces, colons and a leading `0x` are no part of them.
pub(in crate::lower) fn hex(text: &str, path: &str) -> Result<Vec<u8>, ConfigError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mut digits = digits.replace([' ', ':'], "");
    if !digits.len().is_multiple_of(2) {
        digits.insert(0, '0');
    }
    ValueKind::parse_bytes(&digits)
        .map_err(|_| ConfigError::new(path, format!("found {text:?}, expected hexadecimal digits")))
}

fn bytes(
    header: &mut Header,
    view: View<'_>,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    let bytes = hex(view.text("bytes").unwrap_or_default(), &format!("{path}.bytes"))?;
    let bits = 8 * bytes.len();
    let index = reader.packet.headers.len();
    for tag in tag::read(view, bits, path)? {
        let place = Place::Bits { offset: 0, bits };
        reader.packet.tags.push(HeaderTag { header: index, place, tag });
    }
    header.values.push(("bytes".into(), Value::Bytes(bytes)));
    Ok(())
}

/// `tpid` is the Ethernet type of the tag, which the header before it holds. If that header gives
/// its Ethernet type, `tpid` of the last header is the type of what follows the tag.
fn tag_protocol(
    header: &mut Header,
    view: View<'_>,
    is_last: bool,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    if !view.has("tpid") {
        return Ok(());
    }
    let path = format!("{path}.tpid");
    let pattern = view.message("tpid").ok_or_else(|| unsupported(&path))?;
    if pattern.has("metric_tags") {
        return Err(unsupported(format!("{path}.metric_tags")));
    }
    let protocol = match pattern::read(pattern, 16, &path)? {
        Pattern::Constant(TPID_UNSET) => return Ok(()),
        Pattern::Constant(protocol) => protocol,
        _ => return Err(ConfigError::new(path, "not supported: expected one value")),
    };
    let value = Value::Number(protocol);
    match reader.packet.headers.last().and_then(|before| number(before, "ether_type")) {
        None => header.values.push(("tpid".into(), value)),
        Some(given) if given == protocol => {}
        Some(_) if is_last => header.values.push(("ether_type".into(), value)),
        Some(given) => {
            return Err(ConfigError::new(
                path,
                format!("found {protocol}, but ether_type of the header before it is {given}"),
            ));
        }
    }
    Ok(())
}

fn priority(header: &mut Header, view: View<'_>, path: &str, reader: &mut FieldReader<'_>) {
    if !view.has("priority") {
        return;
    }
    let Some(priority) = view.message("priority") else { return };
    let path = format!("{path}.priority");
    match priority.choice() {
        Some("raw") => reader.one(header, "", "priority", priority, "raw", &path),
        Some("tos") => {
            let Some(tos) = priority.message("tos") else { return };
            reader.all(header, tos, &[], &format!("{path}.tos"));
        }
        _ => {
            let Some(dscp) = priority.message("dscp") else { return };
            let path = format!("{path}.dscp");
            reader.one(header, "", "dscp", dscp, "phb", &path);
            reader.one(header, "", "ecn", dscp, "ecn", &path);
        }
    }
}

fn options(
    header: &mut Header,
    view: View<'_>,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    for (index, option) in view.messages("options").into_iter().enumerate() {
        let path = format!("{path}.options[{index}]");
        let prefix = format!("options.{index}.");
        let name = option.choice().unwrap_or("router_alert");
        let layout = header.layout.item(name).ok_or_else(|| unsupported(&path))?;
        let mut item = Header::new(layout);
        match name {
            "custom" => {
                let path = format!("{path}.custom");
                let custom = option.message("custom").ok_or_else(|| unsupported(&path))?;
                if let Some(kind) = custom.message("type") {
                    let path = format!("{path}.type");
                    for field in ["copied_flag", "option_class", "option_number"] {
                        reader.one(&mut item, &prefix, field, kind, field, &path);
                    }
                }
                if let Some(length) = custom.message("length")
                    && length.choice() == Some("value")
                {
                    let length = u128::from(length.number("value").unwrap_or(0));
                    item.values.push(("length".into(), Value::Number(length)));
                }
                let value =
                    hex(custom.text("value").unwrap_or_default(), &format!("{path}.value"))?;
                item.values.push(("value".into(), Value::Bytes(value)));
            }
            "timestamp" => {
                let path = format!("{path}.timestamp");
                let timestamp = option.message("timestamp").ok_or_else(|| unsupported(&path))?;
                timestamp_option(&mut item, timestamp, &prefix, &path, reader)?;
            }
            _ => {}
        }
        header.items.push(item);
    }
    Ok(())
}

/// RFC 791 section 3.1, "Internet Timestamp".
fn timestamp_option(
    item: &mut Header,
    view: View<'_>,
    prefix: &str,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    if let Some(pointer) = view.message("pointer")
        && pointer.choice() == Some("value")
    {
        let pointer = u128::from(pointer.number("value").unwrap_or(5));
        item.values.push(("pointer".into(), Value::Number(pointer)));
    }
    reader.one(item, prefix, "overflow", view, "overflow", path);
    let path = format!("{path}.format");
    let format = view.message("format").ok_or_else(|| unsupported(&path))?;
    let form = format.choice().unwrap_or("timestamps");
    let (flag, has_address) = match form {
        "timestamps" => (0, false),
        "address_and_timestamps" => (1, true),
        _ => (3, true),
    };
    item.values.push(("flag".into(), Value::Number(flag)));
    let entries = item.layout;
    let entry = |name: &str| entries.item(name).ok_or_else(|| unsupported(&path));
    let (address, time) = (entry("address")?, entry("timestamp")?);
    for (index, part) in format.messages(form).into_iter().enumerate() {
        let path = format!("{path}.{form}[{index}]");
        if has_address {
            let mut entry = Header::new(address);
            let prefix = format!("{prefix}entries.{}.", item.items.len());
            reader.one(&mut entry, &prefix, "value", part, "address", &path);
            item.items.push(entry);
        }
        let mut entry = Header::new(time);
        let prefix = format!("{prefix}entries.{}.", item.items.len());
        reader.one(&mut entry, &prefix, "value", part, "timestamp", &path);
        item.items.push(entry);
    }
    Ok(())
}

/// The checksum and the bits behind it are present if `checksum_present` is set. The layout of
/// RFC 2890 has flags in the first bits of `reserved0`.
fn generic_encapsulation(
    header: &mut Header,
    view: View<'_>,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    reader.all(header, view, &["checksum", "reserved0", "reserved1"], path);
    if number(header, "checksum_present").unwrap_or(0) == 1 {
        reader.one(header, "", "checksum", view, "checksum", path);
        reader.one(header, "", "reserved1", view, "reserved1", path);
    }
    if !view.has("reserved0") {
        return Ok(());
    }
    let path = format!("{path}.reserved0");
    let pattern = view.message("reserved0").ok_or_else(|| unsupported(&path))?;
    let varying = reader.packet.varying.len();
    let value = reader.given(Place::Field("reserved0".into()), pattern, 12, &path)?;
    match value {
        Value::Number(number) if number < 512 && reader.packet.varying.len() == varying => {
            header.values.push(("reserved0".into(), value));
            Ok(())
        }
        _ => Err(ConfigError::new(path, "not supported: expected one value below 512")),
    }
}

/// The three last fields are present if one of the flags is set.
fn tunnel(
    header: &mut Header,
    view: View<'_>,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    const OPTIONAL: [&str; 3] = ["squence_number", "n_pdu_number", "next_extension_header_type"];
    reader.all(header, view, &OPTIONAL, path);
    let is_set = |flag: &&str| number(header, flag).is_some_and(|value| value != 0);
    if ["e_flag", "s_flag", "pn_flag"].iter().any(is_set) {
        reader.one(header, "", "sequence_number", view, "squence_number", path);
        for field in ["n_pdu_number", "next_extension_header_type"] {
            reader.one(header, "", field, view, field, path);
        }
    }
    let layout = header.layout.items.layouts.first();
    for (index, extension) in view.messages("extension_headers").into_iter().enumerate() {
        let path = format!("{path}.extension_headers[{index}]");
        let mut item = Header::new(layout.ok_or_else(|| unsupported(&path))?);
        if extension.has("extension_length") {
            let length = constant(extension, "extension_length", 8, &path)?;
            item.values.push(("extension_length".into(), Value::Number(length)));
        }
        // The layout has the type of the next header as the last byte of the contents.
        let contents = constant(extension, "contents", 48, &path)?;
        let next = constant(extension, "next_extension_header", 8, &path)?;
        let bytes = (contents << 8 | next).to_be_bytes()[9..].to_vec();
        item.values.push(("contents".into(), Value::Bytes(bytes)));
        header.items.push(item);
    }
    Ok(())
}

/// Returns the value of a field that cannot vary.
fn constant(view: View<'_>, name: &str, bits: u32, path: &str) -> Result<u128, ConfigError> {
    let path = format!("{path}.{name}");
    let pattern = view.message(name).ok_or_else(|| unsupported(&path))?;
    match pattern::read(pattern, bits, &path)? {
        Pattern::Constant(number) => Ok(number),
        _ => Err(ConfigError::new(path, "not supported: expected one value")),
    }
}

/// Segment routing header, RFC 8754 section 2.
fn routing(
    header: &mut Header,
    view: View<'_>,
    path: &str,
    reader: &mut FieldReader<'_>,
) -> Result<(), ConfigError> {
    reader.all(header, view, &[], path);
    let path = format!("{path}.routing");
    let routing = view.message("routing").ok_or_else(|| unsupported(&path))?;
    let path = format!("{path}.segment_routing");
    let segments = match routing.choice() {
        Some("segment_routing") => routing.message("segment_routing"),
        _ => None,
    };
    let segments = segments.ok_or_else(|| unsupported(&path))?;
    reader.all(header, segments, &[], &path);
    if segments.has("pad_tlv") {
        return Err(unsupported(format!("{path}.pad_tlv")));
    }
    if let Some(flags) = segments.message("flags").filter(|_| segments.has("flags")) {
        // RFC 9259 section 2.1, and the flags of earlier drafts of RFC 8754.
        let path = format!("{path}.flags");
        let mut bits = 0;
        for (name, place) in [("protected", 6), ("oam", 5), ("alert", 4)] {
            bits |= constant(flags, name, 1, &path)? << place;
        }
        header.values.push(("flags".into(), Value::Number(bits)));
    }
    let layout = header.layout.item("segment").ok_or_else(|| unsupported(&path))?;
    for (index, segment) in segments.messages("segment_list").into_iter().enumerate() {
        let mut item = Header::new(layout);
        let path = format!("{path}.segment_list[{index}]");
        let prefix = format!("segments.{index}.");
        reader.one(&mut item, &prefix, "value", segment, "segment", &path);
        header.items.push(item);
    }
    Ok(())
}
