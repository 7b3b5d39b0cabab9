//! The first bytes of a file.

use core::fmt;

/// The first four bytes of a file, displayed as hexadecimal digits: `1f 8b 08 00`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Magic(pub [u8; 4]);

impl fmt::Display for Magic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a:02x} {b:02x} {c:02x} {d:02x}")
    }
}

impl fmt::Debug for Magic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Magic({self})")
    }
}
