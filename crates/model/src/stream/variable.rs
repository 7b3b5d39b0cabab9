//! Values that change from frame to frame.

use alloc::vec::Vec;
use core::num::NonZeroU64;

/// A value that changes from frame to frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Which values, in which order.
    pub values: Values,
    /// What makes it go on to the next value.
    pub advance: Advance,
    /// The sequence begins again after so many values.
    pub restart_after: Option<NonZeroU64>,
}

/// What makes a variable go on to its next value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advance {
    /// Every frame.
    #[default]
    EveryFrame,
    /// Another variable, by its index in the program, having passed through all its values:
    /// those of its cycle, or the draws after which it begins again.
    WhenWraps(usize),
}

/// A sequence of values; the n-th follows from n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// `start`, then on by `step` within `min` to `max`, upwards or downwards; beyond the end it
    /// goes on at the other end.
    Counter {
        /// The first value; within the bounds.
        start: u128,
        /// Minimum.
        min: u128,
        /// Maximum.
        max: u128,
        /// The distance between values; not zero, and `max - min + 1` is a multiple of it.
        step: u128,
        /// Whether values fall.
        downwards: bool,
    },
    /// These, in their order; at least one.
    List(Vec<u128>),
    /// Any value from `min` to `max`, all equally likely, drawn by `seed` and the number alone.
    Random {
        /// Minimum.
        min: u128,
        /// Maximum.
        max: u128,
        /// What the draw follows from.
        seed: u64,
    },
    /// One of these, as often as its weight says, drawn by `seed` and the number alone.
    Weighted {
        /// Values with their weights; at least one weight is not zero.
        choices: Vec<(u128, u32)>,
        /// What the draw follows from.
        seed: u64,
    },
}

impl Variable {
    /// A variable that goes on with every frame and never restarts.
    pub const fn new(values: Values) -> Self {
        Self { values, advance: Advance::EveryFrame, restart_after: None }
    }

    /// The value in frame `number` of a stream with these variables, of which this is one.
    ///
    /// The definition; the engine is tested against it.
    pub fn value(&self, number: u64, variables: &[Self]) -> u128 {
        self.values.nth(self.position(number, variables))
    }

    /// How many values it has gone past before frame `number`, since it last began again.
    pub fn position(&self, number: u64, variables: &[Self]) -> u64 {
        let passed = self.passed(number, variables);
        self.restart_after.map_or(passed, |after| passed % after)
    }

    /// How many values it has gone past before frame `number` in all.
    fn passed(&self, number: u64, variables: &[Self]) -> u64 {
        match self.advance {
            Advance::EveryFrame => number,
            Advance::WhenWraps(other) => {
                variables.get(other).map_or(0, |other| other.wraps(number, variables))
            }
        }
    }

    /// How often it has gone through all its values before frame `number`.
    fn wraps(&self, number: u64, variables: &[Self]) -> u64 {
        match (self.values.cycle(), self.restart_after) {
            (Some(cycle), _) => {
                let past = self.position(number, variables);
                past.saturating_add(self.values.lead_in()) / cycle
            }
            // Draws have no order, but they have an end where they begin again.
            (None, Some(after)) => self.passed(number, variables) / after,
            (None, None) => 0,
        }
    }
}

impl Values {
    /// The value at position `n`, from 0.
    pub fn nth(&self, n: u64) -> u128 {
        match self {
            Self::Counter { start, min, max, step, downwards } => {
                let distance = if *downwards { max - start } else { start - min };
                // Values keep the distance from the end that the first one has.
                let (begin, rest) = (distance / step, distance % step);
                let place = match ((max - min) / step).checked_add(1) {
                    Some(span) => {
                        let n = u128::from(n) % span;
                        if begin >= span - n { begin - (span - n) } else { begin + n }
                    }
                    // All of 128 bits.
                    None => begin.wrapping_add(u128::from(n)),
                };
                let past = place * step + rest;
                if *downwards { max - past } else { min + past }
            }
            Self::List(values) => {
                let index = n % values.len().max(1) as u64;
                values.get(index as usize).copied().unwrap_or(0)
            }
            Self::Random { min, max, seed } => within(draw128(*seed, n), *min, *max),
            Self::Weighted { choices, seed } => {
                let total: u64 = choices.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut left = ((u128::from(draw(*seed, n)) * u128::from(total)) >> 64) as u64;
                for (value, weight) in choices {
                    if left < u64::from(*weight) {
                        return *value;
                    }
                    left -= u64::from(*weight);
                }
                choices.last().map_or(0, |(value, _)| *value)
            }
        }
    }

    /// How many different positions there are before the sequence begins again; `None` for
    /// draws, which have no order.
    pub fn cycle(&self) -> Option<u64> {
        match self {
            Self::Counter { min, max, step, .. } => {
                let last = (max - min) / step;
                Some(u64::try_from(last).unwrap_or(u64::MAX).saturating_add(1))
            }
            Self::List(values) => Some(values.len().max(1) as u64),
            Self::Random { .. } | Self::Weighted { .. } => None,
        }
    }

    /// How many values lie before the first one in the order of the cycle.
    pub fn lead_in(&self) -> u64 {
        match self {
            Self::Counter { start, min, max, step, downwards } => {
                let begin = if *downwards { max - start } else { start - min } / step;
                u64::try_from(begin).unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }
}

/// 64 bits that follow from a seed and a number, and look as if they did not: `SplitMix64`'s
/// output function (Steele, Lea, Flood 2014) over both.
#[inline]
pub const fn draw(seed: u64, number: u64) -> u64 {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bits = seed ^ number.wrapping_add(1).wrapping_mul(GOLDEN_RATIO);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn draw128(seed: u64, number: u64) -> u128 {
    let low = draw(seed, number);
    u128::from(low) | u128::from(draw(!seed, number)) << 64
}

/// Brings a draw into a range: all of it for the whole width, else by multiplication, whose bias
/// is below one in 2^64 for ranges up to 2^64 and not more than one in 2^(128 - width) above.
fn within(bits: u128, min: u128, max: u128) -> u128 {
    let width = max - min;
    if width == u128::MAX {
        return bits;
    }
    let count = width + 1;
    match u64::try_from(count) {
        Ok(count) => min + ((u128::from(bits as u64) * u128::from(count)) >> 64),
        Err(_) => min + bits % count,
    }
}
