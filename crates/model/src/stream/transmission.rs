//! Departure times of the frames of a stream.

use wirestorm_base::rate::{Layer, Rate};
use wirestorm_base::time::Duration;

/// Departure times of the frames of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// Number of frames and their grouping.
    pub mode: Mode,
    /// Rate within a group.
    pub speed: Speed,
    /// Distribution of inter-departure times.
    pub departures: GapDistribution,
    /// Time from each start of the stream to its first frame.
    pub start_delay: Duration,
    /// Whether the stream starts with the run. If not, it starts when a stream that names it in
    /// `next` ends.
    pub self_start: bool,
    /// Whether the stream waits for a resume before its first frame.
    pub start_paused: bool,
    /// Index in the plan of the stream to start when this one ends.
    pub next: Option<usize>,
    /// Maximum number of starts, both with the run and as the next stream; 0 means no limit.
    pub starts_max: u32,
}

impl Transmission {
    /// Returns a transmission that sends at a constant rate until it is stopped.
    pub const fn continuous(speed: Speed) -> Self {
        Self {
            mode: Mode::Continuous,
            speed,
            departures: GapDistribution::Constant,
            start_delay: Duration::ZERO,
            self_start: true,
            start_paused: false,
            next: None,
            starts_max: 0,
        }
    }
}

/// Number of frames that a stream sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sends until it is stopped.
    Continuous,
    /// Sends frames that are due within a time after the first frame, then ends.
    Time {
        /// Time limit; more than zero.
        duration: Duration,
    },
    /// Sends a number of frames, then ends.
    Burst {
        /// Number of frames; at least 1.
        frames: u64,
    },
    /// Sends several bursts, then ends.
    Bursts {
        /// Frames per burst; at least 1.
        frames: u64,
        /// Number of bursts; at least 1.
        count: u64,
        /// Time from the last frame of a burst to the first of the next.
        gap: Duration,
    },
}

/// Rate within a group of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// The maximum rate at which the port accepts frames.
    Max,
    /// Frames per second.
    Frames(Rate),
    /// Bits per second, counted at this layer.
    Bits(Rate, Layer),
}

/// Distribution of the gaps between frames about their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum GapDistribution {
    /// Constant gaps.
    #[default]
    Constant,
    /// Exponentially distributed gaps: a Poisson process.
    Poisson {
        /// Seed of the draws.
        seed: u64,
    },
    /// Alternates between `on` with frames and `off` without. The rate during `on` is higher, so
    /// that the mean over both is the stream's rate.
    OnOff {
        /// Duration with frames.
        on: Duration,
        /// Duration without frames.
        off: Duration,
    },
}
