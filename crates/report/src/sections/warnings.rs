//! Warnings: what a reader has to know before the results.

use wirestorm_base::count::pluralise;
use wirestorm_control::result::Outcome;
use wirestorm_store::record::State;

use super::{Context, mlrsearch, rfc2544};
use crate::document::Warning;
use crate::run::{Run, RunOutput};

/// Most warnings of one run.
const WARNINGS_MAX: usize = 50;

pub(super) fn warnings(context: &Context<'_>) -> Vec<Warning> {
    let mut all = Vec::new();
    for (place, run) in context.runs.iter().enumerate() {
        let mut texts = Vec::new();
        state(run, &mut texts);
        findings(context, place, &mut texts);
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
            State::Running => "The run has no result: it is running, or its process died",
            State::Failed => "The run failed and has no result",
            State::Interrupted | State::Finished => "The run has no result",
        }
        .to_owned());
    }
    if let Some(error) = &run.record.error {
        add(format!("The run ended with an error: {error}"));
    }
}

/// What qualifies the findings of a method.
fn findings(context: &Context<'_>, place: usize, texts: &mut Vec<String>) {
    let list = |names: Vec<String>| names.join(", ");
    for bench in rfc2544::benches(context).into_iter().filter(|bench| bench.run == place) {
        let rows = &bench.findings.throughput;
        let sizes = |is_wanted: fn(&wirestorm_method::rfc2544::ThroughputRow) -> bool| {
            let wanted = rows.iter().filter(|row| is_wanted(row));
            list(wanted.map(|row| format!("{} {} bytes", row.traffic, row.frame_size)).collect())
        };
        let limited = sizes(|row| row.is_generator_limited);
        if !limited.is_empty() {
            texts.push(format!(
                "The generator, not the device, limits the throughput at {limited}: the device may \
                 forward more"
            ));
        }
        let contradictory = sizes(|row| row.is_contradictory);
        if !contradictory.is_empty() {
            texts.push(format!(
                "The throughput is contradictory at {contradictory}: a load that failed passed \
                 later; raise the wait between trials"
            ));
        }
        let unconfirmed = sizes(|row| row.confirmed < row.confirmations);
        if !unconfirmed.is_empty() {
            texts.push(format!("Not all trials confirmed the throughput at {unconfirmed}"));
        }
    }
    for bench in mlrsearch::benches(context).into_iter().filter(|bench| bench.run == place) {
        for row in &bench.findings.searches {
            let size = format!("{} {} bytes", row.traffic, row.frame_size);
            let irregular = row.results.iter().filter(|result| !result.is_regular);
            let irregular = list(irregular.map(|result| result.goal.clone()).collect());
            if !irregular.is_empty() {
                texts.push(format!("Irregular results at {size}: {irregular}"));
            }
            if row.is_generator_limited {
                texts.push(format!(
                    "The generator did not reach Max Load at {size}; unsent frames count as lost"
                ));
            }
        }
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
