//! Scanner for words and numbers, as in the kernel (net/core/pktgen.c).

/// The rest of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    rest: &'a str,
}

/// Characters that separate words.
const SEPARATORS: [char; 6] = ['"', '\n', '\r', '\t', ' ', '='];

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Skips separators.
    pub(super) fn skip_separators(&mut self) {
        self.rest = self.rest.trim_start_matches(SEPARATORS);
    }

    /// Skips this character if it is next. Returns whether it was.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let behind = self.rest.strip_prefix(expected);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// Returns the next word without consuming it.
    pub(super) fn peek_word(&self) -> &'a str {
        self.rest.split(SEPARATORS).next().unwrap_or_default()
    }

    /// Returns whether the text is at its end.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Consumes the next word, of at most `bytes_max` bytes. Longer words stay partly in the text.
    pub(super) fn word(&mut self, bytes_max: usize) -> &'a str {
        let word = self.peek_word();
        let mut end = word.len().min(bytes_max);
        while !word.is_char_boundary(end) {
            end -= 1;
        }
        self.split_at(end)
    }

    /// Consumes at most `digits_max` decimal digits (19 always fit). Returns their value, or 0
    /// without digits.
    pub(super) fn number(&mut self, digits_max: usize) -> u64 {
        let digits = self.digits(digits_max, u8::is_ascii_digit);
        digits.bytes().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    }

    /// Consumes at most `digits_max` hexadecimal digits (8 always fit). Returns their value and
    /// their number.
    pub(super) fn hex(&mut self, digits_max: usize) -> (u32, usize) {
        let digits = self.digits(digits_max, u8::is_ascii_hexdigit);
        (u32::from_str_radix(digits, 16).unwrap_or(0), digits.len())
    }

    fn digits(&mut self, digits_max: usize, is_digit: impl Fn(&u8) -> bool) -> &'a str {
        let digits = self.rest.bytes().take(digits_max).take_while(is_digit).count();
        self.split_at(digits)
    }

    fn split_at(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}
