//! Clocks of two machines that each have a reference, such as UTC by GNSS or by NTP.

use serde::{Deserialize, Serialize};

use crate::estimate::{Epoch, EpochReason, Estimate, Timeline};
use crate::timestamp::Timestamp;

/// Fastest drift of a clock against its reference, in ppm: what the kernel corrects at most. A change
/// beyond it is a step.
const DRIFT_PPM_MAX: f64 = 500.0;

/// Reading of a machine's clock beside its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceReading {
    /// Time by the machine's clock.
    pub at: Timestamp,
    /// Machine's clock minus reference in ns.
    pub offset_ns: i64,
    /// Largest error of this offset in ns.
    pub error_ns: u64,
}

impl ReferenceReading {
    /// Returns the time by the reference.
    fn reference_time(&self) -> Timestamp {
        self.at + self.offset_ns.saturating_neg()
    }
}

/// Returns the offset of the far machine's clock against the near one's at each reading of the near
/// one, from readings in the order of time. Both references show the same timescale, and the errors of
/// both add up. Without readings of both machines, the timeline is empty.
pub fn compare(near: &[ReferenceReading], far: &[ReferenceReading]) -> Timeline {
    let mut timeline = Timeline::default();
    for reading in near {
        let Some((far_ns, far_error_ns)) = at(far, reading.reference_time()) else { continue };
        let mut knot = Estimate {
            at: reading.at,
            offset_ns: far_ns - reading.offset_ns as f64,
            half_width_ns: far_error_ns + reading.error_ns as f64,
            drift_ppm: 0.0,
            round_trip_ns: 0.0,
            exchanges: 1,
        };
        let step = timeline.knots.last().and_then(|before| step(before, &knot));
        match timeline.knots.last_mut().filter(|_| step.is_none()) {
            Some(before) => {
                let elapsed = ((knot.at - before.at) as f64).max(1.0);
                knot.drift_ppm = (knot.offset_ns - before.offset_ns) / elapsed * 1e6;
                if before.drift_ppm == 0.0 {
                    before.drift_ppm = knot.drift_ppm;
                }
                if let Some(epoch) = timeline.epochs.last_mut() {
                    epoch.to = knot.at;
                }
            }
            None => {
                let by_ns = |by_ns| EpochReason::ClockStep { by_ns };
                let reason = step.map_or(EpochReason::Start, by_ns);
                timeline.epochs.push(Epoch { from: knot.at, to: knot.at, reason });
            }
        }
        timeline.knots.push(knot);
    }
    timeline
}

/// Returns the change between two knots, if no drift explains it.
fn step(before: &Estimate, after: &Estimate) -> Option<i64> {
    let change = after.offset_ns - before.offset_ns;
    let drift = DRIFT_PPM_MAX * 1e-6 * (after.at - before.at) as f64;
    let errors = before.half_width_ns + after.half_width_ns;
    (change.abs() > errors + drift).then_some(change.round() as i64)
}

/// Returns the offset of a machine at a time of its reference, and its error, both in ns.
fn at(readings: &[ReferenceReading], time: Timestamp) -> Option<(f64, f64)> {
    let place = readings.partition_point(|reading| reading.reference_time() <= time);
    let before = place.checked_sub(1).and_then(|place| readings.get(place));
    let value = |it: &ReferenceReading| (it.offset_ns as f64, it.error_ns as f64);
    match (before, readings.get(place)) {
        (Some(before), Some(after)) => {
            let length = (after.reference_time() - before.reference_time()) as f64;
            let share = (time - before.reference_time()) as f64 / length.max(1.0);
            let ((one, one_error), (other, other_error)) = (value(before), value(after));
            Some((one + share * (other - one), one_error + share * (other_error - one_error)))
        }
        (before, after) => before.or(after).map(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Readings once a second of a clock that is ahead by `offset_ns`, and drifts.
    fn readings(offset_ns: i64, drift_ppm: i64, error_ns: u64) -> Vec<ReferenceReading> {
        let reading = |second: i64| {
            let offset_ns = offset_ns + drift_ppm * 1_000 * second;
            let at = Timestamp::from_nanos(second * SECOND + offset_ns);
            ReferenceReading { at, offset_ns, error_ns }
        };
        (0..10).map(reading).collect()
    }

    #[test]
    fn offsets_are_subtracted_and_errors_added() {
        let timeline = compare(&readings(-3 * SECOND, 20, 300), &readings(5_000, -30, 40_000));
        assert_eq!(timeline.epochs.len(), 1);
        let estimate = timeline.at(Timestamp::from_nanos(SECOND)).unwrap();
        // The near clock shows 1 s when the reference shows 4 s, less 20 us a second.
        let expected = 5_000.0 - 4.0 * 30_000.0 + 3.0 * SECOND as f64 - 4.0 * 20_000.0;
        assert!((estimate.offset_ns - expected).abs() < 10.0, "{estimate:?}");
        assert!((estimate.half_width_ns - 40_300.0).abs() < 1.0, "{estimate:?}");
        assert!((estimate.drift_ppm + 50.0).abs() < 0.01, "{estimate:?}");
        assert!((estimate.bound_ns() - 40_300.0).abs() < 1.0, "{estimate:?}");
    }

    #[test]
    fn step_begins_an_epoch() {
        let mut near = readings(0, 0, 1_000);
        for reading in &mut near[6..] {
            reading.at = reading.at + SECOND;
            reading.offset_ns += SECOND;
        }
        let timeline = compare(&near, &readings(0, 0, 1_000));
        assert_eq!(timeline.epochs.len(), 2);
        assert_eq!(timeline.epochs[1].reason, EpochReason::ClockStep { by_ns: -SECOND });
        let at = |time: i64| timeline.at(Timestamp::from_nanos(time)).unwrap().offset_ns;
        assert_eq!((at(4 * SECOND), at(8 * SECOND)), (0.0, -SECOND as f64));
    }

    #[test]
    fn nothing_is_compared_without_readings_of_both() {
        assert_eq!(compare(&readings(0, 0, 1), &[]), Timeline::default());
        assert_eq!(compare(&[], &readings(0, 0, 1)), Timeline::default());
    }
}
