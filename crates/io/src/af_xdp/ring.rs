//! The four rings of an AF_XDP socket (`Documentation/networking/af_xdp.rst`).
//!
//! Each ring has one producer and one consumer, one of them the kernel. Both indexes run freely
//! over 32 bits; an entry's place is its index modulo the size, a power of two. The producer
//! writes entries, then its index with release; the consumer reads that index with acquire,
//! then the entries, then writes its own index with release. So an entry is never written and
//! read at once, and each side works on its own copies of the indexes until it has to look.

use std::io;
use std::mem::{align_of, size_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::system::memory_map::MemoryMap;

/// Types that stand in a ring: any bits are a valid value.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Where the parts of a ring are in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
    /// Entries, a power of two.
    pub(super) size: u32,
}

/// What both sides of a ring have in common.
struct Ring<T> {
    map: Arc<MemoryMap>,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    size: u32,
}

// SAFETY: the pointers lead into the mapping, which the ring keeps alive and which any thread
// may access; the indexes are atomic and say which side may access an entry.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    fn new(map: Arc<MemoryMap>, layout: Layout) -> io::Result<Self> {
        let Layout { producer, consumer, flags, entries, size } = layout;
        let entries_bytes = size as usize * size_of::<T>();
        let aligned = [producer, consumer, flags].iter().all(|at| at % align_of::<u32>() == 0)
            && entries % align_of::<T>() == 0;
        let within = entries.checked_add(entries_bytes).is_some_and(|end| end <= map.length());
        if !size.is_power_of_two() || !aligned || !within {
            return Err(io::Error::other(format!("a ring that cannot be: {layout:?}")));
        }
        Ok(Self {
            producer: map.at(producer, size_of::<u32>()).cast(),
            consumer: map.at(consumer, size_of::<u32>()).cast(),
            flags: map.at(flags, size_of::<u32>()).cast(),
            entries: map.at(entries, entries_bytes).cast(),
            size,
            map,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: aligned and within the mapping (`new`), which lives as long as `self`.
        unsafe { &*self.producer }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { &*self.consumer }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as for `producer`.
        let flags = unsafe { &*self.flags };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// The place of the entry with that index.
    fn entry(&self, index: u32) -> *mut T {
        debug_assert!(self.map.length() > 0);
        // SAFETY: the remainder is below the size, and `new` found that many entries within
        // the mapping.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

/// How far [`Producer::void`] has come.
#[derive(Default)]
pub(super) struct VoidCursor(Option<u32>);

/// The writing side: the transmit and the fill ring.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Entries ever written.
    written: u32,
    /// Of those, visible to the consumer.
    published: u32,
    /// The consumer's index when last looked at.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    pub(super) fn new(map: Arc<MemoryMap>, layout: Layout) -> io::Result<Self> {
        let ring = Ring::new(map, layout)?;
        let written = ring.producer().load(Ordering::Relaxed);
        let consumed = ring.consumer().load(Ordering::Acquire);
        Ok(Self { ring, written, published: written, consumed })
    }

    /// Writes an entry; the consumer sees it after the next [`Self::publish`].
    ///
    /// # Panics
    /// Where the ring is full: the owners have no more frames than entries.
    pub(super) fn push(&mut self, entry: T) {
        if self.written.wrapping_sub(self.consumed) >= self.ring.size {
            self.look();
            assert!(self.written.wrapping_sub(self.consumed) < self.ring.size, "a full ring");
        }
        // SAFETY: the entry is not published or was consumed, so it is this side's.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Makes what was written visible.
    pub(super) fn publish(&mut self) {
        if self.published != self.written {
            self.ring.producer().store(self.written, Ordering::Release);
            self.published = self.written;
        }
    }

    /// Entries published and not consumed yet.
    pub(super) fn waiting(&mut self) -> u32 {
        self.look();
        self.published.wrapping_sub(self.consumed)
    }

    /// The entry that the consumer took last; `None` before the first.
    pub(super) fn last_consumed(&mut self) -> Option<T> {
        self.look();
        // SAFETY: consumed, so it is this side's until overwritten by `push`. Before anything
        // was consumed the memory is zeroed, which is a value too.
        (self.consumed != 0)
            .then(|| unsafe { self.ring.entry(self.consumed.wrapping_sub(1)).read() })
    }

    /// Takes back the newest entry that was not published.
    pub(super) fn unwrite(&mut self) -> Option<T> {
        if self.written == self.published {
            return None;
        }
        self.written = self.written.wrapping_sub(1);
        // SAFETY: written by `push` and never published, so it is this side's.
        Some(unsafe { self.ring.entry(self.written).read() })
    }

    /// Takes the oldest entry that was published and not consumed, from `from` on, and leaves
    /// `void` in its place. Only where the consumer cannot run at the same time.
    ///
    /// The published index never goes back: Linux remembers how far it was (`cached_prod` in
    /// `net/xdp/xsk_queue.h`) and reads on to there.
    pub(super) fn void(&mut self, from: &mut VoidCursor, void: T) -> Option<T> {
        if from.0.is_none() {
            self.look();
        }
        let index = from.0.unwrap_or(self.consumed);
        if index == self.published {
            return None;
        }
        from.0 = Some(index.wrapping_add(1));
        let place = self.ring.entry(index);
        // SAFETY: published and not consumed, and the consumer does not run: it is this side's.
        unsafe {
            let entry = place.read();
            place.write(void);
            Some(entry)
        }
    }

    /// Entries that there is room for.
    pub(super) fn room(&mut self) -> u32 {
        self.look();
        self.ring.size - self.written.wrapping_sub(self.consumed)
    }

    /// Whether the kernel wants to be told of new entries.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }

    fn look(&mut self) {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
    }
}

/// The reading side: the receive and the completion ring.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Entries ever read.
    read: u32,
    /// Of those, given back to the producer.
    released: u32,
    /// The producer's index when last looked at.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn new(map: Arc<MemoryMap>, layout: Layout) -> io::Result<Self> {
        let ring = Ring::new(map, layout)?;
        let read = ring.consumer().load(Ordering::Relaxed);
        let produced = ring.producer().load(Ordering::Acquire);
        Ok(Self { ring, read, released: read, produced })
    }

    /// Reads the next entry, if there is one. Its place is given back by [`Self::release`].
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.produced {
                return None;
            }
        }
        // SAFETY: published and not given back, so it is this side's.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was read back to the producer.
    pub(super) fn release(&mut self) {
        if self.released != self.read {
            self.ring.consumer().store(self.read, Ordering::Release);
            self.released = self.read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 8;
    const LAYOUT: Layout =
        Layout { producer: 0, consumer: 64, flags: 128, entries: 192, size: SIZE };

    /// Both sides of one ring, the indexes of which start at `start`.
    fn pair(start: u32) -> (Producer<u64>, Consumer<u64>) {
        let map = Arc::new(MemoryMap::anonymous(4096).unwrap());
        let ring = Ring::<u64>::new(Arc::clone(&map), LAYOUT).unwrap();
        ring.producer().store(start, Ordering::Relaxed);
        ring.consumer().store(start, Ordering::Relaxed);
        let producer = Producer::new(Arc::clone(&map), LAYOUT).unwrap();
        (producer, Consumer::new(map, LAYOUT).unwrap())
    }

    /// A small generator of operations (xorshift), so that a failure is repeated by its seed.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn a_ring_behaves_as_a_queue_whatever_is_done_in_whatever_order() {
        for seed in 1..200 {
            let mut state = seed * 0x9e37_79b9;
            // The indexes overflow within the run.
            let (mut producer, mut consumer) = pair(u32::MAX - 20);
            let mut written = std::collections::VecDeque::new();
            let mut published = std::collections::VecDeque::new();
            let (mut next, mut unreleased) = (0, 0);
            for _ in 0..300 {
                let used = written.len() + published.len() + unreleased;
                match random(&mut state) % 6 {
                    0 | 1 if used < SIZE as usize => {
                        producer.push(next);
                        written.push_back(next);
                        next += 1;
                    }
                    2 => {
                        producer.publish();
                        published.append(&mut written);
                    }
                    3 => {
                        let popped = consumer.pop();
                        assert_eq!(popped, published.pop_front(), "seed {seed}");
                        unreleased += usize::from(popped.is_some());
                    }
                    4 => {
                        consumer.release();
                        unreleased = 0;
                        assert_eq!(producer.waiting() as usize, published.len(), "seed {seed}");
                    }
                    5 => assert_eq!(producer.unwrite(), written.pop_back(), "seed {seed}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn what_is_published_is_taken_back_in_its_place() {
        let (mut producer, mut consumer) = pair(5);
        (0..6).for_each(|entry| producer.push(entry));
        producer.publish();
        assert_eq!((consumer.pop(), consumer.pop()), (Some(0), Some(1)));
        consumer.release();
        assert_eq!(producer.last_consumed(), Some(1));
        producer.push(6);
        assert_eq!(producer.unwrite(), Some(6));
        let mut cursor = VoidCursor::default();
        let taken: Vec<_> = std::iter::from_fn(|| producer.void(&mut cursor, 99)).collect();
        assert_eq!(taken, [2, 3, 4, 5]);
        assert_eq!((producer.waiting(), producer.room()), (4, SIZE - 4));
        // A consumer that knew how far the producer was finds nothing that was taken back.
        producer.push(7);
        producer.publish();
        let read: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
        assert_eq!(read, [99, 99, 99, 99, 7]);
        consumer.release();
        assert_eq!(producer.room(), SIZE);
    }

    #[test]
    fn entries_cross_between_threads_whole_and_in_order() {
        const COUNT: u64 = 100_000;
        let (mut producer, mut consumer) = pair(u32::MAX - 1000);
        let reader = std::thread::spawn(move || {
            let mut expected = 0;
            while expected < COUNT {
                match consumer.pop() {
                    Some(entry) => {
                        assert_eq!(entry, expected);
                        expected += 1;
                        consumer.release();
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        for entry in 0..COUNT {
            while producer.waiting() == SIZE {
                std::thread::yield_now();
            }
            producer.push(entry);
            producer.publish();
        }
        reader.join().unwrap();
    }

    #[test]
    #[should_panic(expected = "a full ring")]
    fn a_full_ring_takes_no_more() {
        let (mut producer, _consumer) = pair(0);
        (0..=u64::from(SIZE)).for_each(|entry| producer.push(entry));
    }

    #[test]
    fn a_layout_outside_its_mapping_is_refused() {
        let map = Arc::new(MemoryMap::anonymous(4096).unwrap());
        let layout = Layout { size: 1024, ..LAYOUT };
        assert!(Producer::<u64>::new(Arc::clone(&map), layout).is_err());
        assert!(Producer::<u64>::new(map, Layout { size: 6, ..LAYOUT }).is_err());
    }
}
