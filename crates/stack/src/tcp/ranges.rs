//! Ranges of sequence numbers beyond a hole: the out-of-order data of a receiver (RFC 2018) and the
//! SACK scoreboard of a sender (RFC 6675).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::sequence::SequenceNumber;

/// The octets from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceRange {
    /// First octet.
    pub start: SequenceNumber,
    /// Octet after the last one.
    pub end: SequenceNumber,
}

impl SequenceRange {
    /// Number of octets; 0 if `end` is not after `start`.
    pub const fn len(self) -> u32 {
        if self.is_empty() { 0 } else { self.end.distance_from(self.start).unsigned_abs() }
    }

    /// Whether the range has no octets.
    pub const fn is_empty(self) -> bool {
        !self.start.is_before(self.end)
    }
}

/// A range that did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangesFull(pub SequenceRange);

/// Sorted set of disjoint ranges that do not touch; one word in size while it is empty.
///
/// All ranges and arguments must lie less than 2^31 apart, as numbers within a window do. Check
/// numbers from the network first. Otherwise the results are wrong, but nothing panics.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Option<Box<Set>>);

const _: () = assert!(size_of::<Ranges>() == size_of::<usize>());

/// Content of a non-empty [`Ranges`].
#[derive(Clone, Debug, Default)]
struct Set {
    held: Vec<Entry>,
    /// Number of insertions, modulo 2^32.
    insertions: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    range: SequenceRange,
    /// Number of the last insertion into this range.
    insertion: u32,
}

const _: () = assert!(size_of::<Entry>() == 12);

impl Ranges {
    /// Returns an empty set.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Adds octets and returns how many of them are new. The range merges with those it touches. A
    /// range that touches none is refused, without any change, if the set already has `ranges_max`
    /// ranges (0 counts as 1).
    pub fn insert(&mut self, range: SequenceRange, ranges_max: usize) -> Result<u32, RangesFull> {
        if range.is_empty() {
            return Ok(0);
        }
        let Set { held, insertions } = &mut **self.0.get_or_insert_default();
        let first = held.partition_point(|held| held.range.end.is_before(range.start));
        let last = held.partition_point(|held| !range.end.is_before(held.range.start));
        if last <= first {
            if held.len() >= ranges_max.max(1) {
                return Err(RangesFull(range));
            }
            *insertions = insertions.wrapping_add(1);
            held.insert(first, Entry { range, insertion: *insertions });
            return Ok(range.len());
        }
        let (lowest, highest) = (held[first].range, held[last - 1].range);
        let merged = SequenceRange {
            start: if lowest.start.is_before(range.start) { lowest.start } else { range.start },
            end: if range.end.is_before(highest.end) { highest.end } else { range.end },
        };
        let known = sum(held[first..last].iter().map(|held| held.range.len()));
        *insertions = insertions.wrapping_add(1);
        held[first] = Entry { range: merged, insertion: *insertions };
        held.drain(first + 1..last);
        Ok(merged.len().saturating_sub(known))
    }

    /// Removes the octets before `to`, which are acknowledged.
    pub fn advance(&mut self, to: SequenceNumber) {
        let Some(set) = &mut self.0 else { return };
        let gone = set.held.partition_point(|held| !to.is_before(held.range.end));
        set.held.drain(..gone);
        match set.held.first_mut() {
            Some(first) if first.range.start.is_before(to) => first.range.start = to,
            Some(_) => {}
            None => self.0 = None,
        }
    }

    /// Takes the octets that continue the sequence at `next`, before which all octets have arrived.
    /// Returns the new next number and removes all octets before it.
    pub fn join(&mut self, next: SequenceNumber) -> SequenceNumber {
        let beyond = self.held().iter().find(|held| next.is_before(held.range.end));
        let next = match beyond {
            Some(held) if !next.is_before(held.range.start) => held.range.end,
            _ => next,
        };
        self.advance(next);
        next
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.held().len()
    }

    /// Number of octets.
    pub fn bytes(&self) -> u32 {
        sum(self.held().iter().map(|held| held.range.len()))
    }

    /// Number after the last octet.
    pub fn end(&self) -> Option<SequenceNumber> {
        self.held().last().map(|held| held.range.end)
    }

