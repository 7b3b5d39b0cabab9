//! One-way delays of flows between two machines: raw segments moved by the offset of the clocks.

use wirestorm_clock::estimate::{EpochReason, Estimate, Timeline};
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_engine::measure::{DelayRecord, Signature};

use super::one_way::Assumption;
use crate::result::{ClockEvent, OneWayReport, OneWaySegment, SegmentReport};

/// Comparison of the clocks of a sender and a receiver.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Offsets of the sender's clock (far) against the receiver's (near).
    pub timeline: Timeline,
    /// Node time minus monotonic clock of the sender and of the receiver, in ns.
    pub node_offsets: [i64; 2],
    /// Known difference of the delays of the empty path in both directions: from the sender to the
    /// receiver minus the opposite, in ns.
    pub asymmetry_ns: f64,
    /// Constant delay that the testers add, which is subtracted, in ns.
    pub bias_ns: f64,
    /// How the clocks were compared.
    pub method: String,
    /// What the comparison relies on.
    pub assumption: Assumption,
}

impl Comparison {
    /// Returns the one-way delays of a flow; `None` without a delay at a time with an offset.
    pub fn one_way(&self, segments: &[SegmentReport]) -> Option<OneWayReport> {
        let first = segments.iter().map(|segment| segment.start_ns).min()?;
        let since_start = |time: i64| (time - first) as f64 / 1e9;
        let mut report = OneWayReport::default();
        let mut delays = DelayRecord::default();
        let mut bound_ns = 0.0_f64;
        for segment in segments {
            let middle = segment.start_ns + (segment.end_ns - segment.start_ns) / 2;
            let Some(estimate) = self.timeline.at(Timestamp::from_nanos(middle)) else {
                report.uncompared += segment.count;
                continue;
            };
            let shift = self.shift(segment, &estimate);
            let half_width_ns = estimate.half_width_ns + smear(segment, &estimate);
            for &(deviation, count) in &segment.deviations {
                let deviation = deviation.clamp(segment.min_ns, segment.max_ns);
                let delay = shift.saturating_add(deviation);
                delays.note_many(delay, count);
                if (delay as f64) < -half_width_ns {
                    report.impossible += count;
                }
            }
            report.half_width_ns = report.half_width_ns.max(half_width_ns);
            bound_ns = bound_ns.max(half_width_ns + estimate.round_trip_ns.max(0.0) / 2.0);
            let half_round_trip = estimate.round_trip_ns / 2.0;
            let least =
                report.half_round_trip_ns.map_or(half_round_trip, |it| it.min(half_round_trip));
            report.half_round_trip_ns = Some(least);
            report.drift_ppm = estimate.drift_ppm;
            report.series.push(OneWaySegment {
                at_s: since_start(segment.start_ns),
                count: segment.count,
                min_ns: shift.saturating_add(segment.min_ns),
                mean_ns: shift as f64 + segment.mean_ns,
                max_ns: shift.saturating_add(segment.max_ns),
                half_width_ns,
            });
        }
        if report.series.is_empty() {
            return None;
        }
        report.delay = delays.delays().into();
        report.pdv = delays.variation().into();
        if self.assumption == Assumption::SymmetricPath {
            report.bound_ns = Some(bound_ns);
        } else {
            report.half_round_trip_ns = None;
        }
        report.bias_ns = self.bias_ns;
        report.assumption = self.assumption.text().into();
        report.method.clone_from(&self.method);
        report.events = self.events(since_start);
        Some(report)
    }

    /// Returns what to add to the deviations of a segment.
    fn shift(&self, segment: &SegmentReport, estimate: &Estimate) -> i64 {
        let [sender, receiver] = self.node_offsets;
        let half = i128::from(segment.end_ns - segment.start_ns) / 2;
        let rise = (half * i128::from(segment.slope)) >> 32;
        let raw =
            i128::from(segment.reference_ns) + rise + i128::from(receiver) - i128::from(sender);
        // The sender's clock shows a later time by the offset, so the raw delay is shorter by it.
        let offset = estimate.offset_ns + self.asymmetry_ns / 2.0 - self.bias_ns;
        let offset = offset.round() as i128;
        // Departures are known modulo 2^48 ns; no delay is that long.
        let bits = Signature::DEPARTURE_BITS;
        ((raw + offset) << (128 - bits) >> (128 - bits)) as i64
    }

    fn events(&self, since_start: impl Fn(i64) -> f64) -> Vec<ClockEvent> {
        let event = |epoch: &wirestorm_clock::estimate::Epoch| {
            let at_s = since_start(epoch.from.as_nanos());
            match epoch.reason {
                EpochReason::Start => None,
                EpochReason::ClockStep { by_ns } => Some(ClockEvent {
                    at_s,
                    kind: "clock_step".into(),
                    offset_ns: by_ns,
                    ..ClockEvent::default()
                }),
                // The near end of the comparison is the receiver.
                EpochReason::RouteChange { forward_ns, backward_ns } => Some(ClockEvent {
                    at_s,
                    kind: "route_change".into(),
                    forward_ns: backward_ns,
                    backward_ns: forward_ns,
                    ..ClockEvent::default()
                }),
            }
        };
        self.timeline.epochs.iter().filter_map(event).collect()
    }
}

