//! Pseudo-random numbers that depend only on the seed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the generator of item `number`, independent of the generators of other items.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut mixed = Self::new(seed);
        mixed.state = mixed.next() ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Self::new(mixed.next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0.0..1.0`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from `low` to `high` inclusive.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + ((u128::from(self.next()) * u128::from(high - low + 1)) >> 64) as u64
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Returns a number from a Pareto distribution truncated at `high`: many small values and a few
    /// very large ones, like sizes of web objects.
    pub(super) fn heavy_tail(&mut self, low: u64, high: u64, shape: f64) -> u64 {
        let value = low as f64 / (1.0 - self.unit()).powf(1.0 / shape);
        (value as u64).min(high)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}
