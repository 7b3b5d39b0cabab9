//! Windowed maximum filter.

use alloc::vec::Vec;

/// Maximum of the values of the last `rounds` rounds, including the current one. Values expire only
/// when a new one is added.
#[derive(Clone, Debug)]
pub(super) struct WindowedMax {
    rounds: u32,
    /// Rounds increase and values decrease.
    held: Vec<(u32, u64)>,
}

impl WindowedMax {
    pub(super) const fn new(rounds: u32) -> Self {
        Self { rounds, held: Vec::new() }
    }

    pub(super) fn get(&self) -> u64 {
        self.held.first().map_or(0, |(_, value)| *value)
    }

    pub(super) fn note(&mut self, round: u32, value: u64) {
        while self.held.pop_if(|(_, held)| *held <= value).is_some() {}
        self.held.push((round, value));
        let is_of_late = |held: &(u32, u64)| round.wrapping_sub(held.0) < self.rounds;
        // At most one entry per round; the later one is not greater.
        self.held.dedup_by_key(|held| held.0);
        let first = self.held.iter().position(is_of_late).unwrap_or(0);
        self.held.drain(..first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn maximum_covers_the_last_rounds(
            values in prop::collection::vec((0..4_u32, 0..20_u64), 1..80),
            begin in prop_oneof![Just(0_u32), Just(u32::MAX - 10)],
        ) {
            let (mut max, mut all, mut round) = (WindowedMax::new(10), Vec::new(), 0_u32);
            for (rounds, value) in values {
                round += rounds;
                all.push((round, value));
                max.note(begin.wrapping_add(round), value);
                let of_late = all.iter().filter(|(at, _)| at + 10 > round);
                prop_assert_eq!(Some(max.get()), of_late.map(|(_, value)| *value).max());
                prop_assert!(max.held.len() <= 10);
            }
        }
    }
}
