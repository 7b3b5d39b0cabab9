//! Gaps between the packets of a capture: as captured or replaced.

use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};

/// Gaps between consecutive packets of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// The captured gaps.
    #[default]
    AsCaptured,
    /// Fixed gaps instead of the captured ones.
    Fixed {
        /// Gap before a packet from the same source as the previous one.
        within: Duration,
        /// Gap before a packet from another source.
        on_source_change: Duration,
    },
    /// The captured gaps, with short ones replaced.
    AtLeast {
        /// Limit: a shorter gap is replaced by `instead`.
        least: Duration,
        /// Replacement, which also replaces all gaps that are shorter than itself.
        replacement: Duration,
    },
}

/// Clock that assigns a time to each packet.
#[derive(Debug)]
pub(super) struct Clock {
    gaps: Gaps,
    /// Capture time and source of the previous packet.
    before: Option<(Instant, Option<IpAddr>)>,
    now: Instant,
}

impl Clock {
    pub(super) const fn new(gaps: Gaps) -> Self {
        Self { gaps, before: None, now: Instant::ZERO }
    }

    /// Returns the time of the next packet. An unknown source counts as that of the previous
    /// packet.
    pub(super) fn next(&mut self, captured: Instant, source: Option<IpAddr>) -> Instant {
        let Some((captured_before, source_before)) = self.before else {
            self.before = Some((captured, source));
            self.now = captured;
            return captured;
        };
        let gap = captured.saturating_since(captured_before);
        let turns = source.is_some() && source_before.is_some() && source != source_before;
        self.now = match self.gaps {
            Gaps::AsCaptured => captured,
            Gaps::Fixed { on_source_change: turning, .. } if turns => {
                self.now.saturating_add(turning)
            }
            Gaps::Fixed { within, .. } => self.now.saturating_add(within),
            Gaps::AtLeast { least, replacement: instead } if gap < least || gap < instead => {
                self.now.saturating_add(instead)
            }
            Gaps::AtLeast { .. } => self.now.saturating_add(gap),
        };
        self.before = Some((captured, source.or(source_before)));
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Returns the times, in milliseconds, of five packets with fixed capture times and sources.
    fn times(gaps: Gaps) -> Vec<u64> {
        let mut clock = Clock::new(gaps);
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|it| Some(IpAddr::from(it)));
        let packets = [(5, a), (6, b), (26, b), (27, None), (60, a)];
        let at = |millis: u64| Instant::ZERO.saturating_add(Duration::from_millis(millis));
        let millis = |time: Instant| time.as_nanos() / 1_000_000;
        packets.map(|(time, source)| millis(clock.next(at(time), source))).to_vec()
    }

    #[test]
    fn gaps_are_captured_fixed_or_at_least_a_minimum() {
        let ms = Duration::from_millis;
        assert_eq!(times(Gaps::AsCaptured), [5, 6, 26, 27, 60]);
        let fixed = Gaps::Fixed { within: ms(2), on_source_change: ms(10) };
        assert_eq!(times(fixed), [5, 15, 17, 19, 29]);
        let least = Gaps::AtLeast { least: ms(3), replacement: ms(7) };
        assert_eq!(times(least), [5, 12, 32, 39, 72]);
        // A gap above `least` but below `instead` is replaced too.
        let least = Gaps::AtLeast { least: ms(3), replacement: ms(25) };
        assert_eq!(times(least), [5, 30, 55, 80, 113]);
    }
}
