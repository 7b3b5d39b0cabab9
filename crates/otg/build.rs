//! Generates from the Open Traffic Generator models:
//!
//! - `otg.rs`: Rust types of the messages that the crate reads field by field;
//! - `otg.Openapi.rs`: the trait of the gRPC service, with the feature `grpc`;
//! - `schema.rs`: a table of all messages, with names, numbers, types and defaults of their fields.

#![expect(clippy::disallowed_methods, reason = "a build script reads and writes files")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use serde_json::Value;

/// Messages that stay encoded in the Rust types: packet headers, which the crate reads by the
/// schema, and the settings and results of protocols that no part of Wirestorm speaks. A name that
/// ends with `*` is a prefix.
const ENCODED: [&str; 57] = [
    "FlowHeader",
    "DeviceIsisRouter",
    "DeviceBgpRouter",
    "DeviceVxlan",
    "DeviceRsvp",
    "DeviceDhcp*",
    "DeviceOspfv2Router",
    "DeviceOspfv3Router",
    "DeviceMacsec",
    "DeviceRocev2Peer",
    "DeviceBmp",
    "LagPortMacsec",
    "Lldp",
    "StatefulFlow",
    "ProtocolOptions",
    "PerPortOptions",
    "ProtocolsUpdate",
    "StateProtocolBgp",
    "StateProtocolIsis",
    "StateProtocolOspfv2",
    "StateProtocolOspfv3",
    "StateProtocolRocev2",
    "StateProtocolMacsec",
    "StateProtocolBmp*",
    "ActionProtocolBgp",
    "ActionProtocolIsis",
    "ActionResponseProtocolBgp",
    "ActionResponseProtocolIsis",
    "Bgpv4Metric*",
    "Bgpv6Metric*",
    "IsisMetric*",
    "LacpMetric*",
    "LldpMetric*",
    "RsvpMetric*",
    "Dhcpv4ClientMetric*",
    "Dhcpv4ServerMetric*",
    "Dhcpv6ClientMetric*",
    "Dhcpv6ServerMetric*",
    "Ospfv2Metric*",
    "Ospfv3Metric*",
    "MacsecMetric*",
    "MkaMetric*",
    "Rocev2IPv4Metric*",
    "Rocev2IPv6Metric*",
    "Rocev2FlowMetric*",
    "BmpServerMetric*",
    "BgpPrefix*",
    "IsisLsps*",
    "IsisIIHs*",
    "LldpNeighbors*",
    "RsvpLsps*",
    "Dhcpv4Interface*",
    "Dhcpv4Lease*",
    "Dhcpv6*",
    "Ospfv2Lsa*",
    "Ospfv3Lsa*",
    "BmpServersState*",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut set = protox::compile(["otg.proto"], ["proto"])?;
    let tables: Value = serde_json::from_str(&std::fs::read_to_string("proto/tables.json")?)?;
    for file in &mut set.file {
        // Comments and positions, which neither output needs.
        file.source_code_info = None;
    }
    let schema = Schema::new(&set, &tables)?.text()?;
    std::fs::write(out.join("schema.rs"), schema)?;
    #[cfg(feature = "grpc")]
    for service in set.file.iter().flat_map(|file| &file.service) {
        generate_service(service, &out);
    }
    generate_types(set, &out)
}

/// Writes the Rust types of the messages that the service reaches without [`ENCODED`] ones.
fn generate_types(mut set: FileDescriptorSet, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut config = prost_build::Config::new();
    config.out_dir(out).enable_type_names();
    for file in set.file.iter_mut().filter(|file| file.package() == "otg") {
        let reachable = reachable_messages(&file.message_type, &roots(file));
        for message in &mut file.message_type {
            if is_encoded(message.name()) {
                config.extern_path(format!(".otg.{}", message.name()), "crate::EncodedMessage");
                // One text, so that prost-build does not take the message for `Copy`.
                let text = FieldDescriptorProto {
                    name: Some("text".to_owned()),
                    number: Some(1),
                    r#type: Some(Type::String.into()),
                    ..FieldDescriptorProto::default()
                };
                message.field = vec![text];
                message.nested_type.clear();
            }
        }
        file.message_type
            .retain(|message| is_encoded(message.name()) || reachable.contains(message.name()));
        file.service.clear();
    }
    config.compile_fds(set)?;
    Ok(())
}

/// Writes the trait of the service. Its codec reports unknown fields, which that of tonic drops.
#[cfg(feature = "grpc")]
fn generate_service(service: &prost_types::ServiceDescriptorProto, out: &Path) {
    let rust_type = |name: &str| match name.strip_prefix(".otg.") {
        Some(name) => format!("crate::proto::{name}"),
        None => "crate::service::Empty".to_owned(),
    };
    let mut builder = tonic_build::manual::Service::builder().name(service.name()).package("otg");
    for method in &service.method {
        let input = rust_type(method.input_type());
        let mut one = tonic_build::manual::Method::builder()
            .name(snake_case(method.name()))
            .route_name(method.name())
            .input_type(format!("crate::service::Received<{input}>"))
            .output_type(rust_type(method.output_type()))
            .codec_path("crate::service::MessageCodec");
        if method.client_streaming() {
            one = one.client_streaming();
        }
        if method.server_streaming() {
            one = one.server_streaming();
        }
        builder = builder.method(one.build());
    }
    tonic_build::manual::Builder::new()
        .build_client(false)
        .out_dir(out)
        .compile(&[builder.build()]);
}

