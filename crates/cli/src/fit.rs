//! What moves on a terminal, on lines that fit it.

use console::Term;

use crate::traffic::shortened;

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// Terminals are at least so wide.
const COLUMNS_MIN: usize = 40;
/// What stands before a message beside a bar or a spinner at most.
const BAR_COLUMNS: usize = 32;

/// Columns of the terminal behind standard error.
pub(crate) fn columns() -> usize {
    let size = Term::stderr().size_checked();
    size.map_or(COLUMNS, |(_, columns)| usize::from(columns)).max(COLUMNS_MIN)
}

/// Parts of a message beside a bar; as many of them on a line of their own where they do not fit
/// beside it.
pub(crate) fn beside_bar(columns: usize, parts: &[String]) -> String {
    let joined = parts.join(" ");
    if BAR_COLUMNS + joined.chars().count() <= columns {
        return joined;
    }
    let mut line = String::new();
    for part in parts {
        let separator = usize::from(!line.is_empty());
        if line.chars().count() + separator + part.chars().count() > columns {
            break;
        }
        if separator > 0 {
            line.push(' ');
        }
        line.push_str(part);
    }
    format!("\n{line}")
}

/// Adds a line of a table: the first cell begins it, the others end at their columns. Cells that
/// do not fit are left out, the last ones first; the first cell leaves room for the second.
pub(crate) fn row(
    text: &mut String,
    columns: usize,
    (width, first): (usize, &str),
    rest: &[(usize, &str)],
) {
    let second = rest.first().map_or(0, |(width, _)| 1 + width);
    let width = width.min(columns.saturating_sub(second));
    text.push('\n');
    text.push_str(&format!("{:<width$}", shortened(first, width)));
    let mut used = width;
    for (width, cell) in rest {
        used += 1 + width.max(&cell.chars().count());
        if used > columns {
            break;
        }
        text.push_str(&format!(" {cell:>width$}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn rows_fit_every_width_and_have_whole_cells() {
        let cells = [(10, "1.23 M"), (9, "12,345,678,901"), (11, "7")];
        for columns in 40..100 {
            let mut text = String::new();
            row(&mut text, columns, (38, "10.0.0.1:1024 > 10.0.0.2:80 and longer"), &cells);
            assert!(longest(&text) <= columns, "{columns}: {text}");
            assert!(text.contains("1.23 M"), "{columns}: {text}");
            let is_whole = text.contains("12,345,678,901") || !text.contains("12,3");
            assert!(is_whole, "{columns}: {text}");
        }
        let mut text = String::new();
        row(&mut text, 100, (6, "a"), &cells);
        assert_eq!(text, "\na          1.23 M 12,345,678,901           7");
    }

    #[test]
    fn a_message_moves_below_a_bar_where_it_does_not_fit_beside_it() {
        let parts = ["12.34 Mpps", "12.34 Gb/s L1", "12.34 Gb/s L2", "9 flows/s"];
        let parts = parts.map(str::to_owned);
        assert_eq!(beside_bar(100, &parts), parts.join(" "));
        for columns in 40..100 {
            let text = beside_bar(columns, &parts);
            let before = if text.starts_with('\n') { 0 } else { BAR_COLUMNS };
            assert!(before + longest(&text) <= columns, "{columns}: {text:?}");
            assert!(text.contains("Mpps"), "{columns}: {text:?}");
        }
        assert_eq!(beside_bar(40, &parts), "\n12.34 Mpps 12.34 Gb/s L1 12.34 Gb/s L2");
    }
}