    /// Whether the set contains an octet.
    pub fn contains(&self, number: SequenceNumber) -> bool {
        let held = self.beyond(number).first();
        held.is_some_and(|held| !number.is_before(held.range.start))
    }

    /// Number of octets below `number`.
    pub fn bytes_before(&self, number: SequenceNumber) -> u32 {
        let start = self.held().first().map(|held| held.range.start);
        start.map_or(0, |start| self.bytes_within(SequenceRange { start, end: number }))
    }

    /// Number of octets above `number`.
    pub fn bytes_above(&self, number: SequenceNumber) -> u32 {
        let start = number + 1;
        self.end().map_or(0, |end| self.bytes_within(SequenceRange { start, end }))
    }

    /// Returns the first missing octets at or after `from` and before `to`.
    pub fn next_hole(&self, from: SequenceNumber, to: SequenceNumber) -> Option<SequenceRange> {
        let mut beyond = self.beyond(from).iter();
        let mut next = beyond.next();
        let mut hole = SequenceRange { start: from, end: to };
        if let Some(held) = next
            && !from.is_before(held.range.start)
        {
            hole.start = held.range.end;
            next = beyond.next();
        }
        if let Some(held) = next
            && held.range.start.is_before(to)
        {
            hole.end = held.range.start;
        }
        (!hole.is_empty()).then_some(hole)
    }

    /// Returns the first octets of `range` that the set contains.
    pub fn first_within(&self, range: SequenceRange) -> Option<SequenceRange> {
        let first = self.beyond(range.start).first()?.range;
        let start = if first.start.is_before(range.start) { range.start } else { first.start };
        let end = if range.end.is_before(first.end) { range.end } else { first.end };
        let within = SequenceRange { start, end };
        (!within.is_empty()).then_some(within)
    }

    /// Returns the number below which all missing octets are lost, or `None` if none are. It
    /// implements IsLost of RFC 6675 section 4 for all octets at once.
    ///
    /// `mss` is the segment size in bytes. `threshold` is DupThresh, which section 2 says "is
    /// defined to be 3 duplicate acknowledgments".
    ///
    /// "The routine returns true when either DupThresh discontiguous SACKed sequences have arrived
    /// above 'SeqNum' or more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than
    /// 'SeqNum' have been SACKed."
    pub fn lost_before(&self, mss: u16, threshold: u8) -> Option<SequenceNumber> {
        let threshold = u32::from(threshold.max(1));
        let enough = (threshold - 1) * u32::from(mss);
        let mut bytes = 0_u32;
        let from_above = (1..).zip(self.held().iter().rev());
        for (sequences, held) in from_above {
            bytes = bytes.saturating_add(held.range.len());
            if sequences >= threshold || bytes > enough {
                return Some(held.range.start);
            }
        }
        None
    }

    /// Returns the number of octets in the network from `unacknowledged` up to `next`, the next
    /// number to send. It implements SetPipe of RFC 6675 section 4.
    ///
    /// A missing octet counts "if IsLost (S1) returns false", and once more "if S1 <= HighRxt".
    /// `retransmitted_to` is the number after HighRxt, or `unacknowledged` without a
    /// retransmission. `lost_before` is the result of [`Self::lost_before`].
    pub fn pipe(
        &self,
        unacknowledged: SequenceNumber,
        next: SequenceNumber,
        retransmitted_to: SequenceNumber,
        lost_before: Option<SequenceNumber>,
    ) -> u32 {
        let not_lost = match lost_before {
            Some(number) if unacknowledged.is_before(number) => number,
            _ => unacknowledged,
        };
        let missing = |range: SequenceRange| range.len().saturating_sub(self.bytes_within(range));
        missing(SequenceRange { start: not_lost, end: next })
            .saturating_add(missing(SequenceRange { start: unacknowledged, end: retransmitted_to }))
    }

