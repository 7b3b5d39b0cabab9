//! Terminal width: fits live tables and progress messages to it.

use console::Term;

use crate::traffic::shortened;

/// Columns of a terminal that does not report its size.
const COLUMNS: usize = 80;
/// Smallest width in columns that the layout supports.
const COLUMNS_MIN: usize = 40;
/// Columns reserved for the bar or spinner and the times before a message.
const BAR_COLUMNS: usize = 32;

/// Returns the columns of the terminal behind standard error, at least [`COLUMNS_MIN`].
pub(crate) fn columns() -> usize {
    let size = Term::stderr().size_checked();
    size.map_or(COLUMNS, |(_, columns)| usize::from(columns)).max(COLUMNS_MIN)
}

/// Joins the parts of a message beside a progress bar.
///
/// If they do not fit beside the bar, they move to a line below it. That line drops the last parts
/// that exceed `columns`.
pub(crate) fn fit_beside_bar(columns: usize, parts: &[String]) -> String {
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

/// Appends a line of a table, with the first cell left-aligned and the others right-aligned.
///
/// The line drops the last cells that exceed `columns`. The first cell shrinks to leave room for
/// the second.
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
    fn rows_fit_every_width_and_keep_cells_whole() {
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
    fn message_moves_below_the_bar_if_it_does_not_fit_beside_it() {
        let parts = ["12.34 Mpps", "12.34 Gb/s L1", "12.34 Gb/s L2", "9 flows/s"];
        let parts = parts.map(str::to_owned);
        assert_eq!(fit_beside_bar(100, &parts), parts.join(" "));
        for columns in 40..100 {
            let text = fit_beside_bar(columns, &parts);
            let before = if text.starts_with('\n') { 0 } else { BAR_COLUMNS };
            assert!(before + longest(&text) <= columns, "{columns}: {text:?}");
            assert!(text.contains("Mpps"), "{columns}: {text:?}");
        }
        assert_eq!(fit_beside_bar(40, &parts), "\n12.34 Mpps 12.34 Gb/s L1 12.34 Gb/s L2");
    }
}
