//! JSON to the canonical encoding.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::DecodeError;
use super::finish::{Seen, finish};
use super::path::{Context, Segment};
use crate::schema::{FieldInfo, Kind, MessageInfo};
use crate::wire::{put_length_at, put_tag, put_varint};

/// Reads a JSON object as a message.
pub(super) fn read(
    info: &'static MessageInfo,
    text: &str,
    context: &mut Context,
) -> Result<(), DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut failure = None;
    let reader = Reader { context, failure: &mut failure };
    let outcome = MessageSeed { info, reader }.deserialize(&mut deserializer);
    match outcome.and_then(|()| deserializer.end()) {
        Ok(()) => Ok(()),
        Err(error) => Err(failure.unwrap_or_else(|| context.error(error.to_string()))),
    }
}

struct Reader<'a> {
    context: &'a mut Context,
    /// The error, if it is not one of the JSON syntax.
    failure: &'a mut Option<DecodeError>,
}

impl Reader<'_> {
    fn reborrow(&mut self) -> Reader<'_> {
        Reader { context: self.context, failure: self.failure }
    }

    /// Records the error for [`read`]; the deserializer returns another one.
    fn fail<E: Error>(&mut self, error: DecodeError) -> E {
        *self.failure = Some(error);
        E::custom("")
    }

    fn unexpected<E: Error>(&mut self, found: impl fmt::Display, expected: &str) -> E {
        let error = self.context.error(format!("found {found}, expected {expected}"));
        self.fail(error)
    }
}

/// Reads the fields of a message.
struct MessageSeed<'a> {
    info: &'static MessageInfo,
    reader: Reader<'a>,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        Err(self.reader.unexpected(value, "an object"))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        Err(self.reader.unexpected(value, "an object"))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        Err(self.reader.unexpected(value, "an object"))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        Err(self.reader.unexpected(value, "an object"))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        Err(self.reader.unexpected(shown(value), "an object"))
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        Err(self.reader.unexpected("null", "an object"))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, _: A) -> Result<(), A::Error> {
        Err(self.reader.unexpected("a list", "an object"))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen = Seen::default();
        while let Some(key) = map.next_key_seed(KeySeed { info: self.info })? {
            let index = match key {
                Key::Known(index) => index,
                Key::Unknown(name) => {
                    map.next_value::<IgnoredAny>()?;
                    let message = "unknown field, ignored".to_owned();
                    self.reader.context.warn(|context| context.path_of(&name), message);
                    continue;
                }
            };
            let field = &self.info.fields[index];
            self.reader.context.enter(Segment::Field(field.name));
            let reader = self.reader.reborrow();
            let outcome = map.next_value_seed(FieldSeed { field, reader })?;
            if outcome.is_present && !seen.insert(index) {
                let error = self.reader.context.error("found a second time");
                return Err(self.reader.fail(error));
            }
            if self.info.choice == Some(index) {
                seen.choice = outcome.enum_value;
            }
            self.reader.context.leave();
        }
        finish(self.info, seen, self.reader.context).map_err(|error| self.reader.fail(error))
    }
}

/// Finds a field by its name.
struct KeySeed {
    info: &'static MessageInfo,
}

enum Key {
    Known(usize),
    Unknown(String),
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Key, E> {
        Ok(self.info.index(name).map_or_else(|| Key::Unknown(name.to_owned()), Key::Known))
    }
}

/// What a value was.
#[derive(Clone, Copy, Default)]
struct Outcome {
    /// Whether it was not null.
    is_present: bool,
    enum_value: Option<i32>,
}

impl Outcome {
    const PRESENT: Self = Self { is_present: true, enum_value: None };
}

