//! What is looked for in what was taken.

use wirestorm_model::program::{Part, TextVariable};
use wirestorm_wire::pattern::Pattern;

use super::dns;
use super::findings::{Cause, Wanted};
use super::rule::Taken;
use crate::http1;

/// What is expected of what was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is what a composition makes.
    Is(u16),
    /// That is somewhere in it.
    Contains(u16),
    /// It matches somewhere.
    Matches(Pattern),
    /// It is a message of HTTP/1 behind which the connection goes on.
    KeepsConnection,
    /// It is no answer of DNS to the query with this number.
    NoDnsAnswer(u16),
    /// It is an answer of DNS without an error.
    DnsNoError,
}

impl Check {
    /// The composition that it compares with.
    pub(super) const fn composition(&self) -> Option<u16> {
        match self {
            Self::Is(composition) | Self::Contains(composition) => Some(*composition),
            _ => None,
        }
    }

    /// Why a flow fails where it does not hold, and what was wanted; `composed`: what its composition
    /// makes.
    pub(super) fn failure<'a>(&self, taken: &Taken, composed: &'a [u8]) -> (Cause, Wanted<'a>) {
        match self {
            Self::Is(_) => (Cause::Differs, Wanted::Whole(composed)),
            Self::Contains(_) => (Cause::Differs, Wanted::Part(composed)),
            Self::Matches(_) | Self::NoDnsAnswer(_) => (Cause::Differs, Wanted::Nothing),
            Self::KeepsConnection => (Cause::LastResponse, Wanted::Nothing),
            Self::DnsNoError => {
                let cause = dns::code(&taken.bytes).map_or(Cause::Differs, Cause::DnsError);
                (cause, Wanted::Nothing)
            }
        }
    }

    /// Whether it holds; `composed`: what its composition makes.
    pub(super) fn holds(&self, taken: &Taken, composed: &[u8]) -> bool {
        match self {
            Self::Is(_) => taken.length == composed.len() as u64 && taken.bytes == composed,
            Self::Contains(_) => find(&taken.bytes, composed).is_some(),
            Self::Matches(pattern) => pattern.is_in(&taken.bytes),
            Self::KeepsConnection => http1::keeps_connection(&taken.bytes),
            Self::NoDnsAnswer(number) => !dns::answers(&taken.bytes, *number),
            Self::DnsNoError => dns::code(&taken.bytes) == Some(0),
        }
    }
}

/// What of what was taken becomes a text of the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extraction {
    /// Which.
    pub text: TextVariable,
    /// What.
    pub part: Part,
}

/// It, of these bytes; `None` where they have none.
pub(super) fn part_of<'a>(part: &Part, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match part {
        Part::Group(pattern, group) => pattern.group(bytes, (*group).into()),
        Part::Between(before, behind) => {
            let rest = bytes.get(find(bytes, before)? + before.len()..)?;
            rest.get(..find(rest, behind)?)
        }
        Part::At { offset, length } => bytes.get(*offset as usize..)?.get(..*length as usize),
    }
}

/// Where bytes first stand in others.
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
    fn parts_are_found_or_not() {
        let bytes = b"HTTP/1.1 200 OK\r\n\r\n{\"token\": \"ab\xffc\"}";
        let group = |text, group| Part::Group(Pattern::new(text).unwrap(), group);
        let between = |before: &[u8], behind: &[u8]| Part::Between(before.into(), behind.into());
        for (part, expected) in [
            (group(r#""token": "([^"]*)""#, 1), Some(&b"ab\xffc"[..])),
            (group(r"\d{3}", 0), Some(b"200")),
            (group("(no)|OK", 1), None),
            (group("none", 0), None),
            (between(b"token\": \"", b"\""), Some(b"ab\xffc")),
            (between(b"token", b"!"), None),
            (between(b"no", b"\""), None),
            (Part::At { offset: 9, length: 3 }, Some(b"200")),
            (Part::At { offset: 9, length: 300 }, None),
            (Part::At { offset: u32::MAX, length: u32::MAX }, None),
        ] {
            assert_eq!(part_of(&part, bytes), expected, "{part:?}");
        }
    }

    #[test]
    fn what_is_equal_is_so_to_its_end() {
        let mut taken = Taken::default();
        taken.add(b"200 OK");
        assert!(Check::Is(0).holds(&taken, b"200 OK"));
        assert!(!Check::Is(0).holds(&taken, b"200 O"));
        assert!(Check::Contains(0).holds(&taken, b"00 "));
        assert!(!Check::Contains(0).holds(&taken, b"404"));
        let matches = |text| Check::Matches(Pattern::new(text).unwrap()).holds(&taken, &[]);
        assert!(matches("^2") && !matches("^0"));
        // What is not kept is not the same.
        taken.length += 1;
        assert!(!Check::Is(0).holds(&taken, b"200 OK"));
    }
}