    /// Writes ranges to `blocks`, the most recently changed first, and returns their number.
    ///
    /// RFC 2018 section 4: "The first SACK block [...] MUST specify the contiguous block of data
    /// containing the segment which triggered this ACK"; then "repeating the most recently
    /// reported SACK blocks [...] that are not subsets of a SACK block already included".
    pub fn most_recent(&self, blocks: &mut [SequenceRange]) -> usize {
        let Some(set) = &self.0 else { return 0 };
        let mut age_min = 0_u32;
        for (written, block) in blocks.iter_mut().enumerate() {
            let ages = set
                .held
                .iter()
                .map(|held| (set.insertions.wrapping_sub(held.insertion), held.range));
            let next = ages.filter(|(age, _)| *age >= age_min).min_by_key(|(age, _)| *age);
            let Some((age, range)) = next else { return written };
            *block = range;
            age_min = age.saturating_add(1);
        }
        blocks.len()
    }

    fn held(&self) -> &[Entry] {
        self.0.as_ref().map_or(&[], |set| &set.held)
    }

    /// Returns the ranges that contain the octet `number` or lie above it.
    fn beyond(&self, number: SequenceNumber) -> &[Entry] {
        let held = self.held();
        &held[held.partition_point(|held| !number.is_before(held.range.end))..]
    }

    /// Number of octets of `range` that the set contains.
    fn bytes_within(&self, range: SequenceRange) -> u32 {
        sum(self
            .beyond(range.start)
            .iter()
            .take_while(|held| held.range.start.is_before(range.end))
            .map(|held| {
                let SequenceRange { start, end } = held.range;
                SequenceRange {
                    start: if start.is_before(range.start) { range.start } else { start },
                    end: if range.end.is_before(end) { range.end } else { end },
                }
                .len()
            }))
    }
}

