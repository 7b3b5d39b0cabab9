//! Which stream's turn it is.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::{iter, mem};

use wirestorm_base::time::{Duration, Instant};

/// Streams in the order in which their next frames are due; of those due at the same time, in
/// the order of the plan.
///
/// A calendar: time is cut into days of equal length, and a wheel of [`DAYS`] lists holds each
/// stream on the day of its next frame, of whatever year. Only today's list has to be in order,
/// and mostly it is, because streams take their turns in order and go on to the ends of lists.
/// With a day as long as a few frames of all streams together, a turn costs the same for one
/// stream and for twenty thousand, where a heap's grows with their logarithm.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The length of a day is 2 to this power, in ns.
    day_bits: u32,
    /// The day of `today`, counted from the epoch.
    day: u64,
    /// The streams of today, in order; taken off the wheel.
    today: List,
    /// A stream of today whose turn comes [`AHEAD`] turns after the first one's, or soon
    /// thereafter.
    ahead: u32,
    days: Box<[List; DAYS]>,
    /// Which lists are not empty, a bit for each.
    busy: Box<[u64; DAYS / 64]>,
    /// Which lists are out of order, or hold streams of more than one year.
    mixed: Box<[u64; DAYS / 64]>,
    /// For each stream in a list: when it is due, and who comes after it.
    links: Vec<Link>,
    /// Streams in all lists, today's included.
    streams: usize,
    /// Room to sort a list.
    unsorted: Vec<Entry>,
}

/// The first stream's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) entry: Entry,
    /// The latest time at which it is still its turn.
    pub(super) until: Instant,
    /// Whose turn is next.
    next: u32,
}

/// When a stream is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: Instant,
    pub(super) stream: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    due: Instant,
    next: u32,
}

/// Its first stream and its last one.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// Days on the wheel; a power of two, and a multiple of 64.
const DAYS: usize = 4096;

/// No stream.
const NONE: u32 = u32::MAX;

/// Frames that one day should hold.
const FRAMES_A_DAY: f64 = 16.0;

/// How many turns ahead a stream is told of.
const AHEAD: usize = 8;

impl Queue {
    /// An empty queue for `streams` streams that together send about so many frames a second.
    pub(super) fn new(streams: usize, frames_per_second: f64) -> Self {
        let day = FRAMES_A_DAY * 1e9 / frames_per_second.max(1e-3);
        let day_bits = (day as u64).max(1).ilog2().min(40);
        Self {
            day_bits,
            day: 0,
            today: List::EMPTY,
            ahead: NONE,
            days: Box::new([List::EMPTY; DAYS]),
            busy: Box::new([0; DAYS / 64]),
            mixed: Box::new([0; DAYS / 64]),
            links: vec![Link { due: Instant::ZERO, next: NONE }; streams],
            streams: 0,
            unsorted: Vec::with_capacity(streams),
        }
    }

    /// Whose turn is next, where the day is not over.
    #[inline]
    pub(super) fn first(&self) -> Option<Turn> {
        let stream = self.today.first;
        let Link { due, next } = *self.links.get(stream as usize)?;
        let until = match self.links.get(next as usize) {
            Some(second) => {
                second.due.saturating_sub(Duration::from_nanos(u64::from(stream > next)))
            }
            None => self.end_of_day(),
        };
        Some(Turn { entry: Entry { due, stream }, until, next })
    }

    /// Until when it is still today's last one's turn.
    #[inline(never)]
    fn end_of_day(&self) -> Instant {
        match self.streams {
            0 | 1 => Instant::MAX,
            _ => self.start_of(self.day + 1).saturating_sub(ONE),
        }
    }

    /// Whether the next day has to begin.
    #[inline]
    pub(super) fn is_day_over(&self) -> bool {
        self.today.first == NONE && self.streams > 0
    }

