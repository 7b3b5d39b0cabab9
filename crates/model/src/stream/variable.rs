//! Variables of a stream.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use wirestorm_base::random::draw;

/// A value that changes from frame to frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Sequence of values.
    pub values: Values,
    /// Event that advances the variable to its next value.
    pub advance: Advance,
    /// Number of values after which the sequence restarts.
    pub restart_after: Option<NonZeroU64>,
}

/// Event that advances a variable to its next value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advance {
    /// Every frame.
    #[default]
    EveryFrame,
    /// The wrap of another variable, by its index in the program. A variable wraps at the end of
    /// its cycle; a random one wraps when it restarts.
    WhenWraps(usize),
}

/// A sequence of values; each value is a function of its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Counts from `start` by `step` between `min` and `max`, upwards or downwards, and wraps at
    /// the end.
    Counter {
        /// First value, within the bounds.
        start: u128,
        /// Smallest value.
        min: u128,
        /// Largest value.
        max: u128,
        /// Step; not zero, and a divisor of `max - min + 1`.
        step: u128,
        /// Whether to count down.
        downwards: bool,
    },
    /// A list of values in this order; at least one.
    List(Vec<u128>),
    /// Uniformly distributed values from `min` to `max`, a function of `seed` and the position.
    Random {
        /// Smallest value.
        min: u128,
        /// Largest value.
        max: u128,
        /// Seed of the draws.
        seed: u64,
    },
    /// Weighted choice between values, a function of `seed` and the position.
    Weighted {
        /// Values with their weights; at least one weight is not zero.
        choices: Vec<(u128, u32)>,
        /// Seed of the draws.
        seed: u64,
    },
}

impl Variable {
    /// Creates a variable that advances with every frame and never restarts.
    pub const fn new(values: Values) -> Self {
        Self { values, advance: Advance::EveryFrame, restart_after: None }
    }

    /// Returns the value in frame `number`; `variables` are those of the stream, this one included.
    ///
    /// This is the reference implementation, and tests compare the engine with it.
    pub fn value(&self, number: u64, variables: &[Self]) -> u128 {
        self.values.nth(self.position(number, variables))
    }

    /// Returns the position in the sequence at frame `number`, since the last restart.
    pub fn position(&self, number: u64, variables: &[Self]) -> u64 {
        let passed = self.advances(number, variables);
        self.restart_after.map_or(passed, |after| passed % after)
    }

    /// Returns how many times the variable advanced before frame `number`.
    fn advances(&self, number: u64, variables: &[Self]) -> u64 {
        match self.advance {
            Advance::EveryFrame => number,
            Advance::WhenWraps(other) => {
                variables.get(other).map_or(0, |other| other.wraps(number, variables))
            }
        }
    }

    /// Returns how many times the variable wrapped before frame `number`.
    fn wraps(&self, number: u64, variables: &[Self]) -> u64 {
        match (self.values.cycle(), self.restart_after) {
            (Some(cycle), _) => {
                let past = self.position(number, variables);
                past.saturating_add(self.values.start_index()) / cycle
            }
            // Random values have no cycle, so they wrap when they restart.
            (None, Some(after)) => self.advances(number, variables) / after,
            (None, None) => 0,
        }
    }
}

impl Values {
    /// Returns a counter of `count` values from `start` by `step`, upwards or downwards, which then
    /// restarts. `bits` is the width of the field, 1 to 128: beyond it, the values wrap around when
    /// they are written.
    ///
    /// Returns `None` if `step` or `count` is 0, or if the values exceed 128 bits.
    pub fn counter(
        start: u128,
        step: u128,
        count: u64,
        bits: u32,
        downwards: bool,
    ) -> Option<Self> {
        let span = step.checked_mul(u128::from(count)).filter(|span| *span > 0)?;
        if !downwards {
            let max = start.checked_add(span - 1)?;
            return Some(Self::Counter { start, min: start, max, step, downwards });
        }
        // Start so many rounds of the field higher that the values stay positive.
        let mut max = start;
        if let Some(lacking) = (span - 1).checked_sub(max).filter(|lacking| *lacking > 0) {
            let round = 1_u128.checked_shl(bits)?;
            max = lacking.div_ceil(round).checked_mul(round)?.checked_add(max)?;
        }
        Some(Self::Counter { start: max, min: max - (span - 1), max, step, downwards })
    }

    /// Returns the value at position `n`, from 0.
    pub fn nth(&self, n: u64) -> u128 {
        match self {
            Self::Counter { start, min, max, step, downwards } => {
                let distance = if *downwards { max - start } else { start - min };
                // All values have the same remainder modulo `step` from the end of the range.
                let (begin, rest) = (distance / step, distance % step);
                let place = match ((max - min) / step).checked_add(1) {
                    Some(span) => {
                        let n = u128::from(n) % span;
                        if begin >= span - n { begin - (span - n) } else { begin + n }
                    }
                    // All 2^128 values: the wrap-around is that of the type.
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

    /// Returns the number of positions before the sequence repeats; `None` for random values.
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

    /// Returns how many values precede the first one in the order of the cycle.
    pub fn start_index(&self) -> u64 {
        match self {
            Self::Counter { start, min, max, step, downwards } => {
                let begin = if *downwards { max - start } else { start - min } / step;
                u64::try_from(begin).unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }
}

fn draw128(seed: u64, number: u64) -> u128 {
    let low = draw(seed, number);
    u128::from(low) | u128::from(draw(!seed, number)) << 64
}

/// Maps a draw to the range `min` to `max`. The full width needs no change. Up to 2^64 values use
/// multiplication, with a bias below 2^-64. Wider ranges use the remainder, with a bias of at most
/// 2^-(128 - width).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_at_the_width_of_the_field() {
        let first = |values: Values| [0, 1, 2, 3].map(|n| values.nth(n) & 0xff);
        let counter = |start, downwards| Values::counter(start, 2, 3, 8, downwards).unwrap();
        assert_eq!(first(counter(254, false)), [254, 0, 2, 254]);
        assert_eq!(first(counter(1, true)), [1, 255, 253, 1]);
        assert_eq!(first(counter(9, true)), [9, 7, 5, 9]);
        assert_eq!(Values::counter(0, 0, 3, 8, false), None);
        assert_eq!(Values::counter(0, 1, 0, 8, false), None);
        assert_eq!(Values::counter(u128::MAX, 1, 2, 128, false), None);
        assert_eq!(Values::counter(0, 1, 2, 128, true), None);
    }
}
