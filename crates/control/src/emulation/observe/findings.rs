//! Reports of programs: transaction times, and steps that failed.

use std::collections::BTreeMap;

use wirestorm_model::program::TransactionId;
use wirestorm_stack::program::{ProgramResults, TransactionTimes};

use crate::result::{FailureReport, HistogramReport, TransactionReport};

/// Names and plan paths of a program, for its reports.
#[derive(Clone, Debug, Default)]
pub(in crate::emulation) struct ProgramNames {
    /// Transaction names, by transaction index.
    pub(in crate::emulation) transactions: Vec<String>,
    /// Steps that may fail, by instruction index.
    pub(in crate::emulation) steps: BTreeMap<u16, StepLocation>,
    /// Whether the program receives HTTP messages.
    pub(in crate::emulation) takes_http: bool,
}

/// A step that may fail.
#[derive(Clone, Debug, Default)]
pub(in crate::emulation) struct StepLocation {
    /// Path in the plan.
    pub(in crate::emulation) path: String,
    /// Expected regular expression, if the step has one.
    pub(in crate::emulation) pattern: Option<String>,
}

impl ProgramNames {
    /// Returns the reports of all transactions.
    pub(in crate::emulation) fn transactions(
        &self,
        findings: &ProgramResults,
    ) -> Vec<TransactionReport> {
        let names = self.transactions.iter().enumerate();
        let all = names.filter_map(|(place, name)| {
            let times = findings.transaction(TransactionId::new(place)?)?;
            Some(transaction(name, times))
        });
        all.collect()
    }

    /// Returns the reports of all failed steps, with bytes escaped as ASCII.
    pub(in crate::emulation) fn failures(&self, findings: &ProgramResults) -> Vec<FailureReport> {
        let all = findings.failures().map(|(place, cause, failure)| {
            let step = self.steps.get(&place).cloned().unwrap_or_default();
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let expected = failure.expected.as_deref().map(shown);
            FailureReport {
                step: step.path,
                cause: cause.as_str().into(),
                flows: failure.times,
                offset: failure.offset,
                expected: expected.or(step.pattern),
                found: shown(&failure.found),
                found_recorded: failure.is_kept,
            }
        });
        all.collect()
    }
}

fn transaction(name: &str, times: &TransactionTimes) -> TransactionReport {
    let ended = times.times.count();
    TransactionReport {
        name: name.to_owned(),
        started: times.begun,
        min_ns: (ended > 0).then(|| times.min.as_nanos()),
        mean_ns: times.sum.as_nanos().checked_div(ended),
        time: HistogramReport::new(&times.times),
    }
}
