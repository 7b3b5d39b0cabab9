//! Pseudo-random numbers that are the same everywhere for the same seed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The generator for the item with this number, independent of those of other numbers.
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

    /// From zero to below one.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + ((u128::from(self.next()) * u128::from(high - low + 1)) >> 64) as u64
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// A Pareto distribution cut off at `high`: many small values, a few very large ones, as
    /// sizes of web objects are.
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
