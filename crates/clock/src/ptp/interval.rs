//! Intervals of messages, as powers of two.

use wirestorm_base::time::{Duration, NANOSECONDS_PER_SECOND};

/// Time between messages: 2 to this power, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogInterval(i8);

impl LogInterval {
    /// Value in the header of messages without a fixed interval, such as all unicast messages
    /// (13.3.2.14).
    pub const UNSPECIFIED: i8 = 0x7f;
    /// Shortest interval: 1/128 s.
    pub const MIN: Self = Self(-7);
    /// Longest interval: 64 s.
    pub const MAX: Self = Self(6);
    /// One second.
    pub const SECOND: Self = Self(0);

    /// The interval for a power; the ends of the range bound it.
    pub const fn clamped(power: i8) -> Self {
        let Self(min) = Self::MIN;
        let Self(max) = Self::MAX;
        if power < min {
            Self::MIN
        } else if power > max {
            Self::MAX
        } else {
            Self(power)
        }
    }

    /// Reads the interval of a header; `None` if the header has none.
    pub const fn from_header(power: i8) -> Option<Self> {
        if power == Self::UNSPECIFIED { None } else { Some(Self::clamped(power)) }
    }

    /// Returns the power of two.
    pub const fn power(self) -> i8 {
        self.0
    }

    /// Returns the interval as a time.
    pub const fn duration(self) -> Duration {
        // The range keeps both shifts below the width of the number.
        Duration::from_nanos(if self.0 < 0 {
            NANOSECONDS_PER_SECOND >> (-self.0)
        } else {
            NANOSECONDS_PER_SECOND << self.0
        })
    }

    /// Returns `count` intervals.
    pub const fn times(self, count: u64) -> Duration {
        Duration::from_nanos(self.duration().as_nanos().saturating_mul(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_powers_of_two() {
        let nanos = [-128, -7, -3, 0, 1, 6, 126]
            .map(|power| LogInterval::clamped(power).duration().as_nanos());
        let second = NANOSECONDS_PER_SECOND;
        let expected = [second / 128, second / 128, second / 8, second, 2 * second, 64 * second];
        assert_eq!(nanos[..6], expected);
        assert_eq!(nanos[6], 64 * second);
        assert_eq!(LogInterval::from_header(0x7f), None);
    }
}
