//! Offset and drift of two clocks from two-way exchanges.
//!
//! ```text
//! exchanges ──> epochs: split at steps of a clock and at changes of the route
//!                 └──> knots: a straight line in the widest window that fits, with its error
//!                        └──> Timeline::at(time): offset, half-width, round trip
//! ```
//!
//! Two-way time stamps cannot show the asymmetry of the path: [`Estimate::offset_ns`] assumes that
//! the empty path is equally long in both directions, and [`Estimate::bound_ns`] is the error that
//! remains possible without this assumption.

mod common;
mod epoch;
mod fit;

use serde::{Deserialize, Serialize};

pub use epoch::{Epoch, EpochReason};

use crate::exchange::Exchange;
use crate::hull::Point;
use crate::timestamp::Timestamp;
use fit::{Delays, Fit};

/// Half-widths of the windows to try around a time, in ns, in ascending order.
const WINDOWS: [f64; 4] = [0.5e9, 1.0e9, 2.5e9, 5e9];

/// Distance of the knots of a timeline, in ns.
const KNOT_DISTANCE: f64 = 0.25e9;

/// Offset of the far clock at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Time for which the estimate holds, by the near clock.
    pub at: Timestamp,
    /// Reading of the far clock minus that of the near clock, in ns.
    pub offset_ns: f64,
    /// Likely error of the offset if the empty path is equally long in both directions, in ns.
    pub half_width_ns: f64,
    /// Drift of the far clock against the near clock, in ppm.
    pub drift_ppm: f64,
    /// Shortest round trip, in ns.
    pub round_trip_ns: f64,
    /// Number of exchanges that the estimate is based on.
    pub exchanges: u32,
}

impl Estimate {
    /// Largest possible error of the offset, whatever the asymmetry of the path is, in ns.
    pub fn bound_ns(&self) -> f64 {
        self.round_trip_ns.max(0.0) / 2.0 + self.half_width_ns
    }
}

/// Offsets of the far clock over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Spans of time without a step of a clock and without a change of the route, in order.
    pub epochs: Vec<Epoch>,
    /// Estimates in the order of time, four in a second.
    pub knots: Vec<Estimate>,
}

impl Timeline {
    /// Computes the offsets from exchanges in the order of their requests.
    ///
    /// Exchanges do not count if their round trip is negative or longer than 2^53 ns, or if the near
    /// clock was ahead before: such time stamps are wrong. Less than four exchanges give no estimate.
    pub fn new(exchanges: &[Exchange]) -> Self {
        let mut latest = Timestamp::from_nanos(i64::MIN);
        let valid = |it: &&Exchange| {
            let is_in_order = it.t1 >= latest;
            latest = latest.max(it.t1);
            is_in_order && (0..1 << 53).contains(&it.round_trip())
        };
        let exchanges: Vec<Exchange> = exchanges.iter().filter(valid).copied().collect();
        let Some(origin) = exchanges.first().map(Origin::of) else { return Self::default() };
        let (forward, backward) = origin.points(&exchanges);
        let delays = Delays { forward: &forward, backward: &backward };
        let mut timeline = Self::default();
        for part in epoch::split(delays) {
            let delays = delays.part(part.from, part.to);
            let (Some(first), Some(last)) = (delays.forward.first(), delays.forward.last()) else {
                continue;
            };
            timeline.epochs.push(Epoch {
                from: origin.timestamp(first.x),
                to: origin.timestamp(last.x),
                reason: part.reason,
            });
            let knots = ((last.x - first.x) / KNOT_DISTANCE).ceil() as usize;
            let times = (0..=knots).map(|knot| (first.x + knot as f64 * KNOT_DISTANCE).min(last.x));
            timeline
                .knots
                .extend(times.filter_map(|x| Some(origin.estimate(x, best_fit(delays, x)?))));
        }
        timeline
    }

    /// Returns a timeline with the same offset at all times, for two machines with one clock, or with
    /// independent references.
    pub fn constant(offset_ns: f64, half_width_ns: f64) -> Self {
        let knot = |nanoseconds: i64| Estimate {
            at: Timestamp::from_nanos(nanoseconds),
            offset_ns,
            half_width_ns,
            drift_ppm: 0.0,
            round_trip_ns: 0.0,
            exchanges: 0,
        };
        Self { epochs: Vec::new(), knots: vec![knot(i64::MIN / 4), knot(i64::MAX / 4)] }
    }

