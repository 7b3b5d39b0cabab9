//! Payload that differs from flow to flow.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use core::net::IpAddr;

use wirestorm_model::program::{Composition, Piece, TextVariable, Value, ValueFormat, Variable};

use wirestorm_base::random::Random;

/// Addresses and ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) client: (IpAddr, u16),
    pub(crate) server: (IpAddr, u16),
}

/// Source of the values of one flow.
pub(super) struct Values<'a> {
    pub(super) flow: u64,
    pub(super) ends: &'a Ends,
    pub(super) numbers: &'a [u64; Variable::COUNT],
    pub(super) texts: &'a [Vec<u8>; TextVariable::COUNT],
}

enum ResolvedValue<'a> {
    Number(u64),
    Address(IpAddr),
    Text(&'a [u8]),
}

/// Composes the payload with these values. Returns `None` if it is longer than `most` bytes.
pub(super) fn compose(
    composition: &Composition,
    values: &Values<'_>,
    random: &mut Random,
    most: usize,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for piece in &composition.pieces {
        match piece {
            Piece::Bytes(text) => bytes.extend_from_slice(text),
            Piece::Value(value, form) => write(&mut bytes, &values.find(*value), *form),
            Piece::RandomBytes(count) => {
                bytes.extend((0..*count).map(|_| random.next_u64() as u8));
            }
            Piece::RandomText(count) => {
                const ALPHABET: &[u8; 62] =
                    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
                let mut letter = || ALPHABET[random.below(ALPHABET.len() as u32) as usize];
                bytes.extend((0..*count).map(|_| letter()));
            }
        }
        if bytes.len() > most {
            return None;
        }
    }
    let missing = (composition.size as usize).min(most).saturating_sub(bytes.len());
    match composition.fill.as_slice() {
        [] => bytes.extend((0..=u8::MAX).cycle().take(missing)),
        fill => bytes.extend(fill.iter().cycle().take(missing)),
    }
    for field in &composition.fields {
        let place = field.offset as usize..field.offset as usize + usize::from(field.width);
        if let Some(place) = bytes.get_mut(place) {
            values.find(field.value).write_to(place);
        }
    }
    Some(bytes)
}

impl<'a> Values<'a> {
    /// Returns the port in a value: a decimal number, or two bytes as in [`ValueFormat::DecimalBytes`]. `None`
    /// if the value is no valid port.
    pub(super) fn port(&self, value: Value) -> Option<u16> {
        let port = match self.find(value) {
            ResolvedValue::Number(number) => u16::try_from(number).ok(),
            ResolvedValue::Address(_) => None,
            ResolvedValue::Text(text) => {
                let text = core::str::from_utf8(text).ok()?;
                match text.split_once(',') {
                    None => text.parse().ok(),
                    Some((high, low)) => {
                        Some(u16::from_be_bytes([high.parse().ok()?, low.parse().ok()?]))
                    }
                }
            }
        };
        port.filter(|port| *port > 0)
    }

    fn find(&self, value: Value) -> ResolvedValue<'a> {
        match value {
            Value::Flow => ResolvedValue::Number(self.flow),
            Value::Client => ResolvedValue::Address(self.ends.client.0),
            Value::ClientPort => ResolvedValue::Number(self.ends.client.1.into()),
            Value::Server => ResolvedValue::Address(self.ends.server.0),
            Value::ServerPort => ResolvedValue::Number(self.ends.server.1.into()),
            Value::Number(variable) => ResolvedValue::Number(self.numbers[variable.place()]),
            Value::Text(text) => ResolvedValue::Text(&self.texts[text.place()]),
            Value::Length(text) => ResolvedValue::Number(self.texts[text.place()].len() as u64),
        }
    }
}

