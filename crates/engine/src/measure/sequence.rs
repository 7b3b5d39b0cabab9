//! Which frames of a stream arrived, how often and in which order.
//!
//! Exact over a window of sequence numbers below the highest one that arrived: a bit for each says
//! whether it is missing. So a late frame takes back the loss it was counted as, and a repeat is one
//! however old the frame is that it repeats. A frame from before the window may be either; it is
//! counted apart.
//!
//! A stream that arrives as it was sent has no marks, and its window is never touched: with
//! thousands of streams, memory is what takes time.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use wirestorm_base::time::{Duration, Instant};

/// The greatest n of n-reordering that is told apart.
pub const N_REORDERING_MAX: usize = 8;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceCounters {
    /// Frames that arrived, each counted once.
    pub received: u64,
    /// Frames below the highest that arrived that have not come themselves. Those from before
    /// the window stay in here even where they came too late to tell.
    pub missing: u64,
    /// Loss periods (RFC 3357).
    pub gaps: u64,
    /// Arrivals of frames that had arrived before (RFC 5560: each additional copy).
    pub duplicated: u64,
    /// Frames that arrived more than once (RFC 5560's replicated packets).
    pub replicated: u64,
    /// Frames that arrived after one sent later: Type-P-Reordered (RFC 4737 section 3.3).
    pub reordered: u64,
    /// The greatest reordering extent (RFC 4737 section 4.2): how many frames before it the
    /// first one arrived that was sent later. Repeats do not count as frames.
    pub extent_max: u64,
    /// The sum of all extents, for their mean.
    pub extent_sum: u64,
    /// The greatest late time offset (RFC 4737 section 4.3): how long after that first one it
    /// arrived.
    pub late_time_max: Duration,
    /// Frames that are n-reordered, from n = 1: the n frames that arrived before it were all sent
    /// later (RFC 4737 section 5). TCP takes those of n = 3 for lost.
    pub n_reordered: [u64; N_REORDERING_MAX],
    /// Arrivals from before the window: repeats, or reordered by more than it.
    pub too_late: u64,
}

impl SequenceCounters {
    /// Frames lost of so many `sent`. Exact as long as nothing was `too_late`; else so many may
    /// have arrived after all.
    pub const fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }
}

/// What an arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The first of its frame, none sent later having come before.
    InOrder {
        /// Frames that it leaves missing between itself and the highest one before.
        skipped: u64,
    },
    /// The first of its frame, after one that was sent later.
    Reordered {
        /// Its reordering extent, in frames.
        extent: u64,
        /// When the frame arrived by which it was found missing.
        missed_at: Instant,
    },
    /// A further one of its frame.
    Duplicate,
    /// From before the window.
    TooLate,
}

/// The accounting of one stream; what every frame needs stands first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sequence {
    /// RFC 4737's `NextExp`: one more than the highest number that arrived.
    next_expected: u64,
    /// At the places of numbers from this one on no earlier number has left a mark.
    unmarked_from: u64,
    /// One less than the window, which is a power of two.
    mask: u64,
    counters: SequenceCounters,
    /// Marks of 64 numbers each, by their place in the window.
    marks: Box<[Marks]>,
    /// Arrivals that left others missing, as a ring: in ascending order of their numbers. At most
    /// every second number of the window can be one. Memory that is not needed is not touched.
    skips: Vec<Skip>,
    /// The reordered frames that arrived last, by `reordered` modulo their count.
    late: [Late; N_REORDERING_MAX],
}

/// A bit for each of 64 numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Those below the highest number that have not arrived.
    missing: u64,
    /// Those that arrived more than once.
    replicated: u64,
}

/// A reordered arrival.
#[derive(Clone, Copy, Debug)]
struct Late {
    number: u64,
    /// As the how manieth frame it arrived, from 1.
    received: u64,
}

impl Late {
    /// Later than any, and so in nobody's way.
    const NONE: Self = Self { number: u64::MAX, received: 0 };
}

/// An arrival that left others missing.
#[derive(Clone, Copy, Debug)]
struct Skip {
    number: u64,
    /// As the how manieth frame it arrived, from 1.
    received: u64,
    at: Instant,
}

impl Sequence {
    /// The window where nothing else is asked for.
    pub const WINDOW_DEFAULT: usize = 4_096;
    /// The least window, and the greatest.
    pub const WINDOWS: core::ops::RangeInclusive<usize> = 64..=1 << 20;

    /// An accounting over a window of so many frames, rounded up to a power of two within
    /// [`Self::WINDOWS`]. Takes 12.25 bytes for each.
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

    /// What was counted so far.
    pub const fn counters(&self) -> &SequenceCounters {
        &self.counters
    }

    /// Frames for which it can be told whether they arrived.
    pub const fn window(&self) -> usize {
        self.mask as usize + 1
    }

    /// One more than the highest number that arrived.
    pub const fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// The whole number of a frame of which the lowest `bits` are known: that which is nearest to
    /// the one expected next, and not negative.
    #[inline]
    pub const fn unwrap(&self, low: u64, bits: u32) -> u64 {
        let ahead = sign_extend(low.wrapping_sub(self.next_expected), bits);
        match self.next_expected.checked_add_signed(ahead) {
            Some(number) => number,
            None => low & ((1 << bits) - 1),
        }
    }

    /// Whether a frame is within the window and has arrived.
    #[inline]
    pub fn has_arrived(&self, number: u64) -> bool {
        number < self.next_expected
            && self.next_expected - number <= self.mask + 1
            && self.marks[self.word(number)].missing & bit(number) == 0
    }

    /// Notes an arrival at a time.
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