#[cfg(feature = "grpc")]
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && index > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Returns the messages of the service's methods, and the bodies of its HTTP form.
fn roots(file: &prost_types::FileDescriptorProto) -> Vec<String> {
    let methods = file.service.iter().flat_map(|service| &service.method);
    let types = methods.flat_map(|method| [method.input_type(), method.output_type()]);
    let of_file = types.filter_map(|name| name.strip_prefix(".otg."));
    of_file.map(str::to_owned).chain(["Error".to_owned()]).collect()
}

fn reachable_messages(messages: &[DescriptorProto], roots: &[String]) -> BTreeSet<String> {
    let by_name: BTreeMap<&str, &DescriptorProto> =
        messages.iter().map(|message| (message.name(), message)).collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = roots.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        let Some(message) = by_name.get(name) else { continue };
        if is_encoded(name) || !found.insert(name.to_owned()) {
            continue;
        }
        let fields = message.field.iter().filter(|field| field.r#type() == Type::Message);
        open.extend(fields.filter_map(|field| field.type_name().strip_prefix(".otg.")));
    }
    found
}

fn is_encoded(message: &str) -> bool {
    ENCODED.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => message.starts_with(prefix),
        None => message == *pattern,
    })
}

/// All messages with the defaults of the models.
struct Schema<'a> {
    messages: Vec<&'a DescriptorProto>,
    enums: BTreeMap<String, &'a EnumDescriptorProto>,
    tables: &'a Value,
}

impl<'a> Schema<'a> {
    fn new(set: &'a FileDescriptorSet, tables: &'a Value) -> Result<Self, Box<dyn Error>> {
        let mut this = Self { messages: Vec::new(), enums: BTreeMap::new(), tables };
        for file in set.file.iter().filter(|file| file.package() == "otg") {
            for message in &file.message_type {
                this.messages.push(message);
                // Enums stand in messages of their own: FlowSize.Choice.Enum.
                for holder in &message.nested_type {
                    for one in &holder.enum_type {
                        let name =
                            format!(".otg.{}.{}.{}", message.name(), holder.name(), one.name());
                        this.enums.insert(name, one);
                    }
                }
            }
        }
        this.messages.sort_by_key(|message| message.name());
        let known: BTreeSet<&str> = this.messages.iter().map(|message| message.name()).collect();
        for name in tables["messages"].as_object().ok_or("tables.json: no messages")?.keys() {
            if !known.contains(name.as_str()) {
                return Err(format!("tables.json: {name} is not in otg.proto").into());
            }
        }
        Ok(this)
    }

    fn text(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        let enums: Vec<&String> = self.enums.keys().collect();
        writeln!(text, "static ENUMS: [EnumInfo; {}] = [", enums.len())?;
        for values in self.enums.values() {
            let pairs: Vec<_> = values
                .value
                .iter()
                .map(|it| format!("({:?}, {})", it.name(), it.number()))
                .collect();
            writeln!(text, "    EnumInfo {{ values: &[{}] }},", pairs.join(", "))?;
        }
        writeln!(text, "];")?;
        writeln!(text, "static MESSAGES: [MessageInfo; {}] = [", self.messages.len())?;
        for message in &self.messages {
            self.message(message, &enums, &mut text)?;
        }
        writeln!(text, "];")?;
        let layouts = self.tables["layouts"].as_object().ok_or("tables.json: no layouts")?;
        writeln!(text, "static LAYOUTS: [(&str, &[Slot]); {}] = [", layouts.len())?;
        for (name, slots) in layouts {
            let mut parts = Vec::new();
            for slot in slots.as_array().ok_or("a layout is no list")? {
                // A reference to a part has no length of its own.
                let (field, bits) = (slot[0].as_str(), slot[2].as_u64().unwrap_or(0));
                let field = field.ok_or("a field without name")?;
                parts.push(format!("Slot {{ field: {field:?}, bits: {bits} }}"));
            }
            writeln!(text, "    ({name:?}, &[{}]),", parts.join(", "))?;
        }
        writeln!(text, "];")?;
        Ok(text)
    }

