//! Stop request for a method: ends waits between trials at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::time::Duration;

/// Stop request. Clones refer to the same request.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    /// Requests the end.
    pub fn stop(&self) {
        *self.lock() = true;
        self.0.changed.notify_all();
    }

    /// Returns whether the end was requested.
    pub fn is_stopped(&self) -> bool {
        *self.lock()
    }

    /// Waits for a time, or until the end is requested. Returns whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let deadline = StdInstant::now() + StdDuration::from_nanos(time.as_nanos());
        let mut is_stopped = self.lock();
        loop {
            let left = deadline.saturating_duration_since(StdInstant::now());
            if *is_stopped || left == StdDuration::ZERO {
                return *is_stopped;
            }
            let waited = self.0.changed.wait_timeout(is_stopped, left);
            is_stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.is_stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_ends_a_wait() {
        let stop = StopSignal::default();
        assert!(!stop.wait(Duration::from_nanos(1)));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stop.wait(Duration::from_secs(600)));
            stop.stop();
            assert!(waiter.join().unwrap());
        });
        assert!(stop.is_stopped() && stop.wait(Duration::from_secs(600)));
    }
}
