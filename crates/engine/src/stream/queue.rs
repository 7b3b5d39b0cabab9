//! Which stream's turn it is.

use alloc::vec::Vec;

use wirestorm_base::time::Instant;

/// Streams in the order in which their next frames are due; of those due at the same time, in
/// the order of the plan.
///
/// A heap with four children to a node, kept in one array: the way down is half as long as with
/// two, and four neighbours share a cache line.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    heap: Vec<Entry>,
}

/// A stream's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: Instant,
    pub(super) stream: u32,
}

const CHILDREN: usize = 4;

impl Queue {
    /// An empty queue with room for `streams`.
    pub(super) fn with_capacity(streams: usize) -> Self {
        Self { heap: Vec::with_capacity(streams) }
    }

    /// Whose turn is next.
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.heap.first().copied()
    }

    /// Whose turn comes after that.
    #[inline]
    pub(super) fn second(&self) -> Option<Entry> {
        self.heap.get(1..(1 + CHILDREN).min(self.heap.len()))?.iter().min().copied()
    }

    /// Adds a stream's turn.
    pub(super) fn push(&mut self, entry: Entry) {
        let mut place = self.heap.len();
        self.heap.push(entry);
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }

    /// Puts the first stream's next turn in the place of this one.
    #[inline]
    pub(super) fn replace_first(&mut self, entry: Entry) {
        self.sink(0, entry);
    }

    /// Takes the first stream out.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let first = self.first()?;
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(0, last);
        }
        Some(first)
    }

    fn sink(&mut self, mut place: usize, entry: Entry) {
        let heap = &mut self.heap[..];
        loop {
            let begin = place * CHILDREN + 1;
            let Some(children) = heap.get(begin..(begin + CHILDREN).min(heap.len())) else { break };
            let Some((offset, least)) =
                children.iter().enumerate().min_by_key(|(_, child)| **child)
            else {
                break;
            };
            if *least >= entry {
                break;
            }
            heap[place] = *least;
            place = begin + offset;
        }
        heap[place] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn turns_come_in_order(dues in prop::collection::vec(0..50_u64, 0..100), later in 0..9_u64) {
            let entry = |due, stream| Entry { due: Instant::from_nanos(due), stream };
            let mut queue = Queue::with_capacity(dues.len());
            let mut expected = Vec::new();
            for (stream, due) in dues.iter().enumerate() {
                queue.push(entry(*due, stream as u32));
                expected.push(entry(*due, stream as u32));
            }
            if let Some(first) = queue.first() {
                let next = entry(first.due.as_nanos() + later, first.stream);
                queue.replace_first(next);
                let place = expected.iter().position(|it| *it == first).expect("it is there");
                expected[place] = next;
            }
            expected.sort();
            prop_assert_eq!(queue.second(), expected.get(1).copied());
            let mut popped = Vec::new();
            while let Some(first) = queue.pop() {
                popped.push(first);
            }
            prop_assert_eq!(popped, expected);
        }
    }
}
