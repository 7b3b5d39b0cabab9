//! A bounded queue between the bus and a thread of its user.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::RecvError;

/// A queue of at most `capacity` items. When it is full, new items are dropped and counted: the
/// bus must not wait for a slow reader.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    dropped: u64,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State { items: VecDeque::new(), dropped: 0, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity: capacity.max(1) }
    }

    pub(crate) fn push(&self, item: T) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if state.items.len() >= self.capacity {
            state.dropped += 1;
            return;
        }
        state.items.push_back(item);
        self.changed.notify_one();
    }

    /// Takes the first item; waits for it at most for `timeout`.
    pub(crate) fn pop(&self, timeout: Duration) -> Result<T, RecvError> {
        let started = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Ok(item);
            }
            if state.is_closed {
                return Err(RecvError::Closed);
            }
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(RecvError::Timeout);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the queue; items in it can still be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_new_items_and_counts_them() {
        let queue = Queue::new(2);
        (0..5).for_each(|item| queue.push(item));
        assert_eq!(queue.dropped(), 3);
        assert_eq!(queue.pop(Duration::ZERO), Ok(0));
        assert_eq!(queue.pop(Duration::ZERO), Ok(1));
        assert_eq!(queue.pop(Duration::ZERO), Err(RecvError::Timeout));
    }

    #[test]
    fn a_closed_queue_gives_its_items_first() {
        let queue = Queue::new(2);
        queue.push(1);
        queue.close();
        queue.push(2);
        assert_eq!(queue.pop(Duration::ZERO), Ok(1));
        assert_eq!(queue.pop(Duration::from_secs(60)), Err(RecvError::Closed));
    }
}
