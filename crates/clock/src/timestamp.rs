//! Readings of a clock.

use std::fmt;
use std::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reading of a clock, in nanoseconds since the Unix epoch as far as that clock knows.
///
/// Readings of two machines must not be compared: their clocks differ by an unknown offset, which
/// this crate estimates. The range is the years 1677 to 2262.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The reading `nanoseconds` after the Unix epoch.
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Add<i64> for Timestamp {
    type Output = Self;
    /// Returns the reading `nanoseconds` later; stops at the ends of the range.
    fn add(self, nanoseconds: i64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }
}

impl Sub for Timestamp {
    type Output = i64;
    /// Returns the nanoseconds from `earlier` to `self`; stops at the ends of the range.
    fn sub(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000_000);
        write!(f, "{seconds}.{:09} s", self.0.rem_euclid(1_000_000_000))
    }
}
