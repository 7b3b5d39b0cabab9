//! Errors of the frame assembly.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Error of the frame assembly, with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct AssembleError {
    /// Number (from 0) and name of the header; `None` for the whole frame.
    pub header: Option<(usize, &'static str)>,
    /// Field name, the path of an item's field such as `options.0.value`, or the path of an item.
    pub field: Option<String>,
    /// The problem.
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

/// Problem with a header, a field or the frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The header number does not exist.
    #[error("there are {count} headers, counted from 0")]
    UnknownHeader {
        /// Number of headers.
        count: usize,
    },
    /// The layout has no such field.
    #[error("no such field; expected one of {}", Names(known))]
    UnknownField {
        /// Names of the layout's fields.
        known: Vec<&'static str>,
    },
    /// The item number does not exist.
    #[error("no such item; there are {count}, counted from 0")]
    UnknownItem {
        /// Number of items.
        count: usize,
    },
    /// The layout does not allow this item.
    #[error("{found} is not allowed here; expected {}", Names(known))]
    ItemNotAllowed {
        /// Name of the item's layout.
        found: &'static str,
        /// Names of the allowed items.
        known: Vec<&'static str>,
    },
    /// A number exceeds its field.
    #[error("{found} does not fit its {bits} bits; at most {}", max(*bits))]
    TooLarge {
        /// Number.
        found: u128,
        /// Size of the field in bits.
        bits: usize,
    },
    /// A computed length or count exceeds its field.
    #[error("the computed value {found} does not fit its {bits} bits; at most {}", max(*bits))]
    TooLong {
        /// Computed value.
        found: usize,
        /// Size of the field in bits.
        bits: usize,
    },
    /// The number of bytes differs from the size of the field.
    #[error("found {found} bytes, expected {expected}")]
    WrongLength {
        /// Bytes given.
        found: usize,
        /// Size of the field in bytes.
        expected: usize,
    },
    /// Bytes were given for a field that is not a whole number of bytes.
    #[error("found {found} bytes, expected a number of {bits} bits")]
    NotBytes {
        /// Bytes given.
        found: usize,
        /// Size of the field in bits.
        bits: usize,
    },
    /// A number was given for a field of variable size.
    #[error("found the number {found}, expected bytes")]
    NotANumber {
        /// Number.
        found: u128,
    },
    /// `bad` was given for a field that is not a checksum.
    #[error("only a checksum can be bad; expected a value")]
    BadWithoutChecksum,
    /// Two values were given for the same bits.
    #[error("{other} already sets these bits; give only one of them")]
    ConflictingValues {
        /// Other field.
        other: &'static str,
    },
    /// A value was given for an optional field whose flag is 0.
    #[error("is given, but {flag} is 0")]
    FlagNotSet {
        /// Name of the flag.
        flag: &'static str,
    },
    /// The optional field is absent in this header.
    #[error("the header has no such field, since no value is given")]
    FieldAbsent,
    /// The header before has no field for the number of this header.
    #[error("the header before it has no field for this number")]
    NoHeaderBefore,
    /// The checksum covers addresses, but no IP header precedes it.
    #[error("covers the addresses of an IP header, but none precedes it; give it a value")]
    NoIpHeader,
    /// The checksum covers the final destination, but the IP header has the next segment.
    #[error("covers the final address in the routing header before it; give it a value")]
    SegmentsLeft,
    /// The checksum covers everything to the end of the frame, padding included.
    #[error("covers the rest of the frame, so there can be no padding; give it a payload")]
    Padded,
    /// No variable can be written to the field.
    #[error("has {bits} bits, expected 1 to 128 for a variable")]
    NotVariable {
        /// Size of the field in bits.
        bits: usize,
    },
    /// The frame is shorter than its headers and the payload's bytes.
    #[error(
        "a frame of {found} bytes without FCS is {} too short: headers have {headers} bytes, \
         the payload at least {}", needed.saturating_sub(*found), needed.saturating_sub(*headers)
    )]
    FrameTooShort {
        /// Requested length.
        found: usize,
        /// Minimum length.
        needed: usize,
        /// Length of the headers.
        headers: usize,
    },
    /// The frame exceeds the maximum length.
    #[error("a frame of {found} bytes without FCS is too long; at most {limit}")]
    FrameTooLong {
        /// Requested length.
        found: usize,
        /// Maximum length.
        limit: usize,
    },
}

/// Returns the largest number of `bits` bits.
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
