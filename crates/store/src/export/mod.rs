//! Export of runs as tables: CSV, JSON, Parquet.

mod csv;
mod parquet;
mod walk;

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::row::TrialRow;
use crate::saved::SavedRun;

/// Content of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A row for each trial, offer and step.
    Trials,
    /// A row for each bucket of each histogram.
    Histograms,
    /// A row for each value of each time series.
    Series,
}

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180), with a header line; an absent value is empty.
    Csv,
    /// A list of objects.
    Json,
    /// Apache Parquet, compressed by Snappy.
    Parquet,
}

/// Error of an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The destination cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// The rows cannot be written as Parquet.
    #[error("{0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Appends the rows that a document has, each behind the same first cells.
type AppendRows = fn(&mut Vec<Vec<Cell>>, &[Cell], &Value);

/// Rows with the same columns.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    name: &'static str,
    kind: ColumnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    Text,
    Integer,
    Real,
}

#[derive(Clone, Debug, PartialEq)]
enum Cell {
    None,
    Text(String),
    Integer(i64),
    Real(f64),
}

impl Table {
    /// Builds the table of a run. Adds warnings to the run for files that cannot be read.
    ///
    /// # Errors
    /// The directory of the trials cannot be listed.
    pub fn of(run: &mut SavedRun, content: Content) -> Result<Self, StoreError> {
        let id = run.record.id.clone();
        if content == Content::Trials {
            return Ok(Self::of_trials(&id, run.rows()?));
        }
        let (columns, append): (&[Column], AppendRows) = match content {
            Content::Series => (&SERIES[..], walk::series),
            Content::Trials | Content::Histograms => (&HISTOGRAMS[..], walk::histograms),
        };
        let mut rows = Vec::new();
        if let Some(result) = &run.result {
            let value = serde_json::to_value(result).unwrap_or_default();
            append(&mut rows, &[Cell::Text(id.clone()), Cell::None], &value);
        }
        for trial in run.trials()? {
            match trial {
                Ok(trial) => {
                    let value = serde_json::to_value(&trial).unwrap_or_default();
                    let head = [Cell::Text(id.clone()), Cell::Integer(trial.number.into())];
                    append(&mut rows, &head, &value);
                }
                Err(warning) => run.warnings.push(warning),
            }
        }
        Ok(Self { columns: columns.to_vec(), rows })
    }

    fn of_trials(id: &str, rows: Vec<TrialRow>) -> Self {
        let columns: Vec<Column> = TRIALS.iter().map(|(column, _)| *column).collect();
        let cells = |row: TrialRow| TRIALS.iter().map(|(_, cell)| cell(id, &row)).collect();
        Self { columns, rows: rows.into_iter().map(cells).collect() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the rows of a table with the same content.
    pub fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    /// Writes the table.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn write(&self, format: Format, output: impl Write + Send) -> Result<(), ExportError> {
        match format {
            Format::Csv => Ok(csv::write(self, output)?),
            Format::Json => Ok(self.write_json(output)?),
            Format::Parquet => Ok(parquet::write(self, output)?),
        }
    }

    /// Writes one object a line, so that a reader need not hold the whole list.
    fn write_json(&self, mut output: impl Write) -> io::Result<()> {
        writeln!(output, "[")?;
        for (index, row) in self.rows.iter().enumerate() {
            let cells = self.columns.iter().zip(row);
            let object: Map<String, Value> =
                cells.map(|(column, cell)| (column.name.to_owned(), cell.into())).collect();
            let separator = if index + 1 == self.rows.len() { "" } else { "," };
            writeln!(output, "{}{separator}", Value::Object(object))?;
        }
        writeln!(output, "]")?;
        output.flush()
    }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Text }
}

const fn integer(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Integer }
}

const fn real(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Real }
}

const HISTOGRAMS: [Column; 5] =
    [text("run"), integer("trial"), text("path"), integer("lower_ns"), integer("count")];

const SERIES: [Column; 6] =
    [text("run"), integer("trial"), text("path"), real("start_s"), text("name"), real("value")];

