//! Reports as Markdown, for terminals and comments on changes.

use std::fmt::Write;

use wirestorm_base::count::pluralise;

use crate::document::{Block, Cell, Column, Document, Table};

/// Widest line of a table in columns.
const WIDTH_MAX: usize = 100;
/// Most rows of a table.
const ROWS_MAX: usize = 40;
/// Most rows of a table that is transposed if it is too wide.
const TRANSPOSED_ROWS_MAX: usize = 6;
/// Narrowest column that texts are shortened to.
const COLUMN_MIN: usize = 8;

pub(crate) fn markdown(document: &Document) -> String {
    let mut text = format!("# {}\n", escape(&document.title));
    for line in &document.warnings {
        let run = line.run.filter(|_| document.runs.len() > 1).and_then(|it| document.runs.get(it));
        let run = run.map(|run| format!("{}: ", escape(&run.label))).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n> **Warning:** {run}{}\n", escape(&line.text));
    }
    table(&mut text, &runs(document));
    for section in &document.sections {
        let tables: Vec<&Table> = section
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Table(table) => Some(table),
                _ => None,
            })
            .collect();
        let has_text = section.blocks.iter().any(|block| matches!(block, Block::Text(_)));
        if tables.is_empty() && !has_text {
            continue;
        }
        let _ = write!(text, "\n## {}\n", escape(&section.title));
        if !section.source.is_empty() {
            let _ = write!(text, "\n*{}*\n", escape(&section.source));
        }
        for block in &section.blocks {
            match block {
                Block::Text(paragraph) => {
                    let _ = write!(text, "\n{}\n", escape(paragraph));
                }
                Block::Table(it) => {
                    if tables.len() > 1 {
                        let _ = write!(text, "\n**{}**\n", escape(&it.caption));
                    }
                    table(&mut text, it);
                }
                Block::Plot(_) => {}
            }
        }
    }
    text
}

/// Returns the head of the report as a table.
fn runs(document: &Document) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::text("Kind"),
        Column::text("Device"),
        Column::text("Start"),
        Column::text("Verdict"),
    ];
    let mut table = Table::new("Runs", columns);
    for run in &document.runs {
        let simulated = if run.is_simulated { " (simulated)" } else { "" };
        table.row(vec![
            Cell::text(run.label.clone()),
            Cell::text(format!("{}{simulated}", run.kind)),
            Cell::text(run.device.clone()),
            Cell::text(run.started.clone()),
            Cell::text(run.verdict.clone()),
        ]);
    }
    table.without_empty_columns(true)
}

/// Writes a table. Where the width requires it, columns of details are left out, a table of few rows
/// is transposed, texts are shortened, and columns at the end are left out.
fn table(text: &mut String, table: &Table) {
    let mut grid = Grid::new(table);
    while grid.width() > WIDTH_MAX
        && let Some(detail) = grid.columns.iter().rposition(|column| column.is_detail)
    {
        grid.columns.remove(detail);
    }
    if grid.width() > WIDTH_MAX && grid.rows() <= TRANSPOSED_ROWS_MAX {
        let transposed = Grid::new(table).transposed();
        if transposed.width() <= WIDTH_MAX {
            grid = transposed;
        }
    }
    while grid.width() > WIDTH_MAX && grid.shrink() {}
    let mut left_out = 0;
    while grid.width() > WIDTH_MAX && grid.columns.len() > 1 {
        grid.columns.pop();
        left_out += 1;
    }
    grid.write(text);
    let more = table.rows.len().saturating_sub(ROWS_MAX);
    for (count, one, many) in
        [(more, "more row is", "more rows are"), (left_out, "more column is", "more columns are")]
    {
        if count > 0 {
            let count = pluralise(count as u64, one, many);
            let _ = write!(text, "\n{count} in the HTML report.\n");
        }
    }
}

/// A table as escaped text.
struct Grid {
    columns: Vec<GridColumn>,
}

struct GridColumn {
    heading: String,
    cells: Vec<String>,
    is_number: bool,
    is_detail: bool,
    width: usize,
}

impl GridColumn {
    fn new(heading: String, cells: Vec<String>, is_number: bool, is_detail: bool) -> Self {
        let width = cells.iter().chain([&heading]).map(|it| it.chars().count()).max();
        let width = width.unwrap_or(0).max(3);
        Self { heading, cells, is_number, is_detail, width }
    }
}

