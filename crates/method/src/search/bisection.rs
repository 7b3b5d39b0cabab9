//! Binary search for the throughput (RFC 2544 section 26.1).

use wirestorm_base::time::Duration;

use super::{Measure, Measurement, is_within};
use crate::trial::TrialError;

/// Options of a binary search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bisection {
    /// Smallest load, in units per second; at least 1.
    pub min_load: u64,
    /// Largest load, in units per second.
    pub max_load: u64,
    /// Relative width at which the search ends.
    pub width: f64,
    /// Loss ratio that a passed trial may have.
    pub loss_ratio: f64,
    /// Duration of the trials that narrow the bounds. RFC 2544 section 24 allows a shorter one than
    /// for the final trial.
    pub intermediate: Duration,
    /// Duration of the final trial.
    pub full: Duration,
    /// Whether to repeat the trial at the upper bound at the end. A device that has not recovered
    /// from an earlier trial fails at loads that it handles.
    pub verifies_upper: bool,
}

/// Outcome of a binary search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Final trial: the largest load that passed a full-length trial; `None` if none passed.
    pub lower: Option<Measurement>,
    /// Smallest load that failed; `None` if none failed.
    pub upper: Option<Measurement>,
    /// Number of trials.
    pub trials: u32,
    /// Whether the upper bound passed when it was verified: the device had not recovered from an
    /// earlier trial, and handles more than the lower bound.
    pub is_contradictory: bool,
}

impl Bisection {
    /// Returns a search between two loads with trials of one duration, which may lose nothing.
    pub const fn between(min_load: u64, max_load: u64, width: f64, trial: Duration) -> Self {
        Self {
            min_load,
            max_load,
            width,
            loss_ratio: 0.0,
            intermediate: trial,
            full: trial,
            verifies_upper: false,
        }
    }

    /// Searches. The maximum load is tried first. If a full-length trial fails at a load that
    /// passed a shorter one, the search continues below it.
    ///
    /// # Errors
    /// Returns the first error of `measure`.
    pub fn search(&self, measure: &mut Measure) -> Result<Bounds, TrialError> {
        let mut known = Loads::default();
        let mut bounds = Bounds::default();
        let (mut load, mut duration) = (self.max_load, self.intermediate);
        loop {
            let trial = measure(load, duration)?;
            bounds.trials += 1;
            if trial.loss_ratio > self.loss_ratio {
                known.fail(trial);
            } else {
                known.pass(trial);
            }
            let lower = known.passed.last().copied();
            let upper = known.failed.first().copied();
            let bottom = lower.map_or(self.min_load, |trial| trial.load);
            let top = upper.map_or(self.max_load, |trial| trial.load);
            if !(is_within(bottom, top, self.width) || upper.is_none() && lower.is_some()) {
                (load, duration) = (middle(bottom, top), self.intermediate);
                continue;
            }
            let is_final = match lower {
                Some(lower) => lower.duration >= self.full,
                None => top <= self.min_load,
            };
            if is_final {
                (bounds.lower, bounds.upper) = (lower, upper);
                break;
            }
            (load, duration) = (bottom, self.full);
        }
        if self.verifies_upper
            && let Some(upper) = bounds.upper
        {
            // A small load lets the device recover first.
            measure(self.min_load, self.intermediate)?;
            let again = measure(upper.load, self.full)?;
            bounds.trials += 2;
            bounds.is_contradictory = again.loss_ratio <= self.loss_ratio;
        }
        Ok(bounds)
    }
}

/// Loads with a trial, ascending; no failed one is below a passed one.
#[derive(Debug, Default)]
struct Loads {
    passed: Vec<Measurement>,
    failed: Vec<Measurement>,
}

impl Loads {
    fn fail(&mut self, trial: Measurement) {
        self.passed.retain(|other| other.load < trial.load);
        self.failed.retain(|other| other.load != trial.load);
        self.failed.push(trial);
        self.failed.sort_by_key(|trial| trial.load);
    }

