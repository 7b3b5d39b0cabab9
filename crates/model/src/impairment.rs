//! The words for what a link does to frames, shared by plans and by what does it.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;

/// What a link does to the frames of one direction. The default does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Which frames are lost.
    pub loss: Loss,
    /// Probability that a frame is duplicated.
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
    pub const fn has(self, drawn: u64) -> bool {
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
    /// Number of frames.
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
    /// Number of datagrams.
    pub share: Share,
    /// How late.
    pub by: Duration,
}