impl Grid {
    fn new(table: &Table) -> Self {
        let formatted = table.formatted();
        let columns = table.columns.iter().enumerate().map(|(place, column)| {
            let rows = formatted.rows.iter().take(ROWS_MAX);
            let cells = rows.map(|row| escape(&row[place])).collect();
            let heading = escape(&formatted.headings[place]);
            GridColumn::new(heading, cells, column.is_number, column.is_detail)
        });
        Self { columns: columns.collect() }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// Returns the width of a line: `| a | b |`.
    fn width(&self) -> usize {
        self.columns.iter().map(|column| column.width + 3).sum::<usize>() + 1
    }

    /// Makes a column of each row. The first column becomes the headings.
    fn transposed(self) -> Self {
        let rows = self.rows();
        let mut columns = self.columns.into_iter();
        let Some(first) = columns.next() else { return Self { columns: Vec::new() } };
        let rest: Vec<GridColumn> = columns.collect();
        let names = rest.iter().map(|column| column.heading.clone()).collect();
        let mut transposed = vec![GridColumn::new(first.heading, names, false, false)];
        for (row, heading) in (0..rows).zip(first.cells) {
            let cells = rest.iter().map(|column| column.cells[row].clone()).collect();
            transposed.push(GridColumn::new(heading, cells, true, false));
        }
        Self { columns: transposed }
    }

    /// Narrows the widest column of texts by one. Numbers are never shortened.
    fn shrink(&mut self) -> bool {
        let texts = self.columns.iter_mut().filter(|it| !it.is_number && it.width > COLUMN_MIN);
        let Some(widest) = texts.max_by_key(|column| column.width) else { return false };
        widest.width -= 1;
        true
    }

    fn write(&self, text: &mut String) {
        text.push('\n');
        self.line(text, |column| shortened(&column.heading, column.width));
        self.line(text, |column| match column.is_number {
            true => format!("{}:", "-".repeat(column.width - 1)),
            false => "-".repeat(column.width),
        });
        for row in 0..self.rows() {
            self.line(text, |column| shortened(&column.cells[row], column.width));
        }
    }

    fn line(&self, text: &mut String, cell: impl Fn(&GridColumn) -> String) {
        for column in &self.columns {
            let (cell, width) = (cell(column), column.width);
            let _ = match column.is_number {
                true => write!(text, "| {cell:>width$} "),
                false => write!(text, "| {cell:<width$} "),
            };
        }
        text.push_str("|\n");
    }
}

/// Shortens a text to a width in characters.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Escapes what Markdown and HTML would interpret, and mentions of users.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // A tag starts with one of these.
            '<' if characters.peek().is_some_and(|next| {
                next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')
            }) =>
            {
                escaped.push_str("&lt;");
            }
            '>' if escaped.is_empty() => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("&#64;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ if character.is_control() => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Unit;

    fn lines(columns: Vec<Column>, row: Vec<Cell>, count: usize) -> Vec<String> {
        let mut it = Table::new("t", columns);
        (0..count).for_each(|_| it.row(row.clone()));
        let mut text = String::new();
        table(&mut text, &it);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn tables_align_and_escape() {
        let columns = vec![Column::text("Flow"), Column::number("Rate", Unit::FramesPerSecond)];
        let found = lines(columns, vec![Cell::text("a|b\n<script>"), Cell::Number(1e6)], 1);
        assert_eq!(
            found,
            [
                "",
                "| Flow             | Rate (frames/s) |",
                "| ---------------- | --------------: |",
                "| a\\|b &lt;script> |       1,000,000 |",
            ],
        );
    }

    #[test]
    fn wide_tables_lose_details_first_and_then_the_ends_of_texts() {
        let columns = vec![Column::text("A"), Column::text("B").detail(), Column::text("C")];
        let cell = |length| Cell::text("x".repeat(length));
        let found = lines(columns, vec![cell(90), cell(90), cell(90)], 7);
        assert!(found.iter().all(|line| line.chars().count() <= 100), "{found:#?}");
        assert!(found[1].starts_with("| A ") && !found[1].contains('B'), "{found:#?}");
        assert!(found[3].contains("x…"), "{found:#?}");
    }

    #[test]
    fn wide_table_of_few_rows_is_transposed() {
        let column = |number| Column::number(&format!("Column {number}"), Unit::FramesPerSecond);
        let columns: Vec<_> =
            [Column::text("Port")].into_iter().chain((0..9).map(column)).collect();
        let row = [Cell::text("left")].into_iter().chain((0..9).map(|it| Cell::count(it * 1_000)));
        let found = lines(columns, row.collect(), 1);
        assert_eq!(found[1], "| Port                |  left |");
        assert_eq!((found.len(), &*found[11]), (12, "| Column 8 (frames/s) | 8,000 |"));
    }
}
