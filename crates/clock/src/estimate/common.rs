//! Clocks of two machines that are both compared with a third clock, such as a PTP grandmaster.

use super::{Epoch, EpochReason, Estimate, Timeline};
use crate::timestamp::Timestamp;

/// Steps that search a time of the near clock. Each divides the error by the drift, which is far below
/// 1 in 1,000: four are exact to a nanosecond for timelines of days.
const STEPS: usize = 4;

impl Timeline {
    /// Returns the offsets of the far machine's clock against the near one's, from those of a third
    /// clock against each of them: one at each knot of `near`. Errors and round trips add up. Without
    /// estimates of both, the timeline is empty.
    pub fn through(near: &Self, far: &Self) -> Self {
        let mut timeline = Self::default();
        let mut place = None;
        for knot in &near.knots {
            let third = knot.at + knot.offset_ns.round() as i64;
            let Some(of_far) = far.at_far_time(third) else { return Self::default() };
            let now = (near.epoch_of(knot.at), far.epoch_of(of_far.at));
            if place.is_some_and(|before| before == now)
                && let Some(epoch) = timeline.epochs.last_mut()
            {
                epoch.to = knot.at;
            } else {
                let reason = match place {
                    None => EpochReason::Start,
                    Some((before, _)) if before != now.0 => near.reason(now.0),
                    Some(_) => far.reason(now.1).reversed(),
                };
                timeline.epochs.push(Epoch { from: knot.at, to: knot.at, reason });
                place = Some(now);
            }
            timeline.knots.push(Estimate {
                at: knot.at,
                offset_ns: knot.offset_ns - of_far.offset_ns,
                half_width_ns: knot.half_width_ns + of_far.half_width_ns,
                drift_ppm: knot.drift_ppm - of_far.drift_ppm,
                round_trip_ns: knot.round_trip_ns.max(0.0) + of_far.round_trip_ns.max(0.0),
                exchanges: knot.exchanges.min(of_far.exchanges),
            });
        }
        timeline
    }

    /// Returns the offset at a time of the far clock; `None` without an estimate.
    fn at_far_time(&self, time: Timestamp) -> Option<Estimate> {
        let before = |estimate: &Estimate| time + -(estimate.offset_ns.round() as i64);
        let mut near = before(self.knots.first()?);
        for _ in 0..STEPS {
            near = before(&self.at(near)?);
        }
        self.at(near)
    }

    /// Returns why an epoch began; the number is that of [`Self::epoch_of`].
    fn reason(&self, number: usize) -> EpochReason {
        let epoch = number.checked_sub(1).and_then(|place| self.epochs.get(place));
        epoch.map_or(EpochReason::Start, |epoch| epoch.reason)
    }
}

impl EpochReason {
    /// Returns the reason as the far end of the comparison would have seen it.
    const fn reversed(self) -> Self {
        match self {
            Self::Start => Self::Start,
            Self::ClockStep { by_ns } => Self::ClockStep { by_ns: -by_ns },
            Self::RouteChange { forward_ns, backward_ns } => {
                Self::RouteChange { forward_ns: backward_ns, backward_ns: forward_ns }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Exchange;

    const SECOND: i64 = 1_000_000_000;

    /// Clock with a constant drift, and a step at a second of the third clock, if any.
    #[derive(Clone, Copy)]
    struct Clock {
        ahead: i64,
        drift_ppm: i64,
        step: Option<(i64, i64)>,
    }

    impl Clock {
        /// Returns the reading at a time of the third clock.
        fn reading(&self, time: i64) -> i64 {
            let step = self.step.filter(|(at, _)| time >= *at * SECOND).map_or(0, |(_, by)| by);
            time + self.ahead + step + self.drift_ppm * (time / 1_000_000)
        }

        /// Compares with the third clock 8 times a second for 20 s, over a path of 5 us.
        fn timeline(&self) -> Timeline {
            let exchange = |eighth: i64| {
                let sent = eighth * SECOND / 8;
                let at = |time: i64| Timestamp::from_nanos(time);
                Exchange {
                    t1: at(self.reading(sent)),
                    t2: at(sent + 5_000),
                    t3: at(sent + 10_000),
                    t4: at(self.reading(sent + 15_000)),
                }
            };
            Timeline::new(&(0..160).map(exchange).collect::<Vec<_>>())
        }
    }

    #[test]
    fn offsets_are_subtracted_and_errors_and_paths_add_up() {
        let near = Clock { ahead: -3 * SECOND, drift_ppm: 20, step: None };
        let far = Clock { ahead: 7 * SECOND, drift_ppm: -50, step: None };
        let (of_near, of_far) = (near.timeline(), far.timeline());
        let timeline = Timeline::through(&of_near, &of_far);
        assert_eq!(timeline.epochs.len(), 1);
        for second in 1..19 {
            let [at, at_far] =
                [near, far].map(|it| Timestamp::from_nanos(it.reading(second * SECOND)));
            let estimate = timeline.at(at).unwrap();
            let truth = (at_far - at) as f64;
            assert!((estimate.offset_ns - truth).abs() < 100.0, "{second}: {estimate:?}");
            assert!((estimate.drift_ppm + 70.0).abs() < 0.1, "{estimate:?}");
            let parts = [of_near.at(at).unwrap(), of_far.at(at_far).unwrap()];
            let half_width: f64 = parts.iter().map(|it| it.half_width_ns).sum();
            // Knots are a quarter of a second apart, with straight lines in between.
            assert!((estimate.half_width_ns - half_width).abs() < 20.0, "{estimate:?} {parts:?}");
            assert!((estimate.round_trip_ns - 20_000.0).abs() < 100.0, "{estimate:?}");
        }
    }

    #[test]
    fn step_of_either_clock_begins_an_epoch_with_its_sign() {
        let steady = Clock { ahead: SECOND, drift_ppm: 0, step: None };
        let stepping = Clock { ahead: 0, drift_ppm: 0, step: Some((10, 4_000_000)) };
        for (near, far, sign) in [(stepping, steady, -1), (steady, stepping, 1)] {
            let timeline = Timeline::through(&near.timeline(), &far.timeline());
            assert_eq!(timeline.epochs.len(), 2);
            let EpochReason::ClockStep { by_ns } = timeline.epochs[1].reason else {
                panic!("{timeline:?}");
            };
            assert!((by_ns - sign * 4_000_000).abs() < 1_000, "{by_ns}");
            for second in [5, 15] {
                let at = Timestamp::from_nanos(near.reading(second * SECOND));
                let truth = far.reading(second * SECOND) - near.reading(second * SECOND);
                let offset = timeline.at(at).unwrap().offset_ns;
                assert!((offset - truth as f64).abs() < 100.0, "{second}: {offset} {truth}");
            }
        }
    }

    #[test]
    fn nothing_is_known_without_estimates_of_both() {
        let timeline = Clock { ahead: 0, drift_ppm: 0, step: None }.timeline();
        assert_eq!(Timeline::through(&timeline, &Timeline::default()), Timeline::default());
        assert_eq!(Timeline::through(&Timeline::default(), &timeline), Timeline::default());
    }
}
