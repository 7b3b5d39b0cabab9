//! Controller of MLRsearch (RFC 9971): finds the bounds of several goals with few trial seconds.
//!
//! ```text
//! maximum load, short trial ──> its forwarding rate ──> extend up or down ──> halve
//!       for each goal: coarse target (short trials, wide bounds) ──> ... ──> the goal itself
//! ```
//!
//! Each target starts from the bounds of the one before. A short trial with loss can classify an
//! upper bound for a goal without tolerance, so full-length trials go mostly to the lower bound.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use super::classification::{Classification, Goal};
use super::{Measure, Measurement, is_within};
use crate::trial::TrialError;

/// Input of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerInput {
    /// Search goals; each may narrow the bounds of the next.
    pub goals: Vec<Goal>,
    /// Min Load in units per second; at least 1.
    pub min_load: u64,
    /// Max Load in units per second.
    pub max_load: u64,
    /// Maximum sum of the trial durations. Goals that are not met by then get irregular results.
    pub duration_max: Duration,
}

/// Result of one goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GoalResult {
    /// Name of the goal.
    pub goal: String,
    /// Whether the result is regular: both bounds exist, and their distance is at most the width.
    pub is_regular: bool,
    /// Relevant lower bound in units per second of each interface. Without an upper bound: the
    /// largest lower bound.
    pub lower: Option<u64>,
    /// Relevant upper bound in units per second of each interface.
    pub upper: Option<u64>,
    /// Conditional throughput at the lower bound, in units per second of each interface.
    pub conditional_throughput: Option<f64>,
}

/// Trials at each load.
type Trials = BTreeMap<u64, Vec<Measurement>>;

/// Number of coarse targets before each goal.
const COARSE_TARGETS: u32 = 2;

/// Searches the bounds of all goals.
///
/// # Errors
/// Returns the first error of `measure`.
pub fn search(
    input: &ControllerInput,
    measure: &mut Measure,
) -> Result<Vec<GoalResult>, TrialError> {
    let mut search = Search { input, trials: Trials::new(), spent: Duration::ZERO };
    for goal in &input.goals {
        let mut hints = Vec::new();
        for target in targets(goal) {
            search.reach(&target, &hints, measure)?;
            // The next target tries the lower bound first: it needs the long trials.
            let (lower, upper) = bounds(&search.trials, &target);
            hints = lower.into_iter().chain(upper).collect();
        }
    }
    Ok(input.goals.iter().map(|goal| result(&search.trials, goal)).collect())
}

/// Returns the targets that lead to a goal: shorter trials and wider bounds first.
fn targets(goal: &Goal) -> Vec<Goal> {
    let initial = goal.initial_trial.min(goal.final_trial).as_secs_f64();
    let growth = goal.final_trial.as_secs_f64() / initial.max(1e-9);
    let count = if growth > 1.0 { COARSE_TARGETS } else { 0 };
    let target = |step: u32| {
        if step == count {
            return goal.clone();
        }
        let part = f64::from(step) / f64::from(count);
        let seconds = initial * growth.powf(part);
        let trial = Duration::from_millis((seconds * 1e3).ceil() as u64);
        Goal {
            final_trial: trial,
            // One trial decides, for speed; the goal itself repeats trials.
            duration_sum: trial,
            width: goal.width * f64::from(1 << (count - step)),
            ..goal.clone()
        }
    };
    (0..=count).map(target).collect()
}

/// State of a search.
struct Search<'a> {
    input: &'a ControllerInput,
    trials: Trials,
    /// Sum of the trial durations.
    spent: Duration,
}

