//! When a stream's frames leave: its transmission, stepped along.

use wirestorm_base::rate::{Layer, Rate, SteadyTicker, Ticker};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::stream::{Departures, Mode, Speed, Transmission, draw};

use super::share::Share;

/// The schedule of one stream, at this worker's next frame.
///
/// All workers that share a stream walk along the same schedule, each for all frames, and send
/// their own; so each knows when the stream ends, also one that sends none of it.
#[derive(Clone, Debug)]
pub(super) struct Emission {
    transmission: Transmission,
    share: Share,
    gaps: Gaps,
    /// When the current frame is due.
    due: Instant,
    /// Frames of the current group that are left, the current one included.
    left: u64,
    /// Groups that are left, the current one included.
    groups_left: u64,
}

/// What lies between two frames of a group.
#[derive(Clone, Debug)]
enum Gaps {
    /// No time.
    None,
    /// Always the same, from one frame of this worker to its next one.
    OwnFrames(SteadyTicker),
    /// Always the same, from one frame of the stream to the next one.
    Frames(SteadyTicker),
    /// As long as the frame before takes.
    Bits(Ticker, Layer),
    /// As drawn: the mean in ns, the seed, how many were drawn, and what was left over.
    Drawn { mean: f64, seed: u64, number: u64, rest: f64 },
    /// Those of another kind, while frames are sent; then none for a while.
    OnOff { within: SteadyTicker, on: Duration, off: Duration, elapsed: Duration },
}

/// What comes after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another frame of this worker.
    Frame,
    /// Nothing: the stream's last frame, whoever sends it, was due at this instant.
    End(Instant),
}

impl Emission {
    /// A stream that starts at `start`, at this worker's first frame of it, or its end.
    ///
    /// `length` is that of the first frame, and of every one unless `lengths_vary`.
    pub(super) fn start(
        transmission: &Transmission,
        share: Share,
        length: usize,
        lengths_vary: bool,
        start: Instant,
    ) -> (Self, After) {
        let (left, groups_left) = match transmission.mode {
            Mode::Continuous => (u64::MAX, 1),
            Mode::Burst { frames } => (frames, 1),
            Mode::Bursts { frames, count, .. } => (frames, count),
        };
        let due = start.saturating_add(transmission.start_delay);
        let mut emission = Self {
            transmission: *transmission,
            share,
            gaps: Gaps::one_by_one(transmission, length),
            due,
            left,
            groups_left,
        };
        let after = emission.walk(share.index, length);
        let is_steady = !lengths_vary || matches!(transmission.speed, Speed::Frames(_));
        if transmission.mode == Mode::Continuous
            && is_steady
            && let Some(own) = Gaps::own(transmission, share, length)
        {
            emission.gaps = own;
        }
        (emission, after)
    }

    /// When the current frame is due.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Goes on to this worker's next frame, after one of `length` bytes without FCS.
    #[inline]
    pub(super) fn advance(&mut self, length: usize) -> After {
        if let Gaps::OwnFrames(ticker) = &mut self.gaps {
            self.due = self.due.saturating_add(ticker.step());
            return After::Frame;
        }
        self.walk(self.share.workers, length)
    }

    /// All that is still to come is due so much later.
    pub(super) fn postpone(&mut self, span: Duration) {
        self.due = self.due.saturating_add(span);
    }

    fn walk(&mut self, frames: u64, length: usize) -> After {
        for _ in 0..frames {
            if self.left > 1 {
                self.due = self.due.saturating_add(self.gaps.step(length));
                self.left -= u64::from(self.left != u64::MAX);
            } else if let (Mode::Bursts { frames, gap, .. }, 2..) =
                (self.transmission.mode, self.groups_left)
            {
                self.groups_left -= 1;
                self.left = frames;
                self.due = self.due.saturating_add(gap);
            } else {
                return After::End(self.due);
            }
        }
        After::Frame
    }
}

impl Gaps {
    fn one_by_one(transmission: &Transmission, length: usize) -> Self {
        let (rate, units) = match transmission.speed {
            Speed::Max => return Self::None,
            Speed::Frames(rate) => (rate, 1),
            Speed::Bits(rate, layer) => (rate, bits(length, layer)),
        };
        match (transmission.departures, transmission.speed) {
            (Departures::Poisson { seed }, _) => {
                let mean = units as f64 * 1e9 / rate.per_second();
                Self::Drawn { mean, seed, number: 0, rest: 0.0 }
            }
            (Departures::OnOff { on, off }, _) => {
                let whole = on.as_nanos().saturating_add(off.as_nanos());
                let within = rate.scaled(whole, on.as_nanos()).unwrap_or(rate);
                let within = SteadyTicker::new(within, units);
                Self::OnOff { within, on, off, elapsed: Duration::ZERO }
            }
            (Departures::Constant, Speed::Bits(rate, layer)) => {
                Self::Bits(Ticker::new(rate), layer)
            }
            (Departures::Constant, _) => Self::Frames(SteadyTicker::new(rate, units)),
        }
    }

    /// The gaps between a worker's own frames, where they can be told at once.
    fn own(transmission: &Transmission, share: Share, length: usize) -> Option<Self> {
        let (rate, units): (Rate, u64) = match (transmission.departures, transmission.speed) {
            (Departures::Constant, Speed::Frames(rate)) => (rate, 1),
            (Departures::Constant, Speed::Bits(rate, layer)) => (rate, bits(length, layer)),
            _ => return None,
        };
        Some(Self::OwnFrames(SteadyTicker::new(rate, units.checked_mul(share.workers)?)))
    }

    #[inline]
    fn step(&mut self, length: usize) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::OwnFrames(ticker) | Self::Frames(ticker) => ticker.step(),
            Self::Bits(ticker, layer) => ticker.step(bits(length, *layer)),
            Self::Drawn { mean, seed, number, rest } => {
                // From the upper 53 bits, and never zero, whose logarithm there is none of.
                let uniform = ((draw(*seed, *number) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                *number += 1;
                let gap = *mean * -libm::log(uniform) + *rest;
                let whole = libm::floor(gap);
                *rest = gap - whole;
                Duration::from_nanos(whole as u64)
            }
            Self::OnOff { within, on, off, elapsed } => {
                let mut gap = within.step();
                *elapsed = elapsed.saturating_add(gap);
                while *elapsed >= *on && *on > Duration::ZERO {
                    *elapsed = elapsed.saturating_sub(*on);
                    gap = gap.saturating_add(*off);
                }
                gap
            }
        }
    }
}

const fn bits(length: usize, layer: Layer) -> u64 {
    (length as u64 + layer.overhead()) * 8
}
