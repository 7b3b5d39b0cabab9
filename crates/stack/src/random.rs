//! Numbers drawn from a seed.

/// A generator of Sebastiano Vigna's SplitMix64: eight bytes of state, and the same numbers
/// everywhere. Not for secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 on, below `end`; 0 where that is 0.
    pub(crate) const fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * end as u64) >> 32) as u32
    }

    /// A number of the exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // Above 0 and up to 1, in steps of 2^-53: the logarithm of 0 would be none.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -libm::log(uniform)
    }
}
