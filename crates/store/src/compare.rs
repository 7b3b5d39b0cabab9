//! Comparison of two runs.
//!
//! Where both runs repeat a trial (same test, traffic, frame size, load and step), the difference of
//! the means has a confidence interval (95 %, Welch). A difference is beyond noise if the interval
//! excludes 0. Figures of results have no repetition, so that nobody can tell their noise.

use std::collections::BTreeMap;

use serde::Serialize;
use wirestorm_method::statistics::{difference, mean};

use crate::figures::{Figure, Unit};
use crate::row::TrialRow;

/// Differences of run B from run A.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Figures of the results, in the order of A; those that only B has at the end.
    pub figures: Vec<FigureDifference>,
    /// Figures of trials, by test, traffic, frame size, load and step.
    pub trials: Vec<TrialDifference>,
    /// Groups of trials that only one of the runs has.
    pub unmatched: usize,
}

/// A figure of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct FigureDifference {
    /// Name of the figure.
    pub name: String,
    /// Unit of all values.
    pub unit: Unit,
    /// Value of A; the mean of repeated trials. Null if A lacks it.
    pub a: Option<f64>,
    /// Value of B; the mean of repeated trials. Null if B lacks it.
    pub b: Option<f64>,
    /// B minus A.
    pub difference: Option<f64>,
    /// B minus A in percent of A; null if A is 0.
    pub difference_percent: Option<f64>,
    /// Lower and upper bound of the 95 % confidence interval of the difference; null without
    /// repeated trials in both runs.
    pub interval: Option<[f64; 2]>,
    /// Whether the difference is beyond noise.
    pub noise: Noise,
}

/// Figures of trials that both runs have.
#[derive(Clone, Debug, Serialize)]
pub struct TrialDifference {
    /// Trials that are compared.
    #[serde(flatten)]
    pub key: TrialKey,
    /// Number of trials of A and of B.
    pub repetitions: [usize; 2],
    /// Figures that both runs have.
    pub figures: Vec<FigureDifference>,
}

/// What repeated trials have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TrialKey {
    /// Test.
    pub test: String,
    /// Name of the traffic.
    pub traffic: String,
    /// Frame size in bytes with FCS.
    pub frame_size: Option<u32>,
    /// Intended load of each transmitting interface, in units per second.
    pub load: Option<u64>,
    /// Offer of the trial from 1.
    pub offer: u32,
    /// Step of the offer from 1.
    pub step: u32,
}

/// Whether a difference is larger than that of two equal runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// The confidence interval of the difference excludes 0.
    Beyond,
    /// The confidence interval of the difference contains 0.
    Within,
    /// A run has no repeated trials.
    NoRepetition,
}

impl Comparison {
    /// Compares the figures and the rows of two runs. Rows of runs without trials have no part in
    /// it: they are among the figures.
    pub fn new(figures: [&[Figure]; 2], rows: [&[TrialRow]; 2]) -> Self {
        let (trials, unmatched) = compare_trials(rows);
        Self { figures: compare_figures(figures), trials, unmatched }
    }

    /// Returns all figures, those of trials too.
    pub fn all(&self) -> impl Iterator<Item = &FigureDifference> {
        self.figures.iter().chain(self.trials.iter().flat_map(|trial| &trial.figures))
    }

    /// Returns whether any difference is beyond noise.
    pub fn is_beyond_noise(&self) -> bool {
        self.all().any(|figure| figure.noise == Noise::Beyond)
    }

    /// Returns whether no trial is repeated in both runs.
    pub fn lacks_repetition(&self) -> bool {
        self.all().all(|figure| figure.noise == Noise::NoRepetition)
    }
}

impl FigureDifference {
    fn new(name: &str, unit: Unit, a: &[f64], b: &[f64]) -> Self {
        let (mean_a, mean_b) = (mean(a), mean(b));
        let change = mean_a.zip(mean_b).map(|(a, b)| b - a);
        let interval = difference(a, b);
        let percent = |(a, change): (f64, f64)| (a != 0.0).then(|| change / a * 100.0);
        Self {
            name: name.to_owned(),
            unit,
            a: mean_a,
            b: mean_b,
            difference: change,
            difference_percent: mean_a.zip(change).and_then(percent),
            interval: interval.map(|interval| [interval.lower, interval.upper]),
            noise: match interval {
                None => Noise::NoRepetition,
                Some(interval) if interval.contains(0.0) => Noise::Within,
                Some(_) => Noise::Beyond,
            },
        }
    }
}

fn compare_figures([a, b]: [&[Figure]; 2]) -> Vec<FigureDifference> {
    let same = |one: &Figure, other: &Figure| one.name == other.name && one.unit == other.unit;
    let of_a = a.iter().map(|figure| {
        let other = b.iter().find(|other| same(figure, other)).map(|other| other.value);
        FigureDifference::new(&figure.name, figure.unit, &[figure.value], other.as_slice())
    });
    let only_b = b.iter().filter(|figure| !a.iter().any(|other| same(figure, other)));
    of_a.chain(
        only_b.map(|figure| FigureDifference::new(&figure.name, figure.unit, &[], &[figure.value])),
    )
    .collect()
}

