//! Headers by their layout in the models: bits in the order of the fields.

use wirestorm_model::assemble::{Header, Value};
use wirestorm_wire::layout::custom::CUSTOM;

use super::fields::FieldReader;
use super::known::hex;
use super::pattern::is_pattern;
use super::{ConfigError, OpenLength, Packet, Place, Problems, unsupported};
use crate::schema::{self, Slot};
use crate::view::View;

/// How the header before one announces it, and what the models leave out.
struct Announced {
    ether_type: Option<u128>,
    udp_port: Option<u128>,
    /// Bytes before the fields.
    prefix: &'static [u8],
}

/// Reads a header into the packet.
pub(super) fn read(
    packet: &mut Packet,
    choice: &str,
    view: View<'_>,
    path: &str,
    problems: &mut Problems,
) -> Result<(), ConfigError> {
    let none = Announced { ether_type: None, udp_port: None, prefix: &[] };
    let announced = match choice {
        // The whole frame.
        "pfcpause" | "ethernetpause" => none,
        // 3GPP TS 29.274 section 4.2.
        "gtpv2" => Announced { udp_port: Some(2123), ..none },
        // IEEE 802.1AX section 6.4.2.3: a slow protocol of subtype 1.
        "lacp" => Announced { ether_type: Some(0x8809), prefix: &[1], ..none },
        _ => return Err(unsupported(path)),
    };
    let mut writer = BitWriter {
        bytes: announced.prefix.to_vec(),
        spare: 0,
        is_tunnel: choice == "gtpv2",
        has_tunnel_endpoint: true,
        reader: FieldReader { packet, problems },
    };
    writer.message(view, path)?;
    let bytes = writer.bytes;
    announce(packet, &announced);
    let mut header = Header::new(&CUSTOM);
    header.values.push(("bytes".into(), Value::Bytes(bytes)));
    packet.push(header, path);
    Ok(())
}

/// Sets the number of the header in the one before it, unless that gives another.
fn announce(packet: &mut Packet, announced: &Announced) {
    let Some(before) = packet.headers.last_mut() else { return };
    let (field, number) = match before.layout.name {
        "ethernet" | "vlan" => ("ether_type", announced.ether_type),
        "udp" => ("dst_port", announced.udp_port),
        _ => return,
    };
    let is_open = |(name, value): &(_, Value)| *name != field || *value == Value::Auto;
    if let Some(number) = number
        && before.values.iter().all(is_open)
    {
        before.values.retain(|(name, _)| *name != field);
        before.values.push((field.into(), Value::Number(number)));
    }
}

struct BitWriter<'a> {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not written yet.
    spare: usize,
    /// Whether the header is that of GTPv2, which has a length and an optional field.
    is_tunnel: bool,
    has_tunnel_endpoint: bool,
    reader: FieldReader<'a>,
}

impl BitWriter<'_> {
    fn message(&mut self, view: View<'_>, path: &str) -> Result<(), ConfigError> {
        let slots = schema::layout(view.info.name).ok_or_else(|| unsupported(path))?;
        let is_state = view.info.name.ends_with("State");
        // IEEE 802.1AX numbers the bits of a state from the least significant one.
        let ordered: Vec<&Slot> =
            if is_state { slots.iter().rev().collect() } else { slots.iter().collect() };
        let chosen = view.choice();
        for slot in ordered {
            let path = format!("{path}.{}", slot.field);
            let Some(field) = view.info.field(slot.field) else { return Err(unsupported(path)) };
            let is_absent = slot.field == "teid" && !self.has_tunnel_endpoint;
            if is_absent || field.variant.is_some() && chosen != Some(slot.field) {
                continue;
            }
            match field.message() {
                Some(message) if is_pattern(message.name) => {
                    self.pattern(view, slot, &path)?;
                }
                Some(_) => {
                    let inner = view.message(slot.field).ok_or_else(|| unsupported(&path))?;
                    self.message(inner, &path)?;
                }
                None => {
                    let text = view.text(slot.field).ok_or_else(|| unsupported(&path))?;
                    self.bytes.extend(hex(text, &path)?);
                }
            }
        }
        Ok(())
    }

    fn pattern(&mut self, view: View<'_>, slot: &Slot, path: &str) -> Result<(), ConfigError> {
        let bits = slot.bits as usize;
        let offset = 8 * self.bytes.len() - self.spare;
        let pattern = view.message(slot.field).ok_or_else(|| unsupported(path))?;
        let place = Place::Bits { offset, bits };
        if self.is_tunnel && slot.field == "message_length" && !view.has(slot.field) {
            // 3GPP TS 29.274 section 5.5.1: the length does not include the first four bytes.
            let header = self.reader.packet.headers.len();
            self.reader.packet.lengths.push(OpenLength { header, offset: offset / 8, from: 4 });
        }
        let number = match self.reader.given(place, pattern, bits, path)? {
            Value::Number(number) => number,
            // The models have a value for systems that compute none.
            _ => u128::from(pattern.number("value").unwrap_or(0)),
        };
        if self.is_tunnel && slot.field == "teid_flag" {
            self.has_tunnel_endpoint = number != 0;
        }
        for bit in (0..bits).rev() {
            if self.spare == 0 {
                self.bytes.push(0);
                self.spare = 8;
            }
            self.spare -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((number >> bit & 1) as u8) << self.spare;
            }
        }
        Ok(())
    }
}
