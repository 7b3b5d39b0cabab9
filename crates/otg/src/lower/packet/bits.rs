//! Headers that are written bit by bit, and how the header before one announces it.

use wirestorm_model::assemble::{Header, Value};
use wirestorm_wire::layout::custom::CUSTOM;

use super::fields::FieldReader;
use super::{ConfigError, Packet, Place, Problems, unsupported};
use crate::schema;
use crate::view::View;

/// Numbers of a header in the fields of the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) ether_type: Option<u128>,
    pub(super) ip_protocol: Option<u128>,
    pub(super) udp_port: Option<u128>,
}

/// Writes the fields of a header one after the other.
pub(super) struct BitWriter<'a> {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not written yet.
    spare: usize,
    reader: FieldReader<'a>,
}

impl<'a> BitWriter<'a> {
    /// Starts the next header of a packet.
    pub(super) const fn new(packet: &'a mut Packet, problems: &'a mut Problems) -> Self {
        Self { bytes: Vec::new(), spare: 0, reader: FieldReader { packet, problems } }
    }

    /// Returns the number of bytes so far.
    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes so far.
    pub(super) fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the packet with the headers before this one.
    pub(super) const fn packet(&mut self) -> &mut Packet {
        self.reader.packet
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: u128, bits: usize) {
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
    }

    /// Appends bytes. The fields before them end with a byte.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Appends the pattern of a field, and returns the value of the first frame.
    pub(super) fn field(
        &mut self,
        view: View<'_>,
        name: &str,
        path: &str,
    ) -> Result<Value, ConfigError> {
        let path = format!("{path}.{name}");
        let slots = schema::layout(view.info.name).unwrap_or_default();
        let slot = slots.iter().find(|slot| slot.field == name);
        let bits = slot.map_or(0, |slot| slot.bits as usize);
        let pattern = view.message(name).ok_or_else(|| unsupported(&path))?;
        let offset = 8 * self.bytes.len() - self.spare;
        let value = self.reader.given(Place::Bits { offset, bits }, pattern, bits, &path)?;
        let number = match value {
            Value::Number(number) => number,
            // The models have a value for systems that compute none.
            _ => u128::from(pattern.number("value").unwrap_or(0)),
        };
        self.number(number, bits);
        Ok(value)
    }

    /// Appends a number of the models, without a pattern.
    pub(super) fn plain(
        &mut self,
        view: View<'_>,
        name: &str,
        bits: usize,
        path: &str,
    ) -> Result<(), ConfigError> {
        let number = u128::from(view.number(name).unwrap_or(0));
        if number >> bits != 0 {
            let message = format!("found {number}, expected at most {}", (1_u128 << bits) - 1);
            return Err(ConfigError::new(format!("{path}.{name}"), message));
        }
        self.number(number, bits);
        Ok(())
    }

    /// Writes a length of 16 bits at an earlier place.
    pub(super) fn set_length(
        &mut self,
        at: usize,
        length: usize,
        path: &str,
    ) -> Result<(), ConfigError> {
        let length = u16::try_from(length).map_err(|_| {
            ConfigError::new(path, format!("found {length} bytes, expected at most 65535"))
        })?;
        if let Some(field) = self.bytes.get_mut(at..at + 2) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Adds the header to the packet.
    pub(super) fn finish(self, numbers: Numbers, path: &str) {
        let packet = self.reader.packet;
        announce(packet, numbers);
        let mut header = Header::new(&CUSTOM);
        header.values.push(("bytes".into(), Value::Bytes(self.bytes)));
        packet.push(header, path);
    }
}

/// Returns a length: the one that is given, or `auto`.
pub(super) fn length_or(view: Option<View<'_>>, auto: usize) -> usize {
    match view {
        Some(view) if view.choice() == Some("value") => view.number("value").unwrap_or(0) as usize,
        _ => auto,
    }
}

/// Sets the number of the header in the one before it, unless that gives another.
fn announce(packet: &mut Packet, numbers: Numbers) {
    let Some(before) = packet.headers.last_mut() else { return };
    let (field, number) = match before.layout.name {
        "ethernet" | "vlan" => ("ether_type", numbers.ether_type),
        "ipv4" => ("protocol", numbers.ip_protocol),
        "ipv6" | "ipv6_routing" => ("next_header", numbers.ip_protocol),
        "udp" => ("dst_port", numbers.udp_port),
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
