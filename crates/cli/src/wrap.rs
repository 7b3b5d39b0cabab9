//! Word wrap of messages to 80 columns.

/// Maximum width of tables and messages.
pub(crate) const COLUMNS: usize = 80;

/// Wraps `text` behind `head` to [`COLUMNS`]. Continuation lines align with the start of `text`.
///
/// A word longer than a line stays whole, so that a user can copy commands.
pub(crate) fn wrapped(head: &str, text: &str) -> String {
    wrapped_to(COLUMNS, head, text)
}

/// Wraps like [`wrapped`], to `columns`.
pub(crate) fn wrapped_to(columns: usize, head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let mut lines = head.to_owned();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_width_and_align_below_the_first() {
        let text = "word ".repeat(40);
        let lines = wrapped("  head  ", &text);
        assert!(lines.lines().all(|line| line.len() <= COLUMNS), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with("        word")), "{lines}");
        assert_eq!(lines.matches("word").count(), 40);
    }

    #[test]
    fn long_word_is_not_split() {
        let long = "x".repeat(100);
        assert_eq!(wrapped("a ", &format!("b {long} c")), format!("a b\n  {long}\n  c"));
    }
}
