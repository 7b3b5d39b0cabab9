//! How many flows may be started now.
//!
//! What arrives goes before what begins: a flow that is started while others wait to be served
//! costs them their time, and then its own SYN is answered late or lost. So few are started in one
//! breath, and next to none where more has arrived than a breath takes. And where answers to SYNs
//! become slow, the peer has more to do than it can: then as many are started as it answers.

use wirestorm_base::time::{Duration, Instant};

/// The most flows that are started in one breath: what arrives meanwhile does not wait for longer,
/// and their SYNs fit the ring of any port.
const BREATH_MAX: u32 = 64;

/// The same where more has arrived than one breath takes: not none, for that may stay so.
const BUSY_BREATH_MAX: u32 = 1;

/// What was answered is looked at so often.
const WINDOW: Duration = Duration::from_millis(10);

/// So many may be started in a window, however many there were in the one before: from there on
/// twice as many in each.
const QUICK_WINDOW_MIN: u32 = 1_024;

/// The same where answers are slow.
const SLOW_WINDOW_MIN: u32 = 256;

/// Answers are slow from so many times the quickest one on, and so many microseconds beside: paths
/// with a long way, and threads that are taken off their CPU, are no reason to start less.
const SLOW_TIMES: u32 = 4;
const SLOW_MICROS: u32 = 5_000;

/// Where answers are slow, such a part of them may be lost.
const ANSWERED_PART: u32 = 16;

/// What takes so long is the answer to a SYN that was lost, and sent again (RFC 6298 section 2: after
/// a second).
const SENT_AGAIN: Duration = Duration::from_millis(900);

/// A time is smoothed over about so many.
const SMOOTHED: u32 = 8;

/// What bounds the flows that are started.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Starts {
    /// Those that may still be started in this breath, and in this window.
    breath: u32,
    window: u32,
    window_end: Instant,
    /// Since the window began.
    started: u32,
    answered: u32,
    /// How long answers took, in microseconds: the quickest one, and of late.
    quickest: u32,
    smoothed: u32,
}

impl Starts {
    pub(in crate::endpoint) const fn new() -> Self {
        Self {
            breath: 0,
            window: 0,
            window_end: Instant::ZERO,
            started: 0,
            answered: 0,
            quickest: u32::MAX,
            smoothed: 0,
        }
    }

    /// A breath has heard all that has arrived, or as much as it takes.
    #[inline]
    pub(in crate::endpoint) fn begin_breath(&mut self, now: Instant, is_busy: bool) {
        if now >= self.window_end {
            self.begin_window(now);
        }
        self.breath = if is_busy { BUSY_BREATH_MAX } else { BREATH_MAX };
    }

    #[cold]
    fn begin_window(&mut self, now: Instant) {
        let (started, answered) = (self.started, self.answered);
        let slow = self.quickest.saturating_mul(SLOW_TIMES).saturating_add(SLOW_MICROS);
        self.window = if self.smoothed > slow.saturating_mul(2) {
            answered.max(SLOW_WINDOW_MIN)
        } else if self.smoothed > slow {
            // Some are lost on their way, and are not to make it fewer each time.
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

    /// Whether one may be started.
    #[inline]
    pub(in crate::endpoint) const fn has_room(&self) -> bool {
        self.breath > 0 && self.started < self.window
    }

    /// One was started.
    #[inline]
    pub(in crate::endpoint) const fn note(&mut self) {
        self.breath = self.breath.saturating_sub(1);
        self.started += 1;
    }

    /// A connection is established after so long.
    #[inline]
    pub(in crate::endpoint) fn note_answer(&mut self, after: Duration) {
        let micros = u32::try_from(after.as_nanos() / 1_000).unwrap_or(u32::MAX);
        self.answered += 1;
        if after >= SENT_AGAIN {
            return;
        }
        self.quickest = self.quickest.min(micros);
        self.smoothed = match self.smoothed {
            0 => micros,
            before => before - before / SMOOTHED + micros / SMOOTHED,
        };
    }

    /// When the next one may be started at the earliest.
    pub(in crate::endpoint) const fn next(&self) -> Instant {
        match self.started < self.window {
            true => Instant::ZERO,
            false => self.window_end,
        }
    }
}
