//! Headers whose layout in the models is that on the wire.

use wirestorm_model::assemble::Value;

use super::bits::{BitWriter, Numbers};
use super::known::hex;
use super::pattern::is_pattern;
use super::{ConfigError, OpenLength, Packet, Problems, unsupported};
use crate::schema::{self, Slot};
use crate::view::View;

/// Reads a header into the packet; returns whether it has such a layout.
pub(super) fn read(
    packet: &mut Packet,
    choice: &str,
    view: View<'_>,
    path: &str,
    problems: &mut Problems,
) -> Result<bool, ConfigError> {
    let none = Numbers::default();
    let (numbers, prefix): (_, &[u8]) = match choice {
        // The whole frame.
        "pfcpause" | "ethernetpause" => (none, &[]),
        // 3GPP TS 29.274 section 4.2.
        "gtpv2" => (Numbers { udp_port: Some(2123), ..none }, &[]),
        // IEEE 802.1AX section 6.4.2.3: a slow protocol of subtype 1.
        "lacp" => (Numbers { ether_type: Some(0x8809), ..none }, &[1]),
        _ => return Ok(false),
    };
    let mut writer = BitWriter::new(packet, problems);
    writer.bytes(prefix);
    let is_tunnel = choice == "gtpv2";
    let mut plain = Plain { writer, is_tunnel, has_tunnel_endpoint: true };
    plain.message(view, path)?;
    plain.writer.finish(numbers, path);
    Ok(true)
}

struct Plain<'a> {
    writer: BitWriter<'a>,
    /// Whether the header is that of GTPv2, which has a length and an optional field.
    is_tunnel: bool,
    has_tunnel_endpoint: bool,
}

impl Plain<'_> {
    fn message(&mut self, view: View<'_>, path: &str) -> Result<(), ConfigError> {
        let slots = schema::layout(view.info.name).ok_or_else(|| unsupported(path))?;
        // IEEE 802.1AX numbers the bits of a state from the least significant one.
        let is_state = view.info.name.ends_with("State");
        let ordered: Vec<&Slot> =
            if is_state { slots.iter().rev().collect() } else { slots.iter().collect() };
        let chosen = view.choice();
        for Slot { field: name, .. } in ordered {
            let Some(field) = view.info.field(name) else { return Err(unsupported(path)) };
            let is_absent = *name == "teid" && !self.has_tunnel_endpoint;
            if is_absent || field.variant.is_some() && chosen != Some(name) {
                continue;
            }
            let inner_path = || format!("{path}.{name}");
            match field.message() {
                Some(message) if is_pattern(message.name) => self.pattern(view, name, path)?,
                Some(_) => {
                    let path = inner_path();
                    let inner = view.message(name).ok_or_else(|| unsupported(&path))?;
                    self.message(inner, &path)?;
                }
                None => {
                    let path = inner_path();
                    let text = view.text(name).ok_or_else(|| unsupported(&path))?;
                    self.writer.bytes(&hex(text, &path)?);
                }
            }
        }
        Ok(())
    }

    fn pattern(&mut self, view: View<'_>, name: &str, path: &str) -> Result<(), ConfigError> {
        if self.is_tunnel && name == "message_length" && !view.has(name) {
            // 3GPP TS 29.274 section 5.5.1: the length does not include the first four bytes.
            let offset = self.writer.len();
            let packet = self.writer.packet();
            let header = packet.headers.len();
            packet.lengths.push(OpenLength { header, offset, from: 4 });
        }
        let value = self.writer.field(view, name, path)?;
        if self.is_tunnel && name == "teid_flag" {
            self.has_tunnel_endpoint = value != Value::Number(0);
        }
        Ok(())
    }
}
