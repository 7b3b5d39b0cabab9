//! Due times of an open loop.
//!
//! A schedule has a time of its own, in which the rate is constant. A ramp maps that time to the
//! clock. While the rate grows from 0 over a time T, t on the clock is t^2 / 2T in own time. Later,
//! it is t - T / 2.

use core::num::NonZero;

use wirestorm_base::rate::{Rate, RateError, Ticker};
use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

use super::scale::Scale;
use wirestorm_base::random::Random;

/// Number of due flows from which they are skipped at once. The number of random ones is nearly
/// normally distributed then.
const MANY: f64 = 1_000.0;

/// Maximum number of flows skipped one by one.
const PASSED_SINGLY: u32 = 100_000;

/// Due times of flows, one after another.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Schedule {
    start: Instant,
    ramp: Duration,
    /// Original rate.
    rate: Rate,
    scale: Scale,
    /// Intervals of the current rate.
    ticker: Ticker,
    /// Mean of the current intervals in nanoseconds, if they are random.
    mean: Option<f64>,
    /// Due time of the next flow, in the schedule's own time and on the clock.
    schedule_time: Duration,
    due: Instant,
}

impl Schedule {
    /// Creates a schedule with equal intervals; the first flow is due at once.
    pub(in crate::endpoint) fn constant(rate: Rate, start: Instant, ramp: Duration) -> Self {
        Self {
            start,
            ramp,
            rate,
            scale: (NonZero::<u32>::MIN, NonZero::<u32>::MIN),
            ticker: Ticker::new(rate),
            mean: None,
            schedule_time: Duration::ZERO,
            due: start,
        }
    }

    /// Creates a schedule with exponentially distributed intervals.
    pub(in crate::endpoint) fn poisson(
        rate: Rate,
        start: Instant,
        ramp: Duration,
        random: &mut Random,
    ) -> Self {
        let mut schedule = Self { mean: Some(mean(rate)), ..Self::constant(rate, start, ramp) };
        // A memoryless process starts with an interval.
        schedule.advance(random);
        schedule
    }

    /// Returns when the next flow is due.
    #[inline]
    pub(in crate::endpoint) const fn due(&self) -> Instant {
        self.due
    }

    /// Continues with the following flow.
    #[inline]
    pub(in crate::endpoint) fn advance(&mut self, random: &mut Random) {
        let interval = match self.mean {
            Some(mean) => Duration::from_nanos((random.exponential() * mean) as u64),
            None => self.ticker.step(1),
        };
        self.schedule_time = self.schedule_time.saturating_add(interval);
        self.due = self.start.saturating_add(self.to_clock_time(self.schedule_time));
    }

    /// Skips all flows that are due by a time; returns their number.
    #[cold]
    pub(in crate::endpoint) fn pass(&mut self, by: Instant, random: &mut Random) -> u64 {
        let mut passed = self.pass_many(by, random);
        // Random intervals may be shorter than a nanosecond.
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

    /// Skips almost all flows that are due by a time, if they are many. Draws the number of random
    /// ones at once.
    fn pass_many(&mut self, by: Instant, random: &mut Random) -> u64 {
        let end = self.to_schedule_time(by.saturating_since(self.start));
        let expected = end.saturating_sub(self.schedule_time).as_nanos() as f64 / self.mean_now();
        if self.due > by || expected < MANY {
            return 0;
        }
        let passed = match self.mean {
            // Rounding may have made it slightly too large.
            None => (expected * (1.0 - 1e-12)) as u64 - 1,
            Some(_) => (expected + libm::sqrt(expected) * random.normal()) as u64,
        };
        self.schedule_time = match self.mean {
            None => self.schedule_time.saturating_add(self.ticker.step(passed)),
            Some(_) => end,
        };
        self.due = self.start.saturating_add(self.to_clock_time(self.schedule_time));
        passed
    }

    /// Returns the current mean interval in nanoseconds.
    fn mean_now(&self) -> f64 {
        let (more, fewer) = (f64::from(self.scale.0.get()), f64::from(self.scale.1.get()));
        mean(self.rate) * fewer / more
    }

    /// Multiplies the original rate by a factor from now on. The rest of the current interval
    /// scales like those that follow.
    pub(in crate::endpoint) fn set_scale(
        &mut self,
        scale: Scale,
        now: Instant,
    ) -> Result<(), RateError> {
        let rate = self.rate.scaled(scale.0.get().into(), scale.1.get().into())?;
        let passed = self.to_schedule_time(now.saturating_since(self.start));
        // Flows that are already due stay due.
        let left = u128::from(self.schedule_time.saturating_sub(passed).as_nanos());
        let product = |a: NonZero<u32>, b: NonZero<u32>| u128::from(a.get()) * u128::from(b.get());
        let (longer, shorter) = (product(self.scale.0, scale.1), product(self.scale.1, scale.0));
        if left > 0 {
            let left = left.checked_mul(longer).map_or(u128::MAX, |it| it / shorter);
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            self.schedule_time = passed.saturating_add(left);
            self.due = self.start.saturating_add(self.to_clock_time(self.schedule_time));
        }
        self.scale = scale;
        self.ticker = Ticker::new(rate);
        self.mean = self.mean.map(|_| mean(rate));
        Ok(())
    }

    /// Converts the schedule's own time to the time on the clock, both since the start.
    fn to_clock_time(&self, schedule_time: Duration) -> Duration {
        let half = Duration::from_nanos(self.ramp.as_nanos() / 2);
        if schedule_time >= half {
            return schedule_time.saturating_add(half);
        }
        let square = 2 * u128::from(self.ramp.as_nanos()) * u128::from(schedule_time.as_nanos());
        Duration::from_nanos(square.isqrt() as u64)
    }

    /// Converts the time on the clock to the schedule's own time, both since the start.
    fn to_schedule_time(&self, passed: Duration) -> Duration {
        if passed >= self.ramp {
            return passed.saturating_sub(Duration::from_nanos(self.ramp.as_nanos() / 2));
        }
        let passed = u128::from(passed.as_nanos());
        // Less than half of the ramp, which is longer than 0 here.
        Duration::from_nanos((passed * passed / (2 * u128::from(self.ramp.as_nanos()))) as u64)
    }
}

/// Returns the mean interval in nanoseconds.
fn mean(rate: Rate) -> f64 {
    NANOSECONDS_PER_SECOND as f64 / rate.per_second()
}
