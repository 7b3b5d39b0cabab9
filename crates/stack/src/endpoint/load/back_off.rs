//! Back-off of a closed loop: the time for which a place stays empty after a failed flow.
//!
//! A peer that refuses answers at once, and a client without free ports fails at once. Without a
//! delay, such a place would fail in an endless loop.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use wirestorm_base::time::{Duration, Instant};

/// Initial and maximum delay.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(1);

/// Places that stay empty for a while.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct BackOff {
    /// Delay after the next failure; 0 without recent failures.
    wait: Duration,
    /// Time from which a failure doubles the delay.
    doubles_at: Instant,
    /// Times at which the places may be filled.
    places: BinaryHeap<Reverse<Instant>>,
}

impl BackOff {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { wait: Duration::ZERO, doubles_at: Instant::ZERO, places: BinaryHeap::new() }
    }

    /// Returns the number of places that are empty now.
    #[inline]
    pub(in crate::endpoint) fn places(&mut self, now: Instant) -> u64 {
        while self.places.peek().is_some_and(|Reverse(until)| *until <= now) {
            self.places.pop();
        }
        self.places.len() as u64
    }

    /// Returns when the next place may be filled.
    pub(in crate::endpoint) fn next(&self) -> Option<Instant> {
        self.places.peek().map(|Reverse(until)| *until)
    }

    /// Returns the number of empty places, with those that may be filled now.
    pub(in crate::endpoint) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Records a flow that failed or could not start, and returns the delay.
    #[cold]
    pub(in crate::endpoint) fn lengthen(&mut self, now: Instant) -> Duration {
        if now >= self.doubles_at {
            self.wait = self.wait.saturating_add(self.wait).clamp(LEAST, MOST);
            self.doubles_at = now.saturating_add(self.wait);
        }
        self.wait
    }

    /// Like [`Self::lengthen`], and keeps the flow's place empty, one of `places`.
    #[cold]
    pub(in crate::endpoint) fn empty(&mut self, now: Instant, places: u64) {
        let until = now.saturating_add(self.lengthen(now));
        // Flows that programs start have no place.
        if self.len() < places {
            self.places.push(Reverse(until));
        }
    }

    /// Records a successful flow.
    #[inline]
    pub(in crate::endpoint) const fn reset(&mut self) {
        (self.wait, self.doubles_at) = (Duration::ZERO, Instant::ZERO);
    }
}
