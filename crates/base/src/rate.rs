//! Rates as exact fractions, and the bytes that each layer counts for a frame.
//!
//! A rounded gap drifts: 3 Mpps is a gap of 333.33… ns, and 333 ns would be 0.1 % too fast. A
//! rate is therefore a fraction of two integers, and [`Ticker`] carries the remainder along.

use core::fmt;

use crate::time::{Duration, NANOSECONDS_PER_SECOND};

/// Bytes of the frame check sequence (IEEE 802.3 clause 3.2.9).
pub const FRAME_CHECK_SEQUENCE_BYTES: u64 = 4;

/// Bytes that a frame occupies on the wire beyond itself and its FCS: preamble and start
/// delimiter (8), minimum inter-packet gap (12) (IEEE 802.3 clauses 3.2.1, 3.2.2, 4.4.2).
pub const PREAMBLE_AND_GAP_BYTES: u64 = 20;

/// Layer whose bytes a bit rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The frame as in a capture, without FCS. tcpreplay's Mbps counts these bytes.
    Frame,
    /// The frame with its FCS: a layer-2 rate as in RFC 2544.
    FrameWithFcs,
    /// All bytes on the wire (layer 1): FCS, preamble and inter-packet gap included.
    Wire,
}

impl Layer {
    /// Returns the bytes that this layer counts beyond the frame without FCS.
    pub const fn overhead(self) -> u64 {
        match self {
            Self::Frame => 0,
            Self::FrameWithFcs => FRAME_CHECK_SEQUENCE_BYTES,
            Self::Wire => FRAME_CHECK_SEQUENCE_BYTES + PREAMBLE_AND_GAP_BYTES,
        }
    }
}

/// A rate as the exact fraction `units / nanoseconds`, in lowest terms.
///
/// Both parts are from 1 to 10^18, so products with a frame's bits stay within 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    units: u64,
    nanoseconds: u64,
}

/// The largest numerator and denominator of a [`Rate`].
const RATE_PART_MAX: u64 = 1_000_000_000_000_000_000;

/// Why a text or a pair of numbers is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The rate is zero.
    #[error("a rate must be greater than zero")]
    Zero,
    /// The text is not a decimal number.
    #[error("not a number: expected digits, at most one decimal point, and k, M, G or T")]
    NotANumber,
    /// Numerator or denominator over 10^18.
    #[error("out of range: at most 10^18 units a second, at most 9 decimals")]
    OutOfRange,
}

impl Rate {
    /// Creates the rate of `units` in each `span`.
    ///
    /// # Errors
    /// [`RateError::Zero`] if either is zero, [`RateError::OutOfRange`] beyond 10^18.
    pub const fn new(units: u64, span: Duration) -> Result<Self, RateError> {
        let nanoseconds = span.as_nanos();
        if units == 0 || nanoseconds == 0 {
            return Err(RateError::Zero);
        }
        let divisor = greatest_common_divisor(units, nanoseconds);
        let (units, nanoseconds) = (units / divisor, nanoseconds / divisor);
        if units > RATE_PART_MAX || nanoseconds > RATE_PART_MAX {
            return Err(RateError::OutOfRange);
        }
        Ok(Self { units, nanoseconds })
    }

    /// 10^10 units a second: in bits, the line rate of 10 Gigabit Ethernet.
    pub const TEN_GIGA: Self = Self { units: 10, nanoseconds: 1 };

