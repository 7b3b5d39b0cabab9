//! Loss, duplication and reordering of a stream's frames.
//!
//! The counters are exact within a window of sequence numbers below the highest arrival: a bit for
//! each number marks missing frames. A late frame reverts its loss, and a duplicate is detected
//! however old its frame is. A frame from before the window may be either one and is counted
//! separately.
//!
//! A stream that arrives in order sets no marks and never touches its window: with thousands of
//! streams, cache misses dominate.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};

/// Highest n of n-reordering that is counted separately.
pub const N_REORDERING_MAX: usize = 8;

/// Sequence counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceCounters {
    /// Frames that arrived, each counted once.
    pub received: u64,
    /// Frames below the highest arrival that have not arrived. Frames that arrived too late, from
    /// before the window, stay in this count.
    pub missing: u64,
    /// Loss periods (RFC 3357).
    pub gaps: u64,
    /// Arrivals of frames that had arrived before (RFC 5560: each additional copy).
    pub duplicated: u64,
    /// Frames that arrived more than once (RFC 5560's replicated packets).
    pub replicated: u64,
    /// Frames that arrived after one sent later: Type-P-Reordered (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent (RFC 4737 section 4.2): the number of frames between the first
    /// arrival of a later-sent frame and this one. Duplicates do not count.
    pub extent_max: u64,
    /// Sum of all extents, for the mean.
    pub extent_sum: u64,
    /// Maximum late time offset (RFC 4737 section 4.3): the time between the first arrival of a
    /// later-sent frame and this one.
    pub late_time_max: Duration,
    /// Numbers of n-reordered frames, from n = 1: the n frames that arrived before it were all sent
    /// later (RFC 4737 section 5). TCP treats frames with n = 3 as lost.
    pub n_reordered: [u64; N_REORDERING_MAX],
    /// Arrivals from before the window: duplicates, or reordered by more than the window.
    pub too_late: u64,
}

impl SequenceCounters {
    /// Returns the number of lost frames out of `sent`. It is exact if `too_late` is 0; otherwise
    /// up to `too_late` of them may have arrived.
    pub const fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }
}

/// Classification of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// First arrival of its frame; no later-sent frame arrived before.
    InOrder {
        /// Frames missing between this one and the highest arrival before.
        skipped: u64,
    },
    /// First arrival of its frame, after a later-sent frame.
    Reordered {
        /// Reordering extent in frames.
        extent: u64,
        /// Arrival of the frame that revealed the gap.
        missed_at: Instant,
    },
    /// Further arrival of a frame.
    Duplicate,
    /// Arrival from before the window.
    TooLate,
}

/// Sequence state of one stream. Fields that every frame needs are first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sequence {
    /// RFC 4737's `NextExp`: one more than the highest number that arrived.
    next_expected: u64,
    /// No earlier number has left a mark at the positions of numbers from this one on.
    unmarked_from: u64,
    /// Window size minus one; the window is a power of two.
    mask: u64,
    counters: SequenceCounters,
    /// Marks of 64 numbers each, by their position in the window.
    marks: Box<[Marks]>,
    /// Ring of the arrivals after a gap, in ascending order of their numbers. At most every second
    /// number of the window can be one. Unused memory is not touched.
    skips: Vec<Skip>,
    /// The last reordered frames, indexed by `reordered` modulo their number.
    late: [Late; N_REORDERING_MAX],
}

/// Marks of 64 numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Numbers below the highest arrival that have not arrived.
    missing: u64,
    /// Numbers that arrived more than once.
    replicated: u64,
}

/// Reordered arrival.
#[derive(Clone, Copy, Debug)]
struct Late {
    number: u64,
    /// Its position in the order of arrival, from 1.
    received: u64,
}

impl Late {
    /// Placeholder with a higher number than any frame.
    const NONE: Self = Self { number: u64::MAX, received: 0 };
}

/// Arrival after a gap.
#[derive(Clone, Copy, Debug)]
struct Skip {
    number: u64,
    /// Its position in the order of arrival, from 1.
    received: u64,
    at: Instant,
}

impl Sequence {
    /// Default window in frames.
    pub const WINDOW_DEFAULT: usize = 4_096;
    /// Minimum and maximum window.
    pub const WINDOWS: core::ops::RangeInclusive<usize> = 64..=1 << 20;

