//! Incremental HTTP/1 parser (RFC 9112): reads message heads and finds the end of bodies.

use alloc::vec::Vec;

/// Parser for the byte stream of one side of a connection, one message after the other.
#[derive(Clone, Debug)]
pub struct MessageReader {
    part: Expected,
    /// Received start of a line whose end is still missing.
    line: Vec<u8>,
    /// Status code of a response; `None` for a request.
    status: Option<u16>,
    length: Option<u64>,
    /// Whether chunked is the last transfer coding; `None` without a Transfer-Encoding field.
    encoding: Option<bool>,
}

/// Part of a message that the parser expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    StartLine,
    Header,
    /// Remaining bytes of the body, at least 1.
    Body(u64),
    BodyUntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

/// Meaning of a piece of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Framing without content: an empty line before a message, a chunk size or a trailer.
    Framing,
    /// A part of a message head.
    Head(&'a [u8]),
    /// The last part of a head, including the empty line, and what follows the head.
    HeadEnd(&'a [u8], Follows),
    /// A part of a body. The caller reports the consumed bytes to
    /// [`MessageReader::advance`].
    Body(&'a [u8]),
    /// The end of a chunked body, and of its message.
    End,
    /// Invalid input; the bytes are those of the head, or empty.
    Invalid(&'a [u8]),
}

/// What follows a message head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The head of another response, because this one is an interim response.
    Response,
    /// The next message, because this one has no body.
    Message,
    /// The body.
    Body,
}

/// First line of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartLine<'a> {
    /// Request line.
    Request {
        /// Method, such as `GET`.
        method: &'a [u8],
        /// Request target.
        target: &'a [u8],
    },
    /// Status line.
    Response {
        /// Status code, three digits.
        status: u16,
    },
}

/// Maximum length of a line in bytes.
pub(crate) const LINE_MAX: usize = 64 << 10;

impl Default for MessageReader {
    fn default() -> Self {
        Self {
            part: Expected::StartLine,
            line: Vec::new(),
            status: None,
            length: None,
            encoding: None,
        }
    }
}

impl MessageReader {
    /// Whether only the end of the connection ends the message.
    pub fn ends_with_connection(&self) -> bool {
        self.part == Expected::BodyUntilClose
    }

    /// Parses the start of `bytes`, which must not be empty. Returns the number of consumed bytes
    /// and their meaning.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> (usize, Piece<'a>) {
        match self.part {
            Expected::Body(left) | Expected::Chunk(left) => {
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                (0, Piece::Body(&bytes[..length]))
            }
            Expected::BodyUntilClose => (0, Piece::Body(bytes)),
            // Section 2.2: ignore empty lines before a message.
            Expected::StartLine if self.line.is_empty() && matches!(bytes, [b'\r' | b'\n', ..]) => {
                (1, Piece::Framing)
            }
            Expected::StartLine
            | Expected::Header
            | Expected::ChunkSize
            | Expected::ChunkEnd
            | Expected::Trailer => self.line(bytes),
        }
    }

    /// Consumes `length` bytes of the body, at most what [`Self::next`] returned. Returns whether
    /// the message ends there.
    pub fn advance(&mut self, length: usize) -> bool {
        let length = length as u64;
        match self.part {
            Expected::Body(left) if left <= length => {
                *self = Self::default();
                return true;
            }
            Expected::Body(left) => self.part = Expected::Body(left - length),
            Expected::Chunk(left) if left <= length => self.part = Expected::ChunkEnd,
            Expected::Chunk(left) => self.part = Expected::Chunk(left - length),
            _ => {}
        }
        false
    }

    /// Skips the body, whatever the head announces, because the message is a response to HEAD.
    pub fn skip_body(&mut self) {
        *self = Self::default();
    }

    /// Consumes bytes up to the end of a line.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> (usize, Piece<'a>) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        let is_of_head = matches!(self.part, Expected::StartLine | Expected::Header);
        let piece = if is_of_head { &bytes[..length] } else { &[] };
        if self.line.len() + length > LINE_MAX {
            return (length, Piece::Invalid(piece));
        }
        let Some(end) = end else {
            self.line.extend_from_slice(bytes);
            return (length, if is_of_head { Piece::Head(piece) } else { Piece::Framing });
        };
        let mut begun = core::mem::take(&mut self.line);
        let line = match begun.is_empty() {
            true => &bytes[..end],
            false => {
                begun.extend_from_slice(&bytes[..end]);
                &begun
            }
        };
        let understood = self.interpret_line(strip_cr(line), piece);
        (length, understood.unwrap_or(Piece::Invalid(piece)))
    }

    /// Interprets a complete line, whose last bytes are `piece` if it belongs to a head. Returns
    /// `None` if the line is invalid.
    fn interpret_line<'a>(&mut self, line: &[u8], piece: &'a [u8]) -> Option<Piece<'a>> {
        match self.part {
            Expected::StartLine => {
                self.status = match start_line(line)? {
                    StartLine::Request { .. } => None,
                    StartLine::Response { status } => Some(status),
                };
                self.part = Expected::Header;
                Some(Piece::Head(piece))
            }
            Expected::Header if line.is_empty() => {
                Some(Piece::HeadEnd(piece, self.determine_body()?))
            }
            Expected::Header => {
                self.record_field(line)?;
                Some(Piece::Head(piece))
            }
            Expected::ChunkSize => {
                self.part = match chunk_size(line)? {
                    0 => Expected::Trailer,
                    size => Expected::Chunk(size),
                };
                Some(Piece::Framing)
            }
            Expected::ChunkEnd if line.is_empty() => {
                self.part = Expected::ChunkSize;
                Some(Piece::Framing)
            }
            Expected::Trailer if line.is_empty() => {
                *self = Self::default();
                Some(Piece::End)
            }
            Expected::Trailer => Some(Piece::Framing),
            // The other parts have no lines.
            Expected::ChunkEnd
            | Expected::Body(_)
            | Expected::BodyUntilClose
            | Expected::Chunk(_) => None,
        }
    }

    /// Records a header field that defines the body length; `None` if the field is invalid.
    fn record_field(&mut self, line: &[u8]) -> Option<()> {
        let (name, value) = field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10)?;
            // Section 6.3: several lengths that differ are an unrecoverable error.
            if self.length.is_some_and(|other| other != length) {
                return None;
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            self.encoding = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        }
        Some(())
    }

    /// Determines the body length at the end of the header (section 6.3); `None` if it is
    /// undefined.
    fn determine_body(&mut self) -> Option<Follows> {
        let is_request = self.status.is_none();
        self.part = match (self.status, self.encoding, self.length) {
            // RFC 9110 section 15.2: a final response follows an interim one.
            (Some(100 | 102..=199), ..) => {
                *self = Self::default();
                return Some(Follows::Response);
            }
            (Some(101 | 204 | 304), ..) | (_, None, Some(0)) => Expected::StartLine,
            (_, Some(true), _) => Expected::ChunkSize,
            (_, Some(false), _) if is_request => return None,
            (_, None, None) if is_request => Expected::StartLine,
            (_, Some(false), _) | (_, None, None) => Expected::BodyUntilClose,
            (_, None, Some(length)) => Expected::Body(length),
        };
        if self.part == Expected::StartLine {
            *self = Self::default();
            return Some(Follows::Message);
        }
        Some(Follows::Body)
    }
}

