//! Content and order of frames without signatures, such as replayed ones.
//!
//! The sender records a hash of every frame before it leaves, and the receiver a hash of every
//! frame that arrives. Equal hashes mean the same frame. Of several frames with equal content, an
//! arrival matches the earliest one that has not arrived.

use alloc::vec::Vec;

use hashbrown::HashTable;

/// Returns the hash that identifies a frame; two frames collide with a probability of 2^-64.
#[inline]
pub fn frame_hash(frame: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(frame)
}

/// Counters of a verifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCounters {
    /// Frames sent.
    pub sent: u64,
    /// Frames that arrived with the content they were sent with, each counted once.
    pub intact: u64,
    /// Intact frames that arrived after one sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum number of frames sent later that arrived before a reordered one (RFC 4737 section
    /// 4.2, without the bound on the search).
    pub reordering_extent_max: u64,
    /// Arrivals beyond the number of times that a frame was sent (RFC 5560).
    pub duplicated: u64,
    /// Arrivals that match no sent frame: corrupted, modified or of another origin.
    pub unexpected: u64,
    /// Sent frames that did not fit into the table: neither verified nor counted as lost.
    pub unverified: u64,
}

/// Matches arrivals with sent frames.
///
/// Every frame must be recorded as sent before it can arrive.
#[derive(Debug)]
pub struct Verifier {
    contents: HashTable<Content>,
    /// Sent frames that have not arrived, as one list in order of sending for each content.
    pending: Vec<Pending>,
    free: u32,
    frames_max: usize,
    next_sequence: u64,
    /// One more than the highest sequence number that has arrived.
    next_expected: u64,
    counters: VerifyCounters,
}

