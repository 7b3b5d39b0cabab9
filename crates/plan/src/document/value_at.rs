//! A value in a document with its path, which every error names.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::error::{ErrorCollector, PlanError, ROOT_PATH};

/// A value and its path in the document.
#[derive(Clone, Debug)]
pub(crate) struct ValueAt<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> ValueAt<'a> {
    /// Creates the place of the whole document.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// Returns the path; `plan` for the whole document.
    pub(crate) fn path(&self) -> String {
        if self.path.is_empty() { ROOT_PATH.to_owned() } else { self.path.clone() }
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    /// Creates an error at this place: describes the value as found, and names what was expected.
    pub(crate) fn unexpected(&self, expected: impl Display) -> PlanError {
        self.error(describe(self.value), expected)
    }

    /// Creates an error at this place with a custom description of what was found.
    pub(crate) fn error(&self, found: impl Display, expected: impl Display) -> PlanError {
        self.message_error(format!("found {found}, expected {expected}"))
    }

    /// Creates an error at this place with a custom message.
    pub(crate) fn message_error(&self, message: impl Into<String>) -> PlanError {
        PlanError { path: self.path(), message: message.into() }
    }

    /// Returns the fields of an object. An unknown field is an error.
    pub(crate) fn fields(&self, known: &[&str]) -> Result<Fields<'a>, PlanError> {
        self.fields_with(known, |_| false)
    }

    /// Returns the fields of an object. A field that is neither in `known` nor accepted by
    /// `is_other` is an error.
    pub(crate) fn fields_with(
        &self,
        known: &[&str],
        is_other: impl Fn(&str) -> bool,
    ) -> Result<Fields<'a>, PlanError> {
        let mut problems = ErrorCollector::default();
        let fields = self.fields_collecting(known, is_other, &mut problems);
        match problems.into_first() {
            Some(error) => Err(error),
            None => fields.ok_or_else(|| self.unexpected("fields")),
        }
    }

    /// Like [`fields_with`](Self::fields_with), but records unknown fields in `problems` and still
    /// returns the fields. Returns `None` if the value is not an object.
    pub(crate) fn fields_collecting(
        &self,
        known: &[&str],
        is_other: impl Fn(&str) -> bool,
        problems: &mut ErrorCollector,
    ) -> Option<Fields<'a>> {
        let fields = self
            .value
            .as_object()
            .ok_or_else(|| self.unexpected(format!("fields: {}", list(known))));
        let map = problems.take(fields)?;
        for (name, value) in map {
            if !known.contains(&name.as_str()) && !is_other(name) {
                let place = self.child(name, value);
                let error = place.error("an unknown field", suggestion(name, known));
                problems.take::<()>(Err(error));
            }
        }
        Some(Fields { place: self.clone(), map })
    }

    /// Returns all fields with their names, without checking the names.
    pub(crate) fn entries(&self, what: &str) -> Result<Vec<(&'a str, Self)>, PlanError> {
        let Value::Object(map) = self.value else { return Err(self.unexpected(what)) };
        Ok(map.iter().map(|(name, value)| (name.as_str(), self.child(name, value))).collect())
    }

    /// Returns the name and value of the only field, which must be in `known`.
    pub(crate) fn choice(&self, known: &[&str]) -> Result<(&'a str, Self), PlanError> {
        let fields = self.fields(known)?;
        let mut entries = fields.map.iter();
        match (entries.next(), entries.next()) {
            (Some((name, value)), None) => Ok((name.as_str(), self.child(name, value))),
            (None, _) => Err(self.error("no field", format!("one of {}", list(known)))),
            (Some((first, _)), Some((second, _))) => {
                Err(self
                    .error(format!("both {first} and {second}"), format!("one of {}", list(known))))
            }
        }
    }

    /// Returns the same path with another value.
    pub(crate) fn with<'b>(&self, value: &'b Value) -> ValueAt<'b> {
        ValueAt { path: self.path.clone(), value }
    }

    /// Returns the items of a list; `what` describes them in the error.
    pub(crate) fn items(&self, what: &str) -> Result<Vec<Self>, PlanError> {
        let Value::Array(items) = self.value else {
            return Err(self.unexpected(format!("a list of {what}")));
        };
        let place = |(index, value)| Self { path: format!("{}[{index}]", self.path), value };
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// Returns a string.
    pub(crate) fn text(&self, what: &str) -> Result<&'a str, PlanError> {
        self.value.as_str().ok_or_else(|| self.unexpected(what))
    }

    /// Returns an arbitrary string. For an unquoted number or boolean, the error shows how to quote
    /// it.
    pub(crate) fn string(&self, what: &str) -> Result<&'a str, PlanError> {
        let is_scalar = self.value.is_number() || self.value.is_boolean();
        self.text(what).map_err(|error| match is_scalar {
            true => PlanError {
                message: format!("{}; a string needs quotes: \"{}\"", error.message, self.value),
                ..error
            },
            false => error,
        })
    }

    /// Returns a string that is not empty.
    pub(crate) fn non_empty_string(&self, what: &str) -> Result<&'a str, PlanError> {
        let name = self.string(what)?;
        if name.is_empty() { Err(self.unexpected(what)) } else { Ok(name) }
    }

    /// Returns an integer from `min` to `max`, given as a number or a string.
    pub(crate) fn integer(&self, min: u64, max: u64) -> Result<u64, PlanError> {
        let number = match self.value {
            Value::String(text) => integer(text).and_then(|number| u64::try_from(number).ok()),
            value => value.as_u64(),
        };
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.unexpected(format!("a whole number from {min} to {max}")))
    }

    /// Returns the seed for random values of this place: its field `seed`, or a hash of the path.
    /// Two places of a plan therefore draw independent values.
    pub(crate) fn seed(&self) -> Result<u64, PlanError> {
        if let Some(seed) = self.value.get("seed") {
            return self.child("seed", seed).integer(0, u64::MAX);
        }
        // FNV-1a over the path.
        let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Ok(self.path.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// Returns a boolean.
    pub(crate) fn boolean(&self) -> Result<bool, PlanError> {
        self.value.as_bool().ok_or_else(|| self.unexpected("true or false"))
    }

    /// Returns a number as text, for callers that parse decimals exactly.
    pub(crate) fn number_text(&self) -> Option<String> {
        match self.value {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns the place of a child field with this value.
    pub(crate) fn child(&self, name: &str, value: &'a Value) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self { path, value }
    }
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    place: ValueAt<'a>,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Returns a field if it is present.
    pub(crate) fn get(&self, name: &str) -> Option<ValueAt<'a>> {
        let value = self.map.get(name)?;
        Some(self.place.child(name, value))
    }

    /// Iterates over all fields, in document order or sorted by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, ValueAt<'a>)> {
        self.map.iter().map(|(name, value)| (name.as_str(), self.place.child(name, value)))
    }

    /// Returns a required field.
    pub(crate) fn required(&self, name: &str, expected: &str) -> Result<ValueAt<'a>, PlanError> {
        self.get(name).ok_or_else(|| {
            let place = self.place.child(name, &Value::Null);
            place.error("nothing", expected)
        })
    }
}

