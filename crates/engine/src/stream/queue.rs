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
    /// The last stream that was put on each day's list.
    days: Box<[u32; DAYS]>,
    /// Which lists are not empty, a bit for each.
    busy: Box<[u64; DAYS / 64]>,
    /// For each stream that is in a list: when it is due, and who was put there before it.
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
            days: Box::new([NONE; DAYS]),
            busy: Box::new([0; DAYS / 64]),
            links: vec![Link { due: Instant::ZERO, next: NONE }; streams],
            listed: 0,
        }
    }

    /// Whose turn is next, where the day is not over.
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.today.last().copied()
    }

    /// Whether the next day has to begin.
    #[inline]
    pub(super) fn is_day_over(&self) -> bool {
        self.today.is_empty() && self.listed > 0
    }

    /// Those who come on the day after this one.
    pub(super) fn tomorrow(&self) -> impl Iterator<Item = u32> + '_ {
        let day = (self.day + self.days_to_next_list()) as usize % DAYS;
        let next = |stream: &u32| self.links.get(*stream as usize).map(|link| link.next);
        iter::successors(Some(self.days[day]), next).take_while(|stream| *stream != NONE)
    }

    /// Who comes today after so many others.
    #[inline]
    pub(super) fn behind(&self, others: usize) -> Option<u32> {
        let place = self.today.len().checked_sub(others + 1)?;
        self.today.get(place).map(|entry| entry.stream)
    }

    /// The latest time at which it is still the first one's turn.
    #[inline]
    pub(super) fn until(&self) -> Instant {
        match *self.today {
            [.., second, first] => second
                .due
                .saturating_sub(Duration::from_nanos(u64::from(first.stream > second.stream))),
            _ if self.listed == 0 => Instant::MAX,
            _ => self.start_of(self.day + 1).saturating_sub(ONE),
        }
    }

    /// Adds a stream's turn.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let day = self.day_of(entry.due);
        if day > self.day {
            self.list(entry, day);
        } else {
            self.push_today(entry);
        }
    }

    #[inline(never)]
    fn push_today(&mut self, entry: Entry) {
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

    /// Takes a stream out, whenever its turn is.
    pub(super) fn remove(&mut self, stream: u32) {
        if let Some(place) = self.today.iter().position(|entry| entry.stream == stream) {
            self.today.remove(place);
            return;
        }
        let Link { due, next: before } = self.links[stream as usize];
        let day = self.day_of(due) as usize % DAYS;
        let mut at = self.days[day];
        if at == stream {
            self.days[day] = before;
            self.listed -= 1;
            if before == NONE {
                self.busy[day / 64] &= !(1 << (day % 64));
            }
            return;
        }
        while let Some(link) = self.links.get_mut(at as usize) {
            if link.next == stream {
                link.next = before;
                self.listed -= 1;
                return;
            }
            at = link.next;
        }
    }

    fn day_of(&self, due: Instant) -> u64 {
        due.as_nanos() >> self.day_bits
    }

    fn start_of(&self, day: u64) -> Instant {
        Instant::from_nanos(day.checked_shl(self.day_bits).unwrap_or(u64::MAX))
    }

    #[inline]
    fn list(&mut self, entry: Entry, day: u64) {
        self.listed += 1;
        self.link(entry, day);
    }

    #[inline]
    fn link(&mut self, entry: Entry, day: u64) {
        let day = day as usize % DAYS;
        let before = mem::replace(&mut self.days[day], entry.stream);
        self.links[entry.stream as usize] = Link { due: entry.due, next: before };
        if before == NONE {
            self.busy[day / 64] |= 1 << (day % 64);
        }
    }

    /// Brings the streams of the next day that has any to `today`.
    #[inline(never)]
    pub(super) fn begin_day(&mut self) {
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
        let mut stream = mem::replace(&mut self.days[index], NONE);
        self.busy[index / 64] &= !(1 << (index % 64));
        let mut is_sorted = true;
        let mut before = Entry { due: Instant::MAX, stream: NONE };
        while let Some(&Link { due, next }) = self.links.get(stream as usize) {
            let entry = Entry { due, stream };
            let day = self.day_of(due);
            if day <= self.day {
                self.today.push(entry);
                is_sorted &= before > entry;
                before = entry;
            } else {
                self.link(entry, day);
            }
            stream = next;
        }
        // It was empty before.
        self.listed -= self.today.len();
        if !is_sorted {
            self.today.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// When the first of the streams in lists is due.
    fn earliest(&self) -> Option<Instant> {
        let mut earliest = None;
        for &last in self.days.iter() {
            let mut stream = last;
            while let Some(link) = self.links.get(stream as usize) {
                earliest = Some(earliest.map_or(link.due, |due: Instant| due.min(link.due)));
                stream = link.next;
            }
        }
        earliest
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
                let first = queue.first();
                prop_assert_eq!(first, expected.first().copied());
                let Some(first) = first else { break };
                if let Some(second) = expected.get(1) {
                    prop_assert!(entry(queue.until().as_nanos(), first.stream) <= *second);
                }
                if later % 11 == 0 {
                    let other = expected.remove(later as usize % expected.len());
                    queue.remove(other.stream);
                    if later % 2 == 0 {
                        queue.push(other);
                        expected.push(other);
                    }
                } else if later % 7 == 0 {
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
