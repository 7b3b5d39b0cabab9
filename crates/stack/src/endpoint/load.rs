//! When flows are made.

use core::num::NonZero;

use wirestorm_base::rate::{Rate, RateError};
use wirestorm_base::time::{Duration, Instant};

use super::schedule::Schedule;
use super::throughput::Throughput;
use super::users::{Think, Users};
use crate::random::Random;

/// When the flows of a template are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Whenever [`Endpoint::connect`](super::Endpoint::connect) says so.
    OnDemand,
    /// So many a second at equal intervals, whatever becomes of them (an open loop). The k-th one
    /// is due exactly k intervals behind the start, so a late one is followed by others at once.
    Constant {
        /// How many a second.
        rate: Rate,
        /// How many at once at most, those in TIME-WAIT not counted; `None`: as many as there are.
        /// What is due while so many are there is skipped, and counted.
        at_most: Option<u64>,
    },
    /// So many a second on average, at intervals that are exponentially distributed: as many
    /// independent users come.
    Poisson {
        /// How many a second.
        rate: Rate,
        /// How many at once at most, as above.
        at_most: Option<u64>,
    },
    /// As soon as there are fewer than so many (a closed loop); those in TIME-WAIT do not count.
    Hold {
        /// How many at once.
        flows: u64,
    },
    /// As soon as there are fewer than it takes to receive so many bits of data a second, which is
    /// found out ten times a second. So one flow there is at least, however much it receives.
    Throughput {
        /// How many.
        bits_per_second: u64,
    },
    /// By so many users: each makes a flow, thinks when that is over, or in TIME-WAIT, and makes
    /// the next one.
    Users {
        /// How many.
        users: u64,
        /// For how long they think.
        think: Think,
    },
}

/// What a load is multiplied by: a numerator and a denominator.
pub(super) type Scale = (NonZero<u32>, NonZero<u32>);

/// A number times a scale, rounded.
pub(super) fn scaled(number: u64, (numerator, denominator): Scale) -> u64 {
    let (numerator, denominator) = (u128::from(numerator.get()), u128::from(denominator.get()));
    let product = u128::from(number) * numerator;
    u64::try_from((product + denominator / 2) / denominator).unwrap_or(u64::MAX)
}

/// Whether a flow is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// None is.
    Not,
    /// One is, and counts as made.
    Now,
    /// One was, while as many were there as may be: it is skipped.
    Skipped,
    /// One was, while no client was on: it is skipped as well.
    NoClient,
}

/// How far a template's load is.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    load: Load,
    pace: Pace,
    /// Flows that may still be made.
    left: u64,
    /// Whether no client is on.
    is_off: bool,
    random: Random,
}

/// What says when a flow is due.
#[derive(Clone, Debug)]
enum Pace {
    /// Nothing.
    OnDemand,
    /// The clock, and how many there may be.
    Open(Schedule, Option<u64>),
    /// How many there are.
    Hold(u64),
    /// How many there are, and what they receive.
    Throughput(Throughput),
    /// Those who make them.
    Users(Users),
}

impl Arrivals {
    /// A load that begins at a time, and ends after so many flows. A rate grows over `ramp` from 0
    /// to what it is, and so does the number of users.
    pub(super) fn new(
        load: Load,
        ramp: Duration,
        limit: Option<u64>,
        start: Instant,
        mut random: Random,
    ) -> Self {
        let pace = match load {
            Load::OnDemand => Pace::OnDemand,
            Load::Constant { rate, at_most } => {
                Pace::Open(Schedule::constant(rate, start, ramp), at_most)
            }
            Load::Poisson { rate, at_most } => {
                Pace::Open(Schedule::poisson(rate, start, ramp, &mut random), at_most)
            }
            Load::Hold { flows } => Pace::Hold(flows),
            Load::Throughput { bits_per_second } => {
                Pace::Throughput(Throughput::new(bits_per_second, start))
            }
            Load::Users { users, think } => Pace::Users(Users::new(users, think, start, ramp)),
        };
        Self { load, pace, left: limit.unwrap_or(u64::MAX), is_off: false, random }
    }

    /// When the next flow is due where there are so many; `None` where that does not depend on the
    /// clock.
    pub(super) fn next(&self, active: u64) -> Option<Instant> {
        if self.left == 0 {
            return None;
        }
        match &self.pace {
            Pace::OnDemand => None,
            Pace::Open(schedule, _) => Some(schedule.due()),
            // Nothing is asked for in vain.
            _ if self.is_off => None,
            Pace::Hold(flows) => (active < *flows).then_some(Instant::ZERO),
            Pace::Throughput(throughput) => match active < throughput.flows() {
                true => Some(Instant::ZERO),
                false => Some(throughput.next()),
            },
            Pace::Users(users) => users.next(),
        }
    }

    /// Whether none is to be made any more.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0 || self.load == Load::OnDemand
    }

    /// Whether one is due now, where there are so many, so many were made since it was asked first,
    /// and all have received so many bytes.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, active: u64, made: u64, received: u64) -> Due {
        // Flows that are over at once count as well: so no more are made at a time than are held.
        let held = active.max(made);
        let is_due = match &mut self.pace {
            Pace::OnDemand => false,
            Pace::Open(schedule, _) => schedule.due() <= now,
            _ if self.is_off => false,
            Pace::Hold(flows) => held < *flows,
            Pace::Throughput(throughput) => {
                throughput.look(now, received);
                held < throughput.flows()
            }
            Pace::Users(users) => users.take(now),
        };
        if !is_due || self.left == 0 {
            return Due::Not;
        }
        if let Pace::Open(schedule, at_most) = &mut self.pace {
            schedule.advance(&mut self.random);
            if self.is_off {
                return Due::NoClient;
            }
            if at_most.is_some_and(|most| active >= most) {
                return Due::Skipped;
            }
        }
        self.left -= 1;
        Due::Now
    }

    /// What was taken could not be made. Returns whether it is due again when there is room.
    pub(super) fn give_back(&mut self, now: Instant) -> bool {
        let is_closed_loop =
            matches!(self.pace, Pace::Hold(_) | Pace::Throughput(_) | Pace::Users(_));
        self.note_end(now);
        if is_closed_loop {
            self.left = self.left.saturating_add(1);
        }
        is_closed_loop
    }

    /// A flow is over for its program.
    #[inline]
    pub(super) fn note_end(&mut self, now: Instant) {
        if let Pace::Users(users) = &mut self.pace {
            users.note_end(now, &mut self.random);
        }
    }

    /// Whether no client is on from now on.
    pub(super) const fn set_off(&mut self, is_off: bool) {
        self.is_off = is_off;
    }

    /// No more are made.
    pub(super) fn stop(&mut self) {
        self.left = 0;
    }

    /// The same with its load multiplied from now on.
    pub(super) fn scaled(&self, scale: Scale, now: Instant) -> Result<Self, RateError> {
        let mut it = self.clone();
        match (&mut it.pace, self.load) {
            (Pace::Open(schedule, _), _) => schedule.set_scale(scale, now)?,
            (Pace::Hold(held), Load::Hold { flows }) => *held = scaled(flows, scale),
            (Pace::Throughput(throughput), Load::Throughput { bits_per_second }) => {
                throughput.set(scaled(bits_per_second, scale));
            }
            (Pace::Users(them), Load::Users { users, .. }) => them.set(scaled(users, scale)),
            _ => {}
        }
        Ok(it)
    }
}
