//! Delays of each direction from exchanges.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_clock::estimate::{Epoch, Estimate, Timeline};
use wirestorm_clock::exchange::Exchange;

/// What the offset of two clocks relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assumption {
    /// Both machines have the same clock.
    OneClock,
    /// Each machine has a reference clock with a known error.
    Independent,
    /// The empty path between the machines is equally long in both directions.
    SymmetricPath,
}

impl Assumption {
    /// Returns the assumption in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OneClock => "one clock",
            Self::Independent => "independent",
            Self::SymmetricPath => "symmetric path",
        }
    }
}

/// Delays of one direction, in ns. Negative ones are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DirectionReport {
    /// Number of delays.
    pub count: u64,
    /// Shortest delay in ns.
    pub min_ns: f64,
    /// Mean in ns.
    pub mean_ns: f64,
    /// Median in ns.
    pub p50_ns: f64,
    /// 99th percentile in ns.
    pub p99_ns: f64,
    /// Longest delay in ns.
    pub max_ns: f64,
}

impl DirectionReport {
    /// Returns the report on some delays; `None` if there are none.
    fn new(mut delays: Vec<f64>) -> Option<Self> {
        delays.sort_by(f64::total_cmp);
        let (min_ns, max_ns) = (*delays.first()?, *delays.last()?);
        let count = delays.len();
        let quantile = |share: f64| {
            let rank = ((share * count as f64).ceil() as usize).clamp(1, count);
            delays[rank - 1]
        };
        Some(Self {
            count: count as u64,
            min_ns,
            mean_ns: delays.iter().sum::<f64>() / count as f64,
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns,
        })
    }
}

/// Delays of both directions, and how exactly they are known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OwpingReport {
    /// From this machine to the other one.
    pub forward: DirectionReport,
    /// From the other machine to this one.
    pub backward: DirectionReport,
    /// Both, without the time that the other machine took.
    pub round_trip: DirectionReport,
    /// What the delays of one direction rely on.
    pub assumption: Assumption,
    /// Each delay of one direction is right to this many ns, if the assumption holds.
    pub half_width_ns: f64,
    /// Each delay of one direction is right to this many ns, without the assumption.
    pub bound_ns: f64,
    /// Clock of the other machine minus that of this one at the end, in ns.
    pub offset_ns: f64,
    /// Drift of the other clock, in ppm.
    pub drift_ppm: f64,
    /// Steps of a clock and changes of the route.
    pub epochs: Vec<Epoch>,
}

/// Error of an offset by time stamps of the kernel, in ns. It stamps departures before the driver and
/// arrivals behind it, and what lies between differs from machine to machine and in both directions:
/// up to a microsecond on a veth pair, whatever the number of exchanges.
pub const STAMP_ERROR_NS: f64 = 1_000.0;

/// Returns the delays of exchanges; `None` with less than four.
///
/// The interval is that of the time with the least certain offset.
pub fn owping_report(exchanges: &[Exchange]) -> Option<OwpingReport> {
    let timeline = Timeline::new(exchanges);
    let last = *timeline.knots.last()?;
    let at = |exchange: &Exchange| timeline.at(exchange.t1);
    let delays = |delay: fn(&Exchange, &Estimate) -> f64| {
        let delays = exchanges.iter().filter_map(|exchange| Some(delay(exchange, &at(exchange)?)));
        DirectionReport::new(delays.collect())
    };
    let half_widths = timeline.knots.iter().map(|knot| knot.half_width_ns);
    let bounds = timeline.knots.iter().map(Estimate::bound_ns);
    Some(OwpingReport {
        forward: delays(|exchange, estimate| exchange.forward() as f64 - estimate.offset_ns)?,
        backward: delays(|exchange, estimate| exchange.backward() as f64 + estimate.offset_ns)?,
        round_trip: delays(|exchange, _| exchange.round_trip() as f64)?,
        assumption: Assumption::SymmetricPath,
        half_width_ns: half_widths.fold(0.0, f64::max) + STAMP_ERROR_NS,
        bound_ns: bounds.fold(0.0, f64::max) + STAMP_ERROR_NS,
        offset_ns: last.offset_ns,
        drift_ppm: last.drift_ppm,
        epochs: timeline.epochs,
    })
}
