//! Hash table of flow slots.
//!
//! A table of chunks of one cache line each, as in Meta's F14:
//!
//! ```text
//! chunk   [ 12 tags, 8 bits of a hash each ][ passed ][ 12 places ]
//! ```
//!
//! A flow is in the chunk that its hash selects or, if that is full, in a later one of its probe
//! sequence. Each chunk counts the flows that have passed it, so a search ends at a chunk with the
//! count 0.
//!
//! With millions of flows, lookups miss all caches. An insertion or lookup then waits for memory
//! once; a table with separate tags waits twice.

use alloc::vec::Vec;

use wirestorm_base::prefetch::prefetch;

/// Slots of flows. The default has no room.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Number of chunks: 0 or a power of two.
    chunks: Vec<Chunk>,
    len: usize,
}

/// Slots in a chunk.
const CHUNK: usize = 12;
/// Maximum average number of flows in a chunk. A third of the chunks have been passed then.
const FILL_MAX: usize = 11;

/// Flows whose memory is prefetched together.
const AHEAD: usize = 16;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Chunk {
    /// 0: free.
    tags: [u8; CHUNK],
    /// Number of flows that are in later chunks because this one was full.
    passed: u32,
    places: [u32; CHUNK],
}

const _: () = assert!(size_of::<Chunk>() == 64);

/// A 1 in each byte, and the highest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Returns the highest bit of each byte that is 0. Bytes above such a byte may be false positives.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHEST
}

/// Returns the lowest byte whose highest bit is set.
const fn byte(word: u64) -> usize {
    (word.trailing_zeros() / u8::BITS) as usize
}

impl Chunk {
    const EMPTY: Self = Self { tags: [0; CHUNK], passed: 0, places: [0; CHUNK] };

    /// Returns the tags, padded with 0xff.
    #[inline(always)]
    fn words(&self) -> [u64; 2] {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.tags;
        let behind = u8::MAX;
        [
            u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            u64::from_le_bytes([i, j, k, l, behind, behind, behind, behind]),
        ]
    }

    /// Returns the first free place.
    #[inline(always)]
    fn free(&self) -> Option<usize> {
        let [low, high] = self.words().map(zeros);
        match (low, high) {
            (0, 0) => None,
            (0, high) => Some(8 + byte(high)),
            (low, _) => Some(byte(low)),
        }
    }

    /// Returns the first place with a tag for which `is_it` holds. `is_it` may also get other
    /// slots.
    #[inline(always)]
    fn find(&self, tag: u8, mut is_it: impl FnMut(u32) -> bool) -> Option<usize> {
        for (first, word) in [0, 8].into_iter().zip(self.words()) {
            let mut found = zeros(word ^ (ONES * u64::from(tag)));
            while found != 0 {
                let at = first + byte(found);
                if self.places.get(at).is_some_and(|place| is_it(*place)) {
                    return Some(at);
                }
                found &= found - 1;
            }
        }
        None
    }
}

/// Probe sequence of a flow: its next chunk, and the tag.
#[derive(Clone, Copy)]
struct ProbeSequence {
    at: usize,
    tag: u8,
}

impl ProbeSequence {
    #[inline(always)]
    fn new(hash: u64) -> Self {
        // The lowest bits select the first chunk.
        Self { at: hash as usize, tag: ((hash >> 56) as u8).max(1) }
    }

    /// Moves to the next chunk. The number of chunks is a power of two and the step is odd, so the
    /// sequence visits all.
    #[inline(always)]
    const fn go_on(&mut self) {
        self.at = self.at.wrapping_add(2 * self.tag as usize + 1);
    }
}

