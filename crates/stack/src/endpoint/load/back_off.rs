//! How long a place of a closed loop stays empty when its flow has failed.
//!
//! A peer that refuses answers at once, and a client without free ports fails at once: a place that
//! was filled again without delay would do nothing but fail, as fast as it can.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use wirestorm_base::time::{Duration, Instant};

/// For so long at first, and at most.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(1);

/// Places that stay empty for a while.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct BackOff {
    /// For how long a place stays empty whose flow fails now; 0 where none has of late.
    wait: Duration,
    /// From when on a failure says that having waited so long was not enough.
    doubles_at: Instant,
    /// Until when each of them stays so.
    places: BinaryHeap<Reverse<Instant>>,
}

impl BackOff {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { wait: Duration::ZERO, doubles_at: Instant::ZERO, places: BinaryHeap::new() }
    }

    /// How many stay empty now.
    #[inline]
    pub(in crate::endpoint) fn places(&mut self, now: Instant) -> u64 {
        while self.places.peek().is_some_and(|Reverse(until)| *until <= now) {
            self.places.pop();
        }
        self.places.len() as u64
    }

    /// When the next one may be filled.
    pub(in crate::endpoint) fn next(&self) -> Option<Instant> {
        self.places.peek().map(|Reverse(until)| *until)
    }

    /// How many there are, those included that may be filled by now.
    pub(in crate::endpoint) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// A flow failed, or could not be made. Returns how long its place stays empty.
    #[cold]
    pub(in crate::endpoint) fn lengthen(&mut self, now: Instant) -> Duration {
        if now >= self.doubles_at {
            self.wait = self.wait.saturating_add(self.wait).clamp(LEAST, MOST);
            self.doubles_at = now.saturating_add(self.wait);
        }
        self.wait
    }

    /// The same of one of so many places.
    #[cold]
    pub(in crate::endpoint) fn empty(&mut self, now: Instant, places: u64) {
        let until = now.saturating_add(self.lengthen(now));
        // Flows that programs have asked for have no place.
        if self.len() < places {
            self.places.push(Reverse(until));
        }
    }

    /// A flow did what it should.
    #[inline]
    pub(in crate::endpoint) const fn reset(&mut self) {
        (self.wait, self.doubles_at) = (Duration::ZERO, Instant::ZERO);
    }
}