/// Reads the value of a field, or the list of its values.
struct FieldSeed<'a> {
    field: &'static FieldInfo,
    reader: Reader<'a>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Outcome;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Outcome, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl FieldSeed<'_> {
    /// Writes the value of a scalar field that is no list.
    fn single<E: Error>(mut self, value: Scalar<'_>) -> Result<Outcome, E> {
        if self.field.is_repeated {
            return Err(self.reader.unexpected(value, "a list"));
        }
        put_tag(self.field.number, wire_type(self.field.kind), &mut self.reader.context.out);
        put_scalar(self.field, value, &mut self.reader)
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = Outcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&expected(self.field))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Outcome, E> {
        self.single(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Outcome, E> {
        self.single(Scalar::Integer(i128::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Outcome, E> {
        self.single(Scalar::Integer(i128::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Outcome, E> {
        self.single(Scalar::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Outcome, E> {
        self.single(Scalar::Text(value))
    }

    /// `null` is an absent field, as in the JSON form of protobuf.
    fn visit_unit<E: Error>(self) -> Result<Outcome, E> {
        Ok(Outcome::default())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<Outcome, A::Error> {
        let Some(info) = self.field.message().filter(|_| !self.field.is_repeated) else {
            let expected = expected(self.field);
            return Err(self.reader.unexpected("an object", &expected));
        };
        put_tag(self.field.number, 2, &mut self.reader.context.out);
        let start = self.reader.context.out.len();
        MessageSeed { info, reader: self.reader.reborrow() }.visit_map(map)?;
        put_length_at(start, &mut self.reader.context.out);
        Ok(Outcome::PRESENT)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Outcome, A::Error> {
        let field = self.field;
        if !field.is_repeated {
            let expected = expected(field);
            return Err(self.reader.unexpected("a list", &expected));
        }
        let is_packed = !matches!(field.kind, Kind::Message(_) | Kind::String | Kind::Bytes);
        if is_packed {
            put_tag(field.number, 2, &mut self.reader.context.out);
        }
        let start = self.reader.context.out.len();
        for index in 0.. {
            self.reader.context.enter(Segment::Index(index));
            let seed = ItemSeed { field, reader: self.reader.reborrow() };
            if list.next_element_seed(seed)?.is_none() {
                break;
            }
            self.reader.context.leave();
        }
        self.reader.context.leave();
        if is_packed {
            put_length_at(start, &mut self.reader.context.out);
        }
        Ok(Outcome::PRESENT)
    }
}

/// Reads an item of a list.
struct ItemSeed<'a> {
    field: &'static FieldInfo,
    reader: Reader<'a>,
}

impl<'de> DeserializeSeed<'de> for ItemSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let Some(info) = self.field.message() else {
            return deserializer.deserialize_any(self);
        };
        put_tag(self.field.number, 2, &mut self.reader.context.out);
        let start = self.reader.context.out.len();
        MessageSeed { info, reader: self.reader.reborrow() }.deserialize(deserializer)?;
        put_length_at(start, &mut self.reader.context.out);
        Ok(())
    }
}

impl ItemSeed<'_> {
    fn item<E: Error>(mut self, value: Scalar<'_>) -> Result<(), E> {
        if matches!(self.field.kind, Kind::String | Kind::Bytes) {
            put_tag(self.field.number, 2, &mut self.reader.context.out);
        }
        put_scalar(self.field, value, &mut self.reader).map(|_| ())
    }
}

impl Visitor<'_> for ItemSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&expected(self.field))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.item(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.item(Scalar::Integer(i128::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.item(Scalar::Integer(i128::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.item(Scalar::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.item(Scalar::Text(value))
    }
}

#[derive(Clone, Copy)]
enum Scalar<'a> {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(&'a str),
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{}", shown(value)),
        }
    }
}

impl Scalar<'_> {
    fn integer(self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(value),
            // 1e3 and 1.0 are integers in JSON.
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => Some(value as i128),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn float(self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Text(text) => text.parse().ok(),
            Self::Bool(_) => None,
        }
    }
}

/// Writes a value without its tag.
fn put_scalar<E: Error>(
    field: &FieldInfo,
    value: Scalar<'_>,
    reader: &mut Reader<'_>,
) -> Result<Outcome, E> {
    let out = &mut reader.context.out;
    let is_written = match (field.kind, value) {
        (Kind::Bool, Scalar::Bool(value)) => {
            put_varint(u64::from(value), out);
            true
        }
        (Kind::Int32, value) => match value.integer().map(i32::try_from) {
            Some(Ok(number)) => {
                put_varint(i64::from(number) as u64, out);
                true
            }
            _ => false,
        },
        (Kind::Uint32, value) => match value.integer().map(u32::try_from) {
            Some(Ok(number)) => {
                put_varint(u64::from(number), out);
                true
            }
            _ => false,
        },
        (Kind::Uint64, value) => match value.integer().map(u64::try_from) {
            Some(Ok(number)) => {
                put_varint(number, out);
                true
            }
            _ => false,
        },
        (Kind::Float, value) => value.float().is_some_and(|number| {
            out.extend((number as f32).to_le_bytes());
            true
        }),
        (Kind::Double, value) => value.float().is_some_and(|number| {
            out.extend(number.to_le_bytes());
            true
        }),
        (Kind::String, Scalar::Text(text)) => {
            put_varint(text.len() as u64, out);
            out.extend(text.as_bytes());
            true
        }
        (Kind::Enum(_), Scalar::Text(text)) => {
            if let Some(number) = field.values().and_then(|values| values.number(text)) {
                put_varint(number as u64, out);
                return Ok(Outcome { is_present: true, enum_value: Some(number) });
            }
            false
        }
        _ => false,
    };
    if is_written {
        return Ok(Outcome::PRESENT);
    }
    Err(reader.unexpected(value, &expected_item(field)))
}

const fn wire_type(kind: Kind) -> u8 {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Uint32 | Kind::Uint64 | Kind::Enum(_) => 0,
        Kind::Double => 1,
        Kind::String | Kind::Bytes | Kind::Message(_) => 2,
        Kind::Float => 5,
    }
}

fn expected(field: &FieldInfo) -> String {
    if field.is_repeated { "a list".into() } else { expected_item(field) }
}

fn expected_item(field: &FieldInfo) -> String {
    match field.kind {
        Kind::Bool => "true or false".into(),
        Kind::Int32 => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        Kind::Uint32 => format!("a whole number from 0 to {}", u32::MAX),
        Kind::Uint64 => format!("a whole number from 0 to {}", u64::MAX),
        Kind::Float | Kind::Double => "a number".into(),
        Kind::String => "a text".into(),
        Kind::Bytes => "no field of bytes, which JSON does not have".into(),
        Kind::Enum(_) => {
            format!("one of {}", field.values().map(|values| values.names()).unwrap_or_default())
        }
        Kind::Message(_) => "an object".into(),
    }
}

/// Returns the start of a text, in quotes.
fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
