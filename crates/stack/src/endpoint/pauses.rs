//! When flows go on that have done many steps of their programs without waiting.

use crate::tcp::connection::Now;

/// What one such turn is given of a worker's time, which takes some microseconds of it.
const TURN_MICROS: u64 = 100;

/// One goes on after the other, so that many of them take no more from others than a few do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    /// When the next one may go on, in microseconds.
    free_at: u64,
}

impl Pauses {
    /// When a flow goes on, in ms: in the next one, or behind all that pause already.
    #[cold]
    pub(super) fn next(&mut self, now: Now) -> u32 {
        let at = self.free_at.max(now.micros + 1_000);
        self.free_at = at + TURN_MICROS;
        at.div_ceil(1_000) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn ten_go_on_in_each_millisecond() {
        let mut pauses = Pauses::default();
        let now = Now::from_micros(5_000_000);
        let at: Vec<_> = (0..31).map(|_| pauses.next(now)).collect();
        let of = |millis: u32| at.iter().filter(|it| **it == millis).count();
        assert_eq!([5_001, 5_002, 5_003, 5_004].map(of), [1, 10, 10, 10]);
        // A single one has each.
        for millis in 6_000..6_010 {
            let now = Now::from_micros(u64::from(millis) * 1_000 + 30);
            assert_eq!(pauses.next(now), millis + 2);
        }
    }
}
