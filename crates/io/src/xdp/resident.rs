//! Streams that the kernel makes: their records in the shared memory.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use aya::maps::MapData;
use wirestorm_base::resident::{
    CURSORS_MAX, CursorValues, ResidentOptions, ResidentStream, SHAPES_MAX, STREAMS_MAX, Shape,
    VALUES_MAX,
};
use wirestorm_base::time::Instant;

use super::layout::{ListValue, SHORT_TEMPLATE, StreamRecord, TURN_FRAMES, Turn};
use super::memory::{Records, RingMemory, StoreMemory};
use super::sender::Sender;
use crate::clock;

/// The resident streams of a port.
pub(super) struct ResidentStreams {
    options: ResidentOptions,
    streams: Records<StreamRecord>,
    turns: Records<Turn>,
    values: Records<ListValue>,
    /// Long template of each stream, and its location in the store.
    stored: Vec<Option<(Box<[u8]>, u32)>>,
    /// Frames that each stream was given.
    frames: Vec<u64>,
}

/// Maps of the resident streams.
pub(super) struct ResidentMaps {
    pub(super) streams: MapData,
    pub(super) turns: MapData,
    pub(super) values: MapData,
}

/// Returns whether the kernel can send such streams; frames have at most `length_max` bytes.
pub(super) fn fits(options: &ResidentOptions, length_max: usize) -> bool {
    let fits = |shape: &Shape| {
        (LENGTH_MIN..=length_max).contains(&shape.length) && shape.cursors.len() <= CURSORS_MAX
    };
    (1..=SHAPES_MAX).contains(&options.shapes.len())
        && (1..=STREAMS_MAX).contains(&options.streams)
        && options.values <= VALUES_MAX
        && options.shapes.iter().all(fits)
}

/// Shortest frame: an Ethernet header.
const LENGTH_MIN: usize = 14;

impl ResidentStreams {
    /// Maps the records.
    pub(super) fn map(options: ResidentOptions, maps: &ResidentMaps) -> io::Result<Self> {
        let count = options.streams;
        // SAFETY: the records have the layout of the arrays' values (a test compares them), and are
        // atomics, for which all bytes are valid. The arrays have as many values.
        let (streams, turns, values) = unsafe {
            (
                Records::map(maps.streams.fd().as_fd(), count)?,
                Records::map(maps.turns.fd().as_fd(), count)?,
                Records::map(maps.values.fd().as_fd(), options.values.max(1))?,
            )
        };
        let stored = vec![None; count];
        Ok(Self { options, streams, turns, values, stored, frames: Vec::new() })
    }

    /// Writes streams to the memory and starts them.
    ///
    /// # Errors
    /// The reason why the port cannot send them.
    pub(super) fn host(
        &mut self,
        streams: &[ResidentStream],
        frames_max: u64,
        until: Instant,
        ring: &RingMemory,
        store: &mut StoreMemory,
    ) -> Result<(), String> {
        if streams.len() > self.streams.len() {
            return Err(format!("{} streams, at most {}", streams.len(), self.streams.len()));
        }
        let mut values = 0;
        for (index, stream) in streams.iter().enumerate() {
            self.write(index, stream, &mut values, store)?;
        }
        self.frames = streams.iter().map(|stream| stream.frames).collect();
        // A sorted array is a heap.
        let mut order: Vec<(u64, usize)> = streams
            .iter()
            .map(|it| it.schedule.map_or(0, |(due, _)| due.as_nanos()))
            .zip(0..)
            .collect();
        order.sort_unstable();
        for (turn, (due, stream)) in self.turns.iter().zip(order) {
            turn.due.store(due, Ordering::Relaxed);
            turn.stream.store(stream as u32, Ordering::Relaxed);
        }
        let resident = ring.resident();
        resident.left.store(frames_max, Ordering::Relaxed);
        resident.until.store(until.as_nanos(), Ordering::Relaxed);
        resident.turn.store(0, Ordering::Relaxed);
        resident.turn_left.store(TURN_FRAMES, Ordering::Relaxed);
        resident.time.store(clock::now().as_nanos(), Ordering::Relaxed);
        resident.leaves_out.store(0, Ordering::Relaxed);
        resident.sending.store(streams.len() as u64, Ordering::Relaxed);
        ring.user().resident.store(1, Ordering::Release);
        Ok(())
    }

