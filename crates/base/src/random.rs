//! Pseudo-random numbers from a seed.

/// Returns 64 pseudo-random bits for a seed and a number: the output function of `SplitMix64`
/// (Steele, Lea, Flood 2014) over both.
#[inline]
pub const fn draw(seed: u64, number: u64) -> u64 {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bits = seed ^ number.wrapping_add(1).wrapping_mul(GOLDEN_RATIO);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Deterministic sequence of pseudo-random numbers; the same seed gives the same sequence on every
/// machine. Not for secrets.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    seed: u64,
    number: u64,
}

impl Random {
    /// Creates the sequence of a seed.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self { seed, number: 0 }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.number += 1;
        draw(self.seed, self.number)
    }

    /// Returns a number from 0 to `end - 1`, or 0 if `end` is 0.
    pub const fn below(&mut self, end: u32) -> u32 {
        (((self.next_u64() >> 32) * end as u64) >> 32) as u32
    }

    /// Returns a number from `min` to `max`, both included.
    pub const fn between(&mut self, min: u64, max: u64) -> u64 {
        let numbers = max.wrapping_sub(min) as u128 + 1;
        min.wrapping_add(((self.next_u64() as u128 * numbers) >> 64) as u64)
    }

    /// Returns a number in (0, 1], in steps of 2^-53. It excludes 0, which has no logarithm.
    pub fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Draws from the normal distribution with mean 0 and standard deviation 1 (Box-Muller method).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }
}
