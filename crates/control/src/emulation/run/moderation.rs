//! How often a worker looks for frames while many arrive: network cards moderate their interrupts
//! for the same reason. To be woken for each frame costs more than all that is done with it.

use wirestorm_base::time::{Duration, Instant};

/// So many frames in a window are many: 20,000 a second.
const FRAMES: u128 = 200;
const WINDOW: Duration = Duration::from_millis(10);

/// With fewer flows each waits for answers by itself, and a pause would be all of its time.
const FLOWS: usize = 32;

/// When a worker waits for the next frame, and when for a time, whatever arrives.
#[derive(Debug)]
pub(in crate::emulation) struct Moderation {
    /// How long what arrives may wait.
    rx_coalesce: Duration,
    since: Instant,
    /// That have arrived since then.
    frames: usize,
    is_busy: bool,
}

impl Moderation {
    /// `rx_coalesce`: how long what arrives may wait; none: not at all.
    pub(in crate::emulation) fn new(rx_coalesce: Duration, now: Instant) -> Self {
        Self { rx_coalesce, since: now, frames: 0, is_busy: false }
    }

    /// So many frames have arrived.
    pub(in crate::emulation) fn note(&mut self, frames: usize, now: Instant) {
        self.frames += frames;
        let elapsed = now.saturating_since(self.since);
        if elapsed >= WINDOW {
            let least = FRAMES * u128::from(elapsed.as_nanos()) / u128::from(WINDOW.as_nanos());
            self.is_busy = self.frames as u128 >= least;
            (self.since, self.frames) = (now, 0);
        }
    }

    /// For how long nothing is looked at, with so many flows at present; `None`: until the next
    /// frame arrives.
    pub(in crate::emulation) fn pause(&self, flows: usize) -> Option<Duration> {
        (self.is_busy && flows >= FLOWS && self.rx_coalesce > Duration::ZERO)
            .then_some(self.rx_coalesce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COALESCE: Duration = Duration::from_micros(50);

    /// A second in which so many frames arrive, with so many flows.
    fn pause(frames_per_second: u64, flows: usize, rx_coalesce: Duration) -> Option<Duration> {
        let start = Instant::from_nanos(1);
        let mut moderation = Moderation::new(rx_coalesce, start);
        for frame in 1..=frames_per_second {
            let at = Duration::from_nanos(1_000_000_000 * frame / frames_per_second);
            moderation.note(1, start.saturating_add(at));
        }
        moderation.pause(flows)
    }

    #[test]
    fn many_frames_of_many_flows_are_waited_for_together() {
        assert_eq!(pause(25_000, 32, COALESCE), Some(COALESCE));
        assert_eq!(pause(15_000, 32, COALESCE), None);
        assert_eq!(pause(25_000, 31, COALESCE), None);
        assert_eq!(pause(25_000, 32, Duration::ZERO), None);
    }

    #[test]
    fn silence_ends_it() {
        let start = Instant::from_nanos(1);
        let mut moderation = Moderation::new(COALESCE, start);
        moderation.note(1_000, start.saturating_add(WINDOW));
        assert_eq!(moderation.pause(100), Some(COALESCE));
        // What came in a long time is judged by that time.
        moderation.note(300, start.saturating_add(Duration::from_millis(40)));
        assert_eq!(moderation.pause(100), None);
    }
}
