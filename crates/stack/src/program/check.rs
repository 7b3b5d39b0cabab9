//! Checks and extractions of consumed data.

use wirestorm_model::program::{MessagePart, TextVariable};
use wirestorm_wire::pattern::Pattern;

use super::dns;
use super::findings::{Cause, ExpectedBytes};
use super::reading::Taken;
use crate::http1;

/// Condition on the data that the last step consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Equals the output of a composition; its index in [`Contents`](super::Contents).
    Is(u16),
    /// Contains the output of a composition; its index in [`Contents`](super::Contents).
    Contains(u16),
    /// Contains a match of a pattern.
    Matches(Pattern),
    /// Is an HTTP/1 message that keeps the connection open.
    KeepsConnection,
    /// Is not a DNS answer to the query with this ID.
    NoDnsAnswer(u16),
    /// Is a DNS answer with response code 0 (NOERROR).
    DnsNoError,
}

impl Check {
    /// Returns the index of the composition to compare with.
    pub(super) const fn composition(&self) -> Option<u16> {
        match self {
            Self::Is(composition) | Self::Contains(composition) => Some(*composition),
            _ => None,
        }
    }

    /// Returns the failure and the expectation to report if the check does not hold. `composed` is
    /// the output of its composition.
    pub(super) fn failure<'a>(
        &self,
        taken: &Taken,
        composed: &'a [u8],
    ) -> (Cause, ExpectedBytes<'a>) {
        match self {
            Self::Is(_) => (Cause::Differs, ExpectedBytes::Whole(composed)),
            Self::Contains(_) => (Cause::Differs, ExpectedBytes::Part(composed)),
            Self::Matches(_) | Self::NoDnsAnswer(_) => (Cause::Differs, ExpectedBytes::Nothing),
            Self::KeepsConnection => (Cause::LastResponse, ExpectedBytes::Nothing),
            Self::DnsNoError => {
                let cause = dns::code(&taken.bytes).map_or(Cause::Differs, Cause::DnsError);
                (cause, ExpectedBytes::Nothing)
            }
        }
    }

    /// Whether the check holds; `composed` is the output of its composition.
    pub(super) fn holds(&self, taken: &Taken, composed: &[u8]) -> bool {
        match self {
            Self::Is(_) => taken.length == composed.len() as u64 && taken.bytes == composed,
            Self::Contains(_) => find(&taken.bytes, composed).is_some(),
            Self::Matches(pattern) => pattern.is_match(&taken.bytes),
            Self::KeepsConnection => http1::keeps_connection(&taken.bytes),
            Self::NoDnsAnswer(number) => !dns::answers(&taken.bytes, *number),
            Self::DnsNoError => dns::code(&taken.bytes) == Some(0),
        }
    }
}

/// Extraction of a part of the consumed data to a text variable of the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extraction {
    /// Text variable to set.
    pub text: TextVariable,
    /// Part to copy.
    pub part: MessagePart,
}

/// It, of these bytes; `None` where they have none.
pub(super) fn part_of<'a>(part: &MessagePart, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match part {
        MessagePart::Group(pattern, group) => pattern.group(bytes, (*group).into()),
        MessagePart::Between(before, behind) => {
            let rest = bytes.get(find(bytes, before)? + before.len()..)?;
            rest.get(..find(rest, behind)?)
        }
        MessagePart::Bytes { offset, length } => {
            bytes.get(*offset as usize..)?.get(..*length as usize)
        }
    }
}

/// Returns the position of the first occurrence.
fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    if sought.is_empty() {
        return Some(0);
    }
    bytes.windows(sought.len()).position(|window| window == sought)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_if_present() {
        let bytes = b"HTTP/1.1 200 OK\r\n\r\n{\"token\": \"ab\xffc\"}";
        let group = |text, group| MessagePart::Group(Pattern::new(text).unwrap(), group);
        let between =
            |before: &[u8], behind: &[u8]| MessagePart::Between(before.into(), behind.into());
        for (part, expected) in [
            (group(r#""token": "([^"]*)""#, 1), Some(&b"ab\xffc"[..])),
            (group(r"\d{3}", 0), Some(b"200")),
            (group("(no)|OK", 1), None),
            (group("none", 0), None),
            (between(b"token\": \"", b"\""), Some(b"ab\xffc")),
            (between(b"token", b"!"), None),
            (between(b"no", b"\""), None),
            (MessagePart::Bytes { offset: 9, length: 3 }, Some(b"200")),
            (MessagePart::Bytes { offset: 9, length: 300 }, None),
            (MessagePart::Bytes { offset: u32::MAX, length: u32::MAX }, None),
        ] {
            assert_eq!(part_of(&part, bytes), expected, "{part:?}");
        }
    }

    #[test]
    fn checks_compare_all_consumed_bytes() {
        let mut taken = Taken::default();
        taken.add(b"200 OK");
        assert!(Check::Is(0).holds(&taken, b"200 OK"));
        assert!(!Check::Is(0).holds(&taken, b"200 O"));
        assert!(Check::Contains(0).holds(&taken, b"00 "));
        assert!(!Check::Contains(0).holds(&taken, b"404"));
        let matches = |text| Check::Matches(Pattern::new(text).unwrap()).holds(&taken, &[]);
        assert!(matches("^2") && !matches("^0"));
        // Bytes beyond the kept ones make the data different.
        taken.length += 1;
        assert!(!Check::Is(0).holds(&taken, b"200 OK"));
    }
}
