//! Parses payloads, with values that differ from flow to flow, and the values of `set`.

use wirestorm_model::program::{Composition, Field, Number, Piece, Step, Value, ValueFormat};

use super::names::Names;
use super::payload_size::{SEND_BYTES_MAX, read_size_and_fill};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Payload of a step.
#[derive(Debug)]
pub(super) enum Payload {
    /// The same for all flows: text, size in bytes, and fill pattern.
    Fixed(Vec<u8>, u32, Vec<u8>),
    /// Composed for each flow.
    Composed(Composition),
}

const FORMS: [(&str, ValueFormat); 7] = [
    ("hex", ValueFormat::Hex),
    ("bytes", ValueFormat::Bytes),
    ("u8", ValueFormat::Width(1)),
    ("u16", ValueFormat::Width(2)),
    ("u32", ValueFormat::Width(4)),
    ("u64", ValueFormat::Width(8)),
    ("octets", ValueFormat::DecimalBytes),
];
pub(super) const PAYLOAD_FIELDS: [&str; 5] = ["text", "hex", "size", "fill", "fields"];
pub(super) const FIELD: [&str; 3] = ["offset", "width", "value"];
pub(super) const SET: [&str; 5] = ["counter", "random", "random_text", "random_bytes", "text"];
pub(super) const COUNTER: [&str; 3] = ["start", "step", "max"];
pub(super) const RANDOM: [&str; 2] = ["min", "max"];
/// Maximum length of a random text in bytes.
pub(super) const RANDOM_MAX: u64 = 16_384;

const VALUE: &str = "the name of a value";

/// Reads the payload of a step.
pub(super) fn read_payload(place: &ValueAt<'_>, names: &Names) -> Result<Payload, PlanError> {
    if let Some(text) = place.value().as_str() {
        let pieces = read_text(text, place, names)?;
        let composition = Composition { pieces, ..Composition::default() };
        return match composition.fixed_bytes() {
            Some(bytes) if bytes.is_empty() => Err(place.unexpected("something to send")),
            Some(bytes) => Ok(Payload::Fixed(bytes.clone(), bytes.len() as u32, Vec::new())),
            None => Ok(Payload::Composed(composition)),
        };
    }
    if !place.value().is_object() {
        return Err(
            place.unexpected(format!("a text, or the fields {}", PAYLOAD_FIELDS.join(", ")))
        );
    }
    let fields = place.fields(&PAYLOAD_FIELDS)?;
    let pieces = match (fields.get("text"), fields.get("hex")) {
        (Some(_), Some(hex)) => return Err(hex.error("hex beside text", "one of them")),
        (Some(text), None) => read_text(text.string("a text")?, &text, names)?,
        (None, Some(hex)) => vec![Piece::Bytes(read_hex(&hex)?)],
        (None, None) => Vec::new(),
    };
    let items = fields.get("fields").map_or(Ok(Vec::new()), |it| it.items("fields"))?;
    let written = items.iter().map(|it| read_field(it, names)).collect::<Result<_, _>>()?;
    let composition = Composition { pieces, fields: written, ..Composition::default() };
    if let Some(bytes) = composition.fixed_bytes() {
        let (size, fill) = read_size_and_fill(place, &fields, bytes.len(), SEND_BYTES_MAX)?;
        return Ok(Payload::Fixed(bytes, size, fill));
    }
    let least = composition.length_min();
    let has_values = composition.has_values();
    // A value may be the whole payload, so it may be empty.
    let (size, fill) = match fields.get("size") {
        None if least == 0 && has_values => (0, Vec::new()),
        _ => read_size_and_fill(place, &fields, least, Composition::LENGTH_MAX as u64)?,
    };
    let beyond = |it: &Field| u64::from(it.offset) + u64::from(it.width) > u64::from(size);
    if let Some(at) = composition.fields.iter().position(beyond).filter(|_| !has_values) {
        return Err(items[at].error("a field beyond the end", format!("one within {size} bytes")));
    }
    Ok(Payload::Composed(Composition { size, fill, ..composition }))
}

/// Parses a text with values such as `${flow}`; `$${` stands for `${`.
pub(super) fn read_text(
    text: &str,
    place: &ValueAt<'_>,
    names: &Names,
) -> Result<Vec<Piece>, PlanError> {
    let (mut pieces, mut bytes) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        // `$${` stands for `${` itself.
        if let Some(before) = before.strip_suffix('$') {
            bytes.push_str(before);
            bytes.push_str("${");
            rest = &from[2..];
            continue;
        }
        let Some(end) = from.find('}') else {
            return Err(place.error("${ without }", "a value such as ${flow}; $${ for ${ itself"));
        };
        bytes.push_str(before);
        if !bytes.is_empty() {
            pieces.push(Piece::Bytes(std::mem::take(&mut bytes).into_bytes()));
        }
        pieces.push(read_value_in_text(&from[2..end], place, names)?);
        rest = &from[end + 1..];
    }
    bytes.push_str(rest);
    if !bytes.is_empty() {
        pieces.push(Piece::Bytes(bytes.into_bytes()));
    }
    Ok(pieces)
}

