//! What programs found: how long transactions took, and what was not as expected.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_stack::program::{Findings, Transaction, TransactionTimes};

use crate::result::HistogramReport;

/// Transactions of one name.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TransactionReport {
    /// The name that the program gives them.
    pub name: String,
    /// Those that started; `time.count` of them ended.
    pub started: u64,
    /// The shortest; null where none ended.
    pub min_ns: Option<u64>,
    /// On average; null where none ended.
    pub mean_ns: Option<u64>,
    /// From start to end.
    pub time: HistogramReport,
}

/// Flows whose program failed at one step, for one cause.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailureReport {
    /// The step, such as `program[2].expect`.
    pub step: String,
    /// Why.
    pub cause: &'static str,
    /// How many flows.
    pub flows: u64,
    /// Of the first of them: where what came was not what was expected, in bytes, if that is known.
    pub offset: Option<u64>,
    /// What was expected: a pattern, or bytes from a little before there on. Bytes that are no
    /// printable ASCII are escaped.
    pub expected: Option<String>,
    /// What came.
    pub found: String,
    /// Whether that is known: a program that looks at no bytes keeps none.
    pub found_is_known: bool,
}

/// What of a program is needed to tell what it found.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// The names of transactions, by their places.
    pub(super) transactions: Vec<String>,
    /// The steps that may fail, by the places of their instructions.
    pub(super) steps: BTreeMap<u16, ToldStep>,
    /// Whether it takes messages of HTTP.
    pub(super) takes_http: bool,
}

/// A step that may fail.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldStep {
    pub(super) path: String,
    /// The pattern that it looks for.
    pub(super) pattern: Option<String>,
}

impl Told {
    pub(super) fn transactions(&self, findings: &Findings) -> Vec<TransactionReport> {
        let names = self.transactions.iter().enumerate();
        let all = names.filter_map(|(place, name)| {
            let times = findings.transaction(Transaction::new(place)?)?;
            Some(TransactionReport::of(name, times))
        });
        all.collect()
    }

    pub(super) fn failures(&self, findings: &Findings) -> Vec<FailureReport> {
        let all = findings.failures().map(|(place, cause, failure)| {
            let step = self.steps.get(&place).cloned().unwrap_or_default();
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let expected = failure.expected.as_deref().map(shown);
            FailureReport {
                step: step.path,
                cause: cause.as_str(),
                flows: failure.times,
                offset: failure.offset,
                expected: expected.or(step.pattern),
                found: shown(&failure.found),
                found_is_known: failure.is_seen,
            }
        });
        all.collect()
    }
}

impl FailureReport {
    /// Whether another one is of the same step and cause, of a group of templates say, whose
    /// programs may be alike.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        (&self.step, self.cause, &self.expected) == (&other.step, other.cause, &other.expected)
    }
}

impl TransactionReport {
    fn of(name: &str, times: &TransactionTimes) -> Self {
        let ended = times.times.count();
        Self {
            name: name.to_owned(),
            started: times.begun,
            min_ns: (ended > 0).then(|| times.min.as_nanos()),
            mean_ns: times.sum.as_nanos().checked_div(ended),
            time: HistogramReport::new(&times.times),
        }
    }

    /// Adds others of this name.
    pub(super) fn add(&mut self, other: &Self) {
        // The name is the same, and the mean follows from the sum of both.
        let Self { name: _, started, min_ns, mean_ns: _, time } = other;
        let (mine, theirs) = (self.time.count, other.time.count);
        let sum =
            |(mean, count): (Option<u64>, u64)| u128::from(mean.unwrap_or(0)) * u128::from(count);
        let all = sum((self.mean_ns, mine)) + sum((other.mean_ns, theirs));
        let mean = all.checked_div((mine + theirs).into());
        self.mean_ns = mean.map(|mean| u64::try_from(mean).unwrap_or(u64::MAX));
        self.min_ns = self.min_ns.into_iter().chain(*min_ns).min();
        self.started += started;
        self.time.add(time);
    }
}