    /// An arrival below the highest number.
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
            self.mark_up_to(number);
            return Arrived::Duplicate;
        }
        self.marks[word].missing &= !bit(number);
        self.counters.received += 1;
        self.counters.missing -= 1;
        // The first frame sent later that arrived is the one by which this one was found missing:
        // of the frames before that one, none was sent later.
        let skip = self.skip_over(number);
        let extent = self.counters.received - skip.received;
        let late_time = at.saturating_since(skip.at);
        self.counters.extent_sum += extent;
        self.counters.extent_max = self.counters.extent_max.max(extent);
        self.counters.late_time_max = self.counters.late_time_max.max(late_time);
        for n in 0..self.all_later(number, extent) {
            self.counters.n_reordered[n] += 1;
        }
        let place = self.counters.reordered as usize % N_REORDERING_MAX;
        self.late[place] = Late { number, received: self.counters.received };
        self.counters.reordered += 1;
        Arrived::Reordered { extent, missed_at: skip.at }
    }

    /// Takes away what an earlier number left at the place of this one.
    #[inline(never)]
    fn clear(&mut self, number: u64) {
        let word = self.word(number);
        self.marks[word].missing &= !bit(number);
        self.marks[word].replicated &= !bit(number);
    }

    /// Sees to it that a mark of this number is taken away when its place is another one's.
    fn mark_up_to(&mut self, number: u64) {
        let next_there = number.saturating_add(self.mask + 1);
        self.unmarked_from = self.unmarked_from.max(next_there.saturating_add(1));
    }

    /// Notes that `skipped` frames before `number` are missing.
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
        self.mark_up_to(number - 1);
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

    /// The first arrival that skipped over `number`, which is missing and within the window.
    fn skip_over(&self, number: u64) -> Skip {
        let kept = self.counters.gaps.min(self.skips.len() as u64);
        let (mut low, mut high) = (self.counters.gaps - kept, self.counters.gaps);
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

    /// How many of the latest arrivals, one after the other, were sent later than `number`, whose
    /// arrival is counted already: at most those behind the frame that skipped over it, and of
    /// those only reordered ones can have been sent before it.
    fn all_later(&self, number: u64, extent: u64) -> usize {
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

/// The lowest `bits` of a value as a signed number.
#[inline]
pub(super) const fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((value << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes frames, counted from 1 as in the RFCs, one nanosecond after the other.
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

    /// Extents of the reordered arrivals.
    fn extents(numbers: &[u64]) -> Vec<u64> {
        let extent = |arrived| match arrived {
            Arrived::Reordered { extent, .. } => Some(extent),
            _ => None,
        };
        arrived(numbers).1.into_iter().filter_map(extent).collect()
    }

    /// How many are n-reordered, as long as any are.
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
    fn a_repeat_of_an_old_frame_hides_no_loss() {
        // 3 is lost; 1 comes again after 5.
        let found = counted(&[1, 2, 4, 5, 1]);
        assert_eq!((found.duplicated, found.reordered, found.missing), (1, 0, 1));
        assert_eq!(found.lost(6), 2, "3, and 6, which nothing behind it betrays");
    }

    #[test]
    fn a_late_frame_repairs_its_loss_once() {
        let found = counted(&[1, 3, 2, 2]);
        assert_eq!((found.missing, found.reordered, found.duplicated), (0, 1, 1));
    }

    #[test]
    fn what_comes_from_before_the_window_is_counted_apart() {
        let (sequence, all) = arrived(&[1, 66, 2, 1]);
        assert_eq!(all[2], Arrived::TooLate);
        assert_eq!(all[3], Arrived::TooLate);
        let found = sequence.counters();
        assert_eq!((found.received, found.missing, found.too_late), (2, 64, 2));
        // The oldest of the window.
        assert_eq!(counted(&[1, 66, 3]).reordered, 1);
    }

    #[test]
    fn a_repeat_is_forgotten_with_its_window() {
        // Nothing is lost, and every frame comes twice: a window later each place is another one's.
        let numbers: Vec<_> = (1..300).flat_map(|number| [number, number]).collect();
        assert_eq!((counted(&numbers).duplicated, counted(&numbers).replicated), (299, 299));
    }

    #[test]
    fn a_leap_over_any_distance_leaves_no_trace_of_what_was_before() {
        for leap in 1..300 {
            let mut sequence = Sequence::new(128);
            (0..200).for_each(|number| _ = sequence.note(number, Instant::ZERO));
            sequence.note(199 + leap, Instant::ZERO);
            for number in 200 + leap - 128..200 + leap {
                let came = number < 200 || number == 199 + leap;
                assert_eq!(sequence.has_arrived(number), came, "{number} after {leap}");
            }
            assert!(!sequence.has_arrived(200 + leap - 129));
        }
    }

    #[test]
    fn a_number_is_unwrapped_to_the_one_nearest_to_what_is_expected() {
        let mut sequence = Sequence::new(64);
        assert_eq!(sequence.unwrap(5, 40), 5);
        assert_eq!(sequence.unwrap((1 << 40) - 1, 40), (1 << 40) - 1, "none is negative");
        sequence.note((3 << 40) - 2, Instant::ZERO);
        assert_eq!(sequence.unwrap((1 << 40) - 1, 40), (3 << 40) - 1);
        assert_eq!(sequence.unwrap(1, 40), (3 << 40) + 1);
        assert_eq!(sequence.unwrap((1 << 40) - 9, 40), (3 << 40) - 9);
    }

    #[test]
    fn the_window_has_a_size_that_can_be_had() {
        for (asked, window) in [(0, 64), (65, 128), (4_096, 4_096), (usize::MAX, 1 << 20)] {
            assert_eq!(Sequence::new(asked).window(), window);
        }
    }
}