type TrialCell = fn(&str, &TrialRow) -> Cell;

const TRIALS: [(Column, TrialCell); 25] = [
    (text("run"), |id, _| Cell::Text(id.to_owned())),
    (integer("trial"), |_, row| Cell::integer(row.number)),
    (integer("started_unix_ns"), |_, row| Cell::count(row.started_unix_ns)),
    (text("test"), |_, row| Cell::Text(row.test.clone())),
    (text("traffic"), |_, row| Cell::Text(row.traffic.clone())),
    (integer("offer"), |_, row| Cell::integer(row.offer)),
    (integer("step"), |_, row| Cell::integer(row.step)),
    (integer("frame_size"), |_, row| Cell::optional(row.frame_size, Cell::integer)),
    (integer("load"), |_, row| Cell::optional(row.load, Cell::count)),
    (real("seconds"), |_, row| Cell::Real(row.seconds)),
    (integer("intended"), |_, row| Cell::optional(row.intended, Cell::count)),
    (integer("offered"), |_, row| Cell::count(row.offered)),
    (integer("received"), |_, row| Cell::optional(row.received, Cell::count)),
    (integer("lost"), |_, row| Cell::optional(row.lost, Cell::count)),
    (real("loss_ratio"), |_, row| Cell::optional(row.loss_ratio, Cell::Real)),
    (integer("delay_min_ns"), |_, row| Cell::optional(row.delay_min_ns, Cell::Integer)),
    (real("delay_mean_ns"), |_, row| Cell::optional(row.delay_mean_ns, Cell::Real)),
    (integer("delay_p50_ns"), |_, row| Cell::optional(row.delay_p50_ns, Cell::Integer)),
    (integer("delay_p99_ns"), |_, row| Cell::optional(row.delay_p99_ns, Cell::Integer)),
    (integer("delay_p99_9_ns"), |_, row| Cell::optional(row.delay_p99_9_ns, Cell::Integer)),
    (integer("delay_max_ns"), |_, row| Cell::optional(row.delay_max_ns, Cell::Integer)),
    (integer("duplicated"), |_, row| Cell::optional(row.duplicated, Cell::count)),
    (integer("reordered"), |_, row| Cell::optional(row.reordered, Cell::count)),
    (integer("flows_sent"), |_, row| Cell::optional(row.flows_sent, Cell::count)),
    (integer("flows_captured"), |_, row| Cell::optional(row.flows_captured, Cell::count)),
];

impl Cell {
    fn integer(value: u32) -> Self {
        Self::Integer(value.into())
    }

    /// Parquet and most readers of CSV have signed integers; no count of a run exceeds them.
    fn count(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn optional<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::None, cell)
    }
}

impl From<&Cell> for Value {
    fn from(cell: &Cell) -> Self {
        match cell {
            Cell::None => Self::Null,
            Cell::Text(text) => text.as_str().into(),
            Cell::Integer(integer) => (*integer).into(),
            Cell::Real(real) => (*real).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn table() -> Table {
        let row = TrialRow {
            number: 1,
            started_unix_ns: 1_795_000_000_000_000_001,
            test: "a \"test\", with a comma".into(),
            seconds: 0.1,
            offered: 1000,
            loss_ratio: Some(1.0 / 3.0),
            delay_min_ns: Some(-5),
            ..TrialRow::default()
        };
        let other = TrialRow { number: 2, test: "plain".into(), ..TrialRow::default() };
        Table::of_trials("run", vec![row, other])
    }

    #[test]
    fn json_has_an_object_for_each_row() {
        let mut output = Vec::new();
        table().write(Format::Json, &mut output).unwrap();
        let rows: Vec<Map<String, Value>> = serde_json::from_slice(&output).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["started_unix_ns"], 1_795_000_000_000_000_001_u64);
        assert_eq!(rows[0]["loss_ratio"], 1.0 / 3.0);
        assert_eq!((&rows[0]["delay_min_ns"], &rows[0]["received"]), (&(-5).into(), &Value::Null));
        assert_eq!(rows[1]["test"], "plain");
    }
}
