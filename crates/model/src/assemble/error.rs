//! Why a frame could not be assembled.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct AssembleError {
    /// The header, by its number from 0 and its name; `None`: the whole frame.
    pub header: Option<(usize, &'static str)>,
    /// The field's name; for an item's field a path, as in `options.0.value`, for an item
    /// without the name.
    pub field: Option<String>,
    /// What is wrong there.
    pub problem: Problem,
}

impl AssembleError {
    pub(super) const fn of_frame(problem: Problem) -> Self {
        Self { header: None, field: None, problem }
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((index, name)) = self.header {
            write!(f, "header {index} ({name})")?;
            if let Some(field) = &self.field {
                write!(f, ", {field}")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.problem)
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is no header of this number.
    #[error("there are {count} headers, counted from 0")]
    UnknownHeader {
        /// Headers.
        count: usize,
    },
    /// The layout has no such field.
    #[error("no such field; expected one of {}", Names(known))]
    UnknownField {
        /// The names that it has.
        known: Vec<&'static str>,
    },
    /// There is no item of this number.
    #[error("no such item; there are {count}, counted from 0")]
    UnknownItem {
        /// Items.
        count: usize,
    },
    /// The layout takes no such item.
    #[error("{found} is no item of it; expected {}", Names(known))]
    ItemNotTaken {
        /// The item's layout.
        found: &'static str,
        /// The names of those that it takes.
        known: Vec<&'static str>,
    },
    /// A number has more bits than its field.
    #[error("{found} does not fit its {bits} bits; at most {}", max(*bits))]
    TooLarge {
        /// The number.
        found: u128,
        /// Bits of the field.
        bits: usize,
    },
    /// A computed length or count has more bits than its field.
    #[error("the right value, {found}, does not fit its {bits} bits; at most {}", max(*bits))]
    TooLong {
        /// The value.
        found: usize,
        /// Bits of the field.
        bits: usize,
    },
    /// Bytes for a field that has another number of them.
    #[error("found {found} bytes, expected {expected}")]
    WrongLength {
        /// Bytes given.
        found: usize,
        /// Bytes of the field.
        expected: usize,
    },
    /// Bytes for a field that is no whole number of them.
    #[error("found {found} bytes, expected a number of {bits} bits")]
    NotBytes {
        /// Bytes given.
        found: usize,
        /// Bits of the field.
        bits: usize,
    },
    /// A number for a field that has no size of its own.
    #[error("found the number {found}, expected bytes")]
    NotANumber {
        /// The number.
        found: u128,
    },
    /// `bad` for something that is no checksum.
    #[error("only a checksum can be bad; expected a value")]
    NotAChecksum,
    /// Two values for the same bits.
    #[error("has the bits that {other} was given for; give one of them")]
    GivenTwice {
        /// The other field.
        other: &'static str,
    },
    /// An optional field that was given, with a flag that says that it is not there.
    #[error("is given, but {flag} is 0")]
    Absent {
        /// The flag's field.
        flag: &'static str,
    },
    /// An optional field that the header does not have here.
    #[error("this header does not have it, as it was not given")]
    NotGiven,
    /// The number of a header that no field before it can hold.
    #[error("the header before it has no field for it")]
    NoHeaderBefore,
    /// A checksum over addresses, without any.
    #[error("covers the addresses of an IP header, and there is none before; give it a value")]
    NoIpHeader,
    /// A checksum over the last destination, while the header holds the next one.
    #[error("covers the last address of the routing header before it; give it a value")]
    SegmentsLeft,
    /// A checksum to the end of the frame, where padding is.
    #[error("covers all to the end of the frame: it cannot be padded; give it a payload")]
    Padded,
    /// A field that no variable can be written to.
    #[error("has {bits} bits, expected 1 to 128 for values that vary")]
    NotVariable {
        /// Bits of the field.
        bits: usize,
    },
    /// The frame ends before its headers and its payload's own bytes do.
    #[error(
        "a frame of {found} bytes without FCS is {} too short: headers have {headers} bytes, \
         the payload at least {}", needed.saturating_sub(*found), needed.saturating_sub(*headers)
    )]
    FrameTooShort {
        /// The length asked for.
        found: usize,
        /// The length needed.
        needed: usize,
        /// Bytes of the headers.
        headers: usize,
    },
    /// The frame is longer than any.
    #[error("a frame of {found} bytes without FCS is too long; at most {limit}")]
    FrameTooLong {
        /// The length asked for.
        found: usize,
        /// The greatest length.
        limit: usize,
    },
}

/// The greatest number of so many bits.
fn max(bits: usize) -> u128 {
    u128::MAX.checked_shr(128_usize.saturating_sub(bits) as u32).unwrap_or(0)
}

struct Names<'a>(&'a [&'static str]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "none");
        }
        for (index, name) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name}")?;
        }
        Ok(())
    }
}
