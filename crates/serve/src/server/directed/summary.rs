//! Results of a test as the API shows them, without histograms and time series.

use wirestorm_api::test::{LostAgent, TestDelay, TestFlow, TestIteration, TestRun, TestState};
use wirestorm_control::bench::CompletedTrial;
use wirestorm_control::method::trial::Length;
use wirestorm_control::result::{FlowReport, MeasuredReport, Outcome, RunResult};

use crate::cluster::{BenchOutcome, IterationOutcome, JudgedLimit, RunOutcome};

/// Messages and flows that a run shows.
const MESSAGES_MAX: usize = 20;
const FLOWS_MAX: usize = 200;

/// Returns an iteration. `saved`: ID of each run in the run history, or why it is not there.
pub(super) fn iteration(
    number: u32,
    outcome: &IterationOutcome,
    saved: Vec<Result<String, String>>,
) -> TestIteration {
    let lost = outcome.lost.iter();
    let lost =
        lost.map(|(agent, reason)| LostAgent { agent: agent.clone(), reason: reason.clone() });
    TestIteration {
        number,
        start_skew_ns: outcome.start_skew_ns,
        lost: lost.collect(),
        runs: outcome.runs.iter().zip(saved).map(|(it, saved)| run(it, saved)).collect(),
    }
}

/// Returns a benchmark method as the only iteration of its test. `saved`: ID in the run history, or why
/// it is not there.
pub(super) fn method(outcome: &BenchOutcome, saved: Result<String, String>) -> TestIteration {
    let BenchOutcome { name, result, limits } = outcome;
    let (run, not_saved) = match saved {
        Ok(id) => (Some(id), None),
        Err(error) => (None, Some(error)),
    };
    let limits = limits.iter().filter_map(JudgedLimit::reason);
    let messages = result.verdict.reasons.iter().chain(&result.warnings).cloned();
    let messages = limits.chain(messages);
    let run = TestRun {
        name: name.clone(),
        outcome: Some(result.verdict.outcome.name().to_owned()),
        messages: not_saved.into_iter().chain(messages).take(MESSAGES_MAX).collect(),
        run,
        flows_total: 0,
        flows: Vec::new(),
    };
    TestIteration { number: 1, start_skew_ns: None, lost: Vec::new(), runs: vec![run] }
}

/// Returns the line of a completed trial.
pub(super) fn trial(trial: &CompletedTrial<'_>) -> String {
    let CompletedTrial { number, input, output, .. } = trial;
    let mut text = format!("trial {number}: {}", input.test);
    if let Some(offer) = input.offers.first() {
        text += &format!(" {}", offer.traffic);
        if let Some(size) = offer.frame_size {
            text += &format!(", {size} bytes");
        }
        if let Some(step) = offer.steps.first() {
            text += &format!(", {} frames/s", step.load);
            text += &match step.length {
                Length::Time(_) => format!(", {} s", input.duration().as_secs_f64()),
                Length::Units(frames) => format!(", {frames} frames"),
            };
        }
    }
    let total = output.first().total();
    text + &format!(": sent {}, lost {}", total.offered, total.lost())
}

/// Returns the final state of a test with a benchmark method, and why it failed.
pub(super) fn end_of_method(outcome: &BenchOutcome) -> (TestState, Option<String>) {
    let BenchOutcome { result, limits, .. } = outcome;
    let reason = result.verdict.reasons.first().cloned();
    match (result.verdict.outcome, limits.iter().find_map(JudgedLimit::reason)) {
        (Outcome::Interrupted, _) => (TestState::Interrupted, None),
        (Outcome::Failed, _) => (TestState::Failed, reason),
        (_, Some(limit)) => (TestState::Failed, Some(limit)),
        (Outcome::Met | Outcome::FellShort, None) => (TestState::Finished, None),
    }
}

fn run(outcome: &RunOutcome, saved: Result<String, String>) -> TestRun {
    let name = outcome.name.clone();
    let result = match &outcome.result {
        Ok(result) => result,
        Err(error) => {
            let messages = vec![error.clone()];
            return TestRun {
                name,
                outcome: None,
                messages,
                run: None,
                flows_total: 0,
                flows: Vec::new(),
            };
        }
    };
    let (run, not_saved) = match saved {
        Ok(id) => (Some(id), None),
        Err(error) => (None, Some(error)),
    };
    let messages = result.verdict.reasons.iter().chain(&result.errors).cloned();
    TestRun {
        name,
        outcome: Some(result.verdict.outcome.name().to_owned()),
        messages: not_saved.into_iter().chain(messages).take(MESSAGES_MAX).collect(),
        run,
        flows_total: result.flows.len(),
        flows: flows(result),
    }
}

fn flows(result: &RunResult) -> Vec<TestFlow> {
    let rows = result.flows.iter().flat_map(|flow| {
        let unmeasured = flow.measured.is_empty().then(|| row(flow, None));
        unmeasured.into_iter().chain(flow.measured.iter().map(|it| row(flow, Some(it))))
    });
    rows.take(FLOWS_MAX).collect()
}

