//! Which stream's turn it is.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use wirestorm_base::time::Instant;

/// Streams in the order in which their next frames are due; of those due at the same time, in
/// the order of the plan.
///
/// A calendar: time is cut into days of equal length, and a wheel of [`DAYS`] lists holds each
/// stream on the day of its next frame, of whatever year. Only the streams of today are in order.
/// With a day as long as a few frames of all streams together, a turn costs the same for one
/// stream and for twenty thousand, where a heap's grows with their logarithm.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The length of a day is 2 to this power, in ns.
    day_bits: u32,
    /// The day that `today` holds, counted from the epoch.
    day: u64,
    /// The streams of today in the reverse of their order, so that the first is taken from the
    /// end.
    today: Vec<Entry>,
    /// Each day's list of streams.
    days: Box<[List]>,
    /// Which lists are not empty, a bit for each.
    busy: Box<[u64]>,
    /// For each stream that is in a list: when it is due, and who comes behind it.
    links: Vec<Link>,
    /// Streams in lists.
    listed: usize,
}

/// A stream's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) due: Instant,
    pub(super) stream: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    due: Instant,
    next: u32,
}

/// Days on the wheel; a power of two, and a multiple of 64.
const DAYS: usize = 4096;

/// No stream.
const NONE: u32 = u32::MAX;

/// Frames that one day should hold.
const FRAMES_A_DAY: f64 = 16.0;

impl Queue {
    /// An empty queue for `streams` streams that together send about so many frames a second.
    pub(super) fn new(streams: usize, frames_per_second: f64) -> Self {
        let day = FRAMES_A_DAY * 1e9 / frames_per_second.max(1e-3);
        let day_bits = (day as u64).max(1).ilog2().min(40);
        Self {
            day_bits,
            day: 0,
            today: Vec::with_capacity(streams),
            days: vec![List { first: NONE, last: NONE }; DAYS].into(),
            busy: vec![0; DAYS / 64].into(),
            links: vec![Link { due: Instant::ZERO, next: NONE }; streams],
            listed: 0,
        }
    }

    /// Whose turn is next.
    #[inline]
    pub(super) fn first(&mut self) -> Option<Entry> {
        if self.today.is_empty() {
            self.begin_day();
        }
        self.today.last().copied()
    }

    /// The latest time at which nobody's turn but the first one's is due.
    #[inline]
    pub(super) fn until(&self) -> Instant {
        match self.today.len().checked_sub(2).and_then(|second| self.today.get(second)) {
            Some(second) => second.due,
            None if self.listed == 0 => Instant::MAX,
            None => self.start_of(self.day + 1).saturating_sub(ONE),
        }
    }

    /// Adds a stream's turn.
    pub(super) fn push(&mut self, entry: Entry) {
        if self.day_of(entry.due) > self.day {
            self.list(entry);
            return;
        }
        let place = self.today.partition_point(|other| *other > entry);
        self.today.insert(place, entry);
    }

    /// Puts the first stream's next turn in the place of this one.
    #[inline]
    pub(super) fn replace_first(&mut self, entry: Entry) {
        self.today.pop();
        self.push(entry);
    }

    /// Takes the first stream out.
    pub(super) fn pop(&mut self) {
        self.today.pop();
    }

    fn day_of(&self, due: Instant) -> u64 {
        due.as_nanos() >> self.day_bits
    }

    fn start_of(&self, day: u64) -> Instant {
        Instant::from_nanos(day.checked_shl(self.day_bits).unwrap_or(u64::MAX))
    }

    fn list(&mut self, entry: Entry) {
        let day = self.day_of(entry.due) as usize % DAYS;
        self.links[entry.stream as usize] = Link { due: entry.due, next: NONE };
        let list = &mut self.days[day];
        match list.last {
            NONE => list.first = entry.stream,
            last => self.links[last as usize].next = entry.stream,
        }
        list.last = entry.stream;
        self.busy[day / 64] |= 1 << (day % 64);
        self.listed += 1;
    }

    /// Brings the streams of the next day that has any to `today`.
    #[cold]
    #[inline(never)]
    fn begin_day(&mut self) {
        let mut days_without = 0;
        while self.listed > 0 && self.today.is_empty() {
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
        let mut stream = mem::replace(&mut self.days[index].first, NONE);
        self.days[index].last = NONE;
        self.busy[index / 64] &= !(1 << (index % 64));
        while stream != NONE {
            let Link { due, next } = self.links[stream as usize];
            self.listed -= 1;
            let entry = Entry { due, stream };
            if self.day_of(due) <= self.day {
                self.today.push(entry);
            } else {
                self.list(entry);
            }
            stream = next;
        }
        self.today.reverse();
        if !self.today.is_sorted_by(|a, b| a > b) {
            self.today.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// When the first of the streams in lists is due.
    fn earliest(&self) -> Option<Instant> {
        let mut earliest = None;
        for list in &self.days {
            let mut stream = list.first;
            while let Some(link) = self.links.get(stream as usize) {
                earliest = Some(earliest.map_or(link.due, |due: Instant| due.min(link.due)));
                stream = link.next;
            }
        }
        earliest
    }
}

const ONE: wirestorm_base::time::Duration = wirestorm_base::time::Duration::from_nanos(1);

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
                let first = queue.first();
                prop_assert_eq!(first, expected.first().copied());
                let Some(first) = first else { break };
                let second = expected.get(1).map_or(Instant::MAX, |second| second.due);
                prop_assert!(queue.until() <= second);
                if later % 7 == 0 {
                    queue.pop();
                    expected.remove(0);
                } else {
                    let next = entry(first.due.as_nanos() + later, first.stream);
                    queue.replace_first(next);
                    expected[0] = next;
                }
            }
        }
    }
}
