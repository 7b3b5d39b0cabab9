//! Load of a template: when its flows start.

use wirestorm_base::rate::RateError;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_model::load::Load;

use super::back_off::BackOff;
use super::scale::{Scale, scaled};
use super::schedule::Schedule;
use super::throughput::{Throughput, ThroughputOutcome};
use super::users::Users;
use wirestorm_base::random::Random;

/// Result of asking for a due flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Due {
    /// No flow is due.
    Not,
    /// A flow is due, and counts as started.
    Now,
    /// This many flows were due at the maximum number of flows; they are skipped.
    Skipped(u64),
    /// This many flows were due while all clients were off; they are skipped.
    NoClient(u64),
    /// This many flows were due too long ago; they are skipped.
    Late(u64),
}

/// Maximum delay of a flow of an open loop.
const LATE_MAX: Duration = Duration::from_secs(1);

/// State of a template's load.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Arrivals {
    load: Load,
    pace: Pace,
    /// Number of flows that may still start.
    left: u64,
    /// Time after which no flow is due.
    until: Instant,
    /// Whether all clients are off.
    is_off: bool,
    random: Random,
}

/// What determines due times.
#[derive(Clone, Debug)]
enum Pace {
    /// Nothing.
    OnDemand,
    /// The clock, and the maximum number of flows.
    Open(Schedule, Option<u64>),
    /// The number of existing flows.
    Hold(HoldTarget, BackOff),
    /// The number of existing flows, and the data they receive.
    Throughput(Throughput, BackOff),
    /// The users.
    Users(Users, BackOff),
}

/// Number of flows to hold.
#[derive(Clone, Copy, Debug)]
struct HoldTarget {
    flows: u64,
    start: Instant,
    /// Time in which they start at equal intervals.
    ramp: Duration,
}

impl HoldTarget {
    /// Returns the number of flows to hold at a time.
    #[inline]
    fn now(&self, now: Instant) -> u64 {
        let passed = now.saturating_since(self.start);
        if passed >= self.ramp {
            return self.flows;
        }
        let product = u128::from(self.flows) * u128::from(passed.as_nanos());
        // Less than `flows`, since the ramp is not over.
        let due = (product / u128::from(self.ramp.as_nanos())) as u64;
        due.saturating_add(1).min(self.flows)
    }

    /// Returns when more than `active` flows may exist; `None`: never.
    fn next(&self, active: u64) -> Option<Instant> {
        if active >= self.flows {
            return None;
        }
        let product = u128::from(self.ramp.as_nanos()) * u128::from(active);
        let passed = product.div_ceil(u128::from(self.flows)) as u64;
        Some(self.start.saturating_add(Duration::from_nanos(passed)))
    }
}

impl Arrivals {
    /// Creates a load that starts at a time and ends after `limit` flows. A rate, and a number of
    /// users or held flows, grows from 0 to its value during `ramp`.
    pub(in crate::endpoint) fn new(
        load: Load,
        ramp: Duration,
        limit: Option<u64>,
        start: Instant,
        mut random: Random,
    ) -> Self {
        let pace = match load {
            Load::OnDemand => Pace::OnDemand,
            Load::Rate { rate, concurrent_max: at_most } => {
                Pace::Open(Schedule::constant(rate, start, ramp), at_most)
            }
            Load::Poisson { rate, concurrent_max: at_most } => {
                Pace::Open(Schedule::poisson(rate, start, ramp, &mut random), at_most)
            }
            Load::Concurrent(flows) => {
                Pace::Hold(HoldTarget { flows, start, ramp }, BackOff::new())
            }
            Load::Throughput(bits_per_second) => {
                Pace::Throughput(Throughput::new(bits_per_second, start), BackOff::new())
            }
            Load::Users { users, think_time: think } => {
                Pace::Users(Users::new(users, think, start, ramp), BackOff::new())
            }
        };
        let (left, until) = (limit.unwrap_or(u64::MAX), Instant::MAX);
        Self { load, pace, left, until, is_off: false, random }
    }

