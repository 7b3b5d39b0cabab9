//! Figures and limits as JSON.

use serde::Serialize;

use crate::Report;
use crate::document::Warning;
use crate::figure::Figure;

/// Format of the JSON report.
pub const REPORT_SCHEMA: &str = "wirestorm.report/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    title: &'a str,
    runs: Vec<Summary<'a>>,
    warnings: Vec<Note<'a>>,
    /// Values are in percent, nanoseconds, frames/s and bit/s.
    figures: &'a [Figure],
    limits: Vec<Limit<'a>>,
}

#[derive(Serialize)]
struct Summary<'a> {
    label: &'a str,
    kind: &'a str,
    verdict: &'a str,
    device: &'a str,
    is_simulated: bool,
}

#[derive(Serialize)]
struct Note<'a> {
    run: Option<usize>,
    text: &'a str,
}

#[derive(Serialize)]
struct Limit<'a> {
    limit: &'a str,
    has_passed: bool,
    /// Number of figures that the limit concerns.
    figures: usize,
    failing: &'a [Figure],
}

pub(crate) fn json(report: &Report<'_>) -> String {
    let content = &report.document;
    let document = Document {
        schema: REPORT_SCHEMA,
        title: &content.title,
        runs: content
            .runs
            .iter()
            .map(|run| Summary {
                label: &run.label,
                kind: &run.kind,
                verdict: &run.verdict,
                device: &run.device,
                is_simulated: run.is_simulated,
            })
            .collect(),
        warnings: content
            .warnings
            .iter()
            .map(|Warning { run, text }| Note { run: *run, text })
            .collect(),
        figures: &report.figures,
        limits: report
            .limits
            .iter()
            .map(|it| Limit {
                limit: it.limit.text(),
                has_passed: it.has_passed(),
                figures: it.values,
                failing: &it.failing,
            })
            .collect(),
    };
    // A figure that is no number becomes null; nothing else can fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}
