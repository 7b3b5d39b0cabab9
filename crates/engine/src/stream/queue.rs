//! Which stream's turn it is.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::{array, mem};

use wirestorm_base::time::Instant;

/// Streams in the order in which their next frames are due; of those due at the same time, in
/// the order of the plan.
///
/// A calendar: time is cut into days of equal length, and a wheel of [`DAYS`] of them holds each
/// stream on the day of its next frame, of whatever year. Only today's streams have to be in
/// order, and mostly they are, because streams take their turns in order and go on to the ends of
/// later days. With a day as long as a few frames of all streams together, a turn costs the same
/// for one stream and for twenty thousand, where a heap's grows with their logarithm.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The length of a day is 2 to this power, in ns.
    day_bits: u32,
    /// The day of `today`, counted from the epoch.
    day: u64,
    /// The streams of today in order, taken off the wheel, and behind them the start of the next
    /// day. Those before `turn` had theirs and are due on a later day; there they go together,
    /// when today is over.
    today: Vec<Entry>,
    turn: usize,
    days: Box<[Day; DAYS]>,
    /// Which days have streams, a bit for each.
    busy: Box<[u64; DAYS / 64]>,
    /// Streams in the queue.
    streams: usize,
    /// Room of days that are over, for days that get their first stream.
    spare: Vec<Vec<Entry>>,
}

/// The first stream's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) entry: Entry,
    /// The latest time at which it is still its turn.
    pub(super) until: Instant,
}

/// When a stream is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: Instant,
    pub(super) stream: u32,
}

impl Entry {
    const LATEST: Self = Self { due: Instant::MAX, stream: u32::MAX };

    /// In the order of these numbers; compared without a branch, because where rates differ no
    /// processor foresees who comes first.
    #[inline]
    fn order(self) -> u128 {
        u128::from(self.due.as_nanos()) << 64 | u128::from(self.stream)
    }
}

/// The streams of one day of every year, in the order in which they came.
#[derive(Clone, Debug, Default)]
struct Day {
    entries: Vec<Entry>,
    /// Whether that is not the order of their turns.
    is_mixed: bool,
}

/// Days on the wheel; a power of two, and a multiple of 64.
const DAYS: usize = 4096;

/// Frames that one day should hold.
const FRAMES_A_DAY: f64 = 8.0;

/// How many turns ahead a stream is told of.
const AHEAD: usize = 8;

impl Queue {
    /// An empty queue for streams that together send about so many frames a second.
    pub(super) fn new(frames_per_second: f64) -> Self {
        let day = FRAMES_A_DAY * 1e9 / frames_per_second.max(1e-3);
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

    /// Whose turn is next, where the day is not over.
    #[inline]
    pub(super) fn first(&self) -> Option<Turn> {
        let [entry, second, ..] = self.today.get(self.turn..)? else { return None };
        // Of two that are due at the same time the second one never goes first.
        let until = second.due.as_nanos() - u64::from(entry.stream > second.stream);
        Some(Turn { entry: *entry, until: Instant::from_nanos(until) })
    }

    /// Whether the next day has to begin.
    #[inline]
    pub(super) fn is_day_over(&self) -> bool {
        self.turn + 1 >= self.today.len() && self.streams > 0
    }

    /// Until when it is the turn of today's last one.
    fn end_of_day(&self) -> Entry {
        let end = u128::from(self.day + 1) << self.day_bits;
        match u64::try_from(end) {
            Ok(end) if self.streams > 1 => Entry { due: Instant::from_nanos(end), stream: 0 },
            _ => Entry::LATEST,
        }
    }

    /// Those who come on the day after this one.
    pub(super) fn tomorrow(&self) -> impl Iterator<Item = u32> + '_ {
        let day = (self.day + self.days_to_next()) as usize % DAYS;
        self.days[day].entries.iter().map(|entry| entry.stream)
    }

    /// Who comes today some turns after the first, or any number.
    #[inline]
    pub(super) fn ahead(&self) -> u32 {
        self.today.get(self.turn + AHEAD).map_or(u32::MAX, |entry| entry.stream)
    }

    /// Adds a stream's turn.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.streams += 1;
        // The first stream may have been alone.
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

    /// Ends the first stream's turn; its next one is due then.
    #[inline]
    pub(super) fn next_turn(&mut self, turn: Turn, due: Instant) {
        let entry = Entry { due, ..turn.entry };
        if self.day_of(due) > self.day
            && let Some(first) = self.today.get_mut(self.turn)
        {
            *first = entry;
            self.turn += 1;
        } else {
            self.stay_today(entry);
        }
    }

    /// Takes the first stream out.
    pub(super) fn pop(&mut self) {
        self.streams -= 1;
        self.today.remove(self.turn);
    }

    /// Takes a stream out, wherever its turn is; one that is not there stays away.
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

    /// Puts the first stream behind those of today who come before its next turn.
    #[inline(never)]
    fn stay_today(&mut self, entry: Entry) {
        let rest = &mut self.today[self.turn..];
        let mut place = 0;
        // The end of the day is behind it in any case.
        while let Some(&next) = rest.get(place + 1).filter(|next| **next < entry) {
            rest[place] = next;
            place += 1;
        }
        rest[place] = entry;
    }

    /// Puts those who had their turns today to their later days.
    fn put_off(&mut self) {
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

    /// Puts streams to the end of a later day.
    fn put(&mut self, day: u64, streams: &[Entry], is_mixed: bool) {
        let index = day as usize % DAYS;
        let day = &mut self.days[index];
        match (day.entries.last(), streams.first()) {
            (Some(last), Some(first)) => {
                day.is_mixed |= is_mixed | (first.order() < last.order());
            }
            _ => {
                day.is_mixed = is_mixed;
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

    /// Those of today whose turn is still to come.
    #[inline]
    fn rest(&self) -> &[Entry] {
        &self.today[self.turn..self.today.len() - 1]
    }

    /// Brings the streams of the next day that has any to `today`.
    #[inline(never)]
    pub(super) fn begin_day(&mut self) {
        self.put_off();
        let mut days_without = 0;
        while self.is_day_over() {
            let skipped = self.days_to_next();
            days_without += skipped;
            if days_without > DAYS as u64 {
                // A whole year without a frame: straight to the next one.
                let next = self.earliest();
                self.day = next.map_or(self.day, |due| self.day_of(due));
                days_without = 0;
            } else {
                self.day += skipped;
            }
            self.open();
        }
    }

    /// How many days lie between today and the next one that has streams; at least 1.
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

    /// Makes those of the current day who are due this year today's, in order.
    fn open(&mut self) {
        let index = self.day as usize % DAYS;
        let Day { entries, is_mixed } = &mut self.days[index];
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

    /// When the first of the streams on the wheel is due.
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