    /// Parses a decimal number of units a second: `0.5`, `100000`, `1.5M`, `7G`.
    ///
    /// The result is multiplied by `scale` (1,000,000 for an option in Mbit/s). It is exact,
    /// without floating point.
    ///
    /// # Errors
    /// As [`Rate::new`], and [`RateError::NotANumber`].
    pub fn parse_per_second(text: &str, scale: u64) -> Result<Self, RateError> {
        let (text, suffix) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
            Some(b't' | b'T') => (&text[..text.len() - 1], 1_000_000_000_000_u64),
            _ => (text, 1),
        };
        let decimal = Decimal::parse(text)?;
        let units = u128::from(decimal.digits) * u128::from(scale) * u128::from(suffix);
        let mut nanoseconds = u128::from(decimal.denominator) * u128::from(NANOSECONDS_PER_SECOND);
        let mut units = units;
        // The reduction needs 64-bit values. Only powers of ten need removal, since a decimal text
        // adds no other common factor.
        while units % 10 == 0 && nanoseconds % 10 == 0 && units > 0 {
            units /= 10;
            nanoseconds /= 10;
        }
        match (u64::try_from(units), u64::try_from(nanoseconds)) {
            (Ok(units), Ok(nanoseconds)) => Self::new(units, Duration::from_nanos(nanoseconds)),
            _ => Err(RateError::OutOfRange),
        }
    }

    /// Returns this rate times `numerator / denominator`.
    ///
    /// # Errors
    /// As [`Rate::new`], if the exact result is out of range.
    pub const fn scaled(self, numerator: u64, denominator: u64) -> Result<Self, RateError> {
        if numerator == 0 || denominator == 0 {
            return Err(RateError::Zero);
        }
        // Cancel crosswise first, so that the products are in lowest terms.
        let upper = greatest_common_divisor(numerator, self.nanoseconds);
        let lower = greatest_common_divisor(denominator, self.units);
        let outer = greatest_common_divisor(numerator / upper, denominator / lower);
        let units = (self.units / lower).checked_mul(numerator / upper / outer);
        let nanoseconds = (self.nanoseconds / upper).checked_mul(denominator / lower / outer);
        match (units, nanoseconds) {
            (Some(units), Some(nanoseconds)) => Self::new(units, Duration::from_nanos(nanoseconds)),
            _ => Err(RateError::OutOfRange),
        }
    }

    /// Units a second, for display and ratios only.
    pub fn per_second(self) -> f64 {
        self.units as f64 / self.nanoseconds as f64 * NANOSECONDS_PER_SECOND as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.per_second())
    }
}

/// A decimal number as the exact fraction `digits / denominator`. The denominator is a power of
/// ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// All digits, without the decimal point.
    pub digits: u64,
    /// 10 to the power of the number of decimals; at most 10^9.
    pub denominator: u64,
}

impl Decimal {
    /// Parses digits with at most one decimal point and at most nine decimals.
    ///
    /// # Errors
    /// [`RateError::NotANumber`] or [`RateError::OutOfRange`].
    pub fn parse(text: &str) -> Result<Self, RateError> {
        let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (integer.is_empty() && fraction.is_empty())
            || !all_digits(integer)
            || !all_digits(fraction)
        {
            return Err(RateError::NotANumber);
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 9 {
            return Err(RateError::OutOfRange);
        }
        let mut digits: u64 = 0;
        for byte in integer.bytes().chain(fraction.bytes()) {
            digits = digits
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(byte - b'0')))
                .ok_or(RateError::OutOfRange)?;
        }
        Ok(Self { digits, denominator: 10_u64.pow(fraction.len() as u32) })
    }
}

/// Steps along a [`Rate`] without drift. Each step returns whole nanoseconds and carries the
/// remainder to the next step.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    rate: Rate,
    /// Remainder of earlier steps, in 1/`rate.units` nanoseconds; always below `rate.units`.
    remainder: u64,
}

impl Ticker {
    /// Creates a ticker with no remainder.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, remainder: 0 }
    }

    /// Returns the time that the next `units` take.
    #[inline]
    pub fn step(&mut self, units: u64) -> Duration {
        // A 64-bit division is several times cheaper than a 128-bit one and suffices for usual
        // replay rates.
        if let Some(scaled) =
            units.checked_mul(self.rate.nanoseconds).and_then(|v| v.checked_add(self.remainder))
        {
            self.remainder = scaled % self.rate.units;
            return Duration::from_nanos(scaled / self.rate.units);
        }
        let scaled =
            u128::from(units) * u128::from(self.rate.nanoseconds) + u128::from(self.remainder);
        self.remainder = (scaled % u128::from(self.rate.units)) as u64;
        Duration::from_nanos(
            u64::try_from(scaled / u128::from(self.rate.units)).unwrap_or(u64::MAX),
        )
    }
}

