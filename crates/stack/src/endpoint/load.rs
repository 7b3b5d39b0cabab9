//! When connections are made.

use wirestorm_base::rate::{Rate, Ticker};
use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

use crate::random::Random;

/// When the connections of a template are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Whenever [`Endpoint::connect`](super::Endpoint::connect) says so.
    OnDemand,
    /// So many a second at equal intervals, whatever becomes of them (an open loop). The k-th one
    /// is due exactly k intervals behind the start, so a late one is followed by others at once.
    Constant {
        /// How many a second.
        rate: Rate,
    },
    /// So many a second on average, at intervals that are exponentially distributed: as many
    /// independent users come.
    Poisson {
        /// How many a second.
        rate: Rate,
    },
    /// As soon as there are fewer than so many (a closed loop).
    Hold {
        /// How many at once.
        flows: u64,
    },
}

/// How far a template's load is.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    load: Load,
    /// When the next one is due; `None`: whenever there is room, or not at all.
    due: Option<Instant>,
    ticker: Option<Ticker>,
    /// Connections that may still be made.
    left: u64,
    random: Random,
}

impl Arrivals {
    /// A load that begins at a time, and ends after so many connections.
    pub(super) fn new(load: Load, limit: Option<u64>, start: Instant, random: Random) -> Self {
        let rate = match load {
            Load::Constant { rate } | Load::Poisson { rate } => Some(rate),
            Load::OnDemand | Load::Hold { .. } => None,
        };
        let mut arrivals = Self {
            load,
            due: rate.map(|_| start),
            ticker: rate.map(Ticker::new),
            left: limit.unwrap_or(u64::MAX),
            random,
        };
        if matches!(load, Load::Poisson { .. }) {
            // A process without memory begins with an interval.
            arrivals.advance();
        }
        arrivals
    }

    /// When the next flow is due where there are so many; `None` where that does not depend on the
    /// clock.
    pub(super) fn next(&self, active: u64) -> Option<Instant> {
        let due = match self.load {
            Load::Hold { flows } if active < flows => Some(Instant::ZERO),
            _ => self.due,
        };
        due.filter(|_| self.left > 0)
    }

    /// Whether none is to be made any more.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0 || self.load == Load::OnDemand
    }

    /// Whether one is due now, where there are so many; it counts as made.
    pub(super) fn take(&mut self, now: Instant, active: u64) -> bool {
        let is_due = match self.load {
            Load::OnDemand => false,
            Load::Hold { flows } => active < flows,
            Load::Constant { .. } | Load::Poisson { .. } => self.due.is_some_and(|due| due <= now),
        };
        if !is_due || self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.advance();
        true
    }

    /// What was taken could not be made. Returns whether it is due again when there is room.
    pub(super) const fn give_back(&mut self) -> bool {
        let is_closed_loop = matches!(self.load, Load::Hold { .. });
        if is_closed_loop {
            self.left = self.left.saturating_add(1);
        }
        is_closed_loop
    }

    /// No more are made.
    pub(super) fn stop(&mut self) {
        self.left = 0;
    }

    fn advance(&mut self) {
        let (Some(due), Some(ticker)) = (&mut self.due, &mut self.ticker) else { return };
        let interval = match self.load {
            Load::Poisson { rate } => {
                let mean = NANOSECONDS_PER_SECOND as f64 / rate.per_second();
                Duration::from_nanos((self.random.exponential() * mean) as u64)
            }
            _ => ticker.step(1),
        };
        *due = due.saturating_add(interval);
    }
}
