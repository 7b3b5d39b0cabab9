//! What an imperfect link does to frames: loss, duplication, corruption, a rate with a queue,
//! delay, jitter and another order, all drawn from a seed.
//!
//! ```text
//! frame -> loss -> duplication -> queue -> rate -> corruption -> delay, jitter -> reordering -> out
//!          lost    + a copy       full: dropped    a bit         order is kept    some are late
//! ```
//!
//! This is the order for each frame, and for the copy, which goes on as a frame of its own. A frame
//! that is lost takes no room in the queue: the loss is that of whatever lies ahead of the
//! bottleneck. [`Line`] decides, [`Held`] keeps the bytes meanwhile, and a [`Link`] is both in one
//! direction. What becomes of the n-th frame by chance follows from the seed and n alone, and each
//! kind of chance is drawn by itself: the same frames are lost with a delay and without.

mod held;
mod line;
mod port;

pub use held::{Held, HeldOptions};
pub use line::{Line, Passage, Passages};
pub use port::Impaired;

use wirestorm_base::time::Instant;
use wirestorm_model::impairment::Impairment;

/// What became of frames in one direction.
///
/// Every frame that entered, and every copy, is in exactly one of `lost`, `queue_dropped`,
/// `no_room`, `delivered` or still held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounters {
    /// Frames that came in.
    pub entered: u64,
    /// Their bytes, without FCS.
    pub entered_bytes: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Duplicates created.
    pub duplicated: u64,
    /// Frames in which a bit was changed.
    pub corrupted: u64,
    /// Frames dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames dropped because more were held back than there is memory for: the link fell
    /// short of what was asked.
    pub no_room: u64,
    /// Frames that came out.
    pub delivered: u64,
    /// Their bytes, without FCS.
    pub delivered_bytes: u64,
    /// Frames that came out behind one that had entered after them (RFC 4737, section 3.3).
    pub reordered: u64,
}

impl ImpairmentCounters {
    /// Frames that are on the link.
    pub const fn held(&self) -> u64 {
        let gone = self.lost + self.queue_dropped + self.no_room + self.delivered;
        self.entered + self.duplicated - gone
    }
}

/// One direction of a link: frames go in at one time and come out at another.
#[derive(Debug)]
pub struct Link {
    line: Line,
    held: Held,
    counters: ImpairmentCounters,
    /// One more than the greatest number of a frame that came out.
    next: u64,
}

impl Link {
    /// A link without frames on it.
    pub fn new(impairment: Impairment, seed: u64, options: HeldOptions) -> Self {
        Self {
            line: Line::new(impairment, seed),
            held: Held::new(options),
            counters: ImpairmentCounters::default(),
            next: 0,
        }
    }

    /// Takes in a frame that arrived at a time, none earlier than that of the frame before.
    ///
    /// # Panics
    /// Where it is longer than the options say.
    pub fn enter(&mut self, arrival: Instant, frame: &[u8]) {
        let number = self.counters.entered;
        let passages = self.line.enter(arrival, frame.len(), &mut self.counters);
        self.counters.entered_bytes += frame.len() as u64;
        for passage in passages.into_iter().flatten() {
            if !self.held.insert(passage, number, frame) {
                self.counters.no_room += 1;
            }
        }
    }

    /// When the next frame comes out; `None` where there is none.
    pub fn next(&self) -> Option<Instant> {
        self.held.next()
    }

    /// Lets a frame out whose time has come.
    pub fn leave(&mut self, now: Instant) -> Option<&[u8]> {
        let (number, frame) = self.held.remove(now)?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += frame.len() as u64;
        self.counters.reordered += u64::from(number + 1 < self.next);
        self.next = self.next.max(number + 1);
        Some(frame)
    }

    /// What became of the frames so far.
    pub const fn counters(&self) -> &ImpairmentCounters {
        &self.counters
    }
}
