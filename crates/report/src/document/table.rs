//! Tables with typed columns.

use super::Unit;
use super::unit::Prefixed;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading without the unit.
    pub title: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Whether formats with little room may leave it out.
    pub is_detail: bool,
    /// Whether the cells are numbers.
    pub is_number: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    None,
    /// Text.
    Text(String),
    /// Text that marks a problem.
    Problem(String),
    /// Number in the unit of its column.
    Number(f64),
}

/// A table whose cells are text, as all formats show it.
#[derive(Clone, Debug)]
pub(crate) struct Formatted {
    /// Headings with units.
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Column {
    /// Creates a column of texts.
    pub fn text(title: &str) -> Self {
        Self { title: title.to_owned(), unit: Unit::None, is_detail: false, is_number: false }
    }

    /// Creates a column of numbers.
    pub fn number(title: &str, unit: Unit) -> Self {
        Self { title: title.to_owned(), unit, is_detail: false, is_number: true }
    }

    /// Lets formats with little room leave the column out.
    #[must_use]
    pub fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }
}

impl Cell {
    /// Creates a cell of text; empty text is no value.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::None } else { Self::Text(text) }
    }

    /// Creates a cell of a problem; empty text is no value.
    pub fn problem(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::None } else { Self::Problem(text) }
    }

    /// Creates a cell of an integer.
    pub fn count(value: u64) -> Self {
        Self::Number(value as f64)
    }

    /// Creates a cell of a number that may be missing.
    pub fn maybe(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Number)
    }

    /// Returns the number.
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }
}

impl Table {
    /// Creates a table without rows.
    pub fn new(caption: &str, columns: Vec<Column>) -> Self {
        Self { caption: caption.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells at the end are empty.
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        debug_assert!(cells.len() <= self.columns.len(), "{}: {cells:?}", self.caption);
        cells.resize(self.columns.len(), Cell::None);
        self.rows.push(cells);
    }

    /// Removes columns without a value, and the column `Run` of a report on one run.
    pub(crate) fn without_empty_columns(mut self, has_several_runs: bool) -> Self {
        let is_kept: Vec<bool> = (0..self.columns.len())
            .map(|place| {
                let has_value = self.rows.iter().any(|row| row[place] != Cell::None);
                has_value && (has_several_runs || self.columns[place].title != RUN)
            })
            .collect();
        let mut places = is_kept.iter().copied();
        self.columns.retain(|_| places.next().unwrap_or(true));
        for row in &mut self.rows {
            let mut places = is_kept.iter().copied();
            row.retain(|_| places.next().unwrap_or(true));
        }
        self
    }

    /// Formats all cells. The numbers of a column have the same unit.
    pub(crate) fn formatted(&self) -> Formatted {
        let units: Vec<Prefixed> = (0..self.columns.len()).map(|it| self.prefixed(it)).collect();
        let heading = |(column, unit): (&Column, &Prefixed)| match unit.unit {
            "" => column.title.clone(),
            unit => format!("{} ({unit})", column.title),
        };
        let cell = |(cell, unit): (&Cell, &Prefixed)| match cell {
            Cell::None => "–".to_owned(),
            Cell::Text(text) | Cell::Problem(text) => text.clone(),
            Cell::Number(value) => unit.format(*value),
        };
        Formatted {
            headings: self.columns.iter().zip(&units).map(heading).collect(),
            rows: self.rows.iter().map(|row| row.iter().zip(&units).map(cell).collect()).collect(),
        }
    }

    fn prefixed(&self, column: usize) -> Prefixed {
        let values = self.rows.iter().filter_map(|row| row[column].value()).map(f64::abs);
        let unit = self.columns[column].unit.prefixed(values.clone().fold(0.0, f64::max));
        // Small rates and counts, such as an average of frames, keep decimals.
        let has_fraction = values.clone().any(|value| value.fract() != 0.0);
        if unit.decimals == 0 && unit.divisor == 1.0 && has_fraction {
            let largest = values.fold(0.0, f64::max);
            let decimals = if largest < 1e4 { 2 } else { 0 };
            return Prefixed { decimals, ..unit };
        }
        unit
    }
}

/// Heading of the column with the run.
pub(crate) const RUN: &str = "Run";
