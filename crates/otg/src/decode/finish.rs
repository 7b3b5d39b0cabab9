//! Completion of a message: its choice, its defaults, and its required fields.

use super::DecodeError;
use super::path::Context;
use crate::schema::{FieldInfo, MessageInfo};
use crate::wire::{Fields, Payload, put_length_at, put_tag, put_varint};

/// Fields that a message has, by their index.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    fields: u128,
    /// Value of `choice`.
    pub(super) choice: Option<i32>,
}

impl Seen {
    /// Adds a field; returns whether it is new.
    pub(super) fn insert(&mut self, index: usize) -> bool {
        let bit = 1 << index;
        let is_new = self.fields & bit == 0;
        self.fields |= bit;
        is_new
    }

    const fn contains(&self, index: usize) -> bool {
        self.fields & 1 << index != 0
    }
}

/// Appends the choice and the defaults that the message lacks.
pub(super) fn finish(
    info: &'static MessageInfo,
    mut seen: Seen,
    context: &mut Context,
) -> Result<(), DecodeError> {
    let variants = || info.fields.iter().enumerate().filter(|(_, field)| field.variant.is_some());
    if seen.choice.is_some() {
        for (_, field) in variants().filter(|(index, _)| seen.contains(*index)) {
            if field.variant != seen.choice {
                let chosen = choice_name(info, seen.choice).unwrap_or("another");
                let message = format!("ignored, since choice is {chosen}");
                context.warn(|context| context.path_of(field.name), message);
            }
        }
    } else if info.choice.is_some() {
        let mut set = variants().filter(|(index, _)| seen.contains(*index));
        if let Some((_, first)) = set.next() {
            if let Some((_, second)) = set.next() {
                return Err(context.error(format!(
                    "found {} and {}, expected choice or one of them",
                    first.name, second.name
                )));
            }
            seen.choice = first.variant;
            seen.fields |= info.choice.map_or(0, |index| 1 << index);
            put_choice(info, first.variant, &mut context.out);
        }
    }
    let missing =
        info.fields.iter().enumerate().find(|(index, field)| {
            field.is_required && !field.is_repeated && !seen.contains(*index)
        });
    if let Some((_, field)) = missing {
        return Err(context.error_at(field.name, "found nothing, expected a value"));
    }
    if seen.choice.is_none() {
        seen.choice = default_choice(info);
        put_choice(info, seen.choice, &mut context.out);
    }
    // An absent variant has its defaults, unless it has no default.
    let chosen = variants().find(|(_, field)| field.variant == seen.choice);
    if let Some((index, field)) = chosen
        && !field.is_repeated
        && !seen.contains(index)
        && let Some(message) = field.message()
        && let Some(missing) = required_of(message)
    {
        let path = format!("{}.{missing}", field.name);
        return Err(context.error_at(&path, "found nothing, expected a value"));
    }
    append_absent(info, seen, &mut context.out);
    Ok(())
}

/// Returns the path of a required field that an empty message lacks.
fn required_of(info: &'static MessageInfo) -> Option<String> {
    if let Some(field) = info.fields.iter().find(|field| field.is_required && !field.is_repeated) {
        return Some(field.name.to_owned());
    }
    let choice = default_choice(info)?;
    let field = info.fields.iter().find(|field| field.variant == Some(choice))?;
    Some(format!("{}.{}", field.name, required_of(field.message()?)?))
}

fn default_choice(info: &MessageInfo) -> Option<i32> {
    match Fields::new(choice(info)?.default).next()?.ok()?.payload {
        Payload::Varint(number) => i32::try_from(number).ok(),
        _ => None,
    }
}

/// Appends the defaults of an empty message.
pub(super) fn append_defaults(info: &'static MessageInfo, out: &mut Vec<u8>) {
    append_absent(info, Seen::default(), out);
}

fn append_absent(info: &'static MessageInfo, mut seen: Seen, out: &mut Vec<u8>) {
    if seen.choice.is_none() {
        seen.choice = default_choice(info);
        put_choice(info, seen.choice, out);
    }
    for (index, field) in info.fields.iter().enumerate() {
        let is_chosen = field.variant.is_none() || field.variant == seen.choice;
        if seen.contains(index) || !is_chosen || info.choice == Some(index) {
            continue;
        }
        match field.message() {
            // What is chosen is present.
            Some(message) if field.variant.is_some() && !field.is_repeated => {
                put_tag(field.number, 2, out);
                let start = out.len();
                append_absent(message, Seen::default(), out);
                put_length_at(start, out);
            }
            _ => out.extend(field.default),
        }
    }
}

fn choice_name(info: &MessageInfo, number: Option<i32>) -> Option<&'static str> {
    choice(info)?.values()?.name(number?)
}

fn put_choice(info: &MessageInfo, number: Option<i32>, out: &mut Vec<u8>) {
    if let (Some(choice), Some(number)) = (choice(info), number) {
        put_tag(choice.number, 0, out);
        put_varint(number as u64, out);
    }
}

fn choice(info: &MessageInfo) -> Option<&'static FieldInfo> {
    info.fields.get(info.choice?)
}