    fn message(
        &self,
        message: &DescriptorProto,
        enums: &[&String],
        text: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        let entry = &self.tables["messages"][message.name()];
        let mut fields: Vec<&FieldDescriptorProto> = message.field.iter().collect();
        fields.sort_by_key(|field| field.number());
        if fields.len() > 128 {
            return Err(format!("{}: more than 128 fields", message.name()).into());
        }
        let mut by_name: Vec<usize> = (0..fields.len()).collect();
        by_name.sort_by_key(|index| fields[*index].name());
        let choice = fields
            .iter()
            .position(|field| field.name() == "choice" && field.r#type() == Type::Enum);
        let variants = choice.and_then(|index| self.enums.get(fields[index].type_name()));
        let chosen = entry["defaults"]["choice"].as_str();
        let default_variant =
            chosen.and_then(|chosen| fields.iter().position(|field| field.name() == chosen));
        writeln!(
            text,
            "    MessageInfo {{ name: {:?}, choice: {choice:?}, default_variant: {default_variant:?},",
            message.name()
        )?;
        writeln!(text, "        by_name: &{by_name:?}, fields: &[")?;
        for field in fields {
            let is_required = entry["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|name| name == field.name()));
            let default = match entry["defaults"].get(field.name()) {
                Some(value) => self
                    .default(field, value)
                    .map_err(|error| format!("{}.{}: {error}", message.name(), field.name()))?,
                None => Vec::new(),
            };
            let variant = variants
                .and_then(|values| values.value.iter().find(|value| value.name() == field.name()));
            let variant = variant.map(|value| value.number());
            writeln!(
                text,
                "        FieldInfo {{ name: {:?}, number: {}, kind: {}, is_repeated: {}, \
                 is_required: {is_required}, variant: {variant:?}, default: &{default:?} }},",
                field.name(),
                field.number(),
                self.kind(field, enums)?,
                field.label() == Label::Repeated,
            )?;
        }
        writeln!(text, "    ] }},")?;
        Ok(())
    }

    fn kind(&self, field: &FieldDescriptorProto, enums: &[&String]) -> Result<String, String> {
        Ok(match field.r#type() {
            Type::Bool => "Kind::Bool".into(),
            Type::Int32 => "Kind::Int32".into(),
            Type::Uint32 => "Kind::Uint32".into(),
            Type::Uint64 => "Kind::Uint64".into(),
            Type::Float => "Kind::Float".into(),
            Type::Double => "Kind::Double".into(),
            Type::String => "Kind::String".into(),
            Type::Bytes => "Kind::Bytes".into(),
            Type::Enum => {
                let index = enums.iter().position(|name| *name == field.type_name());
                format!("Kind::Enum({})", index.ok_or("unknown enum")?)
            }
            Type::Message => {
                let name = field.type_name().strip_prefix(".otg.").ok_or("foreign message")?;
                let index = self.messages.iter().position(|message| message.name() == name);
                format!("Kind::Message({})", index.ok_or("unknown message")?)
            }
            other => return Err(format!("{}: no support for {other:?}", field.name())),
        })
    }

    /// Returns the encoded field with its default value.
    fn default(&self, field: &FieldDescriptorProto, value: &Value) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let tag = u64::from(field.number() as u32) << 3;
        let Some(items) = value.as_array() else {
            let (wire_type, bytes) = self.scalar(field, value)?;
            varint(tag | wire_type, &mut out);
            if wire_type == 2 {
                varint(bytes.len() as u64, &mut out);
            }
            out.extend(bytes);
            return Ok(out);
        };
        let items: Vec<(u64, Vec<u8>)> =
            items.iter().map(|item| self.scalar(field, item)).collect::<Result<_, _>>()?;
        let is_text = matches!(field.r#type(), Type::String | Type::Bytes);
        if is_text {
            for (_, bytes) in items {
                varint(tag | 2, &mut out);
                varint(bytes.len() as u64, &mut out);
                out.extend(bytes);
            }
        } else {
            let packed: Vec<u8> = items.into_iter().flat_map(|(_, bytes)| bytes).collect();
            varint(tag | 2, &mut out);
            varint(packed.len() as u64, &mut out);
            out.extend(packed);
        }
        Ok(out)
    }

    /// Returns the wire type and the encoded value, without the length of a text.
    fn scalar(
        &self,
        field: &FieldDescriptorProto,
        value: &Value,
    ) -> Result<(u64, Vec<u8>), String> {
        let wrong = || format!("{value} is no {:?}", field.r#type());
        let mut out = Vec::new();
        let number = value.as_u64().or_else(|| value.as_f64().map(|it| it as u64));
        let wire_type = match field.r#type() {
            Type::Bool => {
                varint(u64::from(value.as_bool().ok_or_else(wrong)?), &mut out);
                0
            }
            Type::Int32 => {
                varint(value.as_i64().ok_or_else(wrong)? as u64, &mut out);
                0
            }
            Type::Uint32 | Type::Uint64 => {
                varint(number.ok_or_else(wrong)?, &mut out);
                0
            }
            Type::Float => {
                out.extend((value.as_f64().ok_or_else(wrong)? as f32).to_le_bytes());
                5
            }
            Type::Double => {
                out.extend(value.as_f64().ok_or_else(wrong)?.to_le_bytes());
                1
            }
            Type::String => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                out.extend(text.into_bytes());
                2
            }
            Type::Enum => {
                let name = value.as_str().ok_or_else(wrong)?;
                let values = &self.enums.get(field.type_name()).ok_or("unknown enum")?.value;
                let value = values.iter().find(|it| it.name() == name).ok_or_else(wrong)?;
                varint(value.number() as u64, &mut out);
                0
            }
            _ => return Err(wrong()),
        };
        Ok((wire_type, out))
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
