//! The state of the kernel's clock (`adjtimex(2)`), read only.

use std::io;
use std::mem::MaybeUninit;

use crate::system::checked;

/// State of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjtimex {
    /// `STA_*` bits.
    pub status: i32,
    /// Largest error in us.
    pub maxerror: i64,
    /// Estimated error in us.
    pub esterror: i64,
    /// TAI minus UTC in seconds; 0 if nobody has set it.
    pub tai: i32,
}

impl Adjtimex {
    /// Reads the state. Changes nothing and needs no privilege.
    ///
    /// # Errors
    /// A sandbox forbids the call.
    pub fn read() -> io::Result<Self> {
        // SAFETY: the structure is made of integers, for which zero is valid.
        let mut state: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the structure is writable. Its field `modes` is zero, so that nothing is set.
        checked(unsafe { libc::adjtimex(&mut state) })?;
        Ok(Self {
            status: state.status,
            maxerror: state.maxerror,
            esterror: state.esterror,
            tai: state.tai,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_error_is_not_below_the_estimate() {
        let state = Adjtimex::read().unwrap();
        assert!(state.maxerror >= state.esterror && state.esterror >= 0, "{state:?}");
    }
}
