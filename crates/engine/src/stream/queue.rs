//! Queue of streams by the due time of their next frame.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::{array, mem};

use wirestorm_base::time::Instant;

/// Streams in the order of their next due times; ties in the order of the plan.
///
/// A calendar queue: time is divided into days of equal length. A wheel of [`DAYS`] days holds each
/// stream on the day of its next frame, of any year. Only the streams of the current day must be
/// sorted. Mostly they are sorted already, because streams are served in order and appended to
/// later days. A day is as long as a few frames of all streams together. So a turn costs the same
/// for one stream and for 20,000; in a heap it grows logarithmically.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Length of a day: 2 to this power, in ns.
    day_bits: u32,
    /// Day of `today`, counted from the epoch.
    day: u64,
    /// Sorted streams of the current day, taken off the wheel, followed by the start of the next
    /// day. Streams before `turn` have been served and are due on a later day; they move there
    /// together at the end of the day.
    today: Vec<Entry>,
    turn: usize,
    days: Box<[Day; DAYS]>,
    /// Bit set of the days that have streams.
    busy: Box<[u64; DAYS / 64]>,
    /// Number of streams in the queue.
    streams: usize,
    /// Buffers of past days, reused for days that get their first stream.
    spare: Vec<Vec<Entry>>,
}

/// Turn of the first stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) entry: Entry,
    /// Latest time at which this stream is still the first.
    pub(super) until: Instant,
}

/// Due time of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: Instant,
    pub(super) stream: u32,
}

impl Entry {
    const LATEST: Self = Self { due: Instant::MAX, stream: u32::MAX };

    /// Returns the sort key. It compares without a branch, because a processor cannot predict the
    /// order of streams with different rates.
    #[inline]
    fn order(self) -> u128 {
        u128::from(self.due.as_nanos()) << 64 | u128::from(self.stream)
    }
}

/// Streams of one day of every year, in the order of insertion.
#[derive(Clone, Debug, Default)]
struct Day {
    entries: Vec<Entry>,
    /// Whether the entries are not sorted.
    is_unsorted: bool,
}

/// Number of days on the wheel: a power of two and a multiple of 64.
const DAYS: usize = 4096;

/// Target number of frames in a day.
const FRAMES_PER_DAY: f64 = 8.0;

/// Number of turns to look ahead for prefetching.
const AHEAD: usize = 8;

impl Queue {
    /// Creates an empty queue for streams that together send about `frames_per_second`.
    pub(super) fn new(frames_per_second: f64) -> Self {
        let day = FRAMES_PER_DAY * 1e9 / frames_per_second.max(1e-3);
        let day_bits = (day as u64).max(1).ilog2().min(40);
        Self {
            day_bits,
            day: 0,
            today: vec![Entry::LATEST],
            turn: 0,
            days: Box::new(array::from_fn(|_| Day::default())),
            busy: Box::new([0; DAYS / 64]),
            streams: 0,
            spare: Vec::new(),
        }
    }

    /// Returns the next turn; `None` at the end of the day.
    #[inline]
    pub(super) fn first(&self) -> Option<Turn> {
        let [entry, second, ..] = self.today.get(self.turn..)? else { return None };
        // Of two streams with the same due time, the lower index goes first.
        let until = second.due.as_nanos() - u64::from(entry.stream > second.stream);
        Some(Turn { entry: *entry, until: Instant::from_nanos(until) })
    }

    /// Returns whether the next day must begin.
    #[inline]
    pub(super) fn is_day_over(&self) -> bool {
        self.turn + 1 >= self.today.len() && self.streams > 0
    }

    /// Returns the end of the last stream's turn of this day.
    fn end_of_day(&self) -> Entry {
        let end = u128::from(self.day + 1) << self.day_bits;
        match u64::try_from(end) {
            Ok(end) if self.streams > 1 => Entry { due: Instant::from_nanos(end), stream: 0 },
            _ => Entry::LATEST,
        }
    }