/// Parses an unsigned integer: decimal, `0x` hexadecimal or `0b` binary, with `_` between digits.
pub(crate) fn integer(text: &str) -> Option<u128> {
    // The `parse` functions of std would accept a sign.
    if text.contains('+') {
        return None;
    }
    let digits = text.replace('_', "");
    match digits.get(..2) {
        Some("0x" | "0X") => u128::from_str_radix(&digits[2..], 16).ok(),
        Some("0b" | "0B") => u128::from_str_radix(&digits[2..], 2).ok(),
        _ => digits.parse().ok(),
    }
}

/// Describes a value briefly, for error messages.
fn describe(value: &Value) -> String {
    /// Maximum characters of a string; longer ones are truncated.
    const TEXT_MAX: usize = 40;
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() > TEXT_MAX => {
            format!("{:?}...", text.chars().take(TEXT_MAX).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) => match map.keys().next() {
            Some(name) => format!("fields ({name}, ...)"),
            None => "no fields".into(),
        },
    }
}

fn list(names: &[&str]) -> String {
    names.join(", ")
}

/// Lists the known names, and suggests the one most similar to `name`.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    /// Minimum Jaro-Winkler similarity of a suggestion: 0 is none, 1 is equal.
    const SIMILARITY_MIN: f64 = 0.7;
    let likeness = |known: &&str| strsim::jaro_winkler(name, known);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|nearest| likeness(nearest) >= SIMILARITY_MIN) {
        Some(nearest) => format!("{nearest}? (one of {})", list(known)),
        None => format!("one of {}", list(known)),
    }
}
