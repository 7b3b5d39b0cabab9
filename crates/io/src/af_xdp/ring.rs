//! The four rings of an AF_XDP socket (`Documentation/networking/af_xdp.rst`).
//!
//! Each ring has one producer and one consumer, one of which is the kernel. Both indexes are
//! free-running 32-bit counters; the slot of an entry is its index modulo the size, a power of two.
//! The producer writes entries, then stores its index with release. The consumer loads that index
//! with acquire, reads the entries, then stores its own index with release. So no entry is written
//! and read at the same time. Each side works on cached copies of the indexes and reloads them only
//! when necessary.

use std::io;
use std::mem::{align_of, size_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::system::memory_map::MemoryMap;

/// Types of ring entries: any bits are a valid value.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Offsets of a ring's parts in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
    /// Number of entries, a power of two.
    pub(super) size: u32,
}

/// State common to both sides of a ring.
struct Ring<T> {
    map: Arc<MemoryMap>,
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    size: u32,
}

// SAFETY: the pointers refer to the mapping, which the ring keeps alive and which any thread may
// access. The indexes are atomic and determine which side may access an entry.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    fn new(map: Arc<MemoryMap>, layout: Layout) -> io::Result<Self> {
        let Layout { producer, consumer, flags, entries, size } = layout;
        let entries_bytes = size as usize * size_of::<T>();
        let aligned = [producer, consumer, flags].iter().all(|at| at % align_of::<u32>() == 0)
            && entries % align_of::<T>() == 0;
        let within = entries.checked_add(entries_bytes).is_some_and(|end| end <= map.length());
        if !size.is_power_of_two() || !aligned || !within {
            return Err(io::Error::other(format!("invalid ring layout: {layout:?}")));
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

    /// Address of the slot for an index.
    fn entry(&self, index: u32) -> *mut T {
        debug_assert!(self.map.length() > 0);
        // SAFETY: the remainder is below the size, and `new` checked that all entries are within
        // the mapping.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

/// Position of a series of [`Producer::withdraw`] calls.
#[derive(Default)]
pub(super) struct WithdrawCursor(Option<u32>);

/// The producer side: transmit and fill ring.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Index after the last written entry.
    written: u32,
    /// Index after the last published entry.
    published: u32,
    /// Cached consumer index.
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
    /// Panics if the ring is full: the owners have no more frames than the ring has entries.
    pub(super) fn push(&mut self, entry: T) {
        if self.written.wrapping_sub(self.consumed) >= self.ring.size {
            self.reload_consumed();
            assert!(self.written.wrapping_sub(self.consumed) < self.ring.size, "a full ring");
        }
        // SAFETY: the entry is unpublished or consumed, so this side owns it.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Publishes the written entries to the consumer.
    pub(super) fn publish(&mut self) {
        if self.published != self.written {
            self.ring.producer().store(self.written, Ordering::Release);
            self.published = self.written;
        }
    }

    /// Number of entries published but not yet consumed.
    pub(super) fn waiting(&mut self) -> u32 {
        self.reload_consumed();
        self.published.wrapping_sub(self.consumed)
    }

    /// Returns the last consumed entry; `None` before the first.
    pub(super) fn last_consumed(&mut self) -> Option<T> {
        self.reload_consumed();
        // SAFETY: the entry is consumed, so this side owns it until `push` overwrites it. Before
        // that the memory is zeroed, which is a valid value too.
        (self.consumed != 0)
            .then(|| unsafe { self.ring.entry(self.consumed.wrapping_sub(1)).read() })
    }

    /// Removes the newest unpublished entry.
    pub(super) fn pop_unpublished(&mut self) -> Option<T> {
        if self.written == self.published {
            return None;
        }
        self.written = self.written.wrapping_sub(1);
        // SAFETY: `push` wrote the entry and it was never published, so this side owns it.
        Some(unsafe { self.ring.entry(self.written).read() })
    }

    /// Withdraws the oldest entry that is published but not consumed, from `from` on, and writes
    /// `void` into its slot. Call this only while the consumer cannot run.
    ///
    /// The published index never goes back: Linux caches it (`cached_prod` in
    /// `net/xdp/xsk_queue.h`) and reads up to that position.
    pub(super) fn withdraw(&mut self, from: &mut WithdrawCursor, void: T) -> Option<T> {
        if from.0.is_none() {
            self.reload_consumed();
        }
        let index = from.0.unwrap_or(self.consumed);
        if index == self.published {
            return None;
        }
        from.0 = Some(index.wrapping_add(1));
        let place = self.ring.entry(index);
        // SAFETY: published but not consumed, and the consumer does not run, so this side owns the
        // entry.
        unsafe {
            let entry = place.read();
            place.write(void);
            Some(entry)
        }
    }

    /// Number of free entries.
    pub(super) fn free_entries(&mut self) -> u32 {
        self.reload_consumed();
        self.ring.size - self.written.wrapping_sub(self.consumed)
    }

    /// Whether the kernel needs a wake-up call for new entries.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }

    fn reload_consumed(&mut self) {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
    }
}

/// The consumer side: receive and completion ring.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Index after the last read entry.
    read: u32,
    /// Index after the last released entry.
    released: u32,
    /// Cached producer index.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    pub(super) fn new(map: Arc<MemoryMap>, layout: Layout) -> io::Result<Self> {
        let ring = Ring::new(map, layout)?;
        let read = ring.consumer().load(Ordering::Relaxed);
        let produced = ring.producer().load(Ordering::Acquire);
        Ok(Self { ring, read, released: read, produced })
    }

    /// Reads the next entry, if there is one. [`Self::release`] returns its slot.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.produced {
                return None;
            }
        }
        // SAFETY: published and not released, so this side owns the entry.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Returns the slots of all read entries to the producer.
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

    /// Creates both sides of one ring with indexes that start at `start`.
    fn pair(start: u32) -> (Producer<u64>, Consumer<u64>) {
        let map = Arc::new(MemoryMap::anonymous(4096).unwrap());
        let ring = Ring::<u64>::new(Arc::clone(&map), LAYOUT).unwrap();
        ring.producer().store(start, Ordering::Relaxed);
        ring.consumer().store(start, Ordering::Relaxed);
        let producer = Producer::new(Arc::clone(&map), LAYOUT).unwrap();
        (producer, Consumer::new(map, LAYOUT).unwrap())
    }

    /// xorshift random number generator: the seed reproduces a failure.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn ring_behaves_as_a_queue_under_random_operations() {
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
                    5 => assert_eq!(producer.pop_unpublished(), written.pop_back(), "seed {seed}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn published_entries_can_be_withdrawn_in_place() {
        let (mut producer, mut consumer) = pair(5);
        (0..6).for_each(|entry| producer.push(entry));
        producer.publish();
        assert_eq!((consumer.pop(), consumer.pop()), (Some(0), Some(1)));
        consumer.release();
        assert_eq!(producer.last_consumed(), Some(1));
        producer.push(6);
        assert_eq!(producer.pop_unpublished(), Some(6));
        let mut cursor = WithdrawCursor::default();
        let taken: Vec<_> = std::iter::from_fn(|| producer.withdraw(&mut cursor, 99)).collect();
        assert_eq!(taken, [2, 3, 4, 5]);
        assert_eq!((producer.waiting(), producer.free_entries()), (4, SIZE - 4));
        // A consumer that cached the producer index skips the withdrawn entries.
        producer.push(7);
        producer.publish();
        let read: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
        assert_eq!(read, [99, 99, 99, 99, 7]);
        consumer.release();
        assert_eq!(producer.free_entries(), SIZE);
    }

    #[test]
    fn entries_cross_threads_intact_and_in_order() {
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
    fn push_to_a_full_ring_panics() {
        let (mut producer, _consumer) = pair(0);
        (0..=u64::from(SIZE)).for_each(|entry| producer.push(entry));
    }

    #[test]
    fn layout_outside_its_mapping_is_rejected() {
        let map = Arc::new(MemoryMap::anonymous(4096).unwrap());
        let layout = Layout { size: 1024, ..LAYOUT };
        assert!(Producer::<u64>::new(Arc::clone(&map), layout).is_err());
        assert!(Producer::<u64>::new(map, Layout { size: 6, ..LAYOUT }).is_err());
    }
}
