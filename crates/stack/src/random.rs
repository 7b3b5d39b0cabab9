//! Pseudo-random numbers from a seed.

use wirestorm_model::stream::draw;

/// Deterministic sequence of pseudo-random numbers; the same seed gives the same sequence on every
/// machine. Not for secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    seed: u64,
    number: u64,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, number: 0 }
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.number += 1;
        draw(self.seed, self.number)
    }

    /// Returns a number from 0 to `end - 1`, or 0 if `end` is 0.
    pub(crate) const fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * end as u64) >> 32) as u32
    }

    /// Returns a number from `min` to `max`, both included.
    pub(crate) const fn between(&mut self, min: u64, max: u64) -> u64 {
        let numbers = max.wrapping_sub(min) as u128 + 1;
        min.wrapping_add(((self.next() as u128 * numbers) >> 64) as u64)
    }

    /// Returns a number in (0, 1], in steps of 2^-53. It excludes 0, which has no logarithm.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from the exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Draws from the normal distribution with mean 0 and standard deviation 1 (Box-Muller method).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }
}
