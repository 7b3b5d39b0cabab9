//! Arrival times of received bytes that no step has consumed.

use alloc::collections::VecDeque;

/// Arrival times of a stream's bytes, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Number of bytes and their arrival time, oldest first. At most one entry for each waiting
    /// byte.
    waiting: VecDeque<(usize, u64)>,
    /// Arrival time of the last consumed byte.
    taken: u64,
}

impl Arrivals {
    /// Records the arrival of `bytes` bytes.
    pub(super) fn add(&mut self, bytes: usize, micros: u64) {
        match self.waiting.back_mut() {
            _ if bytes == 0 => {}
            Some((count, time)) if *time == micros => *count += bytes,
            _ => self.waiting.push_back((bytes, micros)),
        }
    }

    /// Consumes the oldest `bytes` bytes.
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

    /// Returns the arrival time of the last consumed byte, in microseconds.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Drops all waiting entries.
    pub(super) fn clear(&mut self) {
        self.waiting = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_is_the_arrival_of_the_last_consumed_byte() {
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
