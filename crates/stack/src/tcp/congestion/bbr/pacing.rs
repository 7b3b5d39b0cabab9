//! Pacing: segments leave at a rate instead of as fast as the window allows.
//!
//! Timers have ticks of 1 ms. Therefore a burst holds what the rate sends in a millisecond, as in
//! `tcp_tso_autosize` of Linux, and at least two segments. Pacing catches up with late timers, up
//! to two ticks, so that the average rate is exact.

use crate::tcp::now::Now;

/// Number of bursts per second.
const QUANTA_PER_SECOND: u64 = 1_000;
/// Minimum burst in segments.
const SEGMENTS_MIN: u32 = 2;
/// Maximum burst in bytes.
const QUANTUM_MAX: u64 = 64 << 10;
/// Maximum lateness of a timer that pacing makes up for, in nanoseconds.
const LATENESS_MAX: u64 = 2_000_000;
/// Maximum delay of a segment in nanoseconds, however low the rate is.
const WAIT_MAX: u64 = 1_000_000_000;

/// Departure time of the next segment.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Pacing {
    /// Rate in bytes per second.
    rate: u64,
    /// Departure time in nanoseconds of the clock.
    next_at: u64,
}

impl Pacing {
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) const fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// send_quantum: burst size in bytes.
    pub(in crate::tcp) fn quantum(&self, segment: u32) -> u32 {
        let bytes = (self.rate / QUANTA_PER_SECOND).min(QUANTUM_MAX) as u32;
        bytes.max(SEGMENTS_MIN * segment)
    }

    /// Whether a segment may leave now.
    pub(in crate::tcp) const fn is_due(&self, now: Now) -> bool {
        self.next_at <= now.micros * 1_000
    }

    /// Tick of the next departure, in ms.
    pub(in crate::tcp) const fn due_at(&self) -> u32 {
        self.next_at.div_ceil(1_000_000) as u32
    }

    /// Records the departure of `bytes` and schedules the next one.
    pub(in crate::tcp) fn note_sent(&mut self, bytes: u32, now: Now) {
        let takes = u64::from(bytes) * 1_000_000_000 / self.rate.max(1);
        let from = self.next_at.max((now.micros * 1_000).saturating_sub(LATENESS_MAX));
        self.next_at = from + takes.min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that leave in 10 s, and the largest burst, if the timer of a tick is late
    /// by `late(tick)` microseconds.
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
    fn timers_of_one_millisecond_keep_the_rate() {
        for rate in [50_000, 1_000_000, 12_500_000, 60_000_000] {
            for late in [0, 400, 900] {
                let (bytes, most) = sent(rate, |tick| tick * 7 % (late + 1));
                let share = bytes as f64 / rate as f64;
                // At low rates, one burst is a visible part of ten seconds.
                assert!((0.995..1.01).contains(&share), "{rate}, {late}: {share}");
                // Two ticks of lateness, and the segment in progress.
                let quantum = (rate / 1_000).max(2 * 1_448);
                assert!(most <= 3 * quantum + 2 * 1_448, "{rate}, {late}: {most}");
            }
        }
    }

    #[test]
    fn long_lateness_is_not_made_up_for() {
        // Every tenth timer is 50 ms late.
        let (bytes, most) = sent(1_000_000, |tick| if tick % 10 == 0 { 50_000 } else { 0 });
        assert!(bytes < 700_000, "{bytes}");
        assert!(most <= 3 * 2_896, "{most}");
    }

    #[test]
    fn lowest_rate_does_not_stop_a_flow() {
        let mut pacing = Pacing::default();
        pacing.set_rate(1);
        let now = Now::from_micros(5_000_000);
        pacing.note_sent(1_000_000, now);
        assert!(!pacing.is_due(now));
        assert!(pacing.is_due(Now::from_micros(6_000_000)));
    }
}
