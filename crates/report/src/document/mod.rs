//! Content of a report, independent of its format: sections with texts, tables and plots.

mod plot;
mod table;
mod unit;

pub use plot::{Axis, Mark, Plot, Point, Scale, Series, Style};
pub use table::{Cell, Column, Table};
pub use unit::{Unit, grouped, scaled};

/// Content of a report.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Title.
    pub title: String,
    /// Runs in the order of the plots' colors.
    pub runs: Vec<RunSummary>,
    /// Warnings of all runs, the most important first.
    pub warnings: Vec<Warning>,
    /// Most important values.
    pub tiles: Vec<Tile>,
    /// Sections in the order of the report.
    pub sections: Vec<Section>,
}

/// A run, as the head of the report shows it.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Name, unique in the report.
    pub label: String,
    /// Kind, such as `rfc2544`.
    pub kind: String,
    /// Verdict in words.
    pub verdict: String,
    /// Whether the verdict is good.
    pub is_good: bool,
    /// Start as text; empty if unknown.
    pub started: String,
    /// Device under test; empty if unknown.
    pub device: String,
    /// Whether a simulation took the place of interfaces.
    pub is_simulated: bool,
}

/// Something that the reader has to know before the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Run that it concerns; `None` for all.
    pub run: Option<usize>,
    /// Sentence.
    pub text: String,
}

/// A value in large type.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What the value is.
    pub label: String,
    /// Number.
    pub value: String,
    /// Unit of the number.
    pub unit: String,
    /// Qualification, such as `limited by the tester`; may be empty.
    pub note: String,
    /// Whether the note is a warning.
    pub is_warning: bool,
}

/// A section of a report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Document that defines the content, such as `RFC 2544 section 26.1`; may be empty.
    pub source: String,
    /// Content.
    pub blocks: Vec<Block>,
}

/// Content of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// Paragraph of plain text.
    Text(String),
    /// Plot.
    Plot(Plot),
    /// Table.
    Table(Table),
}

impl Section {
    /// Creates a section without content.
    pub fn new(title: &str, source: &str) -> Self {
        Self { title: title.to_owned(), source: source.to_owned(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds a plot, unless it has no points.
    pub fn plot(&mut self, plot: Plot) {
        if plot.points() > 0 {
            self.blocks.push(Block::Plot(plot));
        }
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }
}
