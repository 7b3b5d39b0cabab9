//! Sequence numbers of export streams: loss, reordering, restarts.
//!
//! A sequence number counts units modulo 2^32: datagrams for NetFlow v9 and sFlow, data records for
//! NetFlow v5 and IPFIX. There, a message has the number of units before it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::header::Version;

/// Gaps that are remembered, to recognize late messages.
const GAPS_MAX: usize = 64;
/// Consecutive messages with unexpected numbers after which the exporter has restarted (RFC 3550
/// appendix A.1 needs two).
const RESTART_MESSAGES: u32 = 3;

/// Counters of the sequence numbers of a stream. Units are datagrams or data records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceCounters {
    /// Units that did not arrive; a late message is subtracted again.
    pub lost: u64,
    /// Gaps between consecutive messages.
    pub gaps: u64,
    /// Units of the longest gap.
    pub gap_max: u32,
    /// Units that arrived late and filled a gap.
    pub late: u64,
    /// Messages with a number that has already arrived, or far away.
    pub unexpected: u64,
    /// Restarts of the exporter: its uptime fell, or the numbers continue elsewhere.
    pub restarts: u64,
    /// Data records in sets whose template was unknown, as far as the numbers show them.
    pub unknown_template: u64,
}

/// What the number of a message counts, where exporters differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceConvention {
    /// The records of the message itself are counted, as softflowd does in IPFIX. By RFC 7011 section
    /// 3.1, the number is that of the records before.
    pub with_own_records: bool,
    /// Records of options data are not counted. By RFC 7011 section 3.1 they are.
    pub without_options: bool,
}

/// Data records of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Units {
    pub(crate) flows: u32,
    pub(crate) options: u32,
    /// Upper bound of those whose number is unknown, since their template is.
    pub(crate) unknown: u32,
}

/// Sequence numbers of a stream. Where exporters differ, all conventions are followed at once, and
/// the one with the fewest irregularities counts.
#[derive(Debug)]
pub(crate) struct Sequences {
    conventions: Vec<(SequenceConvention, Sequence)>,
    version: Version,
}

impl Sequences {
    /// Creates the state of a stream. A step of more than `gap_limit` units is a restart.
    pub(crate) fn new(version: Version, gap_limit: u32) -> Self {
        // The first one has precedence.
        let (own, options): (&[bool], &[bool]) = match version {
            Version::Ipfix => (&[false, true], &[false, true]),
            Version::NetflowV5 => (&[false, true], &[false]),
            Version::NetflowV9 | Version::SflowV5 => (&[false], &[false]),
        };
        let convention = |with_own_records, without_options| {
            (SequenceConvention { with_own_records, without_options }, Sequence::new(gap_limit))
        };
        let conventions = own
            .iter()
            .flat_map(|own| options.iter().map(|options| convention(*own, *options)))
            .collect();
        Self { conventions, version }
    }

    /// Returns the convention that fits best, and its counters.
    pub(crate) fn best(&self) -> (SequenceConvention, SequenceCounters) {
        let irregularities = |counters: &SequenceCounters| {
            (counters.gaps + counters.unexpected + counters.restarts, counters.lost)
        };
        self.conventions
            .iter()
            .map(|(convention, sequence)| (*convention, sequence.counters))
            .min_by_key(|(_, counters)| irregularities(counters))
            .unwrap_or_default()
    }

    /// Returns whether a message follows a restart of the exporter, which its uptime shows: it is
    /// clearly less than before, and the message is not just late.
    pub(crate) fn is_restart(&self, number: u32) -> bool {
        self.conventions.first().is_some_and(|(_, sequence)| {
            sequence.expected.is_some_and(|expected| expected != number)
                && !sequence.is_late(number)
        })
    }

    /// Receives the number of a message with its content. `is_restart` is the result of
    /// [`Self::is_restart`] if the uptime fell.
    pub(crate) fn receive(&mut self, number: u32, units: Units, is_restart: bool) {
        for (convention, sequence) in &mut self.conventions {
            let count = match (self.version.counts_records(), convention.without_options) {
                (false, _) => 1,
                (true, false) => units.flows + units.options,
                (true, true) => units.flows,
            };
            let unknown = if self.version.counts_records() { units.unknown } else { 0 };
            let start = match convention.with_own_records {
                true => {
                    // The unknown records are before the known ones instead of behind them.
                    sequence.unknown = sequence.unknown.saturating_add(unknown);
                    number.wrapping_sub(count)
                }
                false => number,
            };
            let behind = if convention.with_own_records { 0 } else { unknown };
            sequence.receive(start, count, behind, is_restart);
        }
    }
}

/// Units that did not arrive yet.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u32,
    length: u32,
}

