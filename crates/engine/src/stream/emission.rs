//! When a stream's frames leave: its transmission, stepped along.

use alloc::boxed::Box;

use wirestorm_base::rate::{Layer, Rate, SteadyTicker, Ticker};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::stream::{Departures, Mode, Speed, Transmission, draw};

use super::program::FrameMaker;
use super::share::Share;

/// The schedule of one stream, at this worker's next frame.
///
/// All workers that share a stream follow the same schedule and send their own frames of it; so
/// each knows when the stream ends, also one that sends none of it. Frames at an even distance
/// are stepped over at once; where distances differ, a worker walks along the frames of the
/// others.
#[derive(Clone, Debug)]
pub(super) struct Emission {
    /// When the current frame is due.
    due: Instant,
    /// How many of this worker's frames follow the current one at steps of `own`.
    quick: u64,
    /// From one frame of this worker to its next one.
    own: SteadyTicker,
    walk: Box<Walk>,
}

/// The schedule, frame by frame of the stream; it stands where the quick steps began.
#[derive(Clone, Debug)]
struct Walk {
    transmission: Transmission,
    /// All workers that share the stream.
    workers: u64,
    gaps: Gaps,
    /// The number of the current frame in its stream.
    number: u64,
    /// Frames of the current group that are left, the current one included.
    left: u64,
    /// Groups that are left, the current one included.
    groups_left: u64,
    /// Nothing is due then or later.
    end: Instant,
    /// How many quick steps there were.
    quick: u64,
}

/// What lies between two frames of a group.
#[derive(Clone, Debug)]
enum Gaps {
    /// No time.
    None,
    /// What the rate says.
    Even(Steps),
    /// As drawn: about so many ns for each frame, or for each bit of this layer, and what was
    /// left over.
    Drawn { mean: f64, layer: Option<Layer>, seed: u64, rest: f64 },
    /// What the rate says while frames are sent; then none for a while.
    OnOff { within: Steps, on: Duration, off: Duration, elapsed: Duration },
}

/// Steps along a rate.
#[derive(Clone, Debug)]
enum Steps {
    /// Always the same.
    Steady(SteadyTicker),
    /// As long as the frame before takes.
    Bits(Ticker, Layer),
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
    /// A stream that starts at `start` with frame `first` of those that `maker` makes, at this
    /// worker's first one of them, or its end.
    pub(super) fn start(
        transmission: &Transmission,
        share: Share,
        maker: &FrameMaker,
        first: u64,
        start: Instant,
    ) -> (Self, After) {
        let (left, groups_left) = match transmission.mode {
            Mode::Continuous | Mode::Time { .. } => (u64::MAX, 1),
            Mode::Burst { frames } => (frames, 1),
            Mode::Bursts { frames, count, .. } => (frames, count),
        };
        let due = start.saturating_add(transmission.start_delay);
        let end = match transmission.mode {
            Mode::Time { lasts } => due.saturating_add(lasts),
            _ => Instant::MAX,
        };
        let mut emission = Self {
            due,
            quick: 0,
            own: SteadyTicker::STANDING,
            walk: Box::new(Walk {
                transmission: *transmission,
                workers: share.workers,
                gaps: Gaps::new(transmission, maker),
                number: first,
                left,
                groups_left,
                end,
                quick: 0,
            }),
        };
        let others = maker.number().saturating_sub(first);
        let after = emission.walk.step(others, None, maker, &mut emission.due);
        emission.step_quickly(maker);
        (emission, after)
    }

    /// When the current frame is due.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The number behind those of all frames, whoever sent them, where this ended by its time.
    pub(super) fn passed(&self) -> u64 {
        self.walk.number + 1
    }

    /// Goes on to this worker's next frame, after one of `length` bytes without FCS.
    #[inline]
    pub(super) fn advance(&mut self, length: usize, maker: &FrameMaker) -> After {
        if self.quick > 0 {
            self.quick -= 1;
            self.due = self.due.saturating_add(self.own.step());
            return After::Frame;
        }
        self.advance_by_walking(length, maker)
    }

    /// The end, where nothing is due before it any more.
    pub(super) fn over(&self) -> Option<Instant> {
        (self.due >= self.walk.end).then_some(self.walk.end)
    }

    /// All that is still to come is due so much later, and so is its end.
    pub(super) fn postpone(&mut self, span: Duration) {
        self.due = self.due.saturating_add(span);
        self.walk.end = self.walk.end.saturating_add(span);
    }

