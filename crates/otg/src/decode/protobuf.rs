//! Protobuf to the canonical encoding.

use super::DecodeError;
use super::finish::{Seen, finish};
use super::path::{Context, Segment};
use crate::schema::{FieldInfo, Kind, MessageInfo};
use crate::wire::{Fields, Payload, put_length_at, put_tag, varint};

/// Messages deeper than this are refused; none of the models is.
const DEPTH_MAX: usize = 32;

/// Reads a message, with the fields in their order.
pub(super) fn read(
    info: &'static MessageInfo,
    bytes: &[u8],
    context: &mut Context,
) -> Result<(), DecodeError> {
    message(info, bytes, 0, context)
}

fn message(
    info: &'static MessageInfo,
    bytes: &[u8],
    depth: usize,
    context: &mut Context,
) -> Result<(), DecodeError> {
    if depth > DEPTH_MAX {
        return Err(context.error("messages are nested too deeply"));
    }
    let mut seen = Seen::default();
    // Number of items of the list that is being read.
    let mut list = (usize::MAX, 0);
    for field in Fields::new(bytes) {
        let field = field.map_err(|_| context.error("malformed bytes"))?;
        let Some(index) = info.index_of_number(field.number) else {
            let message = format!("unknown field number {}, ignored", field.number);
            context.warn(Context::path, message);
            continue;
        };
        let known = &info.fields[index];
        let is_new = seen.insert(index);
        context.enter(Segment::Field(known.name));
        if known.is_repeated {
            list = if list.0 == index { (index, list.1 + 1) } else { (index, 0) };
            context.enter(Segment::Index(list.1));
        } else if !is_new {
            return Err(context.error("found a second time"));
        }
        match (known.message(), field.payload) {
            (Some(message_info), Payload::Bytes(inner)) => {
                put_tag(known.number, 2, &mut context.out);
                let start = context.out.len();
                message(message_info, inner, depth + 1, context)?;
                put_length_at(start, &mut context.out);
            }
            (_, payload) => {
                let value = check(known, payload, context)?;
                context.out.extend(field.encoded);
                if info.choice == Some(index) {
                    seen.choice = value;
                }
            }
        }
        if known.is_repeated {
            context.leave();
        }
        context.leave();
    }
    finish(info, seen, context)
}

/// Checks the payload of a field that is no message. Returns the value of an enum that is no list.
fn check(
    field: &FieldInfo,
    payload: Payload<'_>,
    context: &mut Context,
) -> Result<Option<i32>, DecodeError> {
    let found = match payload {
        Payload::Varint(_) => "a number",
        Payload::Fixed32(_) | Payload::Fixed64(_) => "a number of fixed length",
        Payload::Bytes(_) => "bytes",
    };
    let wrong = |context: &mut Context, expected: &str| {
        if field.is_repeated {
            context.leave();
        }
        Err(context.error(format!("found {found}, expected {expected}")))
    };
    match (field.kind, payload) {
        (Kind::Message(_), _) if field.is_repeated => wrong(context, "messages"),
        (Kind::Message(_), _) => wrong(context, "a message"),
        (Kind::String, Payload::Bytes(text)) => match std::str::from_utf8(text) {
            Ok(_) => Ok(None),
            Err(_) => wrong(context, "UTF-8"),
        },
        (Kind::Bytes, Payload::Bytes(_))
        | (Kind::Float, Payload::Fixed32(_))
        | (Kind::Double, Payload::Fixed64(_)) => Ok(None),
        (Kind::String, _) => wrong(context, "a text"),
        (Kind::Enum(_), Payload::Varint(number)) => {
            check_enum(field, number, context)?;
            // The number is that of a value.
            Ok(i32::try_from(number).ok().filter(|number| *number != 0))
        }
        (Kind::Bool | Kind::Int32 | Kind::Uint32 | Kind::Uint64, Payload::Varint(_)) => Ok(None),
        // A packed list.
        (Kind::Enum(_), Payload::Bytes(mut packed)) if field.is_repeated => {
            while let Some((number, used)) = varint(packed) {
                check_enum(field, number, context)?;
                packed = &packed[used..];
            }
            if packed.is_empty() { Ok(None) } else { wrong(context, "a list of numbers") }
        }
        (_, Payload::Bytes(_)) if field.is_repeated => Ok(None),
        _ => wrong(context, "a value of another type"),
    }
}

/// Checks the number of an enum; 0 is `unspecified`.
fn check_enum(field: &FieldInfo, number: u64, context: &Context) -> Result<(), DecodeError> {
    let values = field.values();
    let name = |values: &crate::schema::EnumInfo| values.name(i32::try_from(number).ok()?);
    if number == 0 || values.and_then(name).is_some() {
        return Ok(());
    }
    let names = values.map(|values| values.names()).unwrap_or_default();
    Err(context.error(format!("found {number}, expected one of {names}")))
}
