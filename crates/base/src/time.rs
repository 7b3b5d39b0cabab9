//! Points and spans of time, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Nanoseconds in one second.
pub const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the epoch of the clock that the value came from.
///
/// Real ports use `CLOCK_MONOTONIC`, captures use the Unix epoch, the simulator starts at zero. Do
/// not compare values of different clocks: the type does not prevent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time: nanoseconds, never negative, at most 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The clock's epoch. As a departure time it means "as soon as possible".
    pub const ZERO: Self = Self(0);
    /// The last representable instant; as a limit it means "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanoseconds` after the epoch.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is the later one.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or the last instant on overflow.
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Returns `self - span`, or the epoch if the result would be before it.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// The longest span; as a limit it means "without limit".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of whole nanoseconds.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// A span of whole microseconds; saturates.
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds.saturating_mul(1_000))
    }

    /// A span of whole milliseconds; saturates.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// A span of whole seconds; saturates.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(NANOSECONDS_PER_SECOND))
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for display and ratios only: a schedule keeps the integer.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOSECONDS_PER_SECOND as f64
    }

    /// Returns `self + other`, or the longest span on overflow.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Duration {
    /// Formats with the largest unit that leaves a whole part, with three decimals: `1.500 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let thousandths = (u128::from(self.0) * 1_000 / unit) as u64;
        write!(f, "{}.{:03} {name}", thousandths / 1_000, thousandths % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_duration_shows_its_largest_unit() {
        assert_eq!(Duration::from_nanos(999).to_string(), "999 ns");
        assert_eq!(Duration::from_nanos(1_500).to_string(), "1.500 us");
        assert_eq!(Duration::from_millis(20).to_string(), "20.000 ms");
        assert_eq!(Duration::MAX.to_string(), "18446744073.709 s");
    }

    #[test]
    fn saturating_arithmetic_stays_at_the_ends() {
        let early = Instant::from_nanos(5);
        let late = Instant::from_nanos(9);
        assert_eq!(early.saturating_since(late), Duration::ZERO);
        assert_eq!(late.saturating_since(early), Duration::from_nanos(4));
        assert_eq!(Instant::MAX.saturating_add(Duration::from_nanos(1)), Instant::MAX);
        assert_eq!(early.saturating_sub(Duration::from_secs(1)), Instant::ZERO);
    }
}
