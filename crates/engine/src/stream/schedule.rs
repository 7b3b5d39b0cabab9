//! Due times of a stream's frames.

use alloc::boxed::Box;

use wirestorm_base::rate::{FixedStepTicker, Layer, Rate, Ticker};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::stream::{GapDistribution, Mode, Speed, Transmission, draw};

use super::program::FrameBuilder;
use super::share::Share;

/// Schedule of one stream, positioned at this worker's next frame.
///
/// All workers that share a stream follow the same schedule and send their own frames. So each
/// knows when the stream ends, even if it sends none of its frames. With constant gaps, a worker
/// skips the other workers' frames at once; otherwise it walks along them.
#[derive(Clone, Debug)]
pub(super) struct StreamSchedule {
    /// Due time of the current frame.
    due: Instant,
    /// Number of this worker's frames after the current one with gaps of `own`.
    quick: u64,
    /// Gap between two frames of this worker.
    ticker: FixedStepTicker,
    walk: Box<FrameSchedule>,
}

/// Schedule by single frames of the stream, positioned where the quick steps began.
#[derive(Clone, Debug)]
struct FrameSchedule {
    transmission: Transmission,
    /// Number of workers that share the stream.
    workers: u64,
    gaps: Gaps,
    /// Number of the current frame in its stream.
    number: u64,
    /// Frames left in the current group, including the current one.
    left: u64,
    /// Groups left, including the current one.
    groups_left: u64,
    /// Frames due at or after this instant are not sent.
    end: Instant,
    /// Number of quick steps at the walk's position.
    quick: u64,
}

/// Gaps between the frames of a group.
#[derive(Clone, Debug)]
enum Gaps {
    /// No gap.
    None,
    /// Constant gaps by rate.
    Even(Steps),
    /// Exponentially distributed gaps: the mean in ns for each frame, or for each bit of this
    /// layer, and the fraction left over.
    Drawn { mean: f64, layer: Option<Layer>, seed: u64, rest: f64 },
    /// Gaps by rate during the on time, then the off time without frames.
    OnOff { within: Steps, on: Duration, off: Duration, elapsed: Duration },
}

/// Gaps by rate.
#[derive(Clone, Debug)]
enum Steps {
    /// Equal gaps.
    Steady(FixedStepTicker),
    /// Gaps in proportion to the length of the frame before.
    Bits(Ticker, Layer),
}

/// Continuation after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another frame of this worker.
    Frame,
    /// End: the stream's last frame, of any worker, was due at this instant.
    End(Instant),
}