    fn write(
        &mut self,
        index: usize,
        stream: &ResidentStream,
        values: &mut usize,
        store: &mut StoreMemory,
    ) -> Result<(), String> {
        let shape =
            self.options.shapes.get(stream.shape).ok_or("its frames are of another kind")?;
        let template = &stream.template;
        if template.len() != shape.length || stream.cursors.len() != shape.cursors.len() {
            return Err("its frames are of another kind".into());
        }
        let record = &self.streams[index];
        let set = |field: &AtomicU64, value: u64| field.store(value, Ordering::Relaxed);
        set(&record.left, stream.frames);
        set(&record.sequence, stream.sequence);
        record.number.store(stream.number, Ordering::Relaxed);
        record.shape.store(stream.shape as u32, Ordering::Relaxed);
        if let Some((due, ticker)) = stream.schedule {
            let [gap, gap_rest, rest, units] = ticker.parts();
            set(&record.due, due.as_nanos());
            set(&record.gap, gap);
            set(&record.gap_rest, gap_rest);
            set(&record.rest, rest);
            set(&record.units, units);
        }
        for (record, cursor) in record.cursors.iter().zip(&stream.cursors) {
            set(&record.place, cursor.place);
            set(&record.cycle, cursor.cycle);
            set(&record.places, cursor.places);
            set(&record.wraps_beside, cursor.wraps_beside);
            match &cursor.values {
                CursorValues::Counter { base, step, upper } => {
                    set(&record.base, *base);
                    set(&record.step, *step);
                    set(&record.upper, *upper);
                }
                CursorValues::Random { seed, min, count, upper } => {
                    set(&record.base, *seed);
                    set(&record.step, *count);
                    set(&record.min, *min);
                    set(&record.upper, *upper);
                }
                CursorValues::List(list) => {
                    let begin = *values;
                    *values += list.len();
                    let records = self.values.get(begin..*values).ok_or("its lists are longer")?;
                    set(&record.base, begin as u64);
                    for (record, value) in records.iter().zip(list) {
                        set(&record.lower, *value as u64);
                        set(&record.upper, (value >> 64) as u64);
                    }
                }
            }
        }
        if template.len() <= SHORT_TEMPLATE {
            let mut padded = [0; SHORT_TEMPLATE];
            padded[..template.len()].copy_from_slice(template);
            for (word, bytes) in record.template.iter().zip(padded.as_chunks().0) {
                set(word, u64::from_ne_bytes(*bytes));
            }
            return Ok(());
        }
        let location = match &self.stored[index] {
            Some((stored, location)) if stored == template => *location,
            _ => {
                let stored = store.store(template).ok_or("there is no memory for its frame")?;
                let location = store.location(stored);
                self.stored[index] = Some((template.clone(), location));
                location
            }
        };
        self.streams[index].source.store(location, Ordering::Relaxed);
        Ok(())
    }

    /// Returns how many frames of a stream the program has taken.
    pub(super) fn taken(&self, index: usize) -> u64 {
        let given = self.frames.get(index).copied().unwrap_or(0);
        given.saturating_sub(self.streams[index].left.load(Ordering::Acquire))
    }

    /// Stops all streams. Afterwards the program changes nothing.
    pub(super) fn recall(ring: &RingMemory, sender: &Sender) {
        const POLL_INTERVAL: Duration = Duration::from_micros(20);
        ring.user().resident.store(0, Ordering::Release);
        // An iteration that has begun before sees the old value. The next two do not: they count. A
        // BPF program wakes nobody, so look often. The end of the sender bounds the wait.
        fence(Ordering::SeqCst);
        let kernel = ring.kernel();
        let iterations = || {
            let idle = kernel.idle_iterations.load(Ordering::Acquire);
            idle.wrapping_add(kernel.consumed.load(Ordering::Acquire))
        };
        let before = iterations();
        while iterations().wrapping_sub(before) < 2 && !sender.has_ended() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
