//! Tables as plain text.

/// Formats a table: columns as wide as their longest cell, the first one left-aligned, and those
/// whose cells are all numbers right-aligned.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heads.map(|head| head.chars().count());
    let mut is_number = [true; N];
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(cell.chars().count());
            is_number[column] &= column > 0 && begins_with_digit(cell);
        }
    }
    let line = |cells: [&str; N]| {
        let mut line = String::new();
        for (column, cell) in cells.into_iter().enumerate() {
            let width = widths[column];
            let gap = if column == 0 { "" } else { "  " };
            line += &match is_number[column] {
                true => format!("{gap}{cell:>width$}"),
                false => format!("{gap}{cell:<width$}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(heads);
    for row in rows {
        text += &line(row.each_ref().map(String::as_str));
    }
    text
}

fn begins_with_digit(cell: &str) -> bool {
    let cell = cell.strip_prefix('-').unwrap_or(cell);
    cell.is_empty() || cell.starts_with(|it: char| it.is_ascii_digit())
}

/// Replaces control characters: texts of a server or a file must not command the terminal.
pub(crate) fn printable(text: &str) -> String {
    let plain = |it: char| if it.is_control() && it != '\n' { ' ' } else { it };
    text.replace('\t', "    ").chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let rows = [["a".to_owned(), "5".to_owned()], ["long".to_owned(), "1,000".to_owned()]];
        assert_eq!(table(["name", "frames"], &rows), "name  frames\na          5\nlong   1,000\n");
        let rows = [["1".to_owned(), "x".to_owned()], ["22".to_owned(), "5".to_owned()]];
        assert_eq!(table(["id", "what"], &rows), "id  what\n1   x\n22  5\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\tc\nd"), "a [2Jb    c\nd");
    }
}
