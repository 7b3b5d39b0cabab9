//! Words and numbers, read as the kernel reads them (net/core/pktgen.c).

/// What is left of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    rest: &'a str,
}

/// What stands between words.
const SEPARATORS: [char; 6] = ['"', '\n', '\r', '\t', ' ', '='];

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Passes over what separates words.
    pub(super) fn skip_separators(&mut self) {
        self.rest = self.rest.trim_start_matches(SEPARATORS);
    }

    /// Passes over this, if it comes next.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let behind = self.rest.strip_prefix(expected);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// The word that comes next, without passing over it.
    pub(super) fn peek_word(&self) -> &'a str {
        self.rest.split(SEPARATORS).next().unwrap_or_default()
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next word, of `bytes_max` bytes at most; what is longer is left for what comes next.
    pub(super) fn word(&mut self, bytes_max: usize) -> &'a str {
        let word = self.peek_word();
        let mut end = word.len().min(bytes_max);
        while !word.is_char_boundary(end) {
            end -= 1;
        }
        self.split_at(end)
    }

    /// The next decimal digits, `digits_max` at most (19 always fit): their value, 0 without any.
    pub(super) fn number(&mut self, digits_max: usize) -> u64 {
        let digits = self.digits(digits_max, u8::is_ascii_digit);
        digits.bytes().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    }

    /// The next hexadecimal digits, `digits_max` at most (8 always fit), and how many there are.
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
