//! Times between the packets of a capture, as they were or as they are said to have been.

use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};

/// What time is between one packet of a capture and the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// As it was captured.
    #[default]
    AsCaptured,
    /// The same everywhere, whatever was captured.
    Fixed {
        /// Before a packet from where the one before came from.
        within: Duration,
        /// Before a packet from elsewhere.
        turning: Duration,
    },
    /// As it was captured, but for what is short.
    AtLeast {
        /// What is shorter than this
        least: Duration,
        /// is this long, and so is what is shorter than that.
        instead: Duration,
    },
}

/// The times of packets, one after the other.
#[derive(Debug)]
pub(super) struct Clock {
    gaps: Gaps,
    /// The packet before: when it was captured, and from where it came.
    before: Option<(Instant, Option<IpAddr>)>,
    now: Instant,
}

impl Clock {
    pub(super) const fn new(gaps: Gaps) -> Self {
        Self { gaps, before: None, now: Instant::ZERO }
    }

    /// When the next packet comes. Where nothing is known of its source, it is that of the packet
    /// before.
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
            Gaps::Fixed { turning, .. } if turns => self.now.saturating_add(turning),
            Gaps::Fixed { within, .. } => self.now.saturating_add(within),
            Gaps::AtLeast { least, instead } if gap < least || gap < instead => {
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

    /// The times of packets that were captured at these milliseconds, from these.
    fn times(gaps: Gaps) -> Vec<u64> {
        let mut clock = Clock::new(gaps);
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|it| Some(IpAddr::from(it)));
        let packets = [(5, a), (6, b), (26, b), (27, None), (60, a)];
        let at = |millis: u64| Instant::ZERO.saturating_add(Duration::from_millis(millis));
        let millis = |time: Instant| time.as_nanos() / 1_000_000;
        packets.map(|(time, source)| millis(clock.next(at(time), source))).to_vec()
    }

    #[test]
    fn gaps_are_as_captured_or_as_said() {
        let ms = Duration::from_millis;
        assert_eq!(times(Gaps::AsCaptured), [5, 6, 26, 27, 60]);
        let fixed = Gaps::Fixed { within: ms(2), turning: ms(10) };
        assert_eq!(times(fixed), [5, 15, 17, 19, 29]);
        let least = Gaps::AtLeast { least: ms(3), instead: ms(7) };
        assert_eq!(times(least), [5, 12, 32, 39, 72]);
        // What is long enough, but shorter than what stands for what is not.
        let least = Gaps::AtLeast { least: ms(3), instead: ms(25) };
        assert_eq!(times(least), [5, 30, 55, 80, 113]);
    }
}
