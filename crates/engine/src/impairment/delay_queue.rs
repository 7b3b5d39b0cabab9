//! Frames held until their departure.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use wirestorm_base::time::Instant;

use super::Delivery;

/// Limits of the frames held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayQueueOptions {
    /// Maximum number of frames. Default 65,536: 65 ms at a million frames a second.
    pub frames: usize,
    /// Longest frame in bytes without FCS.
    pub frame_length_max: usize,
}

impl Default for DelayQueueOptions {
    fn default() -> Self {
        Self { frames: 1 << 16, frame_length_max: 1_518 }
    }
}

/// Priority queue of frames by departure; frames with the same departure leave in order of arrival.
///
/// Buffers are allocated on first use, up to the limit, and then reused.
#[derive(Debug)]
pub struct DelayQueue {
    options: DelayQueueOptions,
    order: BinaryHeap<Reverse<Waiting>>,
    buffers: Vec<Box<[u8]>>,
    free: Vec<u32>,
    came: u64,
}

/// Held frame. The first fields define the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Instant,
    /// Number of frames inserted before.
    came: u64,
    number: u64,
    place: u32,
    length: u32,
}

impl DelayQueue {
    /// Creates an empty queue.
    pub const fn new(options: DelayQueueOptions) -> Self {
        Self { options, order: BinaryHeap::new(), buffers: Vec::new(), free: Vec::new(), came: 0 }
    }

    /// Stores a copy of a frame with its number; returns whether there was room.
    ///
    /// # Panics
    /// Panics if the frame is longer than the limit.
    pub fn insert(&mut self, passage: Delivery, number: u64, frame: &[u8]) -> bool {
        let Some(place) = self.place() else { return false };
        let buffer = &mut self.buffers[place as usize][..frame.len()];
        buffer.copy_from_slice(frame);
        if let Some(bit) = passage.inverted_bit {
            buffer[bit / 8] ^= 0x80 >> (bit % 8);
        }
        let (at, came, length) = (passage.at, self.came, frame.len() as u32);
        self.order.push(Reverse(Waiting { at, came, number, place, length }));
        self.came += 1;
        true
    }

    /// Returns the departure of the next frame.
    pub fn next(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse(waiting)| waiting.at)
    }

    /// Removes the next frame that is due at `now`; returns its number and bytes.
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
