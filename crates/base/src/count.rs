//! Numbers with their nouns, for messages.

use core::fmt::{self, Display, Formatter};

/// A number and the words that follow it, singular or plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pluralised<'a> {
    number: u64,
    words: &'a str,
}

/// Returns a number with `one` if it is 1, else with `several`: `1 frame was`, `3 frames were`.
///
/// ```
/// use wirestorm_base::count::pluralise;
///
/// assert_eq!(pluralise(1, "frame was", "frames were").to_string(), "1 frame was");
/// assert_eq!(pluralise(0, "frame was", "frames were").to_string(), "0 frames were");
/// ```
pub const fn pluralise<'a>(number: u64, one: &'a str, several: &'a str) -> Pluralised<'a> {
    Pluralised { number, words: if number == 1 { one } else { several } }
}

impl Display for Pluralised<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.words)
    }
}