/// Returns how far the delays of a segment are spread by the drift that its reference line lacks.
fn smear(segment: &SegmentReport, estimate: &Estimate) -> f64 {
    let slope = segment.slope as f64 / 4_294_967_296.0;
    let half = (segment.end_ns - segment.start_ns) as f64 / 2.0;
    // A sender's clock that is fast makes raw delays shorter with time.
    (slope + estimate.drift_ppm * 1e-6).abs() * half
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A timeline with a constant drift: the sender's clock is ahead by `offset` at time 0.
    fn comparison(offset: f64, drift_ppm: f64) -> Comparison {
        let knot = |quarter: i64| Estimate {
            at: Timestamp::from_nanos(quarter * SECOND / 4),
            offset_ns: offset + drift_ppm * 1e-6 * (quarter * SECOND / 4) as f64,
            half_width_ns: 100.0,
            drift_ppm,
            round_trip_ns: 40_000.0,
            exchanges: 100,
        };
        Comparison {
            timeline: Timeline { epochs: Vec::new(), knots: (0..40).map(knot).collect() },
            node_offsets: [7 * SECOND, 9 * SECOND],
            asymmetry_ns: 0.0,
            bias_ns: 0.0,
            method: "test".into(),
            assumption: Assumption::SymmetricPath,
        }
    }

    /// Frames that take 20 us, received in the second from `start`, with a sender's clock as in
    /// [`comparison`].
    fn segment(start: i64, offset: i64, drift_ppm: i64, slope: i64) -> SegmentReport {
        let ahead = offset + drift_ppm * start / 1_000_000;
        SegmentReport {
            start_ns: start,
            end_ns: start + SECOND,
            // Monotonic clocks: the node time minus its offset.
            reference_ns: 20_000 - ahead - 9 * SECOND + 7 * SECOND,
            slope,
            count: 2,
            min_ns: -50,
            mean_ns: 0.0,
            max_ns: 50,
            deviations: vec![(-50, 1), (50, 1)],
        }
    }

    #[test]
    fn segments_are_moved_by_the_offset_of_their_time() {
        let slope = -(50e-6 * 4_294_967_296.0) as i64;
        for offset in [0, 5_000, -3 * SECOND, 100 * 3_600 * SECOND] {
            let segments = [0, 1, 2].map(|at| segment(at * SECOND, offset, 50, slope));
            let report = comparison(offset as f64, 50.0).one_way(&segments).unwrap();
            assert_eq!(report.delay.count, 6, "{offset}");
            let (min, max) = (report.delay.min_ns.unwrap(), report.delay.max_ns.unwrap());
            assert!(
                (min - 19_950).abs() <= 2 && (max - 20_050).abs() <= 2,
                "{offset}: {min} {max}"
            );
            assert!(report.half_width_ns < 120.0, "{}", report.half_width_ns);
            assert_eq!(report.bound_ns.map(|bound| bound as u64 / 1_000), Some(20));
            assert_eq!(report.impossible, 0);
        }
    }

    #[test]
    fn drift_without_a_slope_widens_the_interval() {
        let segments = [segment(0, 0, 50, 0)];
        let report = comparison(0.0, 50.0).one_way(&segments).unwrap();
        assert!((report.half_width_ns - 25_100.0).abs() < 0.1, "{}", report.half_width_ns);
    }

    #[test]
    fn known_asymmetry_is_applied_and_negative_delays_are_kept() {
        let segments = [segment(0, 0, 0, 0)];
        let comparison = Comparison { asymmetry_ns: -60_000.0, ..comparison(0.0, 0.0) };
        let report = comparison.one_way(&segments).unwrap();
        assert_eq!(report.delay.min_ns, Some(-10_050));
        assert_eq!((report.delay.count, report.impossible), (2, 2));
    }

    #[test]
    fn bias_is_subtracted_and_stated() {
        let comparison = Comparison { bias_ns: 2_900.0, ..comparison(0.0, 0.0) };
        let report = comparison.one_way(&[segment(0, 0, 0, 0)]).unwrap();
        assert_eq!((report.delay.min_ns, report.bias_ns), (Some(17_050), 2_900.0));
    }

    #[test]
    fn frames_without_an_offset_are_counted() {
        let empty = Comparison { timeline: Timeline::default(), ..comparison(0.0, 0.0) };
        assert_eq!(empty.one_way(&[segment(0, 0, 0, 0)]), None);
        assert_eq!(comparison(0.0, 0.0).one_way(&[]), None);
    }
}