/// A [`Ticker`] with a constant number of units per step. It divides only once, in `new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedStepTicker {
    /// Whole nanoseconds of a step.
    nanoseconds: u64,
    /// Remainder of a step, in 1/`units` nanoseconds.
    step_remainder: u64,
    units: u64,
    remainder: u64,
}

impl FixedStepTicker {
    /// A ticker whose steps take no time.
    pub const ZERO_STEP: Self = Self { nanoseconds: 0, step_remainder: 0, units: 1, remainder: 0 };

    /// Creates a ticker for steps of `units`, with no remainder.
    pub const fn new(rate: Rate, units: u64) -> Self {
        let scaled = units as u128 * rate.nanoseconds as u128;
        let integer = scaled / rate.units as u128;
        let nanoseconds = if integer > u64::MAX as u128 { u64::MAX } else { integer as u64 };
        let rest = (scaled % rate.units as u128) as u64;
        Self { nanoseconds, step_remainder: rest, units: rate.units, remainder: 0 }
    }

    /// Returns this ticker with the remainder of `other`, which has other steps of the same rate.
    #[inline]
    #[must_use]
    pub const fn with_remainder_of(self, other: Self) -> Self {
        Self { remainder: other.remainder, ..self }
    }

    /// Returns how many steps from here take less than `span` in total.
    pub const fn steps_before(&self, span: Duration) -> u64 {
        // In 1/`units` nanoseconds; all values are below 2^124.
        let span = span.as_nanos() as u128 * self.units as u128;
        let step = self.nanoseconds as u128 * self.units as u128 + self.step_remainder as u128;
        let room = span.saturating_sub(self.remainder as u128 + 1);
        match room.checked_div(step) {
            Some(steps) if steps <= u64::MAX as u128 => steps as u64,
            _ => u64::MAX,
        }
    }

    /// Returns a step and what remains of it: whole nanoseconds, the remainder of a step, the
    /// remainder so far, and the units of both in a nanosecond.
    pub const fn parts(&self) -> [u64; 4] {
        [self.nanoseconds, self.step_remainder, self.remainder, self.units]
    }

    /// Returns the time of the next `steps` steps.
    pub const fn steps(&mut self, steps: u64) -> Duration {
        let rest = self.remainder as u128 + self.step_remainder as u128 * steps as u128;
        self.remainder = (rest % self.units as u128) as u64;
        let whole = self.nanoseconds as u128 * steps as u128 + rest / self.units as u128;
        Duration::from_nanos(if whole > u64::MAX as u128 { u64::MAX } else { whole as u64 })
    }

