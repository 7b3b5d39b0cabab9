//! Limits of a test, judged after each iteration.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_report::figure::{self, Figure};
use wirestorm_report::limit::Limit;
use wirestorm_store::record::BenchResult;

use super::RunOutcome;

/// Figures that a limit shows at most.
const FIGURES_MAX: usize = 5;

/// A limit of a test after an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct JudgedLimit {
    /// The limit as the test has it.
    pub limit: String,
    /// Whether at least one figure belongs to it, and none fails it.
    pub has_passed: bool,
    /// Number of figures that belong to it.
    pub figures: usize,
    /// Those that fail it, with their values: the first five, and how many more there are.
    pub failing: Vec<String>,
}

impl JudgedLimit {
    /// Returns why the limit has not passed; `None` if it has.
    pub fn reason(&self) -> Option<String> {
        let limit = &self.limit;
        match (self.has_passed, self.failing.is_empty()) {
            (true, _) => None,
            (false, true) => Some(format!(
                "{limit}: no figure of the test belongs to this limit; `wirestorm report \
                 --list-metrics` prints all metrics"
            )),
            (false, false) => Some(format!("{limit}: {}", self.failing.join(", "))),
        }
    }
}

/// Reads the limits of a test.
///
/// # Errors
/// A message with the path in the test.
pub(super) fn read(limits: &[String]) -> Result<Vec<Limit>, String> {
    let read = |(index, text): (usize, &String)| {
        Limit::parse(text).map_err(|error| format!("fail_if[{index}]: {error}"))
    };
    limits.iter().enumerate().map(read).collect()
}

/// Judges the limits by the figures of all runs.
pub(super) fn judge(limits: &[Limit], runs: &[RunOutcome]) -> Vec<JudgedLimit> {
    if limits.is_empty() {
        return Vec::new();
    }
    let figures: Vec<Figure> = runs.iter().enumerate().flat_map(figures).collect();
    judge_figures(limits, &figures, |figure| {
        let run = runs.get(figure.run).filter(|_| runs.len() > 1);
        run.map_or(String::new(), |run| format!("{}: ", run.name))
    })
}

/// Judges the limits by the findings of a method with this name.
pub(super) fn judge_method(limits: &[Limit], name: &str, result: &BenchResult) -> Vec<JudgedLimit> {
    judge_figures(limits, &figure::of_bench(0, name, result), |_| String::new())
}

/// `prefix`: what is written before the place of a figure.
fn judge_figures(
    limits: &[Limit],
    figures: &[Figure],
    prefix: impl Fn(&Figure) -> String,
) -> Vec<JudgedLimit> {
    let judge = |limit: &Limit| {
        let judged = limit.judge(figures);
        let shown =
            |figure: &Figure| format!("{}{} is {}", prefix(figure), figure.place, figure.shown());
        let mut failing: Vec<String> = judged.failing.iter().take(FIGURES_MAX).map(shown).collect();
        let more = judged.failing.len().saturating_sub(FIGURES_MAX);
        failing.extend((more > 0).then(|| format!("and {more} more")));
        JudgedLimit {
            limit: limit.text().to_owned(),
            has_passed: judged.has_passed(),
            figures: judged.values,
            failing,
        }
    };
    limits.iter().map(judge).collect()
}

fn figures((index, run): (usize, &RunOutcome)) -> Vec<Figure> {
    match &run.result {
        Ok(result) => figure::of_result(index, &run.name, result),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_control::result::{FlowReport, Kind, RunResult};

    fn run(name: &str, loss_percent: f64) -> RunOutcome {
        let flow = FlowReport {
            name: "f".into(),
            packets: 1_000,
            loss_percent: Some(loss_percent),
            ..FlowReport::default()
        };
        let result = RunResult { kind: Kind::Streams, flows: vec![flow], ..RunResult::default() };
        RunOutcome { name: name.into(), plan: None, result: Ok(result) }
    }

    #[test]
    fn limits_concern_all_runs_and_name_the_failing_ones() {
        let limits = read(&["loss>1%".into(), "loss[one]>1%".into(), "p99[x]>1us".into()]).unwrap();
        let judged = judge(&limits, &[run("one", 0.5), run("two", 2.0)]);
        assert_eq!((judged[0].has_passed, judged[0].figures), (false, 2));
        let reason = judged[0].reason().unwrap();
        assert!(reason.starts_with("loss>1%: two: ") && reason.ends_with("is 2 %"), "{reason}");
        assert_eq!((judged[1].has_passed, judged[1].reason()), (true, None));
        assert!(judged[2].reason().unwrap().contains("no figure of the test belongs"));
    }

    #[test]
    fn error_of_a_limit_has_its_path() {
        let error = read(&["loss>1%".into(), "los>1%".into()]).unwrap_err();
        assert!(error.starts_with("fail_if[1]: found \"los\"; expected one of"), "{error}");
    }
}