    /// Returns when the next flow is due with `active` flows; `None` if it does not depend on the
    /// clock.
    pub(in crate::endpoint) fn next(&self, active: u64) -> Option<Instant> {
        if self.left == 0 {
            return None;
        }
        match &self.pace {
            Pace::OnDemand => None,
            Pace::Open(schedule, _) => Some(schedule.due()),
            // Without a client no flow can start.
            _ if self.is_off => None,
            Pace::Hold(held, back_off) => {
                let again = (back_off.len() > 0).then(|| back_off.next()).flatten();
                held.next(active + back_off.len()).into_iter().chain(again).min()
            }
            Pace::Throughput(throughput, back_off) => {
                let next = throughput.next(active + back_off.len());
                Some(back_off.next().map_or(next, |again| next.min(again)))
            }
            Pace::Users(users, _) => users.next(),
        }
    }

    /// Whether the load waits for flows to end instead of the clock.
    pub(in crate::endpoint) const fn is_closed_loop(&self) -> bool {
        matches!(self.pace, Pace::Hold(..) | Pace::Throughput(..) | Pace::Users(..))
    }

    /// Returns the number of flows at which more brought no more data, for a throughput below its
    /// target.
    pub(in crate::endpoint) fn in_vain(&self) -> Option<u64> {
        match &self.pace {
            Pace::Throughput(throughput, _) => throughput.in_vain(),
            _ => None,
        }
    }

    /// Returns the result of a throughput load after it was stopped.
    pub(in crate::endpoint) fn throughput(&self) -> Option<ThroughputOutcome> {
        match &self.pace {
            Pace::Throughput(throughput, _) => throughput.outcome(),
            _ => None,
        }
    }

    /// Whether the load starts no more flows.
    pub(in crate::endpoint) fn is_done(&self) -> bool {
        self.left == 0 || self.load == Load::OnDemand
    }

    /// Returns the end of a rate that has reached its limit: one interval after its last flow.
    /// `None` for other loads.
    pub(in crate::endpoint) fn end(&self) -> Option<Instant> {
        match &self.pace {
            Pace::Open(schedule, _) if self.left == 0 => Some(schedule.due().min(self.until)),
            _ => None,
        }
    }

    /// Takes a due flow, if any. `active`: existing flows. `started`: flows started since the first
    /// call of this iteration. `received`: bytes that all flows have received.
    #[inline]
    pub(in crate::endpoint) fn take(
        &mut self,
        now: Instant,
        active: u64,
        started: u64,
        received: u64,
    ) -> Due {
        if self.left == 0 {
            return Due::Not;
        }
        if let Pace::Open(..) = self.pace {
            return self.take_open(now.min(self.until), active);
        }
        // Flows that end at once count as well, so an iteration starts no more than are held.
        let held = active.max(started);
        let is_due = match &mut self.pace {
            Pace::OnDemand | Pace::Open(..) => false,
            _ if self.is_off || now > self.until => false,
            Pace::Hold(to_be, back_off) => held + back_off.places(now) < to_be.now(now),
            Pace::Throughput(throughput, back_off) => {
                throughput.take(now, held, back_off.places(now), received)
            }
            Pace::Users(users, _) => users.take(now),
        };
        if !is_due {
            return Due::Not;
        }
        self.left -= 1;
        Due::Now
    }

    /// Like [`Self::take`], for an open loop.
    #[inline]
    fn take_open(&mut self, now: Instant, active: u64) -> Due {
        let Pace::Open(schedule, at_most) = &mut self.pace else { return Due::Not };
        if schedule.due() > now {
            return Due::Not;
        }
        if self.is_off {
            return Due::NoClient(schedule.pass(now, &mut self.random));
        }
        if at_most.is_some_and(|most| active >= most) {
            return Due::Skipped(schedule.pass(now, &mut self.random));
        }
        if schedule.due().saturating_add(LATE_MAX) < now {
            let late = Instant::from_nanos(now.as_nanos() - LATE_MAX.as_nanos());
            return Due::Late(schedule.pass(late, &mut self.random));
        }
        schedule.advance(&mut self.random);
        self.left -= 1;
        Due::Now
    }

