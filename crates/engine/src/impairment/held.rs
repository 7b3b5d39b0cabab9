//! Frames that wait for the time when they come out.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use wirestorm_base::time::Instant;

use super::Passage;

/// How much is held at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldOptions {
    /// Frames. Default 65,536: 65 ms at a million a second.
    pub frames: usize,
    /// The longest, in bytes without FCS.
    pub frame_length_max: usize,
}

impl Default for HeldOptions {
    fn default() -> Self {
        Self { frames: 1 << 16, frame_length_max: 1_518 }
    }
}

/// Frames by the time when they come out; of those of one time, the first that came is first.
///
/// Memory is taken when it is first needed, up to the bound, and kept.
#[derive(Debug)]
pub struct Held {
    options: HeldOptions,
    order: BinaryHeap<Reverse<Waiting>>,
    buffers: Vec<Box<[u8]>>,
    free: Vec<u32>,
    came: u64,
}

/// A frame that waits; the fields that decide about the order are first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Instant,
    /// How many came before.
    came: u64,
    number: u64,
    place: u32,
    length: u32,
}

impl Held {
    /// Without frames.
    pub const fn new(options: HeldOptions) -> Self {
        Self { options, order: BinaryHeap::new(), buffers: Vec::new(), free: Vec::new(), came: 0 }
    }

    /// Keeps a copy of a frame with a number; whether there was room for it.
    ///
    /// # Panics
    /// Where it is longer than the options say.
    pub fn insert(&mut self, passage: Passage, number: u64, frame: &[u8]) -> bool {
        let Some(place) = self.place() else { return false };
        let buffer = &mut self.buffers[place as usize][..frame.len()];
        buffer.copy_from_slice(frame);
        if let Some(bit) = passage.flipped {
            buffer[bit / 8] ^= 0x80 >> (bit % 8);
        }
        let (at, came, length) = (passage.at, self.came, frame.len() as u32);
        self.order.push(Reverse(Waiting { at, came, number, place, length }));
        self.came += 1;
        true
    }

    /// The time of the next one.
    pub fn next(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse(waiting)| waiting.at)
    }

    /// The next one whose time has come, with its number.
    pub fn remove(&mut self, now: Instant) -> Option<(u64, &[u8])> {
        if self.next()? > now {
            return None;
        }
        let Reverse(Waiting { number, place, length, .. }) = self.order.pop()?;
        self.free.push(place);
        Some((number, &self.buffers[place as usize][..length as usize]))
    }

    fn place(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = self.buffers.len();
        if place >= self.options.frames {
            return None;
        }
        self.buffers.push(vec![0; self.options.frame_length_max].into_boxed_slice());
        Some(place as u32)
    }
}
