//! What an imperfect link does to frames: loss, duplication, corruption, a rate with a queue,
//! delay, jitter and another order, all drawn from a seed.
//!
//! ```text
//! frame -> loss -> duplication -> corruption -> queue -> rate -> delay, jitter -> reordering -> out
//!          lost    + a copy       a bit          full: dropped   order is kept    some are late
//! ```
//!
//! This is the order for each frame, and for the copy, which goes on as a frame of its own. A frame
//! that is lost takes no room in the queue: the loss is that of whatever lies ahead of the
//! bottleneck. [`Line`] decides, [`Held`] keeps the bytes meanwhile, and a [`Link`] is both in one
//! direction. What becomes of the n-th frame by chance follows from the seed and n alone, and each
//! kind of chance is drawn by itself: the same frames are lost with a delay and without.

mod held;
mod line;

pub use held::{Held, HeldOptions};
pub use line::{Line, Passage, Passages};

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::{Duration, Instant};

/// What a link does to the frames of one direction. The default does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Which frames are lost.
    pub loss: Loss,
    /// The share of frames of which a copy follows.
    pub duplication: Share,
    /// The share of frames in which one bit is changed, behind the Ethernet header: what a
    /// checksum has to find.
    pub corruption: Share,
    /// The narrowest part of the link; `None`: it is as fast as the frames come.
    pub bottleneck: Option<Bottleneck>,
    /// From the end of a frame's transmission to its arrival.
    pub delay: Duration,
    /// How much the delay varies.
    pub jitter: Jitter,
    /// Frames that are late on top of that, so that others overtake them.
    pub reordering: Reordering,
}

/// A share of frames, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All frames.
    pub const ALL: Self = Self(1_000_000_000);
    /// No frame.
    pub const NONE: Self = Self(0);

    /// So many billionths; `None` beyond a whole.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALL.0 { Some(Self(billionths)) } else { None }
    }

    /// In billionths.
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// Whether what was drawn, any 64 bits, falls into it.
    const fn has(self, drawn: u64) -> bool {
        ((drawn >> 32) * Self::ALL.0 as u64) >> 32 < self.0 as u64
    }
}

/// Which frames are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with the same chance, whatever became of others.
    Random(Share),
    /// In bursts.
    Bursts(Bursts),
}

/// Loss in bursts, by E. N. Gilbert, "Capacity of a Burst-Noise Channel" (Bell System Technical
/// Journal 39, 1960) and E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise
/// Channels" (42, 1963): a link is in a good or a bad state, good in the beginning. A frame is lost
/// or not by the state that it finds; then the state changes, or not.
///
/// The bad state lasts 1/r frames on average, and `p / (p + r)` of all frames find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// From good to bad, for each frame.
    pub p: Share,
    /// From bad to good, for each frame.
    pub r: Share,
    /// The share of frames that get through in the bad state.
    pub h: Share,
    /// The share of frames that get through in the good state; all with Gilbert.
    pub k: Share,
}

/// A rate, and the queue in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Bits a second.
    pub rate: Rate,
    /// Which bytes of a frame they count.
    pub layer: Layer,
    /// How much waits; what finds the queue full is dropped. The frame that is being sent does
    /// not wait.
    pub queue: Queue,
}

/// How long a queue gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// So many frames.
    Frames(u32),
    /// So many bytes of frames, without FCS.
    Bytes(u64),
}

impl Queue {
    /// The most frames or bytes: what a queue notes of each frame stays within a few megabytes.
    pub const MAX_FRAMES: u32 = 1 << 20;
}

impl Default for Queue {
    /// 1,000 frames, the length of an interface's transmit queue in Linux.
    fn default() -> Self {
        Self::Frames(1_000)
    }
}

/// How much a delay varies. Frames keep their order: one that would overtake arrives together with
/// the one ahead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// By so much less to so much more, all alike.
    Uniform(Duration),
    /// With so much as the standard deviation, as the sum of twelve draws: never by more than
    /// six times as much.
    Normal(Duration),
}

/// Frames that arrive late, and for which the others do not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// How many.
    pub share: Share,
    /// How late.
    pub by: Duration,
}

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
    /// Frames lost by chance.
    pub lost: u64,
    /// Copies made.
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
