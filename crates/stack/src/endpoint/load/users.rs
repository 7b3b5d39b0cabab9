//! Users who make one flow after the other, and think between them.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Think;

use crate::random::Random;

/// Nobody thinks for less, so that flows which are over at once are not made without end.
const LEAST: Duration = Duration::from_micros(1);

fn draw(think: &Think, random: &mut Random) -> Duration {
    let nanos = |time: Duration| time.as_nanos() as f64;
    let drawn = match *think {
        Think::Uniform { min, max } => {
            let span = max.saturating_sub(min);
            if span == Duration::ZERO {
                return min;
            }
            // Whole steps of 2^-32 of the span.
            nanos(min) + nanos(span) * f64::from(random.below(u32::MAX)) / f64::from(u32::MAX)
        }
        Think::Exponential { mean } => random.exponential() * nanos(mean),
        Think::Normal { mean, deviation } => nanos(mean) + random.normal() * nanos(deviation),
    };
    // What is below 0 becomes 0.
    Duration::from_nanos(drawn as u64)
}

/// How far the users of a template are.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Users {
    /// How many there are to be.
    count: u64,
    think: Think,
    start: Instant,
    /// They come at equal intervals within this.
    ramp: Duration,
    /// Those that are there: with a flow, or thinking.
    present: u64,
    /// Those with a flow.
    busy: u64,
    /// Until when each of the others thinks.
    thinking: BinaryHeap<Reverse<Instant>>,
}

impl Users {
    pub(in crate::endpoint) const fn new(
        count: u64,
        think: Think,
        start: Instant,
        ramp: Duration,
    ) -> Self {
        let thinking = BinaryHeap::new();
        Self { count, think, start, ramp, present: 0, busy: 0, thinking }
    }

    /// From now on they are so many. Those that come beside the others do so at once, where the
    /// ramp is over; those who are too many leave when they have thought.
    pub(in crate::endpoint) const fn set(&mut self, count: u64) {
        self.count = count;
    }

    /// When the next flow is due, where there are users at all.
    pub(in crate::endpoint) fn next(&self) -> Option<Instant> {
        let thinker = self.thinking.peek().map(|Reverse(until)| *until);
        thinker.into_iter().chain(self.next_comer()).min()
    }

    /// When the next user comes.
    fn next_comer(&self) -> Option<Instant> {
        let part = u128::from(self.ramp.as_nanos()) * u128::from(self.present);
        // No more than the ramp itself, for there are no more users than are to be.
        let passed = |count| Duration::from_nanos((part / u128::from(count)) as u64);
        (self.present < self.count).then(|| self.start.saturating_add(passed(self.count)))
    }

    /// Whether a user makes a flow now.
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

    /// A flow is over, or could not be made: its user thinks, for so long at least.
    pub(in crate::endpoint) fn note_end(
        &mut self,
        now: Instant,
        least: Duration,
        random: &mut Random,
    ) {
        // Flows of the template that programs have asked for are nobody's.
        if self.busy > 0 {
            self.busy -= 1;
            let until = now.saturating_add(draw(&self.think, random).max(LEAST).max(least));
            self.thinking.push(Reverse(until));
        }
    }
}
