//! Header fields of HTTP messages (RFC 9110 section 5).

use super::values::TextKind;
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Header fields in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    /// Merges the plan's fields `planned` into the default fields `usual`: they replace fields of
    /// the same name, or follow the others. A field in `determined` is an error, since other keys
    /// of the plan determine it.
    pub(super) fn read(
        planned: Option<ValueAt<'_>>,
        usual: &[(&str, &str)],
        determined: &[&str],
        texts: TextKind<'_>,
    ) -> Result<Self, PlanError> {
        let to_owned_pair =
            |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut headers = Self(usual.iter().map(to_owned_pair).collect());
        let Some(planned) = planned else { return Ok(headers) };
        for (name, place) in planned.entries("fields, such as {Accept: \"*/*\"}")? {
            if !is_token(name) {
                return Err(place.error("a name with other characters", "letters, digits and -"));
            }
            if determined.iter().any(|determined| determined.eq_ignore_ascii_case(name)) {
                return Err(place.message_error(format!("{name} is set by other keys of the plan")));
            }
            let value = match place.number_text() {
                Some(value) => texts.read(&value, &place)?,
                None => return Err(place.unexpected("a text")),
            };
            if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
                return Err(place.unexpected("a text of one line"));
            }
            headers.set(name, value);
        }
        Ok(headers)
    }

    /// Sets the field of this name, or adds it.
    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds a field behind the others.
    pub(super) fn push(&mut self, name: &str, value: impl ToString) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    /// Returns the head of a message: its first line, the fields and the empty line.
    pub(super) fn behind(&self, first: &str) -> String {
        let mut text = format!("{first}\r\n");
        for (name, value) in &self.0 {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text
    }
}

/// Returns whether the text is a token (RFC 9110 section 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