    /// The current frame, and with it the next ones, is not due before `now`; `Err` is the end
    /// where that is over.
    pub(super) fn wait_until(&mut self, now: Instant) -> Result<(), Instant> {
        self.due = self.due.max(now);
        if self.due < self.walk.end { Ok(()) } else { Err(self.walk.end) }
    }

    /// Goes on at another speed from `at`. What is left of the current gap then takes longer or
    /// shorter in the same proportion; a frame that is overdue keeps its due time, and so does
    /// one of a stream that is sent on and off.
    pub(super) fn set_speed(&mut self, speed: Speed, at: Instant, maker: &FrameMaker) {
        self.walk_up();
        let walk = &mut *self.walk;
        let before = core::mem::replace(&mut walk.transmission.speed, speed);
        let gaps = Gaps::new(&walk.transmission, maker);
        match (mean_gap(before, maker), mean_gap(speed, maker)) {
            (_, None) => self.due = self.due.min(at),
            (None, Some(_)) => self.due = self.due.max(at),
            (Some(old), Some(new)) => {
                let is_even = !matches!(gaps, Gaps::OnOff { .. });
                if is_even && self.due > at {
                    let left = self.due.saturating_since(at).as_nanos() as f64 * new / old;
                    self.due = at.saturating_add(Duration::from_nanos(left as u64));
                }
            }
        }
        let passed = match walk.gaps {
            Gaps::OnOff { elapsed, .. } => elapsed,
            _ => Duration::ZERO,
        };
        walk.gaps = gaps;
        if let Gaps::OnOff { elapsed, .. } = &mut walk.gaps {
            *elapsed = passed;
        }
        if before == Speed::Max && speed != Speed::Max {
            // Workers come one after the other again.
            for _ in 0..walk.number % walk.workers {
                let gap = walk.gaps.step(walk.number, &|_| maker.template().len());
                self.due = self.due.saturating_add(gap);
            }
        }
        self.step_quickly(maker);
    }

    #[inline(never)]
    fn advance_by_walking(&mut self, length: usize, maker: &FrameMaker) -> After {
        self.walk_up();
        let workers = self.walk.workers;
        let after = self.walk.step(workers, Some(length), maker, &mut self.due);
        self.step_quickly(maker);
        after
    }

    /// Takes the walk to the current frame.
    fn walk_up(&mut self) {
        let walk = &mut *self.walk;
        let frames = (walk.quick - self.quick).saturating_mul(walk.workers);
        walk.number += frames;
        if walk.left != u64::MAX {
            walk.left -= frames;
        }
        if let Gaps::Even(Steps::Steady(ticker)) = &mut walk.gaps
            && walk.quick > 0
        {
            *ticker = ticker.at_phase_of(self.own);
        }
        (self.quick, walk.quick) = (0, 0);
    }

    /// Finds out how far quick steps lead from the walk's place.
    fn step_quickly(&mut self, maker: &FrameMaker) {
        let walk = &mut *self.walk;
        let speed = walk.transmission.speed;
        let own = match &walk.gaps {
            Gaps::None => Some(SteadyTicker::STANDING),
            Gaps::Even(Steps::Steady(ticker)) if walk.workers == 1 => Some(*ticker),
            Gaps::Even(Steps::Steady(ticker)) => {
                Gaps::steady(speed, maker, walk.workers).map(|own| own.at_phase_of(*ticker))
            }
            _ => None,
        };
        let Some(own) = own else { return };
        let steps = if walk.left != u64::MAX {
            walk.left.saturating_sub(1) / walk.workers
        } else if walk.end != Instant::MAX {
            own.steps_before(walk.end.saturating_since(self.due))
        } else {
            u64::MAX
        };
        self.own = own;
        (self.quick, walk.quick) = (steps, steps);
    }
}

impl Walk {
    /// Goes on by so many frames of the stream; `length` is that of the current one, where it is
    /// known.
    fn step(
        &mut self,
        frames: u64,
        length: Option<usize>,
        maker: &FrameMaker,
        due: &mut Instant,
    ) -> After {
        let current = self.number;
        let length_of = |number| match length {
            Some(length) if number == current => length,
            _ => maker.length(number),
        };
        for _ in 0..frames {
            if self.left > 1 {
                *due = due.saturating_add(self.gaps.step(self.number, &length_of));
                self.left -= u64::from(self.left != u64::MAX);
                if *due >= self.end {
                    return After::End(self.end);
                }
            } else if let (Mode::Bursts { frames, gap, .. }, 2..) =
                (self.transmission.mode, self.groups_left)
            {
                self.groups_left -= 1;
                self.left = frames;
                *due = due.saturating_add(gap);
            } else {
                return After::End(*due);
            }
            self.number += 1;
        }
        After::Frame
    }
}

