//! Impairments of an imperfect link: loss, duplication, corruption, a bottleneck rate with a queue,
//! delay, jitter and reordering, all drawn from a seed.
//!
//! ```text
//! frame -> loss -> duplication -> queue -> rate -> corruption -> delay/jitter -> reordering -> out
//!          lost    + a copy       full: dropped    a bit         order kept     some are late
//! ```
//!
//! Each frame passes these stages in order; a duplicate continues as a frame of its own. A lost
//! frame takes no room in the queue: the loss occurs before the bottleneck. [`Line`] decides,
//! [`DelayQueue`] stores the frames, and a [`Link`] combines both for one direction.
//!
//! Random decisions about the n-th frame depend only on the seed and n. Each kind is drawn
//! separately: the same frames are lost with a delay and without.

mod delay_queue;
mod line;
mod port;

pub use delay_queue::{DelayQueue, DelayQueueOptions};
pub use line::{Deliveries, Delivery, Line};
pub use port::Impaired;

use wirestorm_base::time::Instant;
use wirestorm_model::impairment::Impairment;

/// Counters of one direction.
///
/// Every frame that entered, and every copy, is in exactly one of `lost`, `queue_dropped`,
/// `delay_buffer_full`, `delivered` or still held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounters {
    /// Frames that entered.
    pub entered: u64,
    /// Bytes of the frames that entered, without FCS.
    pub entered_bytes: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Duplicates created.
    pub duplicated: u64,
    /// Frames in which a bit was changed.
    pub corrupted: u64,
    /// Frames dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames dropped because the memory for held frames was full. The impairment then differs from
    /// its configuration.
    pub delay_buffer_full: u64,
    /// Frames delivered.
    pub delivered: u64,
    /// Bytes of the frames delivered, without FCS.
    pub delivered_bytes: u64,
    /// Frames delivered after one that entered later (RFC 4737 section 3.3).
    pub reordered: u64,
}

impl ImpairmentCounters {
    /// Returns the number of frames on the link.
    pub const fn held(&self) -> u64 {
        let gone = self.lost + self.queue_dropped + self.delay_buffer_full + self.delivered;
        self.entered + self.duplicated - gone
    }
}

/// One direction of an impaired link.
#[derive(Debug)]
pub struct Link {
    line: Line,
    held: DelayQueue,
    counters: ImpairmentCounters,
    /// One more than the highest number of a delivered frame.
    next: u64,
}

impl Link {
    /// Creates a link without frames.
    pub fn new(impairment: Impairment, seed: u64, options: DelayQueueOptions) -> Self {
        Self {
            line: Line::new(impairment, seed),
            held: DelayQueue::new(options),
            counters: ImpairmentCounters::default(),
            next: 0,
        }
    }

    /// Takes a frame that arrives at `arrival`, which must not be earlier than that of the frame
    /// before.
    ///
    /// # Panics
    /// Panics if the frame is longer than [`DelayQueueOptions::frame_length_max`].
    pub fn enter(&mut self, arrival: Instant, frame: &[u8]) {
        let number = self.counters.entered;
        let passages = self.line.enter(arrival, frame.len(), &mut self.counters);
        self.counters.entered_bytes += frame.len() as u64;
        for passage in passages.into_iter().flatten() {
            if !self.held.insert(passage, number, frame) {
                self.counters.delay_buffer_full += 1;
            }
        }
    }

    /// Returns the departure of the next frame; `None` if there is none.
    pub fn next(&self) -> Option<Instant> {
        self.held.next()
    }

    /// Removes and returns a frame that is due at `now`.
    pub fn leave(&mut self, now: Instant) -> Option<&[u8]> {
        let (number, frame) = self.held.remove(now)?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += frame.len() as u64;
        self.counters.reordered += u64::from(number + 1 < self.next);
        self.next = self.next.max(number + 1);
        Some(frame)
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> &ImpairmentCounters {
        &self.counters
    }
}
