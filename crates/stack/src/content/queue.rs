//! The bytes of a flow's own that are on their way.

use alloc::collections::VecDeque;

use wirestorm_wire::checksum;

use crate::tcp::sequence::SequenceNumber;

/// Bytes that a flow sends, for as long as they are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    bytes: VecDeque<u8>,
    /// The number of the first of them.
    start: SequenceNumber,
}

impl SendQueue {
    /// Lets `add` put bytes behind the others, the first of which has the number `next`; returns
    /// how many it put.
    pub(super) fn add(&mut self, next: SequenceNumber, add: impl FnOnce(&mut VecDeque<u8>)) -> u32 {
        let before = self.bytes.len();
        if before == 0 {
            self.start = next;
        }
        add(&mut self.bytes);
        (self.bytes.len() - before) as u32
    }

    /// Forgets what is before a number: it is acknowledged.
    pub(super) fn forget_before(&mut self, number: SequenceNumber) {
        let gone = number.distance_from(self.start).max(0) as usize;
        let gone = gone.min(self.bytes.len());
        self.bytes.drain(..gone);
        self.start += gone as u32;
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Copies what has these numbers, and returns its sum.
    pub(super) fn copy(&self, number: SequenceNumber, to: &mut [u8]) -> u16 {
        let offset = number.distance_from(self.start).max(0) as usize;
        let (first, second) = self.bytes.as_slices();
        let from_first = first.get(offset..).unwrap_or_default();
        let from_second = second.get(offset.saturating_sub(first.len())..).unwrap_or_default();
        let length = to.len().min(from_first.len());
        let (head, tail) = to.split_at_mut(length);
        head.copy_from_slice(&from_first[..length]);
        let length = tail.len().min(from_second.len());
        tail[..length].copy_from_slice(&from_second[..length]);
        checksum::sum(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_is_not_acknowledged_can_be_copied_again() {
        // Numbers wrap, and so does the ring that holds the bytes.
        let mut queue = SendQueue::default();
        let first = SequenceNumber(u32::MAX - 500);
        let mut all: Vec<u8> = Vec::new();
        let mut acknowledged = 0;
        for round in 0..200_usize {
            let piece: Vec<u8> = (0..37).map(|at| (at * 7 + round) as u8).collect();
            let next = first + all.len() as u32;
            assert_eq!(queue.add(next, |bytes| bytes.extend(&piece)), 37);
            all.extend(&piece);
            for start in acknowledged..all.len() {
                for length in [0, 1, 30, all.len() - start] {
                    let length = length.min(all.len() - start);
                    let mut copied = alloc::vec![0; length];
                    let sum = queue.copy(first + start as u32, &mut copied);
                    assert_eq!(copied, all[start..start + length]);
                    assert_eq!(sum, checksum::sum(&copied));
                }
            }
            acknowledged = all.len() - all.len() % 50;
            queue.forget_before(first + acknowledged as u32);
            // An old acknowledgement changes nothing.
            queue.forget_before(first);
        }
    }
}