/// Reads a text that cannot contain values; `$${` stands for `${`, as everywhere.
pub(super) fn read_literal(text: &str, place: &ValueAt<'_>) -> Result<String, PlanError> {
    if may_have_values(text) {
        let expected =
            "the same text for all flows: only programs send values; write $${ for ${ itself";
        return Err(place.error("${ where values are not supported", expected));
    }
    Ok(text.replace("$${", "${"))
}

/// Returns whether a text contains a value, or the start of one.
pub(super) fn may_have_values(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

/// Parses the text between `${` and `}`.
fn read_value_in_text(text: &str, place: &ValueAt<'_>, names: &Names) -> Result<Piece, PlanError> {
    let (name, form) = match text.split_once(':') {
        None => (text, ValueFormat::Plain),
        Some((name, form)) => {
            let known = FORMS.iter().find(|(known, _)| *known == form).map(|(_, form)| *form);
            let digits = || form.strip_prefix('0')?.parse().ok().filter(|it| (1..=20).contains(it));
            let form = known.or_else(|| digits().map(ValueFormat::Digits)).ok_or_else(|| {
                let forms: Vec<_> = FORMS.iter().map(|(known, _)| *known).collect();
                let expected = format!("{}, or digits such as 06", forms.join(", "));
                place.error(format!("{form:?} in ${{{text}}}"), expected)
            })?;
            (name, form)
        }
    };
    Ok(Piece::Value(find_value(name, place, names)?, form))
}

/// Returns the value of a name, or with the suffix `.length` the length of a text.
pub(super) fn find_value(
    name: &str,
    place: &ValueAt<'_>,
    names: &Names,
) -> Result<Value, PlanError> {
    let length = || match names.value(name.strip_suffix(".length")?)? {
        Value::Text(text) => Some(Value::Length(text)),
        _ => None,
    };
    names.value(name).or_else(length).ok_or_else(|| {
        let expected = format!(
            "a predefined value, or one that an earlier step sets or extracts: {}; write $${{ for \
             ${{ itself",
            names.values()
        );
        place.error(format!("{name:?}"), expected)
    })
}

fn read_field(place: &ValueAt<'_>, names: &Names) -> Result<Field, PlanError> {
    let fields = place.fields(&FIELD)?;
    let offset = fields.required("offset", "where it begins, from 0")?;
    let offset = offset.integer(0, Composition::LENGTH_MAX as u64 - 1)? as u32;
    let width =
        fields.required("width", "how many bytes it has")?.integer(1, u16::MAX.into())? as u16;
    let value = fields.required("value", VALUE)?;
    let value = find_value(value.string(VALUE)?, &value, names)?;
    Ok(Field { offset, width, value })
}

/// Reads bytes in hexadecimal, with optional spaces between bytes.
pub(super) fn read_hex(place: &ValueAt<'_>) -> Result<Vec<u8>, PlanError> {
    const EXPECTED: &str = "bytes in hexadecimal such as \"00ff 10\"";
    let digits: String = place.text(EXPECTED)?.split_ascii_whitespace().collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|it| !it.contains('+'))?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes = digits.as_bytes().chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2));
    let bytes = bytes.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty());
    bytes.ok_or_else(|| place.unexpected(EXPECTED))
}

/// Reads a value of `set` that differs from flow to flow.
pub(super) fn read_set(
    name: &str,
    place: &ValueAt<'_>,
    names: &mut Names,
) -> Result<Step, PlanError> {
    let (what, value) = place.choice(&SET)?;
    let pieces = match what {
        "counter" => {
            let number = read_counter(&value)?;
            return Ok(Step::SetNumber { variable: names.variable(name, place)?, number });
        }
        "random" => {
            let number = read_random(&value)?;
            return Ok(Step::SetNumber { variable: names.variable(name, place)?, number });
        }
        "random_text" => vec![Piece::RandomText(value.integer(1, RANDOM_MAX)? as u16)],
        "random_bytes" => vec![Piece::RandomBytes(value.integer(1, RANDOM_MAX)? as u16)],
        _ => read_text(value.string("a text")?, &value, names)?,
    };
    let composition = Composition { pieces, ..Composition::default() };
    Ok(Step::SetText { text: names.text(name, place)?, composition })
}

fn read_counter(place: &ValueAt<'_>) -> Result<Number, PlanError> {
    if !place.value().is_object() {
        let start = place.integer(0, u64::MAX)?;
        return Ok(Number::Counter { start, step: 1, max: u64::MAX });
    }
    let fields = place.fields(&COUNTER)?;
    let start = fields.get("start").map_or(Ok(1), |it| it.integer(0, u64::MAX))?;
    let step = fields.get("step").map_or(Ok(1), |it| it.integer(1, u64::MAX))?;
    let max = fields.get("max").map_or(Ok(u64::MAX), |it| it.integer(start, u64::MAX))?;
    Ok(Number::Counter { start, step, max })
}

fn read_random(place: &ValueAt<'_>) -> Result<Number, PlanError> {
    let fields = place.fields(&RANDOM)?;
    let min = fields.get("min").map_or(Ok(0), |it| it.integer(0, u64::MAX))?;
    let greatest = fields.required("max", "the greatest number")?;
    let max = greatest.integer(0, u64::MAX)?;
    if max < min {
        return Err(greatest.unexpected("at least as much as min"));
    }
    Ok(Number::Random { min, max })
}