impl ResolvedValue<'_> {
    /// Fills a field: numbers right-aligned, others left-aligned, padded with zeros.
    fn write_to(&self, field: &mut [u8]) {
        field.fill(0);
        let from_start = |field: &mut [u8], bytes: &[u8]| {
            let length = bytes.len().min(field.len());
            field[..length].copy_from_slice(&bytes[..length]);
        };
        match self {
            Self::Number(number) => {
                let bytes = number.to_be_bytes();
                for (place, byte) in field.iter_mut().rev().zip(bytes.iter().rev()) {
                    *place = *byte;
                }
            }
            Self::Address(IpAddr::V4(address)) => from_start(field, &address.octets()),
            Self::Address(IpAddr::V6(address)) => from_start(field, &address.octets()),
            Self::Text(text) => from_start(field, text),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Number(_) => size_of::<u64>(),
            Self::Address(IpAddr::V4(_)) => 4,
            Self::Address(IpAddr::V6(_)) => 16,
            Self::Text(text) => text.len(),
        }
    }
}

/// Appends a value in a format.
fn write(bytes: &mut Vec<u8>, found: &ResolvedValue<'_>, form: ValueFormat) {
    let append = |bytes: &mut Vec<u8>, width: usize| {
        let start = bytes.len();
        bytes.resize(start + width, 0);
        found.write_to(&mut bytes[start..]);
    };
    // `write!` to a String does not fail.
    let mut digits = String::new();
    match (form, found) {
        (ValueFormat::Bytes, _)
        | (ValueFormat::Plain | ValueFormat::Digits(_), ResolvedValue::Text(_)) => {
            append(bytes, found.width());
        }
        (ValueFormat::Width(width), _) => append(bytes, width.into()),
        (ValueFormat::Plain | ValueFormat::Digits(_), ResolvedValue::Address(address)) => {
            digits = address.to_string()
        }
        (ValueFormat::Plain, ResolvedValue::Number(number)) => digits = number.to_string(),
        (ValueFormat::Digits(width), ResolvedValue::Number(number)) => {
            let _ = write!(digits, "{number:0width$}", width = usize::from(width));
        }
        (ValueFormat::DecimalBytes, _) => {
            let byte_format = match found {
                ResolvedValue::Number(_) => ValueFormat::Width(2),
                _ => ValueFormat::Bytes,
            };
            let mut raw = Vec::new();
            write(&mut raw, found, byte_format);
            for (place, byte) in raw.into_iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let _ = write!(digits, "{comma}{byte}");
            }
        }
        (ValueFormat::Hex, ResolvedValue::Number(number)) => {
            let _ = write!(digits, "{number:x}");
        }
        (ValueFormat::Hex, _) => {
            let mut raw = Vec::new();
            write(&mut raw, found, ValueFormat::Bytes);
            for byte in raw {
                let _ = write!(digits, "{byte:02x}");
            }
        }
    }
    bytes.extend_from_slice(digits.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_model::program::Field;

    #[test]
    fn values_are_written_in_every_form_and_as_fields() {
        let ends = Ends {
            client: ("10.0.0.7".parse().unwrap(), 1_025),
            server: ("2001:db8::1".parse().unwrap(), 80),
        };
        let mut texts = <[Vec<u8>; TextVariable::COUNT]>::default();
        texts[1] = b"abc".to_vec();
        let values =
            Values { flow: 42, ends: &ends, numbers: &[7; Variable::COUNT], texts: &texts };
        let text = TextVariable::new(1).unwrap();
        let number = Variable::new(0).unwrap();
        let compose = |composition: &Composition, most| {
            super::compose(composition, &values, &mut Random::new(1), most)
        };
        for (value, form, expected) in [
            (Value::Flow, ValueFormat::Plain, &b"42"[..]),
            (Value::Flow, ValueFormat::Digits(5), b"00042"),
            (Value::Flow, ValueFormat::Hex, b"2a"),
            (Value::Flow, ValueFormat::Width(2), &[0, 42]),
            (Value::Number(number), ValueFormat::Bytes, &[0, 0, 0, 0, 0, 0, 0, 7]),
            (Value::Client, ValueFormat::Plain, b"10.0.0.7"),
            (Value::Client, ValueFormat::Bytes, &[10, 0, 0, 7]),
            (Value::Client, ValueFormat::Hex, b"0a000007"),
            (Value::Client, ValueFormat::DecimalBytes, b"10,0,0,7"),
            (Value::ClientPort, ValueFormat::DecimalBytes, b"4,1"),
            (Value::Server, ValueFormat::Plain, b"2001:db8::1"),
            (Value::ClientPort, ValueFormat::Width(1), &[1]),
            (Value::ServerPort, ValueFormat::Plain, b"80"),
            (Value::Text(text), ValueFormat::Plain, b"abc"),
            (Value::Text(text), ValueFormat::Digits(9), b"abc"),
            (Value::Text(text), ValueFormat::Hex, b"616263"),
            (Value::Text(text), ValueFormat::Width(5), b"abc\0\0"),
            (Value::Text(text), ValueFormat::Width(2), b"ab"),
            (Value::Length(text), ValueFormat::Plain, b"3"),
        ] {
            let pieces = alloc::vec![Piece::Value(value, form)];
            let composition = Composition { pieces, ..Composition::default() };
            assert_eq!(compose(&composition, 100).unwrap(), expected, "{value:?} {form:?}");
        }
        let field = |offset, width, value| Field { offset, width, value };
        let composition = Composition {
            size: 12,
            fill: b"xy".to_vec(),
            fields: alloc::vec![
                field(4, 3, Value::Flow),
                field(8, 2, Value::Text(text)),
                field(11, 2, Value::Flow),
            ],
            ..Composition::from_bytes(b"head")
        };
        assert_eq!(compose(&composition, 100).unwrap(), b"head\0\0\x2ayabxy");
        assert_eq!(compose(&composition, 4).unwrap(), b"head", "fill stops at the maximum");
        assert_eq!(compose(&composition, 3), None);
    }

    #[test]
    fn ports_are_read_in_both_forms() {
        let ends = Ends {
            client: ("10.0.0.7".parse().unwrap(), 1_025),
            server: ("10.0.0.8".parse().unwrap(), 80),
        };
        let mut texts = <[Vec<u8>; TextVariable::COUNT]>::default();
        let text = Value::Text(TextVariable::new(0).unwrap());
        for (written, expected) in [
            ("50000", Some(50_000)),
            ("195,80", Some(50_000)),
            ("0", None),
            ("0,0", None),
            ("65536", None),
            ("256,0", None),
            ("1,2,3", None),
            ("", None),
        ] {
            texts[0] = written.into();
            let numbers = &[70_000; Variable::COUNT];
            let values = Values { flow: 1, ends: &ends, numbers, texts: &texts };
            assert_eq!(values.port(text), expected, "{written}");
            assert_eq!(values.port(Value::ClientPort), Some(1_025));
            assert_eq!(values.port(Value::Client), None);
            assert_eq!(values.port(Value::Number(Variable::new(0).unwrap())), None);
        }
    }

    #[test]
    fn random_pieces_depend_on_the_seed() {
        let ends = Ends {
            client: ("10.0.0.7".parse().unwrap(), 1),
            server: ("10.0.0.8".parse().unwrap(), 1),
        };
        let values = Values {
            flow: 1,
            ends: &ends,
            numbers: &[0; Variable::COUNT],
            texts: &Default::default(),
        };
        let pieces = alloc::vec![Piece::RandomText(40), Piece::RandomBytes(40)];
        let composition = Composition { pieces, ..Composition::default() };
        let composed = |seed| compose(&composition, &values, &mut Random::new(seed), 100).unwrap();
        assert_eq!(composed(1), composed(1));
        assert_ne!(composed(1), composed(2));
        assert!(composed(1)[..40].iter().all(u8::is_ascii_alphanumeric));
        assert!(composed(1)[40..].iter().any(|byte| !byte.is_ascii()));
        assert_eq!(composed(3).len(), 80);
    }
}
