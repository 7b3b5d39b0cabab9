//! What a report shows of each kind of run.

mod collector;
mod delays;
mod emulation;
mod facts;
mod fields;
mod flow_export;
mod mlrsearch;
mod ndr;
mod one_way;
mod over_time;
mod plain;
mod rfc2544;
mod rfc9411;
mod series;
mod tiles;
mod trials;
mod warnings;
mod y1564;

use std::collections::BTreeSet;

use wirestorm_control::result::Outcome;
use wirestorm_method::method::{Findings, Method};
use wirestorm_store::record::{RecordKind, State};

use crate::document::{Document, RunSummary, Section, Table};
use crate::limit::Judged;
use crate::run::{Run, RunOutput};

/// Runs of a report and their labels.
pub(crate) struct Context<'a> {
    pub(crate) runs: &'a [Run],
    /// Labels, unique in the report.
    labels: Vec<String>,
}

/// Findings of a run and their parameters.
pub(crate) struct Bench<'a, P, F> {
    pub(crate) run: usize,
    pub(crate) parameters: &'a P,
    pub(crate) findings: &'a F,
}

impl<'a> Context<'a> {
    /// Returns the runs of a method. `select` returns its parameters and findings; `None` for other
    /// methods.
    fn benches<P, F>(
        &self,
        select: impl Fn(&'a Method, &'a Findings) -> Option<(&'a P, &'a F)>,
    ) -> Vec<Bench<'a, P, F>> {
        let found = self.runs.iter().enumerate().filter_map(|(run, it)| {
            let result = it.bench_result()?;
            let (parameters, findings) = select(&result.parameters, &result.findings)?;
            Some(Bench { run, parameters, findings })
        });
        found.collect()
    }

    pub(crate) fn new(runs: &'a [Run]) -> Self {
        let mut seen = BTreeSet::new();
        let label = |run: &Run| {
            let mut label = run.label().to_owned();
            let mut number = 1;
            while !seen.insert(label.clone()) {
                number += 1;
                label = format!("{} ({number})", run.label());
            }
            label
        };
        Self { runs, labels: runs.iter().map(label).collect() }
    }

    pub(crate) fn label(&self, run: usize) -> &str {
        self.labels.get(run).map_or("", |label| label)
    }

    pub(crate) fn has_several(&self) -> bool {
        self.runs.len() > 1
    }

    /// Returns the name of a series: with the run if there are several.
    fn series(&self, run: usize, what: &str) -> String {
        match (self.has_several(), what.is_empty()) {
            (false, _) => what.to_owned(),
            (true, true) => self.label(run).to_owned(),
            (true, false) => format!("{}: {what}", self.label(run)),
        }
    }

    /// Removes what a table does not need.
    fn finish(&self, table: Table) -> Table {
        table.without_empty_columns(self.has_several())
    }
}

/// Builds the content of a report.
pub(crate) fn document(runs: &[Run], title: Option<&str>, limits: &[Judged]) -> Document {
    let context = Context::new(runs);
    let mut sections = Vec::new();
    if !limits.is_empty() {
        sections.push(limit_section(&context, limits));
    }
    sections.extend(rfc2544::sections(&context));
    sections.extend(mlrsearch::sections(&context));
    sections.extend(ndr::sections(&context));
    sections.extend(y1564::sections(&context));
    sections.extend(rfc9411::sections(&context));
    sections.extend(flow_export::sections(&context));
    sections.extend(collector::sections(&context));
    sections.extend(plain::sections(&context));
    sections.extend(one_way::sections(&context));
    sections.extend(emulation::sections(&context));
    sections.extend(trials::sections(&context));
    sections.extend(facts::sections(&context));
    sections.retain(|section| !section.blocks.is_empty());
    Document {
        title: title.map_or_else(|| default_title(&context), |title| with_simulated(title, runs)),
        runs: (0..runs.len()).map(|run| summary(&context, run)).collect(),
        warnings: warnings::warnings(&context),
        tiles: tiles::tiles(&context),
        sections,
    }
}