/// Whether the connection persists after a message with this head (section 9.3).
pub fn keeps_connection(message: &[u8]) -> bool {
    let mut lines = message.split(|byte| *byte == b'\n').map(strip_cr);
    // The version is the first word of a response and the last one of a request.
    let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
    let version = words.next().filter(|it| it.starts_with(b"HTTP/")).or_else(|| words.next_back());
    let mut keeps = version != Some(b"HTTP/1.0");
    let fields = lines.take_while(|line| !line.is_empty()).filter_map(field);
    for (_, value) in fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"connection")) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            // "If the "close" connection option is present, the connection will not persist". An
            // HTTP/1.0 connection persists only with "keep-alive".
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    keeps
}

/// Returns the lines of a complete head, without the empty line.
pub fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n').map(strip_cr).filter(|line| !line.is_empty())
}

/// Strips the CR of a line end. Section 2.2: a single LF may also end a line.
fn strip_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Parses the first line of a head (sections 3 and 4).
pub fn start_line(line: &[u8]) -> Option<StartLine<'_>> {
    if let Some(status) = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(1..)) {
        let status = status.strip_prefix(b" ")?.get(..3)?;
        return Some(StartLine::Response { status: number(status, 10)? as u16 });
    }
    let is_space = |byte: &u8| *byte == b' ';
    let (first, last) = (line.iter().position(is_space)?, line.iter().rposition(is_space)?);
    let target = line.get(first + 1..last)?;
    let is_request = line[last + 1..].starts_with(b"HTTP/1.");
    is_request.then_some(StartLine::Request { method: &line[..first], target })
}

/// Splits a header line into name and value (section 5).
pub fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Parses the size of a chunk and ignores chunk extensions (section 7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?;
    number(size.trim_ascii(), 16)
}

/// Parses a number that consists of digits only; `None` if it is empty or too large.
pub(crate) fn number(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    })
}
