//! Load classification and conditional throughput (RFC 9971 appendices A and B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::Measurement;
use crate::seconds;

/// Search goal (RFC 9971 section 4.6.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Goal {
    /// Name in reports.
    pub name: String,
    /// Goal Final Trial Duration in seconds.
    #[serde(rename = "final_trial_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub final_trial: Duration,
    /// Goal Duration Sum in seconds.
    #[serde(rename = "duration_sum_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub duration_sum: Duration,
    /// Goal Loss Ratio, from 0 to below 1.
    pub loss_ratio: f64,
    /// Goal Exceed Ratio, from 0 to below 1.
    pub exceed_ratio: f64,
    /// Goal Initial Trial Duration in seconds.
    #[serde(rename = "initial_trial_s", with = "seconds")]
    #[schemars(with = "f64")]
    pub initial_trial: Duration,
    /// Goal Width: difference of the bounds as a fraction of the upper bound.
    pub width: f64,
}

/// Classification of a load for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classification {
    /// The trials fail the goal, whatever the missing ones would measure.
    Upper,
    /// The trials meet the goal, whatever the missing ones would measure.
    Lower,
    /// More trials are needed.
    Undecided,
}

/// Sums of the durations of the trials at one load, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    full_low: f64,
    full_high: f64,
    short_low: f64,
    short_high: f64,
}

impl Sums {
    fn new<'a>(goal: &Goal, trials: impl Iterator<Item = &'a Measurement>) -> Self {
        let mut sums = Self::default();
        for trial in trials {
            let sum = match (trial.duration < goal.final_trial, trial.loss_ratio > goal.loss_ratio)
            {
                (false, false) => &mut sums.full_low,
                (false, true) => &mut sums.full_high,
                (true, false) => &mut sums.short_low,
                (true, true) => &mut sums.short_high,
            };
            *sum += trial.duration.as_secs_f64();
        }
        sums
    }
}

/// Sums of a classification, in seconds.
#[derive(Clone, Copy, Debug)]
struct Exceedance {
    /// Effective whole sum.
    whole: f64,
    /// High-loss sum if all missing trials have high loss.
    pessimistic: f64,
    /// High-loss sum if all missing trials have low loss.
    optimistic: f64,
}

