//! Warnings: what a reader has to know before the results.

use wirestorm_base::count::pluralise;
use wirestorm_control::result::Outcome;
use wirestorm_store::record::State;

use super::Context;
use crate::document::Warning;
use crate::run::{Run, RunOutput};

/// Most warnings of one run.
const WARNINGS_MAX: usize = 50;

pub(super) fn warnings(context: &Context<'_>) -> Vec<Warning> {
    let mut all = Vec::new();
    for (place, run) in context.runs.iter().enumerate() {
        let mut texts = Vec::new();
        state(run, &mut texts);
        stored(run, &mut texts);
        let more = texts.len().saturating_sub(WARNINGS_MAX);
        texts.truncate(WARNINGS_MAX);
        if more > 0 {
            texts.push(pluralise(more as u64, "further warning", "further warnings").to_string());
        }
        all.extend(texts.into_iter().map(|text| Warning { run: Some(place), text }));
    }
    all
}

/// How the run ended.
fn state(run: &Run, texts: &mut Vec<String>) {
    let mut add = |text: String| texts.push(text);
    if run.is_simulated() {
        add(match run.result {
            Some(RunOutput::Bench(_)) => {
                "A simulated device took the place of interfaces: the results are no measurement of \
                 a real device"
            }
            _ => "The run is a simulation in virtual time, without interfaces",
        }
        .to_owned());
    }
    if run.result.is_none() {
        add(match run.record.state {
            State::Running => "The run has no result: it is running",
            State::Died => "The run has no result: its process died",
            State::Failed => "The run failed and has no result",
            State::Interrupted | State::Finished => "The run has no result",
        }
        .to_owned());
    }
    if let Some(error) = &run.record.error {
        add(format!("The run ended with an error: {error}"));
    }
}

/// What the run itself reported.
fn stored(run: &Run, texts: &mut Vec<String>) {
    let (verdict, rest) = match &run.result {
        Some(RunOutput::Run(result)) => (&result.verdict, &result.notes),
        Some(RunOutput::Bench(result)) => (&result.verdict, &result.warnings),
        None => return,
    };
    if verdict.outcome != Outcome::Met {
        let outcome = match verdict.outcome {
            Outcome::Failed => "Failed",
            Outcome::Interrupted => "Interrupted",
            Outcome::FellShort | Outcome::Met => "Fell short",
        };
        texts.extend(verdict.reasons.iter().map(|reason| format!("{outcome}: {reason}")));
    }
    texts.extend(rest.iter().filter(|text| !verdict.reasons.contains(text)).cloned());
}
