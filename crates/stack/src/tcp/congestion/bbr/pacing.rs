//! Segments leave at a rate, not as fast as the window lets them.
//!
//! Timers have ticks of 1 ms. So what leaves at a time is what the rate is in a millisecond, as with
//! Linux's `tcp_tso_autosize`, two segments at least; and what a timer was late is made up for, as
//! long as that is no more than two of its ticks, so that the rate is kept on average.

use crate::tcp::connection::Now;

/// What a rate is in a millisecond leaves at a time.
const QUANTA_PER_SECOND: u64 = 1_000;
/// At least so many segments do.
const SEGMENTS_MIN: u32 = 2;
/// And at most so many bytes.
const QUANTUM_MAX: u64 = 64 << 10;
/// How late it may be and be made up for, in nanoseconds.
const LATENESS_MAX: u64 = 2_000_000;
/// However low the rate is, no longer is waited, in nanoseconds.
const WAIT_MAX: u64 = 1_000_000_000;

/// When the next segment may leave.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Pacing {
    /// Bytes a second.
    rate: u64,
    /// In nanoseconds of the clock.
    next_at: u64,
}

impl Pacing {
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) const fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// send_quantum: how many bytes leave at a time.
    pub(in crate::tcp) fn quantum(&self, segment: u32) -> u32 {
        let bytes = (self.rate / QUANTA_PER_SECOND).min(QUANTUM_MAX) as u32;
        bytes.max(SEGMENTS_MIN * segment)
    }

    /// Whether something may leave now.
    pub(in crate::tcp) const fn is_due(&self, now: Now) -> bool {
        self.next_at <= now.micros * 1_000
    }

    /// The tick at which it may, in ms.
    pub(in crate::tcp) const fn due_at(&self) -> u32 {
        self.next_at.div_ceil(1_000_000) as u32
    }

    /// So many bytes leave.
    pub(in crate::tcp) fn note_sent(&mut self, bytes: u32, now: Now) {
        let takes = u64::from(bytes) * 1_000_000_000 / self.rate.max(1);
        let from = self.next_at.max((now.micros * 1_000).saturating_sub(LATENESS_MAX));
        self.next_at = from + takes.min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves in 10 s where a timer calls at the tick that is asked for, late by what `late`
    /// says of it, in microseconds.
    fn sent(rate: u64, late: impl Fn(u64) -> u64) -> (u64, u64) {
        const SEGMENT: u32 = 1_448;
        let mut pacing = Pacing::default();
        pacing.set_rate(rate);
        let (mut micros, mut all, mut most) = (0, 0, 0);
        while micros < 10_000_000 {
            let mut at_once = 0;
            while pacing.is_due(Now::from_micros(micros)) {
                let bytes = pacing.quantum(SEGMENT) / SEGMENT * SEGMENT;
                pacing.note_sent(bytes, Now::from_micros(micros));
                at_once += u64::from(bytes);
            }
            (all, most) = (all + at_once, most.max(at_once));
            let tick = u64::from(pacing.due_at());
            micros = tick * 1_000 + late(tick);
        }
        (all / 10, most)
    }

    #[test]
    fn a_rate_is_kept_by_timers_of_a_millisecond() {
        for rate in [50_000, 1_000_000, 12_500_000, 60_000_000] {
            for late in [0, 400, 900] {
                let (bytes, most) = sent(rate, |tick| tick * 7 % (late + 1));
                let share = bytes as f64 / rate as f64;
                // At low rates one quantum is a part of ten seconds that is told.
                assert!((0.995..1.01).contains(&share), "{rate}, {late}: {share}");
                // What two ticks are, and what was begun.
                let quantum = (rate / 1_000).max(2 * 1_448);
                assert!(most <= 3 * quantum + 2 * 1_448, "{rate}, {late}: {most}");
            }
        }
    }

    #[test]
    fn what_was_late_for_long_is_not_made_up_for() {
        // Every tenth call is 50 ms late.
        let (bytes, most) = sent(1_000_000, |tick| if tick % 10 == 0 { 50_000 } else { 0 });
        assert!(bytes < 700_000, "{bytes}");
        assert!(most <= 3 * 2_896, "{most}");
    }

    #[test]
    fn no_rate_stops_a_flow() {
        let mut pacing = Pacing::default();
        pacing.set_rate(1);
        let now = Now::from_micros(5_000_000);
        pacing.note_sent(1_000_000, now);
        assert!(!pacing.is_due(now));
        assert!(pacing.is_due(Now::from_micros(6_000_000)));
    }
}
