//! Send queue of a flow with per-flow payload.

use alloc::collections::VecDeque;

use wirestorm_wire::checksum;

use crate::tcp::sequence::SequenceNumber;

/// Bytes to send, kept until the peer acknowledges them.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    bytes: VecDeque<u8>,
    /// Sequence number of the first byte.
    start: SequenceNumber,
}

impl SendQueue {
    /// Appends the bytes that `add` writes; the first of them has the sequence number `next`.
    /// Returns how many bytes were appended.
    pub(super) fn add(&mut self, next: SequenceNumber, add: impl FnOnce(&mut VecDeque<u8>)) -> u32 {
        let before = self.bytes.len();
        if before == 0 {
            self.start = next;
        }
        add(&mut self.bytes);
        (self.bytes.len() - before) as u32
    }

    /// Drops the bytes before `number`: the peer acknowledged them.
    pub(super) fn forget_before(&mut self, number: SequenceNumber) {
        let gone = number.distance_from(self.start).max(0) as usize;
        let gone = gone.min(self.bytes.len());
        self.bytes.drain(..gone);
        self.start += gone as u32;
    }

    /// Drops all bytes.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Copies bytes from a sequence number on, and returns their one's complement sum.
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
    fn unacknowledged_bytes_can_be_copied_again() {
        // Sequence numbers wrap, and so does the ring that holds the bytes.
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
            // An old acknowledgement has no effect.
            queue.forget_before(first);
        }
    }
}