impl Gaps {
    fn new(transmission: &Transmission, maker: &FrameMaker) -> Self {
        let (rate, layer) = match transmission.speed {
            Speed::Max => return Self::None,
            Speed::Frames(rate) => (rate, None),
            Speed::Bits(rate, layer) => (rate, Some(layer)),
        };
        match transmission.departures {
            Departures::Constant => Self::Even(Steps::new(rate, layer, maker)),
            Departures::Poisson { seed } => {
                Self::Drawn { mean: 1e9 / rate.per_second(), layer, seed, rest: 0.0 }
            }
            Departures::OnOff { on, off } => {
                let whole = on.as_nanos().saturating_add(off.as_nanos());
                let rate = rate.scaled(whole, on.as_nanos()).unwrap_or(rate);
                let within = Steps::new(rate, layer, maker);
                Self::OnOff { within, on, off, elapsed: Duration::ZERO }
            }
        }
    }

    /// Steps of so many frames at once, where all are alike.
    fn steady(speed: Speed, maker: &FrameMaker, frames: u64) -> Option<SteadyTicker> {
        let (rate, units) = match speed {
            Speed::Max => return None,
            Speed::Frames(rate) => (rate, 1),
            Speed::Bits(rate, layer) => (rate, bits(maker.template().len(), layer)),
        };
        Some(SteadyTicker::new(rate, units.checked_mul(frames)?))
    }

    /// The gap behind frame `number`.
    #[inline]
    fn step(&mut self, number: u64, length_of: &dyn Fn(u64) -> usize) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Even(steps) => steps.step(number, length_of),
            Self::Drawn { mean, layer, seed, rest } => {
                // From the upper 53 bits, and never zero, whose logarithm there is none of.
                let uniform = ((draw(*seed, number) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                let units = layer.map_or(1, |layer| bits(length_of(number), layer));
                let gap = *mean * units as f64 * -libm::log(uniform) + *rest;
                let whole = libm::floor(gap);
                *rest = gap - whole;
                Duration::from_nanos(whole as u64)
            }
            Self::OnOff { within, on, off, elapsed } => {
                let mut gap = within.step(number, length_of);
                *elapsed = elapsed.saturating_add(gap);
                if *elapsed >= *on && *on > Duration::ZERO {
                    let times = elapsed.as_nanos() / on.as_nanos();
                    *elapsed = Duration::from_nanos(elapsed.as_nanos() % on.as_nanos());
                    let off = Duration::from_nanos(off.as_nanos().saturating_mul(times));
                    gap = gap.saturating_add(off);
                }
                gap
            }
        }
    }
}

impl Steps {
    fn new(rate: Rate, layer: Option<Layer>, maker: &FrameMaker) -> Self {
        match layer {
            None => Self::Steady(SteadyTicker::new(rate, 1)),
            Some(layer) if maker.lengths_vary() => Self::Bits(Ticker::new(rate), layer),
            Some(layer) => {
                Self::Steady(SteadyTicker::new(rate, bits(maker.template().len(), layer)))
            }
        }
    }

    #[inline]
    fn step(&mut self, number: u64, length_of: &dyn Fn(u64) -> usize) -> Duration {
        match self {
            Self::Steady(ticker) => ticker.step(),
            Self::Bits(ticker, layer) => ticker.step(bits(length_of(number), *layer)),
        }
    }
}

/// About how many ns lie between two frames; `None`: no time.
fn mean_gap(speed: Speed, maker: &FrameMaker) -> Option<f64> {
    match speed {
        Speed::Max => None,
        Speed::Frames(rate) => Some(1e9 / rate.per_second()),
        Speed::Bits(rate, layer) => {
            Some(bits(maker.template().len(), layer) as f64 * 1e9 / rate.per_second())
        }
    }
}

const fn bits(length: usize, layer: Layer) -> u64 {
    (length as u64 + layer.overhead()) * 8
}
