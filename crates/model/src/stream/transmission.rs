//! When the frames of a stream leave.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;

/// When the frames of a stream leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// How many frames, in which groups.
    pub mode: Mode,
    /// How fast within a group.
    pub speed: Speed,
    /// Distribution of inter-departure times.
    pub departures: Departures,
    /// Time from the stream's start to its first frame, each time it starts.
    pub start_delay: Duration,
    /// Whether it starts by itself, or only when another one ends that names it.
    pub self_start: bool,
    /// Whether it waits to be resumed before its first frame.
    pub start_paused: bool,
    /// The stream, by its index in the plan, that starts when this one ends.
    pub next: Option<usize>,
    /// How often this stream may start, by itself and by being named as the next one; 0: without
    /// limit.
    pub starts_max: u32,
}

impl Transmission {
    /// Frames at an even distance from the start on, until it is stopped.
    pub const fn continuous(speed: Speed) -> Self {
        Self {
            mode: Mode::Continuous,
            speed,
            departures: Departures::Constant,
            start_delay: Duration::ZERO,
            self_start: true,
            start_paused: false,
            next: None,
            starts_max: 0,
        }
    }
}

/// How many frames a stream sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until it is stopped.
    Continuous,
    /// Those that are due before so much time has passed since the first, then it ends.
    Time {
        /// The time; more than zero.
        lasts: Duration,
    },
    /// So many, then it ends.
    Burst {
        /// Frames; at least 1.
        frames: u64,
    },
    /// Several bursts, then it ends.
    Bursts {
        /// Frames of each; at least 1.
        frames: u64,
        /// Bursts; at least 1.
        count: u64,
        /// From the last frame of a burst to the first of the next.
        gap: Duration,
    },
}

/// How fast frames of a group follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// As fast as the port takes them.
    Max,
    /// Frames per second.
    Frames(Rate),
    /// Bits a second.
    Bits(Rate, Layer),
}

/// How the gaps between frames are distributed about their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Departures {
    /// All alike.
    #[default]
    Constant,
    /// Exponentially: a Poisson process, drawn by this seed.
    Poisson {
        /// What the draws follow from.
        seed: u64,
    },
    /// For `on` at the rate that makes the stream's own the mean over both, then none for `off`.
    OnOff {
        /// Duration with frames.
        on: Duration,
        /// Duration without frames.
        off: Duration,
    },
}
