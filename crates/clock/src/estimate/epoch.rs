//! Spans of time without a step of a clock and without a change of the route.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fit::{Delays, Fit};
use crate::timestamp::Timestamp;

/// A span of time without a step of a clock and without a change of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Epoch {
    /// First exchange, by the near clock, in ns since 1970.
    pub from: Timestamp,
    /// Last exchange, by the near clock, in ns since 1970.
    pub to: Timestamp,
    /// Why the epoch began.
    pub reason: EpochReason,
}

/// Why an epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[schemars(deny_unknown_fields)]
pub enum EpochReason {
    /// The first exchange.
    Start,
    /// One of the clocks jumped: the far clock by this much against the near one.
    ClockStep {
        /// Change of the offset, in ns.
        by_ns: i64,
    },
    /// The path got longer or shorter.
    RouteChange {
        /// Change of the shortest forward delay, in ns.
        forward_ns: i64,
        /// Change of the shortest backward delay, in ns.
        backward_ns: i64,
    },
}

/// An epoch as a range of exchanges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) reason: EpochReason,
}

/// Time on each side of a place that is compared, in ns.
const SIDE: f64 = 2e9;

/// Number of exchanges on each side of a place that must be there.
const SIDE_EXCHANGES: usize = 8;

/// Smallest change in multiples of the errors of both sides, and in ns, that starts an epoch. Smaller
/// changes of the offset only shorten the window of the estimate.
const CHANGE_ERRORS: f64 = 3.0;
const CHANGE_NS_MIN: f64 = 2_000.0;

/// Splits exchanges at steps of a clock and at changes of the route.
pub(super) fn split(delays: Delays<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part { from: 0, to: delays.len(), reason: EpochReason::Start };
    let mut place = SIDE_EXCHANGES;
    while place + SIDE_EXCHANGES <= delays.len() {
        let Some(change) = Change::at(delays, part.from, place) else {
            place += SIDE_EXCHANGES / 2;
            continue;
        };
        let (place_of_change, change) = change.largest_near(delays, part.from, place);
        // The exchange around a step has time stamps of both epochs.
        parts.push(Part { to: place_of_change.saturating_sub(1).max(part.from), ..part });
        part = Part {
            from: (place_of_change + 1).min(delays.len()),
            to: delays.len(),
            reason: change.reason(),
        };
        place = part.from + SIDE_EXCHANGES;
    }
    parts.push(part);
    parts
}

/// Difference between the lines before and after a place, at this place.
#[derive(Clone, Copy, Debug)]
struct Change {
    forward: f64,
    backward: f64,
    /// Errors of both sides.
    error: f64,
}

impl Change {
    /// Compares both sides of a place; `None` if they do not differ clearly.
    fn at(delays: Delays<'_>, from: usize, place: usize) -> Option<Self> {
        let x = delays.forward.get(place)?.x;
        let start = delays.forward.partition_point(|point| point.x < x - SIDE).max(from);
        let end = delays.forward.partition_point(|point| point.x <= x + SIDE);
        if place < start + SIDE_EXCHANGES || end < place + SIDE_EXCHANGES {
            return None;
        }
        let before = Fit::new(delays.part(start, place))?;
        let after = Fit::new(delays.part(place, end))?;
        let forward = |fit: &Fit| fit.forward + fit.slope * (x - fit.center);
        let backward = |fit: &Fit| fit.backward - fit.slope * (x - fit.center);
        let change = Self {
            forward: forward(&after) - forward(&before),
            backward: backward(&after) - backward(&before),
            error: before.half_width_at(x) + after.half_width_at(x),
        };
        let limit = (CHANGE_ERRORS * change.error).max(CHANGE_NS_MIN);
        (change.forward.abs().max(change.backward.abs()) > limit).then_some(change)
    }

    fn size(&self) -> f64 {
        self.forward.abs() + self.backward.abs()
    }

    /// Returns the place with the clearest change close to this one.
    fn largest_near(self, delays: Delays<'_>, from: usize, place: usize) -> (usize, Self) {
        let end = delays.forward.get(place).map_or(f64::INFINITY, |point| point.x + SIDE);
        let end = delays.forward.partition_point(|point| point.x <= end) + SIDE_EXCHANGES;
        let near = place.saturating_sub(SIDE_EXCHANGES)..end;
        let changes = near.filter_map(|place| Some((place, Self::at(delays, from, place)?)));
        changes
            .max_by(|(_, one), (_, other)| one.clarity().total_cmp(&other.clarity()))
            .unwrap_or((place, self))
    }

    /// A window that contains the change has a large error.
    fn clarity(&self) -> f64 {
        self.size() / self.error.max(1.0)
    }

    fn reason(&self) -> EpochReason {
        // The errors of both directions are opposite if a clock stepped.
        let sum = (self.forward + self.backward).abs();
        match sum < self.size() / 4.0 {
            true => EpochReason::ClockStep { by_ns: ((self.forward - self.backward) / 2.0) as i64 },
            false => EpochReason::RouteChange {
                forward_ns: self.forward as i64,
                backward_ns: self.backward as i64,
            },
        }
    }
}
