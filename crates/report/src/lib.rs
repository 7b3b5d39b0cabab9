//! Reports of stored runs: HTML with plots, Markdown, JUnit, JSON, and limits for CI.
//!
//! ```text
//! run directory | file of --json ──> Run ──┬─> Document: sections, tables, plots ──> HTML | Markdown
//!                                          └─> Figures ──> Limits ──> JUnit | JSON | exit status
//! ```
//!
//! A report is a function of the stored runs alone: it reads no clock and no network, and the HTML
//! file that it writes has its script, style and data inside.
#![forbid(unsafe_code)]

pub mod document;
pub mod figure;
mod html;
mod json;
mod junit;
pub mod limit;
mod markdown;
pub mod run;
mod sections;

pub use json::REPORT_SCHEMA;

use document::Document;
use figure::Figure;
use limit::{Judged, Limit};
use run::Run;

/// Options of a report.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Title; `None` for one from the kinds of the runs.
    pub title: Option<String>,
    /// Limits that fail the report if they are true.
    pub limits: Vec<Limit>,
}

/// Returns the hashes of the one script and the one style of each HTML report, as the policy of a page
/// that shows reports names them: `sha256-…`.
pub fn content_hashes() -> [&'static str; 2] {
    [html::SCRIPT_HASH.trim(), html::STYLE_HASH.trim()]
}

/// A report on stored runs.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    runs: &'a [Run],
    /// Content of the HTML and Markdown formats.
    pub document: Document,
    /// Figures of all runs.
    pub figures: Vec<Figure>,
    /// Limits and the figures that fail them.
    pub limits: Vec<Judged>,
}

impl<'a> Report<'a> {
    /// Builds a report.
    pub fn new(runs: &'a [Run], options: &Options) -> Self {
        let figures = figure::figures(runs);
        let limits: Vec<Judged> = options.limits.iter().map(|it| it.judge(&figures)).collect();
        let document = sections::document(runs, options.title.as_deref(), &limits);
        Self { runs, document, figures, limits }
    }

    /// Returns the report as one HTML file that needs no network.
    pub fn html(&self) -> String {
        html::html(&self.document)
    }

    /// Returns the report as Markdown with tables of at most 100 columns.
    pub fn markdown(&self) -> String {
        markdown::markdown(&self.document)
    }

    /// Returns a JUnit document: a test case for each limit and for each group of trials.
    pub fn junit(&self) -> String {
        junit::junit(self.runs, &self.limits, &self.document.title)
    }

    /// Returns the figures and the limits as JSON.
    pub fn json(&self) -> String {
        json::json(self)
    }
}
