//! Impairments of a link. Plans and the link emulator share these types.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;

/// Impairments of one direction of a link. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Loss model.
    pub loss: Loss,
    /// Probability that a frame is duplicated.
    pub duplication: Probability,
    /// Share of frames in which one bit behind the Ethernet header is flipped, so that checksums of
    /// the receiver detect it.
    pub corruption: Probability,
    /// Rate limit and queue of the link; `None` means no limit.
    pub bottleneck: Option<Bottleneck>,
    /// Delay from the end of a frame's transmission to its arrival.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Frames with an extra delay, so that others overtake them.
    pub reordering: Reordering,
}

/// A share of frames, or a probability per frame, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u32);

impl Probability {
    /// All frames.
    pub const ALL: Self = Self(1_000_000_000);
    /// No frame.
    pub const NONE: Self = Self(0);

    /// Creates a share from billionths; `None` if it exceeds 10^9.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths <= Self::ALL.0 { Some(Self(billionths)) } else { None }
    }

    /// Returns the share in billionths.
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// Returns whether the 64 random bits `random` select a frame.
    pub const fn selects(self, random: u64) -> bool {
        ((random >> 32) * Self::ALL.0 as u64) >> 32 < self.0 as u64
    }
}

/// Loss model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each frame is lost independently with the same probability.
    Random(Probability),
    /// Loss in bursts.
    GilbertElliott(GilbertElliott),
}

/// Loss in bursts, after E. N. Gilbert, "Capacity of a Burst-Noise Channel" (Bell System Technical
/// Journal 39, 1960) and E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise
/// Channels" (42, 1963).
///
/// A link is in a good or a bad state, initially good. The state on arrival decides whether a frame
/// is lost; then the state may change. The bad state lasts 1/r frames on average. The share of
/// frames that arrive in the bad state is `p / (p + r)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad, per frame.
    pub p: Probability,
    /// Probability of a change from bad to good, per frame.
    pub r: Probability,
    /// Share of frames that pass in the bad state.
    pub h: Probability,
    /// Share of frames that pass in the good state; all in Gilbert's model.
    pub k: Probability,
}

/// A rate limit with the queue in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Rate in bits a second.
    pub rate: Rate,
    /// Layer whose bytes the rate counts.
    pub layer: Layer,
    /// Capacity of the queue. It drops frames that exceed it. The frame in transmission does not
    /// count.
    pub queue: Queue,
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Number of frames; at most [`Queue::MAX_FRAMES`].
    Frames(u32),
    /// Bytes of the queued frames, without FCS.
    Bytes(u64),
}

impl Queue {
    /// Largest number of frames, so that the queue's state stays within a few megabytes.
    pub const MAX_FRAMES: u32 = 1 << 20;
}

impl Default for Queue {
    /// 1,000 frames, as the transmit queue of a Linux interface.
    fn default() -> Self {
        Self::Frames(1_000)
    }
}

/// Variation of a delay. Frames keep their order: a frame that would overtake arrives together with
/// the one ahead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform distribution from minus to plus this value.
    Uniform(Duration),
    /// Normal distribution with this standard deviation, as the sum of twelve draws. The deviation
    /// never exceeds six times this value.
    Normal(Duration),
}

/// Extra delay for a share of frames, so that other frames overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Share of frames with the extra delay.
    pub share: Probability,
    /// Extra delay.
    pub extra_delay: Duration,
}
