//! Limits on starting flows.
//!
//! Received frames come first: a flow that starts while others wait delays them, and its own SYN is
//! answered late or lost. So an iteration starts few flows, and almost none while received frames
//! are waiting. If answers to SYNs become slow, the peer is overloaded. Then only as many flows
//! start as it answers.

use wirestorm_base::time::{Duration, Instant};

/// Maximum number of starts in an iteration. It bounds the delay of received frames, and the SYNs
/// fit the ring of any port.
const STARTS_MAX: u32 = 64;

/// The same while received frames are waiting. Not 0, since that may last.
const STARTS_BUSY_MAX: u32 = 1;

/// Length of a window, at whose end the limit changes.
const WINDOW: Duration = Duration::from_millis(10);

/// Minimum limit of a window while answers are quick. Beyond it, the limit doubles with each
/// window.
const QUICK_WINDOW_MIN: u32 = 1_024;

/// The same while answers are slow.
const SLOW_WINDOW_MIN: u32 = 256;

/// Answers are slow above this multiple of the quickest one plus this many microseconds. Long paths
/// and preempted threads alone do not reach it.
const SLOW_TIMES: u32 = 4;
const SLOW_MICROS: u32 = 5_000;

/// While answers are slow, one of this many may be lost.
const ANSWERED_PART: u32 = 16;

/// Time from which an answer belongs to a retransmitted SYN (RFC 6298 section 2: after a second).
const RETRANSMISSION_MIN: Duration = Duration::from_millis(900);

/// Number of times in the smoothed average.
const SMOOTHED: u32 = 8;

/// Limits on starting flows.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Starts {
    /// Starts left in this iteration, and the limit of this window.
    iteration_left: u32,
    window: u32,
    window_end: Instant,
    /// Starts and answers in this window.
    started: u32,
    answered: u32,
    /// Times of answers in microseconds: the quickest, and the smoothed average.
    quickest: u32,
    smoothed: u32,
}

impl Starts {
    pub(in crate::endpoint) const fn new() -> Self {
        Self {
            iteration_left: 0,
            window: 0,
            window_end: Instant::ZERO,
            started: 0,
            answered: 0,
            quickest: u32::MAX,
            smoothed: 0,
        }
    }

    /// Starts an iteration, after its received frames. `is_busy`: more of them are waiting.
    #[inline]
    pub(in crate::endpoint) fn begin_iteration(&mut self, now: Instant, is_busy: bool) {
        if now >= self.window_end {
            self.begin_window(now);
        }
        self.iteration_left = if is_busy { STARTS_BUSY_MAX } else { STARTS_MAX };
    }

    #[cold]
    fn begin_window(&mut self, now: Instant) {
        let (started, answered) = (self.started, self.answered);
        let slow = self.quickest.saturating_mul(SLOW_TIMES).saturating_add(SLOW_MICROS);
        self.window = if self.smoothed > slow.saturating_mul(2) {
            answered.max(SLOW_WINDOW_MIN)
        } else if self.smoothed > slow {
            // Lost answers must not lower the limit each time.
            (answered + answered / ANSWERED_PART).max(SLOW_WINDOW_MIN)
        } else if answered > 0 || self.quickest == u32::MAX {
            started.saturating_mul(2).max(QUICK_WINDOW_MIN)
        } else {
            started.max(QUICK_WINDOW_MIN)
        };
        if started == 0 && answered == 0 {
            self.smoothed = 0;
        }
        self.window_end = now.saturating_add(WINDOW);
        (self.started, self.answered) = (0, 0);
    }

    /// Whether a flow may start.
    #[inline]
    pub(in crate::endpoint) const fn has_room(&self) -> bool {
        self.iteration_left > 0 && self.started < self.window
    }

    /// Counts a started flow.
    #[inline]
    pub(in crate::endpoint) const fn note(&mut self) {
        self.iteration_left = self.iteration_left.saturating_sub(1);
        self.started += 1;
    }

    /// Records that a connection was established after a time.
    #[inline]
    pub(in crate::endpoint) fn note_answer(&mut self, after: Duration) {
        let micros = u32::try_from(after.as_nanos() / 1_000).unwrap_or(u32::MAX);
        self.answered += 1;
        if after >= RETRANSMISSION_MIN {
            return;
        }
        self.quickest = self.quickest.min(micros);
        self.smoothed = match self.smoothed {
            0 => micros,
            before => before - before / SMOOTHED + micros / SMOOTHED,
        };
    }

    /// Returns the earliest time of the next start.
    pub(in crate::endpoint) const fn next(&self) -> Instant {
        match self.started < self.window {
            true => Instant::ZERO,
            false => self.window_end,
        }
    }
}