/// State of the sequence numbers of a stream, by one convention.
#[derive(Debug)]
struct Sequence {
    expected: Option<u32>,
    /// Longest gap; a longer step is a restart.
    gap_limit: u32,
    gaps: VecDeque<Gap>,
    /// Upper bound of the units before the next message whose number is unknown.
    unknown: u32,
    /// Number after the last unexpected message, and how many such messages followed each other.
    elsewhere: Option<(u32, u32)>,
    counters: SequenceCounters,
}

impl Sequence {
    fn new(gap_limit: u32) -> Self {
        Self {
            expected: None,
            gap_limit,
            gaps: VecDeque::new(),
            unknown: 0,
            elsewhere: None,
            counters: SequenceCounters::default(),
        }
    }

    /// Receives a message of `units` units that start at `number`, and at most `unknown` more behind
    /// them.
    fn receive(&mut self, number: u32, units: u32, unknown: u32, is_restart: bool) {
        let Some(expected) = self.expected else {
            return self.advance(number, units, unknown);
        };
        if is_restart {
            self.restart();
            return self.advance(number, units, unknown);
        }
        let distance = number.wrapping_sub(expected);
        if let Some((elsewhere, RESTART_MESSAGES)) = self.elsewhere
            && elsewhere == number
            && distance != 0
        {
            // The messages that were unexpected are the first ones after the restart.
            self.counters.unexpected -= u64::from(RESTART_MESSAGES);
            self.restart();
            self.advance(number, units, unknown);
        } else if distance <= self.gap_limit {
            let known = distance.min(self.unknown);
            self.counters.unknown_template += u64::from(known);
            self.skip(expected.wrapping_add(known), distance - known);
            self.elsewhere = None;
            self.advance(number, units, unknown);
        } else if self.is_late(number) {
            self.fill(number, units);
        } else if units > 0 {
            // A message without units repeats the number of an earlier one when it is reordered.
            self.counters.unexpected += 1;
            let run = match self.elsewhere {
                Some((elsewhere, run)) if elsewhere == number => run + 1,
                _ => 1,
            };
            self.elsewhere = Some((number.wrapping_add(units), run));
        }
    }

    const fn advance(&mut self, number: u32, units: u32, unknown: u32) {
        self.expected = Some(number.wrapping_add(units));
        self.unknown = unknown;
    }

    fn is_late(&self, number: u32) -> bool {
        self.gaps.iter().any(|gap| gap.contains(number))
    }

    fn restart(&mut self) {
        self.counters.restarts += 1;
        self.gaps.clear();
        self.unknown = 0;
        self.elsewhere = None;
    }

    /// Adds a gap of `length` units.
    fn skip(&mut self, start: u32, length: u32) {
        if length == 0 {
            return;
        }
        self.counters.lost += u64::from(length);
        self.counters.gaps += 1;
        self.counters.gap_max = self.counters.gap_max.max(length);
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(Gap { start, length });
    }

    /// Removes the units of a late message from their gap.
    fn fill(&mut self, number: u32, units: u32) {
        let Some(index) = self.gaps.iter().position(|gap| gap.contains(number)) else { return };
        let Some(gap) = self.gaps.remove(index) else { return };
        let before = number.wrapping_sub(gap.start);
        let units = units.min(gap.length - before);
        let after = gap.length - before - units;
        for (start, length) in [(gap.start, before), (number.wrapping_add(units), after)] {
            if length > 0 && self.gaps.len() < GAPS_MAX {
                self.gaps.push_back(Gap { start, length });
            }
        }
        self.counters.lost -= u64::from(units);
        self.counters.late += u64::from(units);
    }
}