    /// Returns the offset at a time of the near clock, between two knots of an epoch by a straight
    /// line. Before the first and after the last knot, the half-width grows by 0.1 ppm of the time
    /// in between, as oscillators wander. `None` without an estimate.
    pub fn at(&self, time: Timestamp) -> Option<Estimate> {
        let place = self.knots.partition_point(|knot| knot.at <= time);
        let before = place.checked_sub(1).and_then(|place| self.knots.get(place));
        match (before, self.knots.get(place)) {
            (Some(before), Some(after)) if self.epoch_of(before.at) == self.epoch_of(after.at) => {
                Some(between(before, after, time))
            }
            // Between two epochs, the one whose end is closer counts.
            (Some(before), Some(after)) => {
                let closer = if time - before.at <= after.at - time { before } else { after };
                Some(beyond(closer, time))
            }
            (before, after) => before.or(after).map(|knot| beyond(knot, time)),
        }
    }

    fn epoch_of(&self, time: Timestamp) -> usize {
        self.epochs.partition_point(|epoch| epoch.from <= time)
    }
}

fn between(before: &Estimate, after: &Estimate, time: Timestamp) -> Estimate {
    let share = (time - before.at) as f64 / ((after.at - before.at) as f64).max(1.0);
    let mix = |one: f64, other: f64| one + share * (other - one);
    Estimate {
        at: time,
        offset_ns: mix(before.offset_ns, after.offset_ns),
        half_width_ns: mix(before.half_width_ns, after.half_width_ns),
        drift_ppm: mix(before.drift_ppm, after.drift_ppm),
        round_trip_ns: mix(before.round_trip_ns, after.round_trip_ns),
        exchanges: before.exchanges.min(after.exchanges),
    }
}

fn beyond(knot: &Estimate, time: Timestamp) -> Estimate {
    const WANDER: f64 = 1e-7;
    let distance = (time - knot.at) as f64;
    Estimate {
        at: time,
        offset_ns: knot.offset_ns + knot.drift_ppm * 1e-6 * distance,
        half_width_ns: knot.half_width_ns + WANDER * distance.abs(),
        ..*knot
    }
}

/// Zero of times and delays, so that `f64` is exact to less than a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Origin {
    time: Timestamp,
    offset: i64,
}

impl Origin {
    fn of(exchange: &Exchange) -> Self {
        let offset = exchange.forward() / 2 - exchange.backward() / 2;
        Self { time: exchange.t1, offset }
    }

    /// Returns the delays of both directions. Each belongs to the moment when the packet was half on
    /// its way; all other times would count a drift twice.
    fn points(&self, exchanges: &[Exchange]) -> (Vec<Point>, Vec<Point>) {
        let half = exchanges.iter().map(Exchange::round_trip).min().unwrap_or(0) / 2;
        let forward = exchanges.iter().map(|it| Point {
            x: (it.t1 - self.time + half) as f64,
            y: it.forward().saturating_sub(self.offset) as f64,
        });
        let mut last = f64::NEG_INFINITY;
        let backward = exchanges.iter().map(|it| {
            // A reply that overtakes the one before it keeps the order of time.
            last = last.max((it.t4 - self.time - half) as f64);
            Point { x: last, y: it.backward().saturating_add(self.offset) as f64 }
        });
        (forward.collect(), backward.collect())
    }

    fn timestamp(&self, x: f64) -> Timestamp {
        self.time + x as i64
    }

    fn estimate(&self, x: f64, (fit, exchanges): (Fit, usize)) -> Estimate {
        Estimate {
            at: self.timestamp(x),
            offset_ns: self.offset as f64 + fit.offset_at(x),
            half_width_ns: fit.half_width_at(x),
            drift_ppm: fit.slope * 1e6,
            round_trip_ns: fit.round_trip(),
            exchanges: exchanges as u32,
        }
    }
}

/// Returns the fit at a time in the widest window that agrees with all narrower ones, and its number
/// of exchanges. A wider window has a smaller error unless the drift changes in it (Lepski's method).
fn best_fit(delays: Delays<'_>, x: f64) -> Option<(Fit, usize)> {
    let mut best: Option<(Fit, usize)> = None;
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for half in WINDOWS {
        let from = delays.forward.partition_point(|point| point.x < x - half);
        let to = delays.forward.partition_point(|point| point.x <= x + half);
        let Some(fit) = Fit::new(delays.part(from, to)) else { continue };
        let (offset, half_width) = (fit.offset_at(x), fit.half_width_at(x));
        if offset - half_width > high || offset + half_width < low {
            break;
        }
        low = low.max(offset - half_width);
        high = high.min(offset + half_width);
        best = Some((fit, to - from));
    }
    // Sparse exchanges: all there are.
    best.or_else(|| Some((Fit::new(delays)?, delays.len())))
}