    /// Gives back a taken flow that could not start. Returns whether the load retries it.
    pub(in crate::endpoint) fn give_back(&mut self, now: Instant) -> bool {
        let is_closed_loop = self.is_closed_loop();
        self.note_end(now, None, None, true);
        if is_closed_loop {
            self.left = self.left.saturating_add(1);
        }
        is_closed_loop
    }

    /// Handles the end of a flow. `took`: its duration, if it had started. `bytes`: received bytes,
    /// if known.
    #[inline]
    pub(in crate::endpoint) fn note_end(
        &mut self,
        now: Instant,
        took: Option<Duration>,
        bytes: Option<u32>,
        has_failed: bool,
    ) {
        let back_off = match &mut self.pace {
            Pace::OnDemand | Pace::Open(..) => return,
            Pace::Hold(.., back_off)
            | Pace::Throughput(.., back_off)
            | Pace::Users(.., back_off) => back_off,
        };
        let mut least = Duration::ZERO;
        match (&self.load, has_failed) {
            (_, false) => back_off.reset(),
            (Load::Users { .. }, true) => least = back_off.lengthen(now),
            (Load::Concurrent(flows), true) => back_off.empty(now, *flows),
            (_, true) => back_off.empty(now, u64::MAX),
        }
        match (&mut self.pace, took) {
            (Pace::Users(users, _), _) => users.note_end(now, least, &mut self.random),
            (Pace::Throughput(throughput, _), Some(took)) if !has_failed => {
                throughput.note_end(took, bytes);
            }
            _ => {}
        }
    }

    /// Sets whether all clients are off.
    pub(in crate::endpoint) const fn set_off(&mut self, is_off: bool) {
        self.is_off = is_off;
    }

    /// Whether a flow of an open loop is due.
    pub(in crate::endpoint) fn is_behind(&self, now: Instant) -> bool {
        match &self.pace {
            Pace::Open(schedule, _) => self.left > 0 && schedule.due() <= now.min(self.until),
            _ => false,
        }
    }

    /// Sets the time after which no flow is due.
    pub(in crate::endpoint) const fn set_until(&mut self, until: Instant) {
        self.until = until;
    }

    /// Stops the load after `received` bytes. Returns the number of flows that are due.
    pub(in crate::endpoint) fn stop(&mut self, now: Instant, received: u64) -> u64 {
        // A load that has reached its limit ended earlier.
        if self.left == 0 {
            return 0;
        }
        self.until = self.until.min(now);
        let due = match &mut self.pace {
            Pace::Open(schedule, _) => schedule.pass(self.until, &mut self.random),
            Pace::Throughput(throughput, _) => {
                throughput.end(self.until, received);
                0
            }
            _ => 0,
        };
        due.min(core::mem::take(&mut self.left))
    }

    /// Returns the load multiplied by a factor from now on.
    pub(in crate::endpoint) fn scaled(
        &self,
        scale: Scale,
        now: Instant,
    ) -> Result<Self, RateError> {
        let mut it = self.clone();
        match (&mut it.pace, self.load) {
            (Pace::Open(schedule, _), _) => schedule.set_scale(scale, now)?,
            (Pace::Hold(held, _), Load::Concurrent(flows)) => held.flows = scaled(flows, scale),
            (Pace::Throughput(throughput, _), Load::Throughput(bits_per_second)) => {
                throughput.set(scaled(bits_per_second, scale), now);
            }
            (Pace::Users(them, _), Load::Users { users, .. }) => them.set(scaled(users, scale)),
            _ => {}
        }
        Ok(it)
    }
}
