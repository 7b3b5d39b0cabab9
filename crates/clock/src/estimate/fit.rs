//! One straight line for the offset of two clocks in a window of time.

use crate::hull::{LowerHull, Point};

/// Steepest line, in ns for each ns: 1,000 ppm. Oscillators are within 100 ppm, and a slewed system
/// clock within 500 ppm.
const SLOPE_MAX: f64 = 1e-3;

/// Lines below the delays of both directions in a window: one rises by `slope`, the other falls.
///
/// A request takes at least the time on the empty path, so its apparent delay (`t2 - t1`) is at
/// least that time plus the offset of the clocks. The same holds for replies with the opposite
/// offset. The lines are as high as possible while no delay is below them (a linear program,
/// Moon, Skelly and Towsley 1999; Zhang, Liu and Xia 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Time for which `forward` and `backward` hold, in ns from the origin of the points.
    pub(super) center: f64,
    /// Height of the line below the forward delays, in ns.
    pub(super) forward: f64,
    /// Height of the line below the backward delays, in ns.
    pub(super) backward: f64,
    /// Drift of the far clock against the near one, in ns for each ns.
    pub(super) slope: f64,
    /// Likely error of the offset at the center, in ns.
    pub(super) half_width: f64,
    /// Half of the time that the points span, in ns.
    pub(super) half_span: f64,
}

/// Apparent delays of both directions, in the order of time. Each exchange has one of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays<'a> {
    pub(super) forward: &'a [Point],
    pub(super) backward: &'a [Point],
}

impl Delays<'_> {
    /// Returns the exchanges from index `from` to before index `to`.
    pub(super) fn part(&self, from: usize, to: usize) -> Self {
        Self { forward: &self.forward[from..to], backward: &self.backward[from..to] }
    }

    pub(super) fn len(&self) -> usize {
        self.forward.len()
    }
}

impl Fit {
    /// Number of exchanges that a fit needs.
    pub(super) const EXCHANGES_MIN: usize = 4;

    /// Fits the lines. `None` with less than [`Self::EXCHANGES_MIN`] exchanges.
    pub(super) fn new(delays: Delays<'_>) -> Option<Self> {
        let (first, last) = (delays.forward.first()?, delays.forward.last()?);
        if delays.len() < Self::EXCHANGES_MIN {
            return None;
        }
        let center = (first.x + last.x) / 2.0;
        let forward = LowerHull::new(delays.forward.iter().copied());
        let backward = LowerHull::new(delays.backward.iter().copied());
        let slope = common_slope(&forward, &backward)?.clamp(-SLOPE_MAX, SLOPE_MAX);
        let height = |hull: &LowerHull, slope: f64| {
            hull.touched(slope).map(|point| point.y - slope * (point.x - center))
        };
        let mut fit = Self {
            center,
            forward: height(&forward, slope)?,
            backward: height(&backward, -slope)?,
            slope,
            half_width: 0.0,
            half_span: ((last.x - first.x) / 2.0).max(1.0),
        };
        let above = |points: &[Point], height: f64, slope: f64| {
            spacing(points.iter().map(|point| point.y - height - slope * (point.x - center)))
        };
        let spacings = above(delays.forward, fit.forward, slope)
            + above(delays.backward, fit.backward, -slope);
        fit.half_width = SPACINGS * spacings / 2.0 + RESOLUTION_NS;
        Some(fit)
    }

    /// Returns the offset of the far clock at a time, in ns.
    pub(super) fn offset_at(&self, x: f64) -> f64 {
        (self.forward - self.backward) / 2.0 + self.slope * (x - self.center)
    }

    /// Returns the likely error of the offset at a time: it grows towards the ends of the window and
    /// beyond, since the slope has an error too.
    pub(super) fn half_width_at(&self, x: f64) -> f64 {
        self.half_width * (1.0 + SLOPE_SHARE * (x - self.center).abs() / self.half_span)
    }

    /// Returns the shortest round trip, in ns.
    pub(super) fn round_trip(&self) -> f64 {
        self.forward + self.backward
    }
}

/// Half-width in multiples of [`spacing`]. With this factor, 99 % of the errors in the simulations of
/// `tests/coverage.rs` are within the half-width.
const SPACINGS: f64 = 2.3;

/// Growth of the half-width from the center to the ends of a window.
const SLOPE_SHARE: f64 = 1.5;

/// Least error, in ns: two conversions between clocks of a machine.
const RESOLUTION_NS: f64 = 50.0;

/// Returns the slope with the highest lines: the sum of both heights is a concave function of the
/// slope, and its derivative is the distance between the two points touched.
fn common_slope(forward: &LowerHull, backward: &LowerHull) -> Option<f64> {
    let mut slopes: Vec<f64> =
        forward.slopes().chain(backward.slopes().map(|slope| -slope)).collect();
    slopes.sort_by(f64::total_cmp);
    let rises = |slope: f64| Some(backward.touched(-slope)?.x - forward.touched(slope)?.x > 0.0);
    rises(0.0)?;
    let place = slopes.partition_point(|slope| rises(slope.next_up()).unwrap_or(false));
    Some(slopes.get(place).or(slopes.last()).copied().unwrap_or(0.0))
}

/// Returns how much the smallest of values above a line is likely above the smallest possible one.
///
/// The value of rank `k` grows as a power of `k`: with exponent 1 for queues, whose delays are dense
/// down to the empty path, and with a smaller one for the noise of time stamps. Two ranks give the
/// exponent, and the extrapolation to rank 1 is the result.
fn spacing(above: impl Iterator<Item = f64>) -> f64 {
    let mut above: Vec<f64> = above.collect();
    let last = above.len().saturating_sub(1);
    let low = ((above.len() as f64).sqrt().ceil() as usize).clamp(2, last.max(2)).min(last);
    let high = (4 * low).min(last);
    let mut value = |rank: usize| *above.select_nth_unstable_by(rank, f64::total_cmp).1;
    let (lower, higher) = (value(low).max(0.0), value(high).max(0.0));
    let ranks = (high as f64 / low as f64).ln();
    let exponent = if ranks > 0.0 && lower > 0.0 { (higher / lower).ln() / ranks } else { 1.0 };
    lower / (low as f64).powf(CAUTION * exponent.clamp(0.0, 1.0))
}

/// Share of the exponent that [`spacing`] uses, since the exponent has an error too. Found with the
/// simulations of `tests/coverage.rs`, like [`SPACINGS`].
const CAUTION: f64 = 0.7;