/// Returns a title from the kinds of the runs and their devices.
fn default_title(context: &Context<'_>) -> String {
    let mut kinds: Vec<String> = context.runs.iter().map(kind).collect();
    kinds.dedup();
    let mut title = kinds.join(", ");
    let devices: BTreeSet<&str> = context
        .runs
        .iter()
        .map(|run| &*run.record.device.name)
        .filter(|it| !it.is_empty())
        .collect();
    if !devices.is_empty() {
        title += ": ";
        title += &devices.into_iter().collect::<Vec<_>>().join(", ");
    }
    with_simulated(&title, context.runs)
}

fn with_simulated(title: &str, runs: &[Run]) -> String {
    let simulated = runs.iter().filter(|run| run.is_simulated()).count();
    match simulated {
        0 => title.to_owned(),
        _ if simulated < runs.len() => format!("{title} (partly simulated)"),
        _ if runs.iter().all(|run| run.bench_result().is_some()) => {
            format!("{title} (simulated device)")
        }
        _ => format!("{title} (simulation)"),
    }
}

/// Returns the kind of a run in words.
fn kind(run: &Run) -> String {
    if let Some(method) = &run.record.method {
        return match method.name() {
            "rfc2544" => "RFC 2544 benchmark".to_owned(),
            "mlrsearch" => "MLRsearch (RFC 9971)".to_owned(),
            "flow-exporter" => "Flow exporter test (RFC 6645)".to_owned(),
            "collector" => "Test of a flow collector".to_owned(),
            "ndr" => "Non-drop rate".to_owned(),
            "y1564" => "Ethernet services (Y.1564)".to_owned(),
            "rfc9411" => "Security device benchmark (RFC 9411)".to_owned(),
            other => other.to_owned(),
        };
    }
    match run.record.kind {
        RecordKind::Replay => "Replay",
        RecordKind::Streams => "Streams",
        RecordKind::Emulation => "Clients and servers",
        RecordKind::Impair => "Impaired link",
        RecordKind::Pktgen => "pktgen script",
        RecordKind::Bench => "Benchmark",
    }
    .to_owned()
}

fn summary(context: &Context<'_>, place: usize) -> RunSummary {
    let run = &context.runs[place];
    let outcome = match &run.result {
        Some(RunOutput::Run(result)) => Some(result.verdict.outcome),
        Some(RunOutput::Bench(result)) => Some(result.verdict.outcome),
        None => None,
    };
    let verdict = match (outcome, run.record.state) {
        (Some(Outcome::Met), _) => "met its target",
        (Some(Outcome::FellShort), _) => "fell short",
        (Some(Outcome::Failed), _) | (None, State::Failed) => "failed",
        (Some(Outcome::Interrupted), _) | (None, State::Interrupted) => "interrupted",
        (None, State::Running) => "not finished",
        (None, State::Died) => "died",
        (None, State::Finished) => "no result",
    };
    RunSummary {
        label: context.label(place).to_owned(),
        kind: kind(run),
        verdict: verdict.to_owned(),
        is_good: outcome == Some(Outcome::Met),
        started: facts::time(run.record.started_unix_ns),
        device: run.record.device.name.clone(),
        is_simulated: run.is_simulated(),
    }
}

fn limit_section(context: &Context<'_>, limits: &[Judged]) -> Section {
    use crate::document::{Cell, Column};
    let columns = vec![
        Column::text("Limit"),
        Column::text("Result"),
        Column::number("Values", crate::document::Unit::None),
        Column::text("Failing value"),
        Column::text("Place"),
    ];
    let mut table = Table::new("Limits that fail the report if they are true", columns);
    for judged in limits {
        let row = |result: Cell, value: String, place: String| {
            let count = Cell::count(judged.values as u64);
            let text = Cell::text(judged.limit.text());
            vec![text, result, count, Cell::text(value), Cell::text(place)]
        };
        if judged.values == 0 {
            table.row(row(Cell::problem("error: no value"), String::new(), String::new()));
        } else if judged.failing.is_empty() {
            table.row(row(Cell::text("passed"), String::new(), String::new()));
        }
        for figure in &judged.failing {
            let place = context.series(figure.run, &figure.place);
            table.row(row(Cell::problem("failed"), figure.shown(), place));
        }
    }
    let mut section = Section::new("Limits", "");
    section.table(context.finish(table));
    section
}
