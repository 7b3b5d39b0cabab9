//! Numbers in sentences.

use core::fmt::{self, Display, Formatter};

/// A number with what follows it, which depends on whether it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    number: u64,
    words: &'a str,
}

/// `1 frame was` or `3 frames were`: a number, and the words for one or for several.
///
/// ```
/// use wirestorm_base::count::counted;
///
/// assert_eq!(counted(1, "frame was", "frames were").to_string(), "1 frame was");
/// assert_eq!(counted(0, "frame was", "frames were").to_string(), "0 frames were");
/// ```
pub const fn counted<'a>(number: u64, one: &'a str, several: &'a str) -> Counted<'a> {
    Counted { number, words: if number == 1 { one } else { several } }
}

impl Display for Counted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.words)
    }
}