    /// Returns the streams of the next day.
    pub(super) fn next_day_streams(&self) -> impl Iterator<Item = u32> + '_ {
        let day = (self.day + self.days_to_next()) as usize % DAYS;
        self.days[day].entries.iter().map(|entry| entry.stream)
    }

    /// Returns the stream some turns after the first, or an invalid index.
    #[inline]
    pub(super) fn ahead(&self) -> u32 {
        self.today.get(self.turn + AHEAD).map_or(u32::MAX, |entry| entry.stream)
    }

    /// Adds a stream.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.streams += 1;
        // The first stream may have been the only one, with no end of its turn.
        self.today.pop();
        self.today.push(self.end_of_day());
        let day = self.day_of(entry.due);
        if day > self.day {
            self.put(day, &[entry], false);
        } else {
            let place = self.rest().partition_point(|other| *other < entry);
            self.today.insert(self.turn + place, entry);
        }
    }

    /// Ends the first stream's turn and sets its next due time.
    #[inline]
    pub(super) fn next_turn(&mut self, turn: Turn, due: Instant) {
        let entry = Entry { due, ..turn.entry };
        if self.day_of(due) > self.day
            && let Some(first) = self.today.get_mut(self.turn)
        {
            *first = entry;
            self.turn += 1;
        } else {
            self.reinsert_today(entry);
        }
    }

    /// Removes the first stream.
    pub(super) fn pop(&mut self) {
        self.streams -= 1;
        self.today.remove(self.turn);
    }

    /// Removes a stream, wherever it is; does nothing if it is absent.
    pub(super) fn remove(&mut self, entry: Entry) {
        let is_it = |other: &Entry| *other == entry;
        let (_end, today) = self.today.split_last().unwrap_or((&Entry::LATEST, &[]));
        if let Some(place) = today.iter().position(is_it) {
            self.today.remove(place);
            self.turn -= usize::from(place < self.turn);
            self.streams -= 1;
            return;
        }
        let index = self.day_of(entry.due) as usize % DAYS;
        let day = &mut self.days[index];
        if let Some(place) = day.entries.iter().position(is_it) {
            day.entries.remove(place);
            if day.entries.is_empty() {
                self.busy[index / 64] &= !(1 << (index % 64));
            }
            self.streams -= 1;
        }
    }

    /// Moves the first stream behind the streams of today that are due before it.
    #[inline(never)]
    fn reinsert_today(&mut self, entry: Entry) {
        let rest = &mut self.today[self.turn..];
        let mut place = 0;
        // The end of the day stops the loop.
        while let Some(&next) = rest.get(place + 1).filter(|next| **next < entry) {
            rest[place] = next;
            place += 1;
        }
        rest[place] = entry;
    }

    /// Moves the streams that were served today to their later days.
    fn requeue_served(&mut self) {
        let mut today = mem::take(&mut self.today);
        let mut rest = &today[..self.turn];
        while let Some(first) = rest.first() {
            let day = self.day_of(first.due);
            let (mut length, mut last, mut is_mixed) = (1, *first, false);
            for entry in rest[1..].iter().take_while(|entry| self.day_of(entry.due) == day) {
                is_mixed |= entry.order() < last.order();
                last = *entry;
                length += 1;
            }
            let (together, others) = rest.split_at(length);
            self.put(day, together, is_mixed);
            rest = others;
        }
        today.clear();
        (self.today, self.turn) = (today, 0);
    }

    /// Appends streams to a later day.
    fn put(&mut self, day: u64, streams: &[Entry], is_mixed: bool) {
        let index = day as usize % DAYS;
        let day = &mut self.days[index];
        match (day.entries.last(), streams.first()) {
            (Some(last), Some(first)) => {
                day.is_unsorted |= is_mixed | (first.order() < last.order());
            }
            _ => {
                day.is_unsorted = is_mixed;
                self.busy[index / 64] |= 1 << (index % 64);
                if day.entries.capacity() == 0 {
                    day.entries = self.spare.pop().unwrap_or_default();
                }
            }
        }
        day.entries.extend_from_slice(streams);
    }

    #[inline]
    fn day_of(&self, due: Instant) -> u64 {
        due.as_nanos() >> self.day_bits
    }

    /// Returns the streams of today that are still to be served.
    #[inline]
    fn rest(&self) -> &[Entry] {
        &self.today[self.turn..self.today.len() - 1]
    }

    /// Moves the streams of the next busy day to `today`.
    #[inline(never)]
    pub(super) fn begin_day(&mut self) {
        self.requeue_served();
        let mut days_without = 0;
        while self.is_day_over() {
            let skipped = self.days_to_next();
            days_without += skipped;
            if days_without > DAYS as u64 {
                // A complete year without a frame: go to the earliest day.
                let next = self.earliest();
                self.day = next.map_or(self.day, |due| self.day_of(due));
                days_without = 0;
            } else {
                self.day += skipped;
            }
            self.open();
        }
    }

    /// Returns the number of days to the next busy day, at least 1.
    fn days_to_next(&self) -> u64 {
        let from = (self.day as usize + 1) % DAYS;
        let (word, bit) = (from / 64, from % 64);
        let words = self.busy.len();
        let first = self.busy[word] >> bit;
        if first != 0 {
            return 1 + u64::from(first.trailing_zeros());
        }
        let mut days = (64 - bit) as u64;
        for offset in 1..=words {
            let bits = self.busy[(word + offset) % words];
            if bits != 0 {
                return 1 + days + u64::from(bits.trailing_zeros());
            }
            days += 64;
        }
        DAYS as u64
    }

    /// Moves the streams of the current day and year to `today`, sorted.
    fn open(&mut self) {
        let index = self.day as usize % DAYS;
        let Day { entries, is_unsorted: is_mixed } = &mut self.days[index];
        if mem::take(is_mixed) {
            entries.sort_unstable();
        }
        let (day, day_bits) = (self.day, self.day_bits);
        let is_due = |entry: &Entry| entry.due.as_nanos() >> day_bits <= day;
        self.today.clear();
        self.turn = 0;
        if entries.last().is_some_and(is_due) {
            mem::swap(&mut self.today, entries);
            self.spare.push(mem::take(entries));
        } else {
            let count = entries.partition_point(is_due);
            self.today.extend(entries.drain(..count));
        }
        if entries.is_empty() {
            self.busy[index / 64] &= !(1 << (index % 64));
        }
        self.today.push(self.end_of_day());
    }

    /// Returns the earliest due time of all streams on the wheel.
    fn earliest(&self) -> Option<Instant> {
        let all = self.days.iter().flat_map(|day| &day.entries);
        all.map(|entry| entry.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn turns_come_in_order(
            dues in prop::collection::vec(0..100_000_u64, 0..60),
            laters in prop::collection::vec(prop_oneof![0..50_u64, 0..90_000_000_u64], 1..400),
            rate in prop_oneof![Just(1e9), Just(1e6), Just(10.0)],
        ) {
            let entry = |due, stream| Entry { due: Instant::from_nanos(due), stream };
            let mut queue = Queue::new(rate);
            let mut expected = Vec::new();
            for (stream, due) in dues.iter().enumerate() {
                queue.push(entry(*due, stream as u32));
                expected.push(entry(*due, stream as u32));
            }
            for later in laters {
                expected.sort();
                if queue.is_day_over() {
                    queue.begin_day();
                }
                let turn = queue.first();
                prop_assert_eq!(turn.map(|turn| turn.entry), expected.first().copied());
                let Some(turn) = turn else { break };
                let first = turn.entry;
                if let Some(second) = expected.get(1) {
                    prop_assert!(entry(turn.until.as_nanos(), first.stream) <= *second);
                }
                if later % 11 == 0 {
                    let other = expected.remove(later as usize % expected.len());
                    queue.remove(other);
                    if later % 2 == 0 {
                        queue.push(other);
                        expected.push(other);
                    }
                } else if later % 7 == 0 {
                    queue.pop();
                    expected.remove(0);
                } else {
                    let next = entry(first.due.as_nanos() + later, first.stream);
                    queue.next_turn(turn, next.due);
                    expected[0] = next;
                }
            }
        }
    }
}
