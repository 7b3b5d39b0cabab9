//! Fields of a header with a layout.

use wirestorm_model::assemble::{Header, Value};
use wirestorm_wire::layout::{Presence, Role};

use super::pattern::{self, Pattern, is_pattern};
use super::tag;
use super::{ConfigError, HeaderTag, Packet, Place, Problems, Varying};
use crate::schema::FieldInfo;
use crate::view::View;
use crate::wire::{Fields, Payload};

/// Reads fields into the next header of a packet.
pub(super) struct FieldReader<'a> {
    pub(super) packet: &'a mut Packet,
    pub(super) problems: &'a mut Problems,
}

impl FieldReader<'_> {
    /// Reads all patterns of a message into the fields of the same names. `skipped` are fields that
    /// the caller reads.
    pub(super) fn all(
        &mut self,
        header: &mut Header,
        view: View<'_>,
        skipped: &[&str],
        path: &str,
    ) {
        for field in view.info.fields {
            let is_field = field.message().is_some_and(|message| is_pattern(message.name));
            if is_field && !skipped.contains(&field.name) {
                self.field(header, "", layout_name(field.name), (view, field), path);
            }
        }
    }

    /// Reads the pattern `name` of a message into the field `field` of a header or item. `prefix`
    /// is the path of the item, with a dot at its end.
    pub(super) fn one(
        &mut self,
        target: &mut Header,
        prefix: &str,
        field: &'static str,
        view: View<'_>,
        name: &str,
        path: &str,
    ) {
        if let Some(info) = view.info.field(name) {
            self.field(target, prefix, field, (view, info), path);
        }
    }

    fn field(
        &mut self,
        target: &mut Header,
        prefix: &str,
        field: &'static str,
        (view, info): (View<'_>, &'static FieldInfo),
        path: &str,
    ) {
        let given = view.given(info);
        let Some(known) = target.layout.field(field) else {
            if given.is_some() {
                self.problems.ignore(format!("{path}.{}", info.name));
            }
            return;
        };
        let Some(given) = given else {
            // Otherwise the layout computes it, or the field may be absent.
            if known.role == Role::Plain
                && known.presence == Presence::Always
                && let Some(number) = default_of(info, known.bits as u32)
                && number != known.default
            {
                target.values.push((field.into(), Value::Number(number)));
            }
            return;
        };
        let path = format!("{path}.{}", info.name);
        let place = Place::Field(format!("{prefix}{field}"));
        let outcome = self.given(place, given, known.bits, &path);
        let value = match self.problems.take(outcome) {
            Some(Value::WrongChecksum) if !matches!(known.role, Role::Checksum(_)) => return,
            Some(value) => value,
            None => return,
        };
        target.values.push((field.into(), value));
    }

    /// Reads a pattern and its tags; returns the value of the first frame.
    pub(super) fn given(
        &mut self,
        place: Place,
        view: View<'_>,
        bits: usize,
        path: &str,
    ) -> Result<Value, ConfigError> {
        let header = self.packet.headers.len();
        for tag in tag::read(view, bits, path)? {
            self.packet.tags.push(HeaderTag { header, place: place.clone(), tag });
        }
        Ok(match pattern::read(view, bits as u32, path)? {
            Pattern::Auto => Value::Auto,
            Pattern::Bad => Value::WrongChecksum,
            Pattern::Constant(number) => Value::Number(number),
            Pattern::Varies { values, restart_after } => {
                let first = values.nth(0) & pattern::max_of(bits as u32);
                self.packet.varying.push(Varying { header, place, values, restart_after });
                Value::Number(first)
            }
        })
    }
}

/// Returns the value that the models give an absent field; `None` if it is computed.
fn default_of(field: &FieldInfo, bits: u32) -> Option<u128> {
    let variant = field.message()?.default_variant().filter(|variant| variant.name == "value")?;
    match Fields::new(variant.default).next()?.ok()?.payload {
        Payload::Varint(number) => Some(u128::from(number)),
        Payload::Bytes(text) => pattern::parse_address(std::str::from_utf8(text).ok()?, bits),
        Payload::Fixed32(_) | Payload::Fixed64(_) => None,
    }
}

/// Returns the name in the layout of a field whose name differs.
fn layout_name(name: &'static str) -> &'static str {
    match name {
        "squence_number" => "sequence_number",
        name => name,
    }
}

/// Returns the number that a header gives for a field.
pub(super) fn number(header: &Header, field: &str) -> Option<u128> {
    match header.values.iter().find(|(name, _)| *name == field)?.1 {
        Value::Number(number) => Some(number),
        _ => None,
    }
}