/// Figures of a row, by name.
type RowFigure = (&'static str, Unit, fn(&TrialRow) -> Option<f64>);

const ROW_FIGURES: [RowFigure; 7] = [
    ("received", Unit::FramesPerSecond, |row| {
        (row.seconds > 0.0).then(|| row.received.map(|count| count as f64 / row.seconds))?
    }),
    ("loss ratio", Unit::Percent, |row| row.loss_ratio.map(|ratio| ratio * 100.0)),
    ("flow loss", Unit::Percent, |row| {
        let (sent, captured) = row.flows_sent.zip(row.flows_captured)?;
        Some(sent.saturating_sub(captured) as f64 / sent.max(1) as f64 * 100.0)
    }),
    ("delay mean", Unit::Nanoseconds, |row| row.delay_mean_ns),
    ("delay median", Unit::Nanoseconds, |row| row.delay_p50_ns.map(|delay| delay as f64)),
    ("delay p99", Unit::Nanoseconds, |row| row.delay_p99_ns.map(|delay| delay as f64)),
    ("delay max", Unit::Nanoseconds, |row| row.delay_max_ns.map(|delay| delay as f64)),
];

fn compare_trials(rows: [&[TrialRow]; 2]) -> (Vec<TrialDifference>, usize) {
    let [a, b] = rows.map(groups);
    let unmatched = a.keys().filter(|key| !b.contains_key(*key)).count()
        + b.keys().filter(|key| !a.contains_key(*key)).count();
    let both = a.iter().filter_map(|(key, a)| Some((key, a, b.get(key)?)));
    let compare = |(key, a, b): (&TrialKey, &Vec<&TrialRow>, &Vec<&TrialRow>)| {
        let figure = |(name, unit, value): RowFigure| {
            let values = |rows: &[&TrialRow]| -> Vec<f64> {
                rows.iter().filter_map(|row| value(row)).collect()
            };
            let (a, b) = (values(a), values(b));
            (!a.is_empty() && !b.is_empty()).then(|| FigureDifference::new(name, unit, &a, &b))
        };
        TrialDifference {
            key: key.clone(),
            repetitions: [a.len(), b.len()],
            figures: ROW_FIGURES.into_iter().filter_map(figure).collect(),
        }
    };
    (both.map(compare).collect(), unmatched)
}

/// Groups the rows of repeated trials.
fn groups(rows: &[TrialRow]) -> BTreeMap<TrialKey, Vec<&TrialRow>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for row in rows.iter().filter(|row| row.number > 0) {
        let key = TrialKey {
            test: row.test.clone(),
            traffic: row.traffic.clone(),
            frame_size: row.frame_size,
            load: row.load,
            offer: row.offer,
            step: row.step,
        };
        groups.entry(key).or_default().push(row);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(load: u64, delays: &[i64]) -> Vec<TrialRow> {
        let row = |(number, delay): (usize, &i64)| TrialRow {
            number: number as u32 + 1,
            test: "latency".into(),
            traffic: "ipv4".into(),
            frame_size: Some(64),
            load: Some(load),
            offer: 1,
            step: 1,
            seconds: 2.0,
            offered: 2 * load,
            received: Some(2 * load),
            lost: Some(0),
            loss_ratio: Some(0.0),
            delay_p50_ns: Some(*delay),
            ..TrialRow::default()
        };
        delays.iter().enumerate().map(row).collect()
    }

    fn median(comparison: &Comparison) -> &FigureDifference {
        comparison.all().find(|it| it.name == "delay median").unwrap()
    }

    #[test]
    fn difference_beyond_the_spread_of_repeated_trials_is_marked() {
        let a = rows(1000, &[100, 102, 98, 101, 99]);
        for (b, expected) in
            [([110, 112, 108, 111, 109], Noise::Beyond), ([101, 99, 103, 97, 100], Noise::Within)]
        {
            let comparison = Comparison::new([&[], &[]], [&a, &rows(1000, &b)]);
            assert_eq!(median(&comparison).noise, expected, "{comparison:?}");
            assert_eq!(comparison.is_beyond_noise(), expected == Noise::Beyond);
            assert_eq!(comparison.trials[0].repetitions, [5, 5]);
            assert!(!comparison.lacks_repetition());
        }
        let comparison = Comparison::new([&[], &[]], [&a, &rows(1000, &[110, 112, 108, 111, 109])]);
        let median = median(&comparison);
        assert_eq!((median.difference, median.difference_percent), (Some(10.0), Some(10.0)));
        // The variances are equal: 8 degrees of freedom, t = 2.306, standard error 1.
        let [lower, upper] = median.interval.unwrap();
        assert!((lower - 7.694).abs() < 1e-3 && (upper - 12.306).abs() < 1e-3, "{median:?}");
    }

    #[test]
    fn single_trials_have_no_noise() {
        let (a, b) = (rows(1000, &[100]), rows(1000, &[200, 201]));
        let comparison = Comparison::new([&[], &[]], [&a, &b]);
        assert_eq!(median(&comparison).noise, Noise::NoRepetition);
        assert!(comparison.lacks_repetition() && !comparison.is_beyond_noise());
    }

    #[test]
    fn trials_of_other_loads_are_not_compared() {
        let (a, b) = (rows(1000, &[100, 101]), rows(2000, &[100, 101]));
        let comparison = Comparison::new([&[], &[]], [&a, &b]);
        assert_eq!((comparison.trials.len(), comparison.unmatched), (0, 2));
    }

    #[test]
    fn figures_are_matched_by_name_and_unit() {
        let figure = |name: &str, unit, value| Figure { name: name.into(), unit, value };
        let a = [figure("sent", Unit::FramesPerSecond, 50.0), figure("lost", Unit::Count, 0.0)];
        let b = [figure("sent", Unit::FramesPerSecond, 75.0), figure("sent", Unit::Count, 1.0)];
        let figures = Comparison::new([&a, &b], [&[], &[]]).figures;
        let values: Vec<_> = figures
            .iter()
            .map(|it| (it.name.as_str(), it.a, it.b, it.difference_percent))
            .collect();
        let expected = [
            ("sent", Some(50.0), Some(75.0), Some(50.0)),
            ("lost", Some(0.0), None, None),
            ("sent", None, Some(1.0), None),
        ];
        assert_eq!(values, expected);
    }
}