impl Gap {
    const fn contains(&self, number: u32) -> bool {
        number.wrapping_sub(self.start) < self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const LIMIT: u32 = 10_000;

    /// Messages as (number, units).
    fn after(messages: &[(u32, u32)]) -> SequenceCounters {
        let mut sequence = Sequence::new(LIMIT);
        for &(number, units) in messages {
            sequence.receive(number, units, 0, false);
        }
        sequence.counters
    }

    #[test]
    fn numbers_wrap_without_a_gap() {
        let counters = after(&[(u32::MAX - 9, 10), (0, 10), (10, 10)]);
        assert_eq!(counters, SequenceCounters::default());
        let counters = after(&[(u32::MAX, 1), (3, 1)]);
        assert_eq!((counters.lost, counters.gaps, counters.gap_max), (3, 1, 3));
    }

    #[test]
    fn a_late_message_is_no_longer_lost() {
        let counters = after(&[(0, 10), (30, 10), (20, 10), (40, 10)]);
        assert_eq!((counters.lost, counters.gaps, counters.late), (10, 1, 10));
        let counters = after(&[(0, 10), (30, 10), (20, 10), (10, 10), (40, 10)]);
        assert_eq!((counters.lost, counters.late, counters.unexpected), (0, 20, 0));
    }

    #[test]
    fn a_duplicate_is_unexpected_and_changes_nothing_else() {
        let counters = after(&[(0, 10), (10, 10), (0, 10), (20, 10)]);
        assert_eq!(counters, SequenceCounters { unexpected: 1, ..SequenceCounters::default() });
    }

    #[test]
    fn messages_that_continue_elsewhere_are_a_restart() {
        let counters = after(&[(5_000_000, 10), (0, 10), (10, 10), (20, 10), (30, 10), (50, 10)]);
        let expected = SequenceCounters {
            restarts: 1,
            lost: 10,
            gaps: 1,
            gap_max: 10,
            ..SequenceCounters::default()
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn only_a_message_that_is_not_late_can_follow_a_restart() {
        let mut sequences = Sequences::new(Version::NetflowV9, LIMIT);
        assert!(!sequences.is_restart(5));
        for number in [0, 2] {
            sequences.receive(number, Units::default(), false);
        }
        assert_eq!(
            [0, 1, 2, 3].map(|number| sequences.is_restart(number)),
            [true, false, true, false]
        );
        sequences.receive(0, Units::default(), true);
        let expected =
            SequenceCounters { restarts: 1, lost: 1, gaps: 1, gap_max: 1, ..Default::default() };
        assert_eq!(sequences.best().1, expected);
    }

    #[test]
    fn units_of_unknown_number_are_not_lost() {
        for (with_own_records, numbers) in [(false, [0, 15, 40]), (true, [15, 40, 50])] {
            let mut sequences = Sequences::new(Version::NetflowV5, LIMIT);
            let units = |flows, unknown| Units { flows, options: 0, unknown };
            if with_own_records {
                sequences.receive(0, units(0, 0), false);
            }
            // 15 units, then 25 units of which at most 20 can be in the message.
            sequences.receive(numbers[0], units(0, 20), false);
            sequences.receive(numbers[1], units(0, 20), false);
            sequences.receive(numbers[2], units(10, 0), false);
            let of =
                |it: &&(SequenceConvention, Sequence)| it.0.with_own_records == with_own_records;
            let (_, sequence) = sequences.conventions.iter().find(of).unwrap();
            let SequenceCounters { lost, unknown_template, .. } = sequence.counters;
            assert_eq!((lost, unknown_template), (5, 35), "{with_own_records}");
        }
    }

    #[test]
    fn the_convention_of_the_exporter_is_found() {
        for with_own_records in [false, true] {
            for without_options in [false, true] {
                let mut sequences = Sequences::new(Version::Ipfix, LIMIT);
                let mut number = 1_000;
                for message in 0..40_u32 {
                    let units =
                        Units { flows: 20 + message % 7, options: message % 3 / 2, unknown: 0 };
                    let count = units.flows + if without_options { 0 } else { units.options };
                    let end = number + count;
                    // Every tenth message is lost.
                    if message % 10 != 9 {
                        let number = if with_own_records { end } else { number };
                        sequences.receive(number, units, false);
                    }
                    number = end;
                }
                let (convention, counters) = sequences.best();
                let expected = SequenceConvention { with_own_records, without_options };
                assert_eq!(convention, expected);
                assert_eq!((counters.gaps, counters.unexpected), (3, 0));
                let lost: u32 = [9, 19, 29].iter().map(|it| 20 + it % 7).sum();
                let options = if without_options { 0 } else { 1 };
                assert_eq!(counters.lost, u64::from(lost + options), "{convention:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn messages_in_any_near_order_lose_exactly_what_is_missing(
            start: u32,
            kept in prop::collection::vec(any::<bool>(), 1..200),
            swaps in prop::collection::vec(0..200_usize, 0..50),
        ) {
            // The first and last message arrive in place, to mark the ends.
            let mut numbers: Vec<u32> = kept
                .iter()
                .enumerate()
                .filter_map(|(number, kept)| kept.then_some(number as u32 + 1))
                .collect();
            for swap in swaps {
                if swap + 1 < numbers.len() {
                    numbers.swap(swap, swap + 1);
                }
            }
            numbers.insert(0, 0);
            numbers.push(kept.len() as u32 + 1);
            let messages: Vec<_> =
                numbers.iter().map(|number| (start.wrapping_add(number * 3), 3)).collect();
            let lost = kept.iter().filter(|kept| !**kept).count() as u64 * 3;
            let counters = after(&messages);
            prop_assert_eq!(counters.lost, lost);
            prop_assert_eq!((counters.unexpected, counters.restarts), (0, 0));
        }
    }
}
