//! Where flows are, by the hash of their keys.
//!
//! A table of chunks, each a line of the cache, as in Meta's F14:
//!
//! ```text
//! chunk   [ 12 tags, 8 bits of a hash each ][ passed ][ 12 places ]
//! ```
//!
//! A flow is in the chunk that its hash says, or, where that is full, in one that follows; each full
//! one counts how many have passed it, so that a search ends at one that nobody has. Where there are
//! millions of flows, what is looked for is in no cache: a flow that is added, found or missed here
//! waits for memory once, where a table that has its tags elsewhere waits twice.

use alloc::vec::Vec;

use wirestorm_base::prefetch::prefetch;

/// Places of flows. There is no room at first.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// As many as a power of two, or none.
    chunks: Vec<Chunk>,
    len: usize,
}

/// Places in a chunk.
const CHUNK: usize = 12;
/// As many as there may be for each chunk on average: of those, a third have been passed.
const FILL_MAX: usize = 11;

/// Flows that memory is asked for together.
const AHEAD: usize = 16;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Chunk {
    /// 0 where nothing is.
    tags: [u8; CHUNK],
    /// How many are elsewhere, as this one was full.
    passed: u32,
    places: [u32; CHUNK],
}

const _: () = assert!(size_of::<Chunk>() == 64);

/// A one in each byte, and the highest bit of each.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The highest bit of each byte that is 0; of bytes above one that is, perhaps too many.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHEST
}

/// The lowest byte of which the highest bit is set.
const fn byte(word: u64) -> usize {
    (word.trailing_zeros() / u8::BITS) as usize
}

impl Chunk {
    const EMPTY: Self = Self { tags: [0; CHUNK], passed: 0, places: [0; CHUNK] };

    /// The tags, 0xff behind them.
    #[inline(always)]
    fn words(&self) -> [u64; 2] {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.tags;
        let behind = u8::MAX;
        [
            u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            u64::from_le_bytes([i, j, k, l, behind, behind, behind, behind]),
        ]
    }

    /// The first that is free.
    #[inline(always)]
    fn free(&self) -> Option<usize> {
        let [low, high] = self.words().map(zeros);
        match (low, high) {
            (0, 0) => None,
            (0, high) => Some(8 + byte(high)),
            (low, _) => Some(byte(low)),
        }
    }

    /// The first with a tag whose place `is_it`, which is asked for others as well.
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

/// The chunks in which a flow may be, in their order, and its tag.
#[derive(Clone, Copy)]
struct Way {
    at: usize,
    tag: u8,
}

impl Way {
    #[inline(always)]
    fn new(hash: u64) -> Self {
        // The lowest bits say which chunk is the first.
        Self { at: hash as usize, tag: ((hash >> 56) as u8).max(1) }
    }

    /// The next chunk: their number is a power of two and the step is odd, so all of them come.
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

    /// Whether one more fits.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.len < FILL_MAX * self.chunks.len()
    }

    /// The same, with room for as many again: `flows` are all that are there, with their hashes.
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

    /// Asks for the memory in which a flow with a hash is found, or missed.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(chunk) = self.chunks.get(hash as usize & self.chunks.len().wrapping_sub(1)) {
            prefetch(chunk);
        }
    }

    /// The place of the flow with a hash that `is_it`.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut way = Way::new(hash);
        for _ in 0..self.chunks.len() {
            let chunk = &self.chunks[way.at & (self.chunks.len() - 1)];
            if let Some(at) = chunk.find(way.tag, &mut is_it) {
                return Some(chunk.places[at]);
            }
            if chunk.passed == 0 {
                break;
            }
            way.go_on();
        }
        None
    }

    /// Adds a flow that is not there, where there is room.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let mask = self.chunks.len() - 1;
        let mut way = Way::new(hash);
        // There is a chunk with room.
        for _ in 0..=mask {
            let chunk = &mut self.chunks[way.at & mask];
            if let Some(free) = chunk.free() {
                chunk.tags[free] = way.tag;
                chunk.places[free] = place;
                self.len += 1;
                return;
            }
            chunk.passed += 1;
            way.go_on();
        }
    }

    /// Takes out a flow that is there.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let mask = self.chunks.len() - 1;
        let mut way = Way::new(hash);
        for _ in 0..=mask {
            let chunk = &mut self.chunks[way.at & mask];
            // A place that is free may be told with those of a tag, but not one that was this flow's:
            // whoever is added takes the first that is free.
            if let Some(at) = chunk.find(way.tag, |it| it == place) {
                chunk.tags[at] = 0;
                self.len -= 1;
                return;
            }
            // It had passed.
            chunk.passed -= 1;
            way.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use proptest::prelude::*;

    /// An index and the hashes of what is in it, by place.
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
                let mut way = Way::new(*hash);
                loop {
                    let at = way.at & (self.index.chunks.len() - 1);
                    if self.index.chunks[at].find(way.tag, |it| it == *place).is_some() {
                        break;
                    }
                    passed[at] += 1;
                    way.go_on();
                }
            }
            let counted: Vec<u32> = self.index.chunks.iter().map(|it| it.passed).collect();
            assert_eq!(counted, passed);
        }
    }

    proptest! {
        #[test]
        fn what_was_added_and_not_removed_is_found(
            // Few hashes, so that many flows have the same one and chunks are passed.
            steps in prop::collection::vec((0..60_u32, 0..5_u64, any::<bool>()), 1..400),
        ) {
            let mut model = Model::default();
            for (place, hash, adds) in steps {
                // Tags of 0, and of 1 as well.
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
    fn flows_of_one_hash_are_all_there() {
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
    fn room_is_made_when_eleven_of_twelve_places_are_taken() {
        let mut model = Model::default();
        let hash = |place: u32| u64::from(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for place in 0..100_000 {
            model.insert(hash(place), place);
        }
        model.check();
        assert_eq!(model.index.chunks.len(), 16_384, "8,192 have room for 90,112");
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(Index::default().find(1, |_| true), None);
    }
}