impl Goal {
    /// Classifies a load from all trials at this load (RFC 9971 appendix A).
    pub fn classify<'a>(&self, trials: impl Iterator<Item = &'a Measurement>) -> Classification {
        let Exceedance { whole, pessimistic, optimistic } = self.exceedance(trials);
        let quantile_duration = whole * self.exceed_ratio;
        match (pessimistic <= quantile_duration, optimistic <= quantile_duration) {
            (true, true) => Classification::Lower,
            (false, false) => Classification::Upper,
            _ => Classification::Undecided,
        }
    }

    /// Computes the high-loss sums that the classification compares.
    fn exceedance<'a>(&self, trials: impl Iterator<Item = &'a Measurement>) -> Exceedance {
        let sums = Sums::new(self, trials);
        let exceed_coefficient = self.exceed_ratio / (1.0 - self.exceed_ratio);
        let balancing = sums.short_low * exceed_coefficient;
        let positive_excess = (sums.short_high - balancing).max(0.0);
        let effective_high = sums.full_high + positive_excess;
        let effective_full = sums.full_low + effective_high;
        let whole = effective_full.max(self.duration_sum.as_secs_f64());
        Exceedance { whole, pessimistic: whole - sums.full_low, optimistic: effective_high }
    }

    /// Returns the conditional throughput in units per second of each interface, from all trials
    /// at a load (RFC 9971 appendix B). `None` without trials.
    pub fn conditional_throughput<'a>(
        &self,
        trials: impl Iterator<Item = &'a Measurement> + Clone,
    ) -> Option<f64> {
        let load = trials.clone().next()?.load;
        let sums = Sums::new(self, trials.clone());
        let full: f64 = sums.full_low + sums.full_high;
        let whole = full.max(self.duration_sum.as_secs_f64());
        let mut remaining = whole * (1.0 - self.exceed_ratio);
        let mut full_length: Vec<&Measurement> =
            trials.filter(|trial| trial.duration >= self.final_trial).collect();
        full_length.sort_by(|a, b| a.loss_ratio.total_cmp(&b.loss_ratio));
        let mut quantile = None;
        for trial in full_length {
            if quantile.is_some() && remaining <= 0.0 {
                break;
            }
            quantile = Some(trial.loss_ratio);
            remaining -= trial.duration.as_secs_f64();
        }
        // The trials do not cover the quantile: assume full loss for the rest.
        let loss_ratio = if remaining > 0.0 { 1.0 } else { quantile.unwrap_or(1.0) };
        Some(load as f64 * (1.0 - loss_ratio))
    }

    /// Returns whether the result of this goal is the throughput of RFC 2544 section 24
    /// (RFC 9971 section 4.10.2).
    pub fn is_rfc2544(&self) -> bool {
        const MINUTE: Duration = Duration::from_secs(60);
        let has_length = self.final_trial >= MINUTE && self.duration_sum >= MINUTE;
        has_length && self.loss_ratio == 0.0 && self.exceed_ratio == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::Classification::{Lower, Undecided, Upper};
    use super::*;

    fn goal(name: &str, final_s: u64, sum_s: u64, loss_percent: f64, exceed: f64) -> Goal {
        Goal {
            name: name.into(),
            final_trial: Duration::from_secs(final_s),
            duration_sum: Duration::from_secs(sum_s),
            loss_ratio: loss_percent / 100.0,
            exceed_ratio: exceed,
            initial_trial: Duration::from_secs(1),
            width: 0.005,
        }
    }

    /// The goals of RFC 9971 appendix C.1.
    fn goals() -> [Goal; 4] {
        [
            goal("RFC2544", 60, 60, 0.0, 0.0),
            goal("TST009", 60, 120, 0.0, 0.5),
            goal("1s final", 1, 120, 0.5, 0.5),
            goal("20% exceed", 60, 60, 0.5, 0.2),
        ]
    }

    /// Trials at one million frames per second: number, duration in seconds, loss in percent.
    fn trials(sets: &[(usize, u64, f64)]) -> Vec<Measurement> {
        let trial = |&(count, seconds, percent): &(usize, u64, f64)| {
            let measurement = Measurement {
                load: 1_000_000,
                duration: Duration::from_secs(seconds),
                loss_ratio: percent / 100.0,
                tester_ratio: 0.0,
            };
            std::iter::repeat_n(measurement, count)
        };
        sets.iter().flat_map(trial).collect()
    }

    /// The points of RFC 9971 appendix C.2.
    fn points() -> [Vec<Measurement>; 6] {
        [
            trials(&[(59, 1, 0.0)]),
            trials(&[(59, 1, 0.0), (1, 1, 1.0)]),
            trials(&[(59, 1, 0.0), (60, 1, 1.0)]),
            trials(&[(60, 1, 0.0), (60, 1, 1.0)]),
            trials(&[(60, 1, 0.0), (60, 1, 1.0), (1, 60, 0.1)]),
            trials(&[(60, 1, 0.0), (60, 1, 1.0), (1, 60, 0.1), (1, 60, 0.0)]),
        ]
    }

    /// The rows "Optimistic exceed ratio", "Pessimistic exceed ratio" and "Classification Result"
    /// of RFC 9971 appendix C.3, in percent.
    ///
    /// Two results differ from the RFC. It lists "20% exceed" as a lower bound at points 5 and 6,
    /// although the exceed ratios beside it, 42.857 % and 27.273 %, are above 20 %. The definition
    /// of an upper bound refers to the code of appendix A, and that code yields an upper bound.
    #[test]
    fn classifications_are_those_of_rfc_9971_appendix_c_3() {
        type Row = [(f64, f64, Classification); 4];
        let expected: [Row; 6] = [
            [
                (0.0, 100.0, Undecided),
                (0.0, 100.0, Undecided),
                (0.0, 50.833, Undecided),
                (0.0, 100.0, Undecided),
            ],
            [
                (1.667, 100.0, Upper),
                (0.0, 100.0, Undecided),
                (0.833, 50.833, Undecided),
                (0.0, 100.0, Undecided),
            ],
            [
                (100.0, 100.0, Upper),
                (0.833, 100.0, Undecided),
                (50.0, 50.833, Undecided),
                (75.417, 100.0, Upper),
            ],
            [
                (100.0, 100.0, Upper),
                (0.0, 100.0, Undecided),
                (50.0, 50.0, Lower),
                (75.0, 100.0, Upper),
            ],
            [
                (100.0, 100.0, Upper),
                (50.0, 100.0, Undecided),
                (33.333, 33.333, Lower),
                (42.857, 42.857, Upper),
            ],
            [
                (66.667, 66.667, Upper),
                (50.0, 50.0, Lower),
                (25.0, 25.0, Lower),
                (27.273, 27.273, Upper),
            ],
        ];
        for (trials, expected) in points().iter().zip(expected) {
            let found = goals().map(|goal| {
                let sums = goal.exceedance(trials.iter());
                let percent = |high: f64| (high / sums.whole * 1e5).round() / 1e3;
                let classification = goal.classify(trials.iter());
                (percent(sums.optimistic), percent(sums.pessimistic), classification)
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn conditional_throughputs_are_those_of_rfc_9971_appendix_c_4() {
        let [_, tst009, one_second, exceed] = goals();
        let [.., trials] = points();
        let of = |goal: Goal| goal.conditional_throughput(trials.iter()).unwrap();
        assert_eq!(of(tst009), 1_000_000.0);
        assert_eq!(of(one_second), 1_000_000.0);
        assert_eq!(of(exceed), 999_000.0);
    }

    #[test]
    fn load_without_trials_is_undecided() {
        for goal in goals() {
            assert_eq!(goal.classify([].iter()), Undecided);
            assert_eq!(goal.conditional_throughput([].iter()), None);
        }
    }

    #[test]
    fn only_the_first_goal_is_the_throughput_of_rfc_2544() {
        assert_eq!(goals().map(|goal| goal.is_rfc2544()), [true, false, false, false]);
    }
}