impl StreamSchedule {
    /// Starts a stream at `start` with frame `first` of `maker`. Returns the schedule at this
    /// worker's first frame, or at the end of the stream.
    pub(super) fn start(
        transmission: &Transmission,
        share: Share,
        maker: &FrameBuilder,
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
            Mode::Time { duration: lasts } => due.saturating_add(lasts),
            _ => Instant::MAX,
        };
        let mut emission = Self {
            due,
            quick: 0,
            ticker: FixedStepTicker::ZERO_STEP,
            walk: Box::new(FrameSchedule {
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
        emission.count_quick_steps(maker);
        (emission, after)
    }

    /// Returns the due time of the current frame.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Returns the number after the last frame of any worker, for a stream that ended by its time.
    pub(super) fn advances(&self) -> u64 {
        self.walk.number + 1
    }

    /// Advances to this worker's next frame, after one of `length` bytes without FCS.
    #[inline]
    pub(super) fn advance(&mut self, length: usize, maker: &FrameBuilder) -> After {
        if self.quick > 0 {
            self.quick -= 1;
            self.due = self.due.saturating_add(self.ticker.step());
            return After::Frame;
        }
        self.advance_by_walking(length, maker)
    }

    /// Returns how many frames a port may send by itself, all with the gaps of a ticker: those up to
    /// the end of the quick steps that are due before `end`. `None` if the gaps vary.
    pub(super) fn steady(&self, end: Instant) -> Option<(u64, FixedStepTicker)> {
        let is_steady = match &self.walk.gaps {
            Gaps::None | Gaps::Even(Steps::Steady(_)) => true,
            Gaps::Even(Steps::Bits(..)) | Gaps::Drawn { .. } | Gaps::OnOff { .. } => false,
        };
        let frames = match end.saturating_since(self.due) {
            Duration::ZERO => 0,
            left if end == Instant::MAX || left == Duration::MAX => u64::MAX,
            left => self.ticker.steps_before(left).saturating_add(1),
        };
        is_steady.then_some((self.quick.saturating_add(1).min(frames), self.ticker))
    }

    /// Advances by frames that a port has sent by itself, of `length` bytes each: at most as many as
    /// [`Self::steady`] returned.
    pub(super) fn skip(&mut self, frames: u64, length: usize, maker: &FrameBuilder) -> After {
        let quick = frames.min(self.quick);
        self.quick -= quick;
        self.due = self.due.saturating_add(self.ticker.steps(quick));
        match frames - quick {
            0 => After::Frame,
            _ => self.advance_by_walking(length, maker),
        }
    }

    /// Returns the end if no frame is due before it.
    pub(super) fn over(&self) -> Option<Instant> {
        (self.due >= self.walk.end).then_some(self.walk.end)
    }

    /// Delays all remaining frames and the end by `span`.
    pub(super) fn postpone(&mut self, span: Duration) {
        self.due = self.due.saturating_add(span);
        self.walk.end = self.walk.end.saturating_add(span);
    }

    /// Delays the current frame to `now` at the earliest, and the following ones with it. Returns
    /// the end as `Err` if it has passed.
    pub(super) fn wait_until(&mut self, now: Instant) -> Result<(), Instant> {
        self.due = self.due.max(now);
        if self.due < self.walk.end { Ok(()) } else { Err(self.walk.end) }
    }

    /// Changes the speed from `at` on. The rest of the current gap changes in the same proportion.
    /// An overdue frame keeps its due time, and so does the next frame of an on-off stream.
    pub(super) fn set_speed(&mut self, speed: Speed, at: Instant, maker: &FrameBuilder) {
        self.sync_walk();
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
            // Restore the order of workers.
            for _ in 0..walk.number % walk.workers {
                let gap = walk.gaps.step(walk.number, &|_| maker.template().len());
                self.due = self.due.saturating_add(gap);
            }
        }
        self.count_quick_steps(maker);
    }

    #[inline(never)]
    fn advance_by_walking(&mut self, length: usize, maker: &FrameBuilder) -> After {
        self.sync_walk();
        let workers = self.walk.workers;
        let after = self.walk.step(workers, Some(length), maker, &mut self.due);
        self.count_quick_steps(maker);
        after
    }

    /// Moves the walk to the current frame.
    fn sync_walk(&mut self) {
        let walk = &mut *self.walk;
        let frames = (walk.quick - self.quick).saturating_mul(walk.workers);
        walk.number += frames;
        if walk.left != u64::MAX {
            walk.left -= frames;
        }
        if let Gaps::Even(Steps::Steady(ticker)) = &mut walk.gaps
            && walk.quick > 0
        {
            *ticker = ticker.with_remainder_of(self.ticker);
        }
        (self.quick, walk.quick) = (0, 0);
    }

    /// Computes the number of quick steps from the walk's position.
    fn count_quick_steps(&mut self, maker: &FrameBuilder) {
        let walk = &mut *self.walk;
        let speed = walk.transmission.speed;
        let ticker = match &walk.gaps {
            Gaps::None => Some(FixedStepTicker::ZERO_STEP),
            Gaps::Even(Steps::Steady(ticker)) if walk.workers == 1 => Some(*ticker),
            Gaps::Even(Steps::Steady(ticker)) => {
                Gaps::steady(speed, maker, walk.workers).map(|it| it.with_remainder_of(*ticker))
            }
            _ => None,
        };
        let Some(ticker) = ticker else { return };
        let steps = if walk.left != u64::MAX {
            walk.left.saturating_sub(1) / walk.workers
        } else if walk.end != Instant::MAX {
            ticker.steps_before(walk.end.saturating_since(self.due))
        } else {
            u64::MAX
        };
        self.ticker = ticker;
        (self.quick, walk.quick) = (steps, steps);
    }
}

impl FrameSchedule {
    /// Advances by `frames` frames of the stream; `length` is the length of the current one, if
    /// known.
    fn step(
        &mut self,
        frames: u64,
        length: Option<usize>,
        maker: &FrameBuilder,
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
    fn new(transmission: &Transmission, maker: &FrameBuilder) -> Self {
        let (rate, layer) = match transmission.speed {
            Speed::Max => return Self::None,
            Speed::Frames(rate) => (rate, None),
            Speed::Bits(rate, layer) => (rate, Some(layer)),
        };
        match transmission.departures {
            GapDistribution::Constant => Self::Even(Steps::new(rate, layer, maker)),
            GapDistribution::Poisson { seed } => {
                Self::Drawn { mean: 1e9 / rate.per_second(), layer, seed, rest: 0.0 }
            }
            GapDistribution::OnOff { on, off } => {
                let period = on.as_nanos().saturating_add(off.as_nanos());
                let rate = rate.scaled(period, on.as_nanos()).unwrap_or(rate);
                let within = Steps::new(rate, layer, maker);
                Self::OnOff { within, on, off, elapsed: Duration::ZERO }
            }
        }
    }

    /// Returns the ticker of `frames` frames at once, if all gaps are equal.
    fn steady(speed: Speed, maker: &FrameBuilder, frames: u64) -> Option<FixedStepTicker> {
        let (rate, units) = match speed {
            Speed::Max => return None,
            Speed::Frames(rate) => (rate, 1),
            Speed::Bits(rate, layer) => (rate, bits(maker.template().len(), layer)),
        };
        Some(FixedStepTicker::new(rate, units.checked_mul(frames)?))
    }

    /// Returns the gap after frame `number`.
    #[inline]
    fn step(&mut self, number: u64, length_of: &dyn Fn(u64) -> usize) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Even(steps) => steps.step(number, length_of),
            Self::Drawn { mean, layer, seed, rest } => {
                // Use the upper 53 bits and avoid zero, whose logarithm is undefined.
                let uniform = ((draw(*seed, number) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                let units = layer.map_or(1, |layer| bits(length_of(number), layer));
                let gap = *mean * units as f64 * -libm::log(uniform) + *rest;
                let floor = libm::floor(gap);
                *rest = gap - floor;
                Duration::from_nanos(floor as u64)
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
    fn new(rate: Rate, layer: Option<Layer>, maker: &FrameBuilder) -> Self {
        match layer {
            None => Self::Steady(FixedStepTicker::new(rate, 1)),
            Some(layer) if maker.lengths_vary() => Self::Bits(Ticker::new(rate), layer),
            Some(layer) => {
                Self::Steady(FixedStepTicker::new(rate, bits(maker.template().len(), layer)))
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

/// Returns the mean gap between two frames in ns; `None` for no gap.
fn mean_gap(speed: Speed, maker: &FrameBuilder) -> Option<f64> {
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
