//! When bytes arrived that wait to be taken.

use alloc::collections::VecDeque;

/// When the bytes of a stream arrived, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// So many at a time, the oldest first: no more entries than bytes that wait.
    waiting: VecDeque<(usize, u64)>,
    /// When the last one arrived that was taken.
    taken: u64,
}

impl Arrivals {
    /// So many bytes have arrived.
    pub(super) fn add(&mut self, bytes: usize, micros: u64) {
        match self.waiting.back_mut() {
            _ if bytes == 0 => {}
            Some((count, time)) if *time == micros => *count += bytes,
            _ => self.waiting.push_back((bytes, micros)),
        }
    }

    /// So many of the oldest bytes are taken.
    pub(super) fn take(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0
            && let Some((count, micros)) = self.waiting.front_mut()
        {
            self.taken = *micros;
            if *count > left {
                *count -= left;
                return;
            }
            left -= *count;
            self.waiting.pop_front();
        }
    }

    /// When the last one arrived that was taken, in microseconds.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// None waits any more.
    pub(super) fn clear(&mut self) {
        self.waiting = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_taken_the_last_byte_counts() {
        let mut arrivals = Arrivals::default();
        for (bytes, micros) in [(3, 10), (2, 10), (0, 15), (4, 20), (1, 30)] {
            arrivals.add(bytes, micros);
        }
        for (bytes, expected) in [(4, 10), (1, 10), (0, 10), (1, 20), (4, 30), (9, 30)] {
            arrivals.take(bytes);
            assert_eq!(arrivals.taken(), expected, "{bytes}");
        }
    }
}