    /// Creates the state for a window of `window` frames, rounded up to a power of two within
    /// [`Self::WINDOWS`]. Takes 12.25 bytes for each frame of the window.
    pub fn new(window: usize) -> Self {
        let window = window.clamp(*Self::WINDOWS.start(), *Self::WINDOWS.end()).next_power_of_two();
        Self {
            next_expected: 0,
            unmarked_from: 0,
            mask: window as u64 - 1,
            counters: SequenceCounters::default(),
            marks: vec![Marks::default(); window / 64].into(),
            skips: Vec::with_capacity(window / 2),
            late: [Late::NONE; N_REORDERING_MAX],
        }
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &SequenceCounters {
        &self.counters
    }

    /// Returns the window in frames.
    pub const fn window(&self) -> usize {
        self.mask as usize + 1
    }

    /// Returns one more than the highest number that arrived.
    pub const fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// Returns the full number of a frame from its lowest `bits` bits: the one nearest to the next
    /// expected number that is not negative.
    #[inline]
    pub const fn unwrap(&self, low: u64, bits: u32) -> u64 {
        let ahead = sign_extend(low.wrapping_sub(self.next_expected), bits);
        match self.next_expected.checked_add_signed(ahead) {
            Some(number) => number,
            None => low & ((1 << bits) - 1),
        }
    }

    /// Returns whether a frame is within the window and has arrived.
    #[inline]
    pub fn has_arrived(&self, number: u64) -> bool {
        number < self.next_expected
            && self.next_expected - number <= self.mask + 1
            && self.marks[self.word(number)].missing & bit(number) == 0
    }

    /// Records an arrival.
    #[inline]
    pub fn note(&mut self, number: u64, at: Instant) -> Arrived {
        if number < self.next_expected {
            return self.note_old(number, at);
        }
        let skipped = number - self.next_expected;
        self.counters.received += 1;
        if skipped > 0 {
            self.skip(number, skipped, at);
        }
        if number < self.unmarked_from {
            self.clear(number);
        }
        self.next_expected = number.saturating_add(1);
        Arrived::InOrder { skipped }
    }

    /// Records an arrival below the highest number.
    #[inline(never)]
    fn note_old(&mut self, number: u64, at: Instant) -> Arrived {
        let word = self.word(number);
        if self.next_expected - number > self.mask + 1 {
            self.counters.too_late += 1;
            return Arrived::TooLate;
        }
        if self.marks[word].missing & bit(number) == 0 {
            self.counters.duplicated += 1;
            let is_first_repeat = self.marks[word].replicated & bit(number) == 0;
            self.counters.replicated += u64::from(is_first_repeat);
            self.marks[word].replicated |= bit(number);
            self.extend_marked(number);
            return Arrived::Duplicate;
        }
        self.marks[word].missing &= !bit(number);
        self.counters.received += 1;
        self.counters.missing -= 1;
        // The first later-sent frame that arrived is the one that revealed this gap: no frame
        // before it was sent later.
        let skip = self.gap_before(number);
        let extent = self.counters.received - skip.received;
        let late_time = at.saturating_since(skip.at);
        self.counters.extent_sum += extent;
        self.counters.extent_max = self.counters.extent_max.max(extent);
        self.counters.late_time_max = self.counters.late_time_max.max(late_time);
        for n in 0..self.n_reordering(number, extent) {
            self.counters.n_reordered[n] += 1;
        }
        let place = self.counters.reordered as usize % N_REORDERING_MAX;
        self.late[place] = Late { number, received: self.counters.received };
        self.counters.reordered += 1;
        Arrived::Reordered { extent, missed_at: skip.at }
    }

    /// Clears the marks of an earlier number at the position of this one.
    #[inline(never)]
    fn clear(&mut self, number: u64) {
        let word = self.word(number);
        self.marks[word].missing &= !bit(number);
        self.marks[word].replicated &= !bit(number);
    }

    /// Ensures that the mark of this number is cleared when its position is reused.
    fn extend_marked(&mut self, number: u64) {
        let next_there = number.saturating_add(self.mask + 1);
        self.unmarked_from = self.unmarked_from.max(next_there.saturating_add(1));
    }

    /// Records that `skipped` frames before `number` are missing.
    #[inline(never)]
    fn skip(&mut self, number: u64, skipped: u64, at: Instant) {
        self.counters.missing += skipped;
        let skip = Skip { number, received: self.counters.received, at };
        let place = self.skip_place(self.counters.gaps);
        match self.skips.get_mut(place) {
            Some(oldest) => *oldest = skip,
            None => self.skips.push(skip),
        }
        self.counters.gaps += 1;
        self.extend_marked(number - 1);
        if skipped > self.mask {
            self.marks.fill(Marks { missing: u64::MAX, replicated: 0 });
            return;
        }
        let mut first = self.next_expected;
        while first < number {
            let end = number.min((first | 63) + 1);
            let bits = u64::MAX >> (64 - (end - first)) << (first % 64);
            let word = self.word(first);
            self.marks[word].missing |= bits;
            self.marks[word].replicated &= !bits;
            first = end;
        }
    }

    /// Returns the first arrival after `number`, which is missing and within the window.
    fn gap_before(&self, number: u64) -> Skip {
        let recorded = self.counters.gaps.min(self.skips.len() as u64);
        let (mut low, mut high) = (self.counters.gaps - recorded, self.counters.gaps);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.skips[self.skip_place(middle)].number < number {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.skips[self.skip_place(low)]
    }

    /// Returns how many of the latest arrivals in a row were sent after `number`, whose arrival is
    /// already counted. They are at most those after the frame that revealed the gap, and only
    /// reordered ones among them can have been sent before it.
    fn n_reordering(&self, number: u64, extent: u64) -> usize {
        let sent_before = self.late.iter().filter(|late| late.number < number);
        let last = sent_before.map(|late| late.received).max().unwrap_or(0);
        let behind = self.counters.received - 1 - last;
        behind.min(extent).min(N_REORDERING_MAX as u64) as usize
    }

    #[inline]
    const fn word(&self, number: u64) -> usize {
        ((number & self.mask) / 64) as usize
    }

    const fn skip_place(&self, skip: u64) -> usize {
        (skip & (self.mask / 2)) as usize
    }
}

#[inline]
const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

/// Sign-extends the lowest `bits` bits of a value.
#[inline]
pub(super) const fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((value << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records frames, numbered from 1 as in the RFCs, one per nanosecond.
    fn arrived(numbers: &[u64]) -> (Sequence, Vec<Arrived>) {
        let mut sequence = Sequence::new(64);
        let note =
            |(at, number): (usize, &u64)| sequence.note(number - 1, Instant::from_nanos(at as u64));
        let all = numbers.iter().enumerate().map(note).collect();
        (sequence, all)
    }

    fn counted(numbers: &[u64]) -> SequenceCounters {
        *arrived(numbers).0.counters()
    }

    /// Returns the extents of the reordered arrivals.
    fn extents(numbers: &[u64]) -> Vec<u64> {
        let extent = |arrived| match arrived {
            Arrived::Reordered { extent, .. } => Some(extent),
            _ => None,
        };
        arrived(numbers).1.into_iter().filter_map(extent).collect()
    }

    /// Returns the numbers of n-reordered frames up to the last nonzero one.
    fn n_reordered(numbers: &[u64]) -> Vec<u64> {
        counted(numbers).n_reordered.into_iter().take_while(|&count| count > 0).collect()
    }

    #[test]
    fn rfc_4737_section_7_1_one_packet_reordered() {
        let numbers = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10];
        // Sent every 20 ms, delayed by 68 ms; the fourth by 150 ms.
        let delays = numbers.map(|number| if number == 4 { 150 } else { 68 });
        let mut sequence = Sequence::new(64);
        for (number, delay) in numbers.into_iter().zip(delays) {
            let at = Duration::from_millis(20 * (number - 1) + delay);
            sequence.note(number - 1, Instant::ZERO + at);
        }
        let expected = SequenceCounters {
            received: 10,
            gaps: 1,
            reordered: 1,
            extent_max: 4,
            extent_sum: 4,
            late_time_max: Duration::from_millis(62),
            n_reordered: [1, 1, 1, 1, 0, 0, 0, 0],
            ..SequenceCounters::default()
        };
        assert_eq!(*sequence.counters(), expected);
    }

    #[test]
    fn rfc_4737_section_7_2_two_packets_reordered() {
        let numbers = [1, 2, 3, 4, 7, 5, 6, 8, 9, 10];
        assert_eq!(extents(&numbers), [1, 2]);
        // 6 arrives behind 5, so no n frames before it were all sent later.
        assert_eq!(n_reordered(&numbers), [1]);
    }

    #[test]
    fn rfc_4737_section_7_3_three_packets_reordered() {
        let numbers = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        assert_eq!(extents(&numbers), [4, 5, 6]);
        assert_eq!(n_reordered(&numbers), [1, 1, 1, 1]);
        assert_eq!((counted(&numbers).reordered, counted(&numbers).missing), (3, 0));
    }

    #[test]
    fn rfc_5560_examples() {
        for (numbers, duplicated, replicated) in [
            (&[1, 2, 3, 4][..], 0, 0),
            (&[1, 1, 2, 2, 3, 3, 4, 4], 4, 4),
            (&[1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], 8, 4),
            (&[1, 1, 1, 2, 3, 3, 3, 4], 4, 2),
        ] {
            let found = counted(numbers);
            assert_eq!((found.duplicated, found.replicated), (duplicated, replicated));
            assert_eq!((found.received, found.reordered, found.missing), (4, 0, 0));
        }
    }

    #[test]
    fn duplicate_of_an_old_frame_does_not_hide_a_loss() {
        // 3 is lost; 1 comes again after 5.
        let found = counted(&[1, 2, 4, 5, 1]);
        assert_eq!((found.duplicated, found.reordered, found.missing), (1, 0, 1));
        assert_eq!(found.lost(6), 2, "3, and 6 at the end of the stream");
    }

    #[test]
    fn late_frame_reverts_its_loss_once() {
        let found = counted(&[1, 3, 2, 2]);
        assert_eq!((found.missing, found.reordered, found.duplicated), (0, 1, 1));
    }

    #[test]
    fn arrivals_from_before_the_window_are_counted_separately() {
        let (sequence, all) = arrived(&[1, 66, 2, 1]);
        assert_eq!(all[2], Arrived::TooLate);
        assert_eq!(all[3], Arrived::TooLate);
        let found = sequence.counters();
        assert_eq!((found.received, found.missing, found.too_late), (2, 64, 2));
        // Oldest frame of the window.
        assert_eq!(counted(&[1, 66, 3]).reordered, 1);
    }

    #[test]
    fn marks_of_duplicates_are_cleared_after_a_window() {
        // No frame is lost and every frame is duplicated; a window later each position is reused.
        let numbers: Vec<_> = (1..300).flat_map(|number| [number, number]).collect();
        assert_eq!((counted(&numbers).duplicated, counted(&numbers).replicated), (299, 299));
    }

    #[test]
    fn gaps_of_any_size_clear_old_marks() {
        for skip in 1..300 {
            let mut sequence = Sequence::new(128);
            (0..200).for_each(|number| _ = sequence.note(number, Instant::ZERO));
            sequence.note(199 + skip, Instant::ZERO);
            for number in 200 + skip - 128..200 + skip {
                let came = number < 200 || number == 199 + skip;
                assert_eq!(sequence.has_arrived(number), came, "{number} after {skip}");
            }
            assert!(!sequence.has_arrived(200 + skip - 129));
        }
    }

    #[test]
    fn numbers_are_unwrapped_to_the_nearest_expected_one() {
        let mut sequence = Sequence::new(64);
        assert_eq!(sequence.unwrap(5, 40), 5);
        assert_eq!(sequence.unwrap((1 << 40) - 1, 40), (1 << 40) - 1, "none is negative");
        sequence.note((3 << 40) - 2, Instant::ZERO);
        assert_eq!(sequence.unwrap((1 << 40) - 1, 40), (3 << 40) - 1);
        assert_eq!(sequence.unwrap(1, 40), (3 << 40) + 1);
        assert_eq!(sequence.unwrap((1 << 40) - 9, 40), (3 << 40) - 9);
    }

    #[test]
    fn window_is_clamped_to_its_limits() {
        for (requested, window) in [(0, 64), (65, 128), (4_096, 4_096), (usize::MAX, 1 << 20)] {
            assert_eq!(Sequence::new(requested).window(), window);
        }
    }
}