#[derive(Debug)]
struct Content {
    hash: u64,
    /// Head of the list of pending frames; `NONE` if it is empty.
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    sequence: u64,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Verifier {
    /// Creates a verifier for at most `frames_max` pending frames and as many contents.
    pub fn new(frames_max: usize) -> Self {
        Self {
            contents: HashTable::new(),
            pending: Vec::new(),
            free: NONE,
            frames_max: frames_max.min(NONE as usize),
            next_sequence: 0,
            next_expected: 0,
            counters: VerifyCounters::default(),
        }
    }

    /// Records a frame that is about to leave.
    pub fn sent(&mut self, hash: u64) {
        self.counters.sent += 1;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let is_known = self.contents.find(hash, |content| content.hash == hash).is_some();
        if !is_known && self.contents.len() >= self.frames_max {
            self.counters.unverified += 1;
            return;
        }
        let Some(position) = self.remember(sequence) else {
            self.counters.unverified += 1;
            return;
        };
        match self.contents.find_mut(hash, |content| content.hash == hash) {
            Some(content) if content.first != NONE => {
                self.pending[content.last as usize].next = position;
                content.last = position;
            }
            Some(content) => (content.first, content.last) = (position, position),
            None => {
                let content = Content { hash, first: position, last: position };
                self.contents.insert_unique(hash, content, |content| content.hash);
            }
        }
    }

    /// Records a frame that arrived.
    pub fn arrived(&mut self, hash: u64) {
        let Some(content) = self.contents.find_mut(hash, |content| content.hash == hash) else {
            self.counters.unexpected += 1;
            return;
        };
        if content.first == NONE {
            self.counters.duplicated += 1;
            return;
        }
        let position = content.first;
        let pending = self.pending[position as usize];
        content.first = pending.next;
        self.pending[position as usize].next = self.free;
        self.free = position;
        self.counters.intact += 1;
        if pending.sequence >= self.next_expected {
            self.next_expected = pending.sequence + 1;
        } else {
            self.counters.reordered += 1;
            let extent = self.next_expected - 1 - pending.sequence;
            self.counters.reordering_extent_max = self.counters.reordering_extent_max.max(extent);
        }
    }

    /// Reverts [`sent`](Self::sent) for a frame that never left; call it only after the last
    /// arrival.
    pub fn unsent(&mut self, hash: u64) {
        self.counters.sent -= 1;
        match self.contents.find_mut(hash, |content| content.hash == hash) {
            Some(content) if content.first != NONE => {
                let position = content.first;
                content.first = self.pending[position as usize].next;
                self.pending[position as usize].next = self.free;
                self.free = position;
            }
            // The frame was not in the table.
            _ if self.counters.unverified > 0 => self.counters.unverified -= 1,
            // The arrival matched to this frame was a duplicate of another one.
            _ => {
                self.counters.intact -= 1;
                self.counters.duplicated += 1;
            }
        }
    }

    /// Returns the number of recorded frames that have not arrived.
    pub fn outstanding(&self) -> u64 {
        self.counters.sent - self.counters.unverified - self.counters.intact
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> &VerifyCounters {
        &self.counters
    }

    fn remember(&mut self, sequence: u64) -> Option<u32> {
        let pending = Pending { sequence, next: NONE };
        if self.free != NONE {
            let position = self.free;
            self.free = self.pending[position as usize].next;
            self.pending[position as usize] = pending;
            return Some(position);
        }
        if self.pending.len() >= self.frames_max {
            return None;
        }
        self.pending.push(pending);
        Some(self.pending.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counters for these sent and arrived frames.
    fn verified(sent: &[u64], arrived: &[u64]) -> VerifyCounters {
        let mut verifier = Verifier::new(100);
        sent.iter().for_each(|&hash| verifier.sent(hash));
        arrived.iter().for_each(|&hash| verifier.arrived(hash));
        *verifier.counters()
    }

    #[test]
    fn frames_in_order_are_intact() {
        let found = verified(&[1, 2, 3], &[1, 2, 3]);
        assert_eq!(found, VerifyCounters { sent: 3, intact: 3, ..VerifyCounters::default() });
    }

    #[test]
    fn missing_frames_are_outstanding() {
        let mut verifier = Verifier::new(100);
        [1, 2, 3].into_iter().for_each(|hash| verifier.sent(hash));
        [1, 3].into_iter().for_each(|hash| verifier.arrived(hash));
        assert_eq!(verifier.outstanding(), 1);
        assert_eq!(verifier.counters().reordered, 0);
    }

    #[test]
    fn late_frame_is_reordered_and_not_lost() {
        // RFC 4737 section 7.1's example: 4 arrives after 5, 6, 7 and 8.
        let found = verified(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[0, 1, 2, 3, 5, 6, 7, 8, 4, 9]);
        assert_eq!((found.intact, found.reordered, found.reordering_extent_max), (10, 1, 4));
    }

    #[test]
    fn duplicate_does_not_hide_a_loss() {
        let found = verified(&[1, 2], &[1, 1]);
        assert_eq!((found.intact, found.duplicated), (1, 1));
    }

    #[test]
    fn unsent_frame_is_not_outstanding_and_explains_no_duplicate() {
        let mut verifier = Verifier::new(100);
        [1, 2, 1, 2].into_iter().for_each(|hash| verifier.sent(hash));
        [1, 1].into_iter().for_each(|hash| verifier.arrived(hash));
        [1, 2].into_iter().for_each(|hash| verifier.unsent(hash));
        assert_eq!(verifier.outstanding(), 1, "the 2 that left is lost");
        let found = verifier.counters();
        assert_eq!((found.sent, found.intact, found.duplicated), (2, 1, 1));
    }

    #[test]
    fn unsent_frame_outside_the_table_is_not_unverified() {
        let mut verifier = Verifier::new(1);
        [1, 2].into_iter().for_each(|hash| verifier.sent(hash));
        verifier.arrived(1);
        verifier.unsent(2);
        assert_eq!((verifier.outstanding(), verifier.counters().unverified), (0, 0));
        assert_eq!(verifier.counters().intact, 1);
    }

    #[test]
    fn equal_frames_count_as_often_as_they_were_sent() {
        let found = verified(&[7, 7, 7], &[7, 7, 7, 7]);
        assert_eq!((found.intact, found.duplicated, found.reordered), (3, 1, 0));
    }

    #[test]
    fn modified_frame_is_unexpected_and_its_original_outstanding() {
        let found = verified(&[1, 2], &[1, 99]);
        assert_eq!((found.intact, found.unexpected), (1, 1));
    }

    #[test]
    fn full_table_counts_unverified_frames_and_no_loss() {
        let mut verifier = Verifier::new(2);
        [1, 2, 3].into_iter().for_each(|hash| verifier.sent(hash));
        [1, 2].into_iter().for_each(|hash| verifier.arrived(hash));
        assert_eq!(verifier.counters().unverified, 1);
        assert_eq!(verifier.outstanding(), 0);
        verifier.sent(1);
        assert_eq!(verifier.outstanding(), 1, "entries are reused");
    }

    #[test]
    fn hash_depends_on_every_byte() {
        let frame = [0x5a_u8; 1514];
        let hash = frame_hash(&frame);
        for position in 0..frame.len() {
            let mut changed = frame;
            changed[position] ^= 1;
            assert_ne!(frame_hash(&changed), hash, "byte {position}");
        }
        assert_ne!(frame_hash(&frame[..1513]), hash);
    }
}
