//! Users that start one flow after another, and think between them.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::ThinkTime;

use wirestorm_base::random::Random;

/// Minimum think time, so that flows that end at once do not start in an endless loop.
const LEAST: Duration = Duration::from_micros(1);

fn draw(think: &ThinkTime, random: &mut Random) -> Duration {
    let nanos = |time: Duration| time.as_nanos() as f64;
    let think_nanos = match *think {
        ThinkTime::Uniform { min, max } => {
            let span = max.saturating_sub(min);
            if span == Duration::ZERO {
                return min;
            }
            // Whole steps of 2^-32 of the span.
            nanos(min) + nanos(span) * f64::from(random.below(u32::MAX)) / f64::from(u32::MAX)
        }
        ThinkTime::Exponential { mean } => random.exponential() * nanos(mean),
        ThinkTime::Normal { mean, stddev: deviation } => {
            nanos(mean) + random.normal() * nanos(deviation)
        }
    };
    // What is below 0 becomes 0.
    Duration::from_nanos(think_nanos as u64)
}

/// State of the users of a template.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Users {
    /// Target number of users.
    count: u64,
    think: ThinkTime,
    start: Instant,
    /// Time in which the users arrive at equal intervals.
    ramp: Duration,
    /// Present users: with a flow, or thinking.
    present: u64,
    /// Users with a flow.
    busy: u64,
    /// Ends of the think times of the others.
    thinking: BinaryHeap<Reverse<Instant>>,
}

impl Users {
    pub(in crate::endpoint) const fn new(
        count: u64,
        think: ThinkTime,
        start: Instant,
        ramp: Duration,
    ) -> Self {
        let thinking = BinaryHeap::new();
        Self { count, think, start, ramp, present: 0, busy: 0, thinking }
    }

    /// Changes the number of users. Additional users arrive at once if the ramp is over. Surplus
    /// users leave after their think time.
    pub(in crate::endpoint) const fn set(&mut self, count: u64) {
        self.count = count;
    }

    /// Returns when the next flow is due, if there are users.
    pub(in crate::endpoint) fn next(&self) -> Option<Instant> {
        let thinker = self.thinking.peek().map(|Reverse(until)| *until);
        thinker.into_iter().chain(self.next_comer()).min()
    }

    /// Returns when the next user arrives.
    fn next_comer(&self) -> Option<Instant> {
        let part = u128::from(self.ramp.as_nanos()) * u128::from(self.present);
        // At most the ramp, since fewer users are present than `count`.
        let passed = |count| Duration::from_nanos((part / u128::from(count)) as u64);
        (self.present < self.count).then(|| self.start.saturating_add(passed(self.count)))
    }

    /// Whether a user starts a flow now.
    pub(in crate::endpoint) fn take(&mut self, now: Instant) -> bool {
        while self.thinking.peek().is_some_and(|Reverse(until)| *until <= now) {
            self.thinking.pop();
            if self.present > self.count {
                self.present -= 1;
                continue;
            }
            self.busy += 1;
            return true;
        }
        let comes = self.next_comer().is_some_and(|at| at <= now);
        if comes {
            self.present += 1;
            self.busy += 1;
        }
        comes
    }

    /// Handles the end of a flow, or a failed start: its user thinks, at least for `least`.
    pub(in crate::endpoint) fn note_end(
        &mut self,
        now: Instant,
        least: Duration,
        random: &mut Random,
    ) {
        // Flows that programs start have no user.
        if self.busy > 0 {
            self.busy -= 1;
            let until = now.saturating_add(draw(&self.think, random).max(LEAST).max(least));
            self.thinking.push(Reverse(until));
        }
    }
}
