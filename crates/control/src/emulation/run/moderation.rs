//! Receive coalescing: a worker with many arriving frames sleeps for a fixed time between batches.
//! Network cards moderate their interrupts for the same reason. A wake-up for each frame costs more
//! than the work on the frame.

use wirestorm_base::time::{Duration, Instant};

/// Frames per [`WINDOW`] from which coalescing starts: 20,000 per second.
const FRAMES: u128 = 200;
const WINDOW: Duration = Duration::from_millis(10);

/// Minimum number of flows. With fewer, each flow waits for its answer, so a pause delays all work.
const FLOWS: usize = 32;

/// Decides whether a worker waits for the next frame, or sleeps for a fixed time.
#[derive(Debug)]
pub(in crate::emulation) struct Moderation {
    /// Length of the pause.
    rx_coalesce: Duration,
    /// Start of the current window.
    since: Instant,
    /// Number of frames in the current window.
    frames: usize,
    is_busy: bool,
}

impl Moderation {
    /// Starts at `now`. `rx_coalesce` is the length of a pause; zero disables pauses.
    pub(in crate::emulation) fn new(rx_coalesce: Duration, now: Instant) -> Self {
        Self { rx_coalesce, since: now, frames: 0, is_busy: false }
    }

    /// Records the number of frames of one batch.
    pub(in crate::emulation) fn note(&mut self, frames: usize, now: Instant) {
        self.frames += frames;
        let elapsed = now.saturating_since(self.since);
        if elapsed >= WINDOW {
            let least = FRAMES * u128::from(elapsed.as_nanos()) / u128::from(WINDOW.as_nanos());
            self.is_busy = self.frames as u128 >= least;
            (self.since, self.frames) = (now, 0);
        }
    }

    /// Returns the length of the pause with this number of current flows. `None` means to wait for
    /// the next frame.
    pub(in crate::emulation) fn pause(&self, flows: usize) -> Option<Duration> {
        (self.is_busy && flows >= FLOWS && self.rx_coalesce > Duration::ZERO)
            .then_some(self.rx_coalesce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COALESCE: Duration = Duration::from_micros(50);

    /// Returns the pause after one second at this frame rate.
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
    fn many_frames_of_many_flows_are_coalesced() {
        assert_eq!(pause(25_000, 32, COALESCE), Some(COALESCE));
        assert_eq!(pause(15_000, 32, COALESCE), None);
        assert_eq!(pause(25_000, 31, COALESCE), None);
        assert_eq!(pause(25_000, 32, Duration::ZERO), None);
    }

    #[test]
    fn coalescing_ends_when_the_rate_drops() {
        let start = Instant::from_nanos(1);
        let mut moderation = Moderation::new(COALESCE, start);
        moderation.note(1_000, start.saturating_add(WINDOW));
        assert_eq!(moderation.pause(100), Some(COALESCE));
        // 300 frames in 40 ms are below the rate.
        moderation.note(300, start.saturating_add(Duration::from_millis(40)));
        assert_eq!(moderation.pause(100), None);
    }
}
