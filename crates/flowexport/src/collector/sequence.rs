//! Sequence numbers of export streams: loss, reordering, restarts.
//!
//! A sequence number counts units modulo 2^32: datagrams for NetFlow v9 and sFlow, data records for
//! NetFlow v5 and IPFIX. There, a message has the number of units before it.

use alloc::collections::VecDeque;

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
}

/// What a sequence number says about its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next message, perhaps behind a gap.
    Next,
    /// A message of an earlier gap.
    Late,
    /// A message that has already arrived, or one far away.
    Unexpected,
    /// The first message after a restart that the uptime shows.
    Restart,
}

/// Units that did not arrive yet.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u32,
    length: u32,
}

/// State of the sequence numbers of a stream.
#[derive(Debug)]
pub(crate) struct Sequence {
    expected: Option<u32>,
    /// Longest gap; a longer step is a restart.
    gap_limit: u32,
    gaps: VecDeque<Gap>,
    /// Upper bound of the units in the last message whose number is unknown.
    unknown: u32,
    /// Number after the last unexpected message, and how many such messages followed each other.
    elsewhere: Option<(u32, u32)>,
    counters: SequenceCounters,
}

impl Sequence {
    pub(crate) const fn new(gap_limit: u32) -> Self {
        Self {
            expected: None,
            gap_limit,
            gaps: VecDeque::new(),
            unknown: 0,
            elsewhere: None,
            counters: SequenceCounters {
                lost: 0,
                gaps: 0,
                gap_max: 0,
                late: 0,
                unexpected: 0,
                restarts: 0,
            },
        }
    }

    pub(crate) const fn counters(&self) -> &SequenceCounters {
        &self.counters
    }

    /// Receives the number of a message before its content. `uptime_fell` is whether the exporter's
    /// uptime is clearly less than before. Returns the arrival, and how many units of the previous
    /// message were in its sets of unknown templates.
    pub(crate) fn receive(&mut self, number: u32, uptime_fell: bool) -> (Arrival, u32) {
        let Some(expected) = self.expected else {
            self.expected = Some(number);
            return (Arrival::Next, 0);
        };
        let distance = number.wrapping_sub(expected);
        let is_late = self.gaps.iter().any(|gap| gap.contains(number));
        if distance != 0 && !is_late && uptime_fell {
            self.restart(number);
            return (Arrival::Restart, 0);
        }
        if let Some((elsewhere, RESTART_MESSAGES)) = self.elsewhere
            && elsewhere == number
            && distance != 0
        {
            // The messages that were unexpected are the first ones after the restart.
            self.counters.unexpected -= u64::from(RESTART_MESSAGES);
            self.restart(number);
            return (Arrival::Next, 0);
        }
        if distance <= self.gap_limit {
            let unknown = distance.min(self.unknown);
            self.unknown = 0;
            self.skip(expected.wrapping_add(unknown), distance - unknown);
            self.expected = Some(number);
            self.elsewhere = None;
            return (Arrival::Next, unknown);
        }
        (if is_late { Arrival::Late } else { Arrival::Unexpected }, 0)
    }

    /// Receives the units of the message that [`Self::receive`] announced: `units` of them, and at
    /// most `unknown` in sets whose template is unknown.
    pub(crate) fn advance(&mut self, arrival: Arrival, number: u32, units: u32, unknown: u32) {
        match arrival {
            Arrival::Next | Arrival::Restart => {
                self.expected = Some(number.wrapping_add(units));
                self.unknown = unknown;
            }
            Arrival::Late => self.fill(number, units),
            // A message without units repeats the number of an earlier one when it is reordered.
            Arrival::Unexpected if units == 0 => {}
            Arrival::Unexpected => {
                self.counters.unexpected += 1;
                let run = match self.elsewhere {
                    Some((elsewhere, run)) if elsewhere == number => run + 1,
                    _ => 1,
                };
                self.elsewhere = Some((number.wrapping_add(units), run));
            }
        }
    }

    fn restart(&mut self, number: u32) {
        self.counters.restarts += 1;
        self.gaps.clear();
        self.unknown = 0;
        self.elsewhere = None;
        self.expected = Some(number);
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
            let (arrival, _) = sequence.receive(number, false);
            sequence.advance(arrival, number, units, 0);
        }
        *sequence.counters()
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
    fn a_lower_uptime_is_a_restart_at_once() {
        let mut sequence = Sequence::new(LIMIT);
        let (arrival, _) = sequence.receive(100, false);
        sequence.advance(arrival, 100, 1, 0);
        assert_eq!(sequence.receive(0, true).0, Arrival::Restart);
        assert_eq!(sequence.counters().restarts, 1);
        // A message that is merely late has a lower uptime too.
        let mut sequence = Sequence::new(LIMIT);
        for number in [0, 2] {
            let (arrival, _) = sequence.receive(number, false);
            sequence.advance(arrival, number, 1, 0);
        }
        assert_eq!(sequence.receive(1, true).0, Arrival::Late);
    }

    #[test]
    fn units_of_unknown_number_are_not_lost() {
        let mut sequence = Sequence::new(LIMIT);
        let (arrival, _) = sequence.receive(0, false);
        sequence.advance(arrival, 0, 0, 20);
        // 15 units were in the message before.
        assert_eq!(sequence.receive(15, false), (Arrival::Next, 15));
        sequence.advance(Arrival::Next, 15, 0, 20);
        // At most 20 were, so 5 are lost.
        assert_eq!(sequence.receive(40, false), (Arrival::Next, 20));
        assert_eq!(sequence.counters().lost, 5);
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
