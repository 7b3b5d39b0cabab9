//! The clock of the in-process bus.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Source of the time from which the in-process bus ages its entries.
pub trait Clock: Send + Sync {
    /// Returns the time since a fixed moment. It never goes back.
    fn now(&self) -> Duration;
}

/// The monotonic clock of this machine.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that advances by calls alone.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