    fn pass(&mut self, trial: Measurement) {
        self.failed.retain(|other| other.load > trial.load);
        self.passed.retain(|other| other.load != trial.load);
        self.passed.push(trial);
        self.passed.sort_by_key(|trial| trial.load);
    }
}

fn middle(lower: u64, upper: u64) -> u64 {
    lower + (upper - lower) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn options(max_load: u64, intermediate: Duration) -> Bisection {
        Bisection {
            min_load: 1,
            max_load,
            width: 0.001,
            loss_ratio: 0.0,
            intermediate,
            full: MINUTE,
            verifies_upper: false,
        }
    }

    /// Searches on a device with a capacity for short and another for full-length trials.
    fn search(options: &Bisection, short: u64, full: u64) -> (Bounds, Vec<(u64, Duration)>) {
        let mut trials = Vec::new();
        let bounds = options.search(&mut |load, duration| {
            trials.push((load, duration));
            let capacity = if duration >= MINUTE { full } else { short };
            let lost = load.saturating_sub(capacity) as f64;
            let loss_ratio = lost / load as f64;
            Ok(Measurement { load, duration, loss_ratio, tester_ratio: 0.0 })
        });
        (bounds.unwrap(), trials)
    }

    #[test]
    fn search_converges_to_the_capacity_within_the_width() {
        for capacity in [1, 2, 999, 123_456, 9_999_999] {
            let (bounds, trials) = search(&options(10_000_000, MINUTE), capacity, capacity);
            let lower = bounds.lower.unwrap().load;
            let upper = bounds.upper.unwrap().load;
            assert!(lower <= capacity && capacity < upper, "{lower} {capacity} {upper}");
            assert!(is_within(lower, upper, 0.001));
            assert!(trials.len() <= 34, "{}", trials.len());
            assert_eq!(trials.len() as u32, bounds.trials);
        }
    }

    #[test]
    fn device_that_passes_the_maximum_needs_one_trial() {
        let (bounds, trials) = search(&options(1_000, MINUTE), 1_000, 1_000);
        assert_eq!(trials, [(1_000, MINUTE)]);
        assert_eq!((bounds.lower.unwrap().load, bounds.upper), (1_000, None));
    }

    #[test]
    fn final_trial_has_the_full_length_and_a_failure_continues_below() {
        let second = Duration::from_secs(1);
        let (bounds, trials) = search(&options(1_000_000, second), 600_000, 500_000);
        let lower = bounds.lower.unwrap();
        assert_eq!(lower.duration, MINUTE);
        assert!(lower.load <= 500_000 && lower.load > 498_000, "{lower:?}");
        // The device passes short trials at more than 500,000, so only full-length ones fail there.
        assert!(trials.iter().filter(|(_, duration)| *duration == MINUTE).count() > 2);
    }

    #[test]
    fn verification_shows_that_a_device_had_not_recovered() {
        // The device loses frames in each trial that follows a trial with loss, unless the load is
        // low.
        let mut is_disturbed = false;
        let mut measure = |load: u64, duration| {
            let capacity = if is_disturbed { 100_000 } else { 700_000 };
            is_disturbed = load > capacity;
            let loss_ratio = if is_disturbed { 0.1 } else { 0.0 };
            Ok(Measurement { load, duration, loss_ratio, tester_ratio: 0.0 })
        };
        let verifying = Bisection { verifies_upper: true, ..options(1_000_000, MINUTE) };
        let bounds = verifying.search(&mut measure).unwrap();
        assert!(bounds.upper.unwrap().load < 200_000, "{bounds:?}");
        assert!(bounds.is_contradictory);
        let narrow = Bisection { max_load: 800_000, min_load: 690_000, ..verifying };
        assert!(!narrow.search(&mut measure).unwrap().is_contradictory);
    }

    #[test]
    fn device_that_fails_everywhere_has_no_lower_bound() {
        let (bounds, _) = search(&options(1_000, MINUTE), 0, 0);
        assert_eq!((bounds.lower, bounds.upper.unwrap().load), (None, 1));
    }
}
