//! Continuation of flows whose programs ran many steps without waiting.

use crate::tcp::now::Now;

/// Time between two such flows. The steps of one take some microseconds of it.
const TURN_MICROS: u64 = 100;

/// Continues such flows one after another, so that many of them delay others no more than a few.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct YieldSchedule {
    /// Earliest continuation of the next flow, in microseconds.
    free_at: u64,
}

impl YieldSchedule {
    /// Returns when a flow continues, in ms: in the next one, or after all that are scheduled.
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
    fn ten_flows_continue_in_each_millisecond() {
        let mut pauses = YieldSchedule::default();
        let now = Now::from_micros(5_000_000);
        let at: Vec<_> = (0..31).map(|_| pauses.next(now)).collect();
        let of = |millis: u32| at.iter().filter(|it| **it == millis).count();
        assert_eq!([5_001, 5_002, 5_003, 5_004].map(of), [1, 10, 10, 10]);
        // A single flow continues without a queue.
        for millis in 6_000..6_010 {
            let now = Now::from_micros(u64::from(millis) * 1_000 + 30);
            assert_eq!(pauses.next(now), millis + 2);
        }
    }
}
