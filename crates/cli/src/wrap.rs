//! Sentences on lines of at most 80 columns.

/// The width that every table and sentence keeps to.
pub(crate) const COLUMNS: usize = 80;

/// `text` behind `head`, wrapped between words; further lines begin below the first.
///
/// A word longer than a line stays whole: a command must be there to copy.
pub(crate) fn wrapped(head: &str, text: &str) -> String {
    wrapped_to(COLUMNS, head, text)
}

/// The same on lines of at most so many columns.
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
    fn lines_keep_to_the_width_and_below_the_first() {
        let text = "word ".repeat(40);
        let lines = wrapped("  head  ", &text);
        assert!(lines.lines().all(|line| line.len() <= COLUMNS), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with("        word")), "{lines}");
        assert_eq!(lines.matches("word").count(), 40);
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        let long = "x".repeat(100);
        assert_eq!(wrapped("a ", &format!("b {long} c")), format!("a b\n  {long}\n  c"));
    }
}