impl Index {
    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether one more flow fits.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.len < FILL_MAX * self.chunks.len()
    }

    /// Returns an index with twice the room. `flows` are the hashes and slots of all flows.
    #[cold]
    pub(super) fn grown(&self, mut flows: impl Iterator<Item = (u64, u32)>) -> Self {
        let count = (2 * self.chunks.len()).max(1);
        let mut grown = Self { chunks: alloc::vec![Chunk::EMPTY; count], len: 0 };
        let mut next = [(0, 0); AHEAD];
        loop {
            let mut len = 0;
            for (entry, flow) in next.iter_mut().zip(&mut flows) {
                *entry = flow;
                grown.prefetch(flow.0);
                len += 1;
            }
            if len == 0 {
                break;
            }
            next[..len].iter().for_each(|(hash, place)| grown.insert(*hash, *place));
        }
        grown
    }

    /// Prefetches the first chunk of a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(chunk) = self.chunks.get(hash as usize & self.chunks.len().wrapping_sub(1)) {
            prefetch(chunk);
        }
    }

    /// Returns the slot of the flow with a hash for which `is_it` holds.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut probe = ProbeSequence::new(hash);
        for _ in 0..self.chunks.len() {
            let chunk = &self.chunks[probe.at & (self.chunks.len() - 1)];
            if let Some(at) = chunk.find(probe.tag, &mut is_it) {
                return Some(chunk.places[at]);
            }
            if chunk.passed == 0 {
                break;
            }
            probe.go_on();
        }
        None
    }

    /// Adds a flow that is not in the index; there must be room.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let mask = self.chunks.len() - 1;
        let mut probe = ProbeSequence::new(hash);
        // At least one chunk has room.
        for _ in 0..=mask {
            let chunk = &mut self.chunks[probe.at & mask];
            if let Some(free) = chunk.free() {
                chunk.tags[free] = probe.tag;
                chunk.places[free] = place;
                self.len += 1;
                return;
            }
            chunk.passed += 1;
            probe.go_on();
        }
    }

    /// Removes a flow that is in the index.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let mask = self.chunks.len() - 1;
        let mut probe = ProbeSequence::new(hash);
        for _ in 0..=mask {
            let chunk = &mut self.chunks[probe.at & mask];
            // A false positive may be a free place. It cannot hold this slot below the flow's own
            // place, since insertions take the first free one.
            if let Some(at) = chunk.find(probe.tag, |it| it == place) {
                chunk.tags[at] = 0;
                self.len -= 1;
                return;
            }
            // The flow has passed this chunk.
            chunk.passed -= 1;
            probe.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use proptest::prelude::*;

    /// Index, and the hashes of its flows by slot.
    #[derive(Default)]
    struct Model {
        index: Index,
        hashes: BTreeMap<u32, u64>,
    }

    impl Model {
        fn insert(&mut self, hash: u64, place: u32) {
            if !self.index.has_room() {
                self.index = self.index.grown(self.hashes.iter().map(|(it, hash)| (*hash, *it)));
            }
            self.index.insert(hash, place);
            self.hashes.insert(place, hash);
        }

        fn remove(&mut self, place: u32) {
            if let Some(hash) = self.hashes.remove(&place) {
                self.index.remove(hash, place);
            }
        }

        fn check(&self) {
            assert_eq!(self.index.len(), self.hashes.len());
            assert_eq!(self.index.is_empty(), self.hashes.is_empty());
            for (place, hash) in &self.hashes {
                assert_eq!(self.index.find(*hash, |it| it == *place), Some(*place));
                assert_eq!(self.index.find(*hash, |_| false), None);
            }
            let mut passed = alloc::vec![0; self.index.chunks.len()];
            for (place, hash) in &self.hashes {
                let mut probe = ProbeSequence::new(*hash);
                loop {
                    let at = probe.at & (self.index.chunks.len() - 1);
                    if self.index.chunks[at].find(probe.tag, |it| it == *place).is_some() {
                        break;
                    }
                    passed[at] += 1;
                    probe.go_on();
                }
            }
            let counted: Vec<u32> = self.index.chunks.iter().map(|it| it.passed).collect();
            assert_eq!(counted, passed);
        }
    }

    proptest! {
        #[test]
        fn added_flows_are_found_until_removed(
            // Few hashes, so that many flows share one and pass chunks.
            steps in prop::collection::vec((0..60_u32, 0..5_u64, any::<bool>()), 1..400),
        ) {
            let mut model = Model::default();
            for (place, hash, adds) in steps {
                // The upper bits are 0, which becomes tag 1, as well as 1 and 2.
                let hash = hash << 55 | hash;
                match model.hashes.contains_key(&place) {
                    false if adds => model.insert(hash, place),
                    _ => model.remove(place),
                }
                model.check();
            }
        }
    }

    #[test]
    fn flows_with_the_same_hash_are_all_found() {
        let mut model = Model::default();
        (0..1_000).for_each(|place| model.insert(0xab00_0000_0000_0007, place));
        model.check();
        let seen = core::cell::RefCell::new(BTreeSet::new());
        let nobody = |place| {
            seen.borrow_mut().insert(place);
            false
        };
        assert_eq!(model.index.find(0xab00_0000_0000_0007, nobody), None);
        assert_eq!(seen.borrow().len(), 1_000);
        (0..1_000).for_each(|place| model.remove(place));
        model.check();
    }

    #[test]
    fn index_grows_when_eleven_of_twelve_places_are_taken() {
        let mut model = Model::default();
        let hash = |place: u32| u64::from(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for place in 0..100_000 {
            model.insert(hash(place), place);
        }
        model.check();
        assert_eq!(model.index.chunks.len(), 16_384, "8,192 have room for 90,112");
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert_eq!(Index::default().find(1, |_| true), None);
    }
}
