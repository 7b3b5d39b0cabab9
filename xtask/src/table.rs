//! Plain text tables.

/// Prints columns as wide as their widest cell, two spaces apart. Columns with a number are aligned
/// right, except the first. Rows may be shorter than the heading.
pub(crate) fn print(heading: &[&str], rows: &[Vec<String>]) {
    print!("{}", render(heading, rows));
}

fn render(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for (number, row) in [&heading].into_iter().chain(rows).enumerate() {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let numeric = rows.iter().filter_map(|row| row.get(column)).any(|cell| is_number(cell));
            let cell = if column > 0 && numeric {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            };
            line += &cell;
            line += "  ";
        }
        text += line.trim_end();
        text.push('\n');
        if number == 0 {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1));
            text.push('\n');
        }
    }
    text
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_right() {
        let rows = [vec!["a".into(), "1.5".into(), "x".into()], vec!["bcd".into(), "100".into()]];
        let expected = "     figure  what\n-----------------\na       1.5  x\nbcd     100\n";
        assert_eq!(render(&["", "figure", "what"], &rows), expected);
    }
}
