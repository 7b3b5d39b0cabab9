//! Regular expressions over bytes.

use alloc::string::{String, ToString};

use regex::bytes::{Regex, RegexBuilder};

/// A regular expression over bytes that matches in linear time. Its character classes are ASCII.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Largest size of the compiled expression, in bytes.
    const SIZE_MAX: usize = 1 << 20;

    /// Compiles an expression in the syntax of the crate `regex`.
    ///
    /// # Errors
    /// The message of `regex` if the expression is invalid or too large.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        builder.unicode(false).size_limit(Self::SIZE_MAX).dfa_size_limit(Self::SIZE_MAX);
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Returns the text of the expression.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the number of capture groups, without the whole match.
    pub fn groups(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// Returns whether the expression matches anywhere in `bytes`.
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    /// Returns a group of the first match; 0 is the whole match. `None` if nothing matches or the
    /// group is not part of the match.
    pub fn group<'a>(&self, bytes: &'a [u8], group: usize) -> Option<&'a [u8]> {
        Some(self.0.captures(bytes)?.get(group)?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_from_the_first_match() {
        let pattern = Pattern::new(r#"(?i)token="([^"]*)"|(no)"#).unwrap();
        let bytes = b"\xff\xfe TOKEN=\"a\xffb\" token=\"c\"";
        assert_eq!(pattern.groups(), 2);
        assert!(pattern.is_match(bytes) && !pattern.is_match(b"token"));
        assert_eq!(pattern.group(bytes, 1), Some(&b"a\xffb"[..]));
        assert_eq!(pattern.group(bytes, 0), Some(&b"TOKEN=\"a\xffb\""[..]));
        assert_eq!(pattern.group(bytes, 2), None);
        assert_eq!(pattern.group(bytes, 3), None);
        assert_eq!(Pattern::new(r"^\d{3}$").unwrap().group(b"200", 0), Some(&b"200"[..]));
    }

    #[test]
    fn invalid_or_too_large_patterns_are_rejected() {
        for text in ["(", "[z-a]", r"(?:a{1000}){1000}"] {
            assert!(Pattern::new(text).is_err(), "{text}");
        }
    }
}
