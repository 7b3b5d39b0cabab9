//! Pseudo-random numbers of tcpreplay's seeds.

/// The generator of `rand_r` in the GNU C library, which tcpreplay uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    state: u32,
}

/// Numbers that are discarded after seeding.
const WARM_UP: usize = 5;

impl Random {
    /// Creates a generator without discarding numbers.
    pub(super) const fn new(seed: u32) -> Self {
        Self { state: seed }
    }

    /// The next number, below 2^31.
    pub(super) fn next(&mut self) -> u32 {
        [2048, 1024, 1024].into_iter().fold(0, |number, modulus| {
            self.state = self.state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            (number << 10) ^ ((self.state >> 16) % modulus)
        })
    }

    /// Returns the offset that this seed adds to TCP sequence numbers.
    pub(super) fn sequence_offset(seed: u32) -> u32 {
        let mut random = Self::new(seed);
        (0..WARM_UP).fold(0, |_, _| random.next())
    }

    /// Returns the mask that this seed applies to IP addresses, in network byte order.
    pub(super) fn address_mask(seed: u32) -> [u8; 4] {
        let mut random = Self::new(seed);
        for _ in 0..WARM_UP {
            random.next();
        }
        random.state.to_be_bytes()
    }

    /// Returns the mask that this seed applies to Ethernet addresses. Its group bit is clear, so
    /// unicast addresses stay unicast.
    pub(super) fn mac_mask(seed: u32) -> [u8; 6] {
        let mut random = Self::new(seed);
        let mut mask = [0; 6].map(|_: u8| random.next() as u8);
        mask[0] &= 0xfe;
        mask
    }

    /// Creates a generator for one packet. The result does not depend on which packets a worker has
    /// processed before.
    pub(super) const fn for_packet(seed: u32, number: u64) -> Self {
        // The multiplier is 2^64 divided by the golden ratio, which spreads neighbouring numbers.
        let mixed = (number ^ (seed as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self::new((mixed >> 32) as u32 ^ seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_rand_r_of_the_gnu_c_library() {
        // unsigned seed = 1; rand_r(&seed), three times.
        let mut random = Random::new(1);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [476_707_713, 1_186_278_907, 505_671_508]
        );
    }
}