fn row(flow: &FlowReport, measured: Option<&MeasuredReport>) -> TestFlow {
    TestFlow {
        name: flow.name.clone(),
        tx: flow.tx.clone(),
        rx: measured.map(|it| it.port.clone()),
        sent: flow.packets,
        sent_pps: (flow.packets > 0).then_some(flow.rates.pps),
        received: measured.map(|it| it.received),
        received_pps: measured.map(|it| it.pps),
        loss_percent: flow.loss_percent,
        reordered: measured.map(|it| it.reordered),
        jitter_ns: measured.map(|it| it.jitter_ns),
        delay: measured.filter(|it| it.delay.count > 0).map(delay),
    }
}

fn delay(measured: &MeasuredReport) -> TestDelay {
    let MeasuredReport { delay, one_way, .. } = measured;
    TestDelay {
        min_ns: delay.min_ns,
        mean_ns: delay.mean_ns,
        p50_ns: delay.p50_ns,
        p99_ns: delay.p99_ns,
        max_ns: delay.max_ns,
        half_width_ns: one_way.as_ref().map(|it| it.half_width_ns),
        bound_ns: one_way.as_ref().and_then(|it| it.bound_ns),
        assumption: one_way.as_ref().map(|it| it.assumption.to_string()),
        method: one_way.as_ref().map(|it| it.method.clone()),
    }
}

/// Returns the final state of a test with results, and why it failed. `planned`: its iterations.
pub(super) fn end(
    iterations: &[IterationOutcome],
    planned: u32,
    was_stopped: bool,
) -> (TestState, Option<String>) {
    let lost = iterations.iter().flat_map(|it| &it.lost).next();
    let lost = lost.map(|(agent, reason)| format!("agent {agent} was lost: {reason}"));
    let failed = iterations.iter().flat_map(|it| &it.runs).find_map(|run| {
        let error = run.result.as_ref().err()?;
        Some(format!("run {}: {error}", run.name))
    });
    let unreadable = iterations.iter().flat_map(|it| &it.unreadable).next();
    let unreadable = unreadable.map(|error| format!("what an agent measured is missing: {error}"));
    let limit = iterations.iter().flat_map(|it| &it.limits).find_map(JudgedLimit::reason);
    let missing = || {
        (iterations.len() < planned as usize)
            .then(|| format!("it ended after {} of {planned} iterations", iterations.len()))
    };
    match (was_stopped, lost.or(failed).or(unreadable).or(limit)) {
        (true, reason) => (TestState::Interrupted, reason),
        (false, Some(reason)) => (TestState::Failed, Some(reason)),
        (false, None) => match missing() {
            Some(reason) => (TestState::Failed, Some(reason)),
            None => (TestState::Finished, None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lost: &[&str], errors: &[Option<&str>]) -> IterationOutcome {
        let run = |error: &Option<&str>| RunOutcome {
            name: "flows".into(),
            plan: None,
            result: error.map_or(Ok(RunResult::default()), |error| Err(error.to_owned())),
        };
        IterationOutcome {
            runs: errors.iter().map(run).collect(),
            start_skew_ns: None,
            lost: lost.iter().map(|it| ((*it).to_owned(), "silent".to_owned())).collect(),
            unreadable: Vec::new(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn test_fails_with_a_lost_agent_a_run_without_result_or_a_missing_iteration() {
        let good = || outcome(&[], &[None]);
        assert_eq!(end(&[good()], 1, false), (TestState::Finished, None));
        let failed = |iterations: &[IterationOutcome], planned| end(iterations, planned, false);
        let reason = |reason: &str| (TestState::Failed, Some(reason.to_owned()));
        assert_eq!(failed(&[outcome(&["tx"], &[None])], 1), reason("agent tx was lost: silent"));
        assert_eq!(failed(&[outcome(&[], &[Some("x")])], 1), reason("run flows: x"));
        assert_eq!(failed(&[good()], 3), reason("it ended after 1 of 3 iterations"));
        assert_eq!(end(&[good()], 3, true), (TestState::Interrupted, None));
        let mut lossy = good();
        let failing = vec!["f is 2 %".to_owned()];
        lossy.limits.push(JudgedLimit { limit: "loss>1%".into(), failing, ..Default::default() });
        assert_eq!(failed(&[lossy], 1), reason("loss>1%: f is 2 %"));
    }

    #[test]
    fn run_shows_a_bounded_part_of_its_result() {
        let measured = MeasuredReport { port: "right".into(), ..MeasuredReport::default() };
        let flow = FlowReport { name: "f".into(), measured: vec![measured], ..Default::default() };
        let result = RunResult {
            flows: vec![flow; FLOWS_MAX + 1],
            errors: vec!["e".into(); MESSAGES_MAX + 1],
            ..RunResult::default()
        };
        let outcome = RunOutcome { name: "flows".into(), plan: None, result: Ok(result) };
        let shown = run(&outcome, Err("not saved".into()));
        assert_eq!((shown.flows.len(), shown.flows_total), (FLOWS_MAX, FLOWS_MAX + 1));
        assert_eq!((shown.messages.len(), &*shown.messages[0]), (MESSAGES_MAX, "not saved"));
        assert_eq!((shown.flows[0].rx.as_deref(), &shown.flows[0].delay), (Some("right"), &None));
    }
}