fn sum(lengths: impl Iterator<Item = u32>) -> u32 {
    lengths.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use proptest::prelude::*;

    fn range(start: u32, end: u32) -> SequenceRange {
        SequenceRange { start: SequenceNumber(start), end: SequenceNumber(end) }
    }

    fn ranges(inserted: &[(u32, u32)]) -> Ranges {
        let mut ranges = Ranges::new();
        for (start, end) in inserted {
            ranges.insert(range(*start, *end), 100).unwrap();
        }
        ranges
    }

    fn recent(ranges: &Ranges, count: usize) -> Vec<SequenceRange> {
        let mut blocks = vec![SequenceRange::default(); count];
        let written = ranges.most_recent(&mut blocks);
        blocks.truncate(written);
        blocks
    }

    #[test]
    fn sack_blocks_start_with_the_latest_range() {
        // Every second segment of 500 bytes is missing.
        let mut ranges = ranges(&[(5_500, 6_000), (6_500, 7_000), (7_500, 8_000), (8_500, 9_000)]);
        let all = [range(8_500, 9_000), range(7_500, 8_000), range(6_500, 7_000)];
        assert_eq!(recent(&ranges, 3), all);
        assert_eq!(recent(&ranges, 4).last(), Some(&range(5_500, 6_000)));
        // A range that closes a gap.
        ranges.insert(range(6_000, 6_500), 100).unwrap();
        let after = [range(5_500, 7_000), range(8_500, 9_000), range(7_500, 8_000)];
        assert_eq!(recent(&ranges, 3), after);
        // A range that arrives again also comes first.
        assert_eq!(ranges.insert(range(7_500, 8_000), 100), Ok(0));
        let again = [range(7_500, 8_000), range(5_500, 7_000), range(8_500, 9_000)];
        assert_eq!(recent(&ranges, 4), again);
        assert_eq!(recent(&Ranges::new(), 4), []);
    }

    #[test]
    fn ranges_beyond_the_limit_are_refused_unless_they_merge() {
        let mut ranges = ranges(&[(10, 20), (30, 40)]);
        assert_eq!(ranges.insert(range(50, 60), 2), Err(RangesFull(range(50, 60))));
        assert_eq!((ranges.len(), ranges.bytes()), (2, 20));
        assert_eq!(recent(&ranges, 3), [range(30, 40), range(10, 20)]);
        assert_eq!(ranges.insert(range(40, 60), 2), Ok(20));
        assert_eq!(ranges.insert(range(20, 30), 2), Ok(10));
        assert_eq!(recent(&ranges, 3), [range(10, 60)]);
        assert_eq!(ranges.insert(range(70, 80), 2), Ok(10));
    }

    #[test]
    fn join_returns_the_end_of_contiguous_data() {
        let mut ranges = ranges(&[(10, 20), (30, 40)]);
        assert_eq!(ranges.join(SequenceNumber(5)), SequenceNumber(5));
        assert_eq!(ranges.join(SequenceNumber(10)), SequenceNumber(20));
        assert_eq!(ranges.join(SequenceNumber(35)), SequenceNumber(40));
        assert!(ranges.is_empty());
    }

    #[test]
    fn empty_set_frees_its_memory() {
        let mut ranges = ranges(&[(10, 20)]);
        ranges.advance(SequenceNumber(20));
        assert!(ranges.0.is_none());
    }

    #[test]
    fn three_sequences_or_two_segments_above_make_a_loss() {
        // Three sequences of a byte each.
        let mut board = ranges(&[(10, 11), (20, 21)]);
        assert_eq!(board.lost_before(1_000, 3), None);
        board.insert(range(30, 31), 100).unwrap();
        assert_eq!(board.lost_before(1_000, 3), Some(SequenceNumber(10)));
        board.insert(range(40, 41), 100).unwrap();
        assert_eq!(board.lost_before(1_000, 3), Some(SequenceNumber(20)));
        // Other thresholds.
        assert_eq!(board.lost_before(1_000, 4), Some(SequenceNumber(10)));
        assert_eq!(board.lost_before(1_000, 5), None);
        assert_eq!(board.lost_before(1_000, 1), Some(SequenceNumber(40)));
        // More than two segments in one sequence.
        assert_eq!(ranges(&[(1_000, 3_000)]).lost_before(1_000, 3), None);
        assert_eq!(ranges(&[(1_000, 3_001)]).lost_before(1_000, 3), Some(SequenceNumber(1_000)));
    }

    #[test]
    fn pipe_counts_octets_not_lost_and_retransmitted() {
        // Ten segments of 100 octets: the second and the fourth to seventh have arrived, the first
        // and third are lost.
        let board = ranges(&[(100, 200), (300, 700)]);
        let pipe = |retransmitted_to| {
            board.pipe(
                SequenceNumber(0),
                SequenceNumber(1_000),
                SequenceNumber(retransmitted_to),
                board.lost_before(100, 3),
            )
        };
        assert_eq!(board.lost_before(100, 3), Some(SequenceNumber(300)));
        assert_eq!(pipe(0), 300);
        assert_eq!(pipe(100), 400);
        assert_eq!(pipe(300), 500);
        assert_eq!(board.next_hole(SequenceNumber(0), SequenceNumber(300)), Some(range(0, 100)));
        assert_eq!(
            board.next_hole(SequenceNumber(100), SequenceNumber(300)),
            Some(range(200, 300))
        );
        assert_eq!(board.next_hole(SequenceNumber(300), SequenceNumber(300)), None);
        // Without SACK information all octets are in the network.
        let nothing = Ranges::new();
        let start = SequenceNumber(0);
        assert_eq!(nothing.pipe(start, start + 1_000, start, None), 1_000);
    }

    /// Octets are relative to a base.
    const SPAN: u32 = 600;
    const RANGES_MAX: usize = 12;
    const MSS: u16 = 25;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u32),
        Advance(u32),
        Join(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0..SPAN, 0..40_u32).prop_map(|(start, length)| Step::Insert(start, length)),
            1 => (0..60_u32).prop_map(Step::Advance),
            1 => (0..60_u32).prop_map(Step::Join),
        ]
    }

    /// Returns the runs of consecutive numbers.
    fn runs(octets: &BTreeSet<u32>) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = vec![];
        for octet in octets {
            match runs.last_mut() {
                Some((_, end)) if *end == *octet => *end += 1,
                _ => runs.push((*octet, octet + 1)),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn ranges_match_a_set_of_octets(
            base in prop_oneof![any::<u32>(), Just(u32::MAX - 100), Just((1 << 31) - 300)],
            steps in prop::collection::vec(step(), 1..60),
            probe in 0..SPAN,
            probe_end in 0..SPAN + 50,
            threshold in 1_u8..6,
        ) {
            let at = |offset: u32| SequenceNumber(base) + offset;
            let mut ranges = Ranges::new();
            let mut octets: BTreeSet<u32> = BTreeSet::new();
            // The set has dropped the octets before `first`.
            let mut first = 0;
            for step in steps {
                match step {
                    Step::Insert(start, length) => {
                        let start = start.max(first);
                        let mut union = octets.clone();
                        union.extend(start..start + length);
                        let inserted = ranges.insert(
                            SequenceRange { start: at(start), end: at(start + length) },
                            RANGES_MAX,
                        );
                        if runs(&union).len() > RANGES_MAX {
                            prop_assert!(inserted.is_err());
                        } else {
                            prop_assert_eq!(inserted, Ok((union.len() - octets.len()) as u32));
                            octets = union;
                        }
                    }
                    Step::Advance(by) => {
                        first += by;
                        octets = octets.split_off(&first);
                        ranges.advance(at(first));
                    }
                    Step::Join(by) => {
                        let next = first + by;
                        first = (next..).find(|octet| !octets.contains(octet)).unwrap_or(next);
                        octets = octets.split_off(&first);
                        prop_assert_eq!(ranges.join(at(next)), at(first));
                    }
                }
                let held: Vec<_> = ranges.held().iter().map(|held| held.range).collect();
                let expected: Vec<_> = runs(&octets)
                    .into_iter()
                    .map(|(start, end)| SequenceRange { start: at(start), end: at(end) })
                    .collect();
                prop_assert_eq!(&held, &expected);
                let mut recent = recent(&ranges, RANGES_MAX + 1);
                recent.sort_by_key(|range| range.start.distance_from(at(0)));
                prop_assert_eq!(recent, expected);

                prop_assert_eq!(ranges.len(), held.len());
                prop_assert_eq!(ranges.is_empty(), octets.is_empty());
                prop_assert_eq!(ranges.bytes(), octets.len() as u32);
                prop_assert_eq!(ranges.end(), octets.last().map(|last| at(last + 1)));
                prop_assert_eq!(ranges.contains(at(probe)), octets.contains(&probe));
                let above = octets.range(probe + 1..).count() as u32;
                prop_assert_eq!(ranges.bytes_above(at(probe)), above);
                let is_missing = |octet: &u32| !octets.contains(octet);
                let hole = (probe..probe_end).find(is_missing).map(|start| {
                    let end = (start..probe_end).find(|octet| !is_missing(octet));
                    SequenceRange { start: at(start), end: at(end.unwrap_or(probe_end)) }
                });
                prop_assert_eq!(ranges.next_hole(at(probe), at(probe_end)), hole);

                // Reference: RFC 6675 section 4 for each single octet.
                let next = SPAN + 40;
                let lost_before = ranges.lost_before(MSS, threshold);
                let (mut sequences, mut bytes, mut pipe) = (0, 0, 0);
                for octet in (first..next).rev() {
                    if octets.contains(&octet) {
                        bytes += 1;
                        sequences += u32::from(octet == first || !octets.contains(&(octet - 1)));
                        continue;
                    }
                    let enough = u32::from(threshold - 1) * u32::from(MSS);
                    let is_lost = sequences >= u32::from(threshold) || bytes > enough;
                    let is_before = lost_before.is_some_and(|number| at(octet).is_before(number));
                    prop_assert_eq!(is_before, is_lost);
                    pipe += u32::from(!is_lost) + u32::from(octet < probe);
                }
                let retransmitted_to = at(probe.max(first));
                let computed = ranges.pipe(at(first), at(next), retransmitted_to, lost_before);
                prop_assert_eq!(computed, pipe);
            }
        }

        #[test]
        fn arbitrary_numbers_cause_no_panic(
            inserted in prop::collection::vec(any::<(u32, u32)>(), 0..40),
            numbers: [u32; 4],
        ) {
            let [a, b, c, d] = numbers.map(SequenceNumber);
            let mut ranges = Ranges::new();
            for (start, end) in inserted {
                let _ = ranges.insert(range(start, end), 20);
                prop_assert!(ranges.len() <= 20);
            }
            let _ = (ranges.contains(a), ranges.bytes_above(a), ranges.next_hole(a, b));
            let _ = (ranges.pipe(a, b, c, Some(d)), ranges.bytes(), recent(&ranges, 4));
            ranges.join(d);
            ranges.advance(a);
        }
    }
}