impl Search<'_> {
    /// Measures until the bounds of a target are within its width.
    fn reach(
        &mut self,
        target: &Goal,
        hints: &[u64],
        measure: &mut Measure,
    ) -> Result<(), TrialError> {
        let mut extension = Extension::default();
        while self.spent < self.input.duration_max {
            let Some(load) = self.next_load(target, hints, &mut extension) else { break };
            // Repeat trials at a load until they decide.
            while classify(&self.trials, target, load) == Classification::Undecided
                && self.spent < self.input.duration_max
            {
                let trial = measure(load, target.final_trial)?;
                self.spent = self.spent.saturating_add(target.final_trial);
                self.trials.entry(load).or_default().push(trial);
            }
        }
        Ok(())
    }

    /// Chooses the next load; `None` if the target is reached or cannot be.
    fn next_load(&self, target: &Goal, hints: &[u64], extension: &mut Extension) -> Option<u64> {
        let ControllerInput { min_load, max_load, .. } = *self.input;
        let (lower, upper) = bounds(&self.trials, target);
        let is_open = |load: u64| classify(&self.trials, target, load) == Classification::Undecided;
        let is_inside = |load: &u64| {
            lower.is_none_or(|lower| *load > lower) && upper.is_none_or(|upper| *load < upper)
        };
        if let (Some(lower), Some(upper)) = (lower, upper)
            && is_within(lower, upper, target.width)
        {
            return None;
        }
        // The bounds of the coarser target.
        if let Some(&hint) = hints.iter().find(|hint| is_inside(hint) && is_open(**hint)) {
            return Some(hint);
        }
        match (lower, upper) {
            (None, None) => Some(max_load),
            (Some(lower), None) => (lower < max_load)
                .then(|| extension.up(lower, target.width).clamp(lower + 1, max_load)),
            (None, Some(upper)) => {
                if upper <= min_load {
                    return None;
                }
                let below = |load: u64| load.clamp(min_load, upper - 1);
                // A device that forwards as much under overload loses nothing at that rate.
                let rate = self.forwarding_rate(upper) / (1.0 - target.loss_ratio);
                let rate = below(rate as u64);
                if extension.is_first() && !is_within(rate, upper, target.width) {
                    extension.note();
                    return Some(rate);
                }
                Some(below(extension.down(upper, target.width)))
            }
            (Some(lower), Some(upper)) => {
                let middle = (lower as f64 * upper as f64).sqrt() as u64;
                Some(middle.clamp(lower + 1, upper - 1))
            }
        }
    }

    /// Returns the largest forwarding rate measured at a load.
    fn forwarding_rate(&self, load: u64) -> f64 {
        let trials = self.trials.get(&load).into_iter().flatten();
        trials.map(Measurement::forwarding_rate).fold(0.0, f64::max)
    }
}

/// Steps of a search with only one bound. Each is twice as wide as the one before.
#[derive(Debug, Default)]
struct Extension {
    steps: u32,
}

impl Extension {
    const fn is_first(&self) -> bool {
        self.steps == 0
    }

    const fn note(&mut self) {
        self.steps += 1;
    }

    /// Returns the width of this step as a fraction of the load.
    fn width(&mut self, width: f64) -> f64 {
        let factor = 2_f64.powi(self.steps.min(30) as i32);
        self.note();
        (width * factor).min(0.5)
    }

    fn up(&mut self, load: u64, width: f64) -> u64 {
        // The width is a fraction of the upper bound.
        (load as f64 / (1.0 - self.width(width))) as u64
    }

    fn down(&mut self, load: u64, width: f64) -> u64 {
        (load as f64 * (1.0 - self.width(width))).ceil() as u64
    }
}

fn classify(trials: &Trials, goal: &Goal, load: u64) -> Classification {
    goal.classify(trials.get(&load).into_iter().flatten())
}

/// Returns the relevant lower and upper bound. Without an upper bound, the lower bound is the
/// largest one.
fn bounds(trials: &Trials, goal: &Goal) -> (Option<u64>, Option<u64>) {
    let is = |load: &&u64, wanted| classify(trials, goal, **load) == wanted;
    let upper = trials.keys().find(|load| is(load, Classification::Upper)).copied();
    let below = |load: &&u64| upper.is_none_or(|upper| **load < upper);
    let lower = trials.keys().rev().filter(below).find(|load| is(load, Classification::Lower));
    (lower.copied(), upper)
}

fn result(trials: &Trials, goal: &Goal) -> GoalResult {
    let (lower, upper) = bounds(trials, goal);
    let is_regular =
        lower.zip(upper).is_some_and(|(lower, upper)| is_within(lower, upper, goal.width));
    let throughput = lower.and_then(|load| goal.conditional_throughput(trials.get(&load)?.iter()));
    GoalResult {
        goal: goal.name.clone(),
        is_regular,
        lower,
        upper,
        conditional_throughput: throughput,
    }
}
