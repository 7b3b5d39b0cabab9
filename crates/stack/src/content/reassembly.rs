//! Reassembly of bytes that arrived out of order.

use alloc::vec::Vec;

use crate::tcp::sequence::SequenceNumber;

/// Bytes beyond gaps, kept until the bytes before them arrive. The connection accepts no byte
/// beyond its receive window and a limited number of ranges, so the size has a bound.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Sorted by sequence number; no two touch or overlap.
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    start: SequenceNumber,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> SequenceNumber {
        self.start + self.bytes.len() as u32
    }
}

impl Reassembly {
    /// Keeps bytes from `start` on. Of duplicate bytes, the first to arrive wins.
    pub(super) fn keep(&mut self, start: SequenceNumber, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = start + bytes.len() as u32;
        let first = self.pieces.partition_point(|piece| piece.end().is_before(start));
        let last = self.pieces.partition_point(|piece| !end.is_before(piece.start));
        if last <= first {
            self.pieces.insert(first, Piece { start, bytes: bytes.to_vec() });
            return;
        }
        // The new bytes between two sequence numbers.
        let up_to = |from: SequenceNumber, to: SequenceNumber| {
            let place = |number: SequenceNumber| number.distance_from(start).max(0) as usize;
            bytes.get(place(from)..place(to).min(bytes.len())).unwrap_or_default()
        };
        let mut touched = self.pieces.drain(first..last);
        let mut merged = match touched.next() {
            Some(piece) if !start.is_before(piece.start) => piece,
            Some(piece) => {
                let mut merged = Piece { start, bytes: up_to(start, piece.start).to_vec() };
                merged.bytes.extend_from_slice(&piece.bytes);
                merged
            }
            None => Piece { start, bytes: Vec::new() },
        };
        for piece in touched {
            let between = up_to(merged.end(), piece.start);
            merged.bytes.extend_from_slice(between);
            merged.bytes.extend_from_slice(&piece.bytes);
        }
        let behind = up_to(merged.end(), end);
        merged.bytes.extend_from_slice(behind);
        self.pieces.insert(first, merged);
    }

    /// Passes the kept bytes from `next` to `end` to `hand_on`. All bytes before `end` have
    /// arrived; drops them.
    pub(super) fn take(
        &mut self,
        mut next: SequenceNumber,
        end: SequenceNumber,
        mut hand_on: impl FnMut(&[u8]),
    ) {
        let gone = self.pieces.partition_point(|piece| !end.is_before(piece.end()));
        for piece in self.pieces.drain(..gone) {
            let known = next.distance_from(piece.start).max(0) as usize;
            let bytes = piece.bytes.get(known..).unwrap_or_default();
            if !bytes.is_empty() {
                hand_on(bytes);
                next = piece.end();
            }
        }
    }

    /// Drops all bytes.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The byte at a position, as it arrives the first or a later time.
    fn byte(place: usize, is_again: bool) -> u8 {
        (place % 251) as u8 ^ if is_again { 0xff } else { 0 }
    }

    proptest! {
        #[test]
        fn first_arrival_is_delivered_once_and_in_order(
            initial in any::<u32>(),
            parts in proptest::collection::vec((1_usize..300, 1_usize..40), 1..60),
        ) {
            let initial = SequenceNumber(initial);
            let mut reassembly = Reassembly::default();
            let mut there = [None; 400];
            for (start, length) in parts {
                let bytes: Vec<u8> =
                    (start..start + length).map(|at| byte(at, there[at].is_some())).collect();
                reassembly.keep(initial + start as u32, &bytes);
                for (at, there) in there.iter_mut().enumerate().skip(start).take(length) {
                    there.get_or_insert(byte(at, false));
                }
            }
            let held = reassembly.pieces.windows(2);
            for two in held {
                prop_assert!(two[0].end().is_before(two[1].start), "pieces do not touch");
            }
            // The first byte arrives, then the missing bytes one by one.
            let (mut next, mut received) = (0, Vec::new());
            while next < 340 {
                received.push(byte(next, false));
                let end = (next + 1..400).find(|at| there[*at].is_none()).unwrap_or(400);
                let hand_on = |bytes: &[u8]| received.extend_from_slice(bytes);
                reassembly.take(initial + next as u32 + 1, initial + end as u32, hand_on);
                prop_assert_eq!(received.len(), end);
                next = end;
            }
            let expected: Vec<u8> = (0..next).map(|at| byte(at, false)).collect();
            prop_assert_eq!(received, expected);
            prop_assert!(reassembly.pieces.is_empty());
        }
    }
}
