//! When the flows of an open loop are due.
//!
//! A schedule runs in a time of its own, in which its rate is always whole: a ramp bends that time,
//! and is nothing else. While the rate grows from 0 over a time T, as many flows are due within t
//! as the whole rate has in t^2 / 2T; behind it, as in t - T / 2.

use core::num::NonZero;

use wirestorm_base::rate::{Rate, RateError, Ticker};
use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

use super::scale::Scale;
use crate::random::Random;

/// So many are passed over at once: if they are drawn, their number is distributed as well as
/// normally.
const MANY: f64 = 1_000.0;

/// No more are passed over one by one.
const PASSED_SINGLY: u32 = 100_000;

/// The times of flows, one after the other.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Schedule {
    start: Instant,
    ramp: Duration,
    /// As it was asked for.
    rate: Rate,
    scale: Scale,
    /// At the rate of now.
    ticker: Ticker,
    /// The average interval of now in nanoseconds, where intervals are drawn.
    mean: Option<f64>,
    /// When the next one is due in the schedule's own time, and on the clock.
    own: Duration,
    due: Instant,
}

impl Schedule {
    /// At equal intervals; the first is due at once.
    pub(in crate::endpoint) fn constant(rate: Rate, start: Instant, ramp: Duration) -> Self {
        Self {
            start,
            ramp,
            rate,
            scale: (NonZero::<u32>::MIN, NonZero::<u32>::MIN),
            ticker: Ticker::new(rate),
            mean: None,
            own: Duration::ZERO,
            due: start,
        }
    }

    /// At intervals that are exponentially distributed.
    pub(in crate::endpoint) fn poisson(
        rate: Rate,
        start: Instant,
        ramp: Duration,
        random: &mut Random,
    ) -> Self {
        let mut schedule = Self { mean: Some(mean(rate)), ..Self::constant(rate, start, ramp) };
        // A process without memory begins with an interval.
        schedule.advance(random);
        schedule
    }

    /// When the next one is due.
    #[inline]
    pub(in crate::endpoint) const fn due(&self) -> Instant {
        self.due
    }

    /// The next one is the one behind it.
    #[inline]
    pub(in crate::endpoint) fn advance(&mut self, random: &mut Random) {
        let interval = match self.mean {
            Some(mean) => Duration::from_nanos((random.exponential() * mean) as u64),
            None => self.ticker.step(1),
        };
        self.own = self.own.saturating_add(interval);
        self.due = self.start.saturating_add(self.on_the_clock(self.own));
    }

    /// Passes over all that are due by a time; returns how many.
    #[cold]
    pub(in crate::endpoint) fn pass(&mut self, by: Instant, random: &mut Random) -> u64 {
        let mut passed = self.pass_many(by, random);
        // Intervals that are drawn may be shorter than a nanosecond.
        for _ in 0..PASSED_SINGLY {
            if self.due > by {
                return passed;
            }
            self.advance(random);
            passed += 1;
        }
        self.due = self.due.max(by.saturating_add(Duration::from_nanos(1)));
        passed
    }

    /// Passes over nearly all that are due by a time, where they are many. Those that are drawn are
    /// drawn at once.
    fn pass_many(&mut self, by: Instant, random: &mut Random) -> u64 {
        let end = self.in_own_time(by.saturating_since(self.start));
        let expected = end.saturating_sub(self.own).as_nanos() as f64 / self.mean_now();
        if self.due > by || expected < MANY {
            return 0;
        }
        let passed = match self.mean {
            // What is rounded may be too great by a little.
            None => (expected * (1.0 - 1e-12)) as u64 - 1,
            Some(_) => (expected + libm::sqrt(expected) * random.normal()) as u64,
        };
        self.own = match self.mean {
            None => self.own.saturating_add(self.ticker.step(passed)),
            Some(_) => end,
        };
        self.due = self.start.saturating_add(self.on_the_clock(self.own));
        passed
    }

    /// The average interval of now, in nanoseconds.
    fn mean_now(&self) -> f64 {
        let (more, fewer) = (f64::from(self.scale.0.get()), f64::from(self.scale.1.get()));
        mean(self.rate) * fewer / more
    }

    /// From now on the rate is that which was asked for, multiplied: what is left of the present
    /// interval becomes longer or shorter as all that follow.
    pub(in crate::endpoint) fn set_scale(
        &mut self,
        scale: Scale,
        now: Instant,
    ) -> Result<(), RateError> {
        let rate = self.rate.scaled(scale.0.get().into(), scale.1.get().into())?;
        let passed = self.in_own_time(now.saturating_since(self.start));
        // What is due by now stays so.
        let left = u128::from(self.own.saturating_sub(passed).as_nanos());
        let product = |a: NonZero<u32>, b: NonZero<u32>| u128::from(a.get()) * u128::from(b.get());
        let (longer, shorter) = (product(self.scale.0, scale.1), product(self.scale.1, scale.0));
        if left > 0 {
            let left = left.checked_mul(longer).map_or(u128::MAX, |it| it / shorter);
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            self.own = passed.saturating_add(left);
            self.due = self.start.saturating_add(self.on_the_clock(self.own));
        }
        self.scale = scale;
        self.ticker = Ticker::new(rate);
        self.mean = self.mean.map(|_| mean(rate));
        Ok(())
    }

    /// When that is on the clock, since the start, which is so far in the schedule's own time.
    fn on_the_clock(&self, own: Duration) -> Duration {
        let half = Duration::from_nanos(self.ramp.as_nanos() / 2);
        if own >= half {
            return own.saturating_add(half);
        }
        let square = 2 * u128::from(self.ramp.as_nanos()) * u128::from(own.as_nanos());
        Duration::from_nanos(square.isqrt() as u64)
    }

    /// The reverse of it.
    fn in_own_time(&self, passed: Duration) -> Duration {
        if passed >= self.ramp {
            return passed.saturating_sub(Duration::from_nanos(self.ramp.as_nanos() / 2));
        }
        let passed = u128::from(passed.as_nanos());
        // Less than half of the ramp, which is longer than 0 here.
        Duration::from_nanos((passed * passed / (2 * u128::from(self.ramp.as_nanos()))) as u64)
    }
}

/// The average interval, in nanoseconds.
fn mean(rate: Rate) -> f64 {
    NANOSECONDS_PER_SECOND as f64 / rate.per_second()
}