    /// Those who come on the day after this one.
    pub(super) fn tomorrow(&self) -> impl Iterator<Item = u32> + '_ {
        let day = (self.day + self.days_to_next_list()) as usize % DAYS;
        self.members(self.days[day]).map(|entry| entry.stream)
    }

    /// Who comes today some turns after the first; no stream's index where there is none.
    #[inline]
    pub(super) fn ahead(&self) -> u32 {
        self.ahead
    }

    /// Adds a stream's turn.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.streams += 1;
        self.put(entry);
    }

    /// Ends the first stream's turn; its next one is due then.
    #[inline]
    pub(super) fn next_turn(&mut self, turn: Turn, due: Instant) {
        self.end_turn(turn);
        self.put(Entry { due, ..turn.entry });
    }

    /// Takes the first stream out.
    pub(super) fn pop(&mut self, turn: Turn) {
        self.streams -= 1;
        self.end_turn(turn);
    }

    /// Takes a stream out, whenever its turn is; one that is not there stays away.
    pub(super) fn remove(&mut self, stream: u32) {
        if self.ahead == stream {
            self.ahead = self.links[stream as usize].next;
        }
        let mut is_there = self.today.remove(stream, &mut self.links);
        if !is_there {
            let day = self.day_of(self.links[stream as usize].due) as usize % DAYS;
            is_there = self.days[day].remove(stream, &mut self.links);
            if self.days[day].first == NONE {
                self.busy[day / 64] &= !(1 << (day % 64));
                self.mixed[day / 64] &= !(1 << (day % 64));
            }
        }
        self.streams -= usize::from(is_there);
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        let day = self.day_of(entry.due);
        if day > self.day {
            self.list(entry, day);
        } else {
            self.put_today(entry);
        }
    }

    #[inline]
    fn end_turn(&mut self, turn: Turn) {
        if let Some(link) = self.links.get(self.ahead as usize) {
            self.ahead = link.next;
        }
        self.today.first = turn.next;
    }

    /// Puts a stream where it belongs among those of today: mostly that is an end.
    #[inline(never)]
    fn put_today(&mut self, entry: Entry) {
        let Entry { due, stream } = entry;
        let (mut before, mut next) = match self.entry(self.today.last) {
            Some(last) if self.today.first != NONE && last < entry => (last.stream, NONE),
            _ => (NONE, self.today.first),
        };
        while let Some(other) = self.entry(next).filter(|other| *other < entry) {
            (before, next) = (other.stream, self.links[other.stream as usize].next);
        }
        self.links[stream as usize] = Link { due, next };
        match self.links.get_mut(before as usize) {
            Some(link) => link.next = stream,
            None => self.today.first = stream,
        }
        if next == NONE {
            self.today.last = stream;
        }
    }

    /// Puts a stream to the end of a later day's list.
    #[inline]
    fn list(&mut self, entry: Entry, day: u64) {
        let Entry { due, stream } = entry;
        let (index, day_bits) = (day as usize % DAYS, self.day_bits);
        let last = mem::replace(&mut self.days[index].last, stream);
        self.links[stream as usize] = Link { due, next: NONE };
        if let Some(link) = self.links.get_mut(last as usize) {
            link.next = stream;
            let follows = link.due < due || link.due == due && last < stream;
            if !follows || link.due.as_nanos() >> day_bits != day {
                self.mixed[index / 64] |= 1 << (index % 64);
            }
        } else {
            self.days[index].first = stream;
            self.busy[index / 64] |= 1 << (index % 64);
        }
    }

    #[inline]
    fn entry(&self, stream: u32) -> Option<Entry> {
        let link = self.links.get(stream as usize)?;
        Some(Entry { due: link.due, stream })
    }

    fn members(&self, list: List) -> impl Iterator<Item = Entry> + '_ {
        let next = |entry: &Entry| self.entry(self.links[entry.stream as usize].next);
        iter::successors(self.entry(list.first), next)
    }

    #[inline]
    fn day_of(&self, due: Instant) -> u64 {
        due.as_nanos() >> self.day_bits
    }

    fn start_of(&self, day: u64) -> Instant {
        Instant::from_nanos(day.checked_shl(self.day_bits).unwrap_or(u64::MAX))
    }

    /// Brings the streams of the next day that has any to `today`.
    #[inline(never)]
    pub(super) fn begin_day(&mut self) {
        let mut days_without = 0;
        while self.is_day_over() {
            let skipped = self.days_to_next_list();
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
        let ahead = self.members(self.today).nth(AHEAD);
        self.ahead = ahead.map_or(NONE, |entry| entry.stream);
    }

    /// How many days lie between today and the next list that is not empty; at least 1.
    fn days_to_next_list(&self) -> u64 {
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

    /// Takes from the current day's list the streams of this year.
    fn open(&mut self) {
        let index = self.day as usize % DAYS;
        let (word, bit) = (index / 64, 1 << (index % 64));
        let list = self.days[index];
        let is_mixed = self.mixed[word] & bit != 0;
        // Of a list that is not mixed all are of one year.
        let is_due = |first: Entry| self.day_of(first.due) <= self.day;
        if !is_mixed && !self.entry(list.first).is_some_and(is_due) {
            return;
        }
        self.days[index] = List::EMPTY;
        self.busy[word] &= !bit;
        self.mixed[word] &= !bit;
        if is_mixed {
            self.sort_out(list);
        } else {
            self.today = list;
        }
    }

    /// Makes those of a list that are due today's, in order; the others go back.
    #[cold]
    fn sort_out(&mut self, list: List) {
        let mut unsorted = mem::take(&mut self.unsorted);
        let mut next = list.first;
        while let Some(entry) = self.entry(next) {
            next = self.links[entry.stream as usize].next;
            match self.day_of(entry.due) {
                day if day > self.day => self.list(entry, day),
                _ => unsorted.push(entry),
            }
        }
        unsorted.sort_unstable();
        unsorted.drain(..).for_each(|entry| self.put_today(entry));
        self.unsorted = unsorted;
    }

    /// When the first of the streams on the wheel is due.
    fn earliest(&self) -> Option<Instant> {
        let all = self.days.iter().flat_map(|list| self.members(*list));
        all.map(|entry| entry.due).min()
    }
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    /// Takes a stream out; says whether it was there.
    fn remove(&mut self, stream: u32, links: &mut [Link]) -> bool {
        let (mut before, mut at) = (NONE, self.first);
        while at != stream {
            let Some(link) = links.get(at as usize) else { return false };
            (before, at) = (at, link.next);
        }
        let next = links[stream as usize].next;
        match links.get_mut(before as usize) {
            Some(link) => link.next = next,
            None => self.first = next,
        }
        if self.last == stream {
            self.last = before;
        }
        true
    }
}

const ONE: Duration = Duration::from_nanos(1);

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
            let mut queue = Queue::new(dues.len(), rate);
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
                    queue.remove(other.stream);
                    if later % 2 == 0 {
                        queue.push(other);
                        expected.push(other);
                    }
                } else if later % 7 == 0 {
                    queue.pop(turn);
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