    /// Returns the time of the next step.
    #[inline]
    pub const fn step(&mut self) -> Duration {
        // Both are below `units`, which is at most 10^18: the sum fits.
        let rest = self.remainder + self.step_remainder;
        // Branch-free, since for most rates the processor cannot predict the carry.
        let carry = (rest >= self.units) as u64;
        self.remainder = rest - self.units * carry;
        let nanoseconds = self.nanoseconds.saturating_add(carry);
        Duration::from_nanos(nanoseconds)
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_has_no_drift_over_three_million_steps() {
        let rate = Rate::parse_per_second("3M", 1).unwrap();
        let mut ticker = Ticker::new(rate);
        let total: u64 = (0..3_000_000).map(|_| ticker.step(1).as_nanos()).sum();
        assert_eq!(total, NANOSECONDS_PER_SECOND);
    }

    #[test]
    fn a_rate_times_a_fraction_is_exact() {
        let rate = Rate::parse_per_second("3M", 1).unwrap();
        assert_eq!(rate.scaled(1, 3), Rate::parse_per_second("1M", 1));
        assert_eq!(rate.scaled(7, 2), Rate::parse_per_second("10.5M", 1));
        assert_eq!(rate.scaled(6, 6), Ok(rate));
        assert_eq!(rate.scaled(0, 6), Err(RateError::Zero));
        assert_eq!(rate.scaled(1, u64::MAX), Err(RateError::OutOfRange));
    }

    #[test]
    fn a_steady_ticker_steps_as_a_ticker() {
        for (rate, units) in [("3M", 1), ("14880952.380952381", 1), ("10G", 672), ("0.5", 3)] {
            let rate = Rate::parse_per_second(rate, 1).unwrap();
            let (mut ticker, mut steady) = (Ticker::new(rate), FixedStepTicker::new(rate, units));
            for _ in 0..10_000 {
                assert_eq!(steady.step(), ticker.step(units), "{rate}, steps of {units}");
            }
        }
    }

    #[test]
    fn steps_before_counts_the_steps_that_take_less() {
        for (rate, units) in [("3M", 1), ("14880952.380952381", 1), ("10G", 672), ("0.5", 3)] {
            let mut ticker = FixedStepTicker::new(Rate::parse_per_second(rate, 1).unwrap(), units);
            ticker.step();
            let (mut steps, mut passed) = (ticker, Duration::ZERO);
            for number in 1..1_000 {
                passed = passed.saturating_add(steps.step());
                assert_eq!(ticker.steps_before(passed), number - 1, "{rate}, steps of {units}");
                let more = passed.saturating_add(Duration::from_nanos(1));
                assert_eq!(ticker.steps_before(more), number, "{rate}, steps of {units}");
            }
        }
        assert_eq!(FixedStepTicker::ZERO_STEP.steps_before(Duration::from_nanos(1)), u64::MAX);
    }

    #[test]
    fn many_steps_take_as_long_as_one_by_one() {
        for rate in ["3M", "14880952.380952381", "0.5"] {
            let rate = Rate::parse_per_second(rate, 1).unwrap();
            let (mut one, mut many) =
                (FixedStepTicker::new(rate, 1), FixedStepTicker::new(rate, 1));
            for steps in [1, 7, 1_000] {
                let single: u64 = (0..steps).map(|_| one.step().as_nanos()).sum();
                assert_eq!(many.steps(steps).as_nanos(), single, "{rate}, {steps} steps");
                assert_eq!(one.parts(), many.parts());
            }
        }
    }

    #[test]
    fn at_phase_of_continues_with_other_units() {
        let rate = Rate::parse_per_second("3M", 1).unwrap();
        let mut ticker = Ticker::new(rate);
        let (mut one, mut four) = (FixedStepTicker::new(rate, 1), FixedStepTicker::new(rate, 4));
        for _ in 0..10 {
            assert_eq!(one.step(), ticker.step(1));
            four = four.with_remainder_of(one);
            assert_eq!(four.step(), ticker.step(4));
            one = one.with_remainder_of(four);
        }
    }

    #[test]
    fn fractions_of_a_packet_a_second_are_exact() {
        let mut ticker = Ticker::new(Rate::parse_per_second("0.5", 1).unwrap());
        assert_eq!(ticker.step(1), Duration::from_secs(2));
        let mut ticker = Ticker::new(Rate::parse_per_second("33.3", 1).unwrap());
        let total: u64 = (0..333).map(|_| ticker.step(1).as_nanos()).sum();
        assert_eq!(total, 10 * NANOSECONDS_PER_SECOND);
    }

    #[test]
    fn a_bit_rate_steps_by_bits() {
        let mut ticker = Ticker::new(Rate::parse_per_second("7000", 1_000_000).unwrap());
        let total: u64 = (0..7_000_000).map(|_| ticker.step(1_000).as_nanos()).sum();
        assert_eq!(total, NANOSECONDS_PER_SECOND);
    }

    #[test]
    fn steps_beyond_64_bits_do_not_overflow() {
        let rate = Rate::parse_per_second("0.000000001", 1).unwrap();
        let mut ticker = Ticker::new(rate);
        assert_eq!(ticker.step(20), Duration::MAX);
    }

    #[test]
    fn invalid_rates_are_rejected() {
        for text in ["", ".", "x", "-1", "1e3", "1.2.3", "k", " 1"] {
            assert_eq!(Rate::parse_per_second(text, 1), Err(RateError::NotANumber), "{text}");
        }
        assert_eq!(Rate::parse_per_second("0.0", 1), Err(RateError::Zero));
        assert_eq!(Rate::parse_per_second("99999999999999999999", 1), Err(RateError::OutOfRange));
        assert_eq!(Rate::parse_per_second("0.1234567891", 1), Err(RateError::OutOfRange));
    }
}
