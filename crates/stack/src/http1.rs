//! Messages of HTTP/1 (RFC 9112), in the pieces in which they come: what their heads say, and where
//! their bodies end.

use alloc::vec::Vec;

/// Reads what one side of a connection says: one message after the other.
#[derive(Clone, Debug)]
pub struct MessageReader {
    part: Part,
    /// A line of which only a part has come.
    line: Vec<u8>,
    /// The status of a response.
    status: Option<u16>,
    length: Option<u64>,
    /// Whether it has a Transfer-Encoding, and whether chunked is the last of its codings.
    encoding: Option<bool>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    StartLine,
    Header,
    /// So many bytes of the body, at least one.
    Body(u64),
    BodyUntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

/// What bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing of use: empty lines before a message, sizes of chunks, trailers.
    Nothing,
    /// A part of a head.
    Head(&'a [u8]),
    /// Its last part, the empty line included, and what follows.
    HeadEnd(&'a [u8], Follows),
    /// A part of a body, of which as much is done with as [`MessageReader::advance`] is told.
    Body(&'a [u8]),
    /// The end of a body in chunks, and of its message.
    End,
    /// No message; those that would be of a head.
    Wrong(&'a [u8]),
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Another head, as this one is of an interim response.
    Response,
    /// The next message, as this one has no body.
    Message,
    /// Its body.
    Body,
}

/// The first line of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartLine<'a> {
    /// Of a request.
    Request {
        /// What is to be done.
        method: &'a [u8],
        /// With what.
        target: &'a [u8],
    },
    /// Of a response.
    Response {
        /// Of three digits.
        status: u16,
    },
}

/// Bytes of a line, at most.
pub(crate) const LINE_MAX: usize = 64 << 10;

impl Default for MessageReader {
    fn default() -> Self {
        Self { part: Part::StartLine, line: Vec::new(), status: None, length: None, encoding: None }
    }
}

impl MessageReader {
    /// Whether the message has no other end than that of the connection.
    pub fn ends_with_connection(&self) -> bool {
        self.part == Part::BodyUntilClose
    }

    /// What bytes begin with, of which there is at least one, and how many of them are done with.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> (usize, Piece<'a>) {
        match self.part {
            Part::Body(left) | Part::Chunk(left) => {
                let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                (0, Piece::Body(&bytes[..length]))
            }
            Part::BodyUntilClose => (0, Piece::Body(bytes)),
            // Section 2.2: empty lines before a message are passed over.
            Part::StartLine if self.line.is_empty() && matches!(bytes, [b'\r' | b'\n', ..]) => {
                (1, Piece::Nothing)
            }
            Part::StartLine | Part::Header | Part::ChunkSize | Part::ChunkEnd | Part::Trailer => {
                self.line(bytes)
            }
        }
    }

    /// So many bytes of the body are done with, at most those that were there; returns whether the
    /// message ends with them.
    pub fn advance(&mut self, length: usize) -> bool {
        let length = length as u64;
        match self.part {
            Part::Body(left) if left <= length => {
                *self = Self::default();
                return true;
            }
            Part::Body(left) => self.part = Part::Body(left - length),
            Part::Chunk(left) if left <= length => self.part = Part::ChunkEnd,
            Part::Chunk(left) => self.part = Part::Chunk(left - length),
            _ => {}
        }
        false
    }

    /// The message ends with its head, whatever that says: it answers HEAD.
    pub fn leave_out_body(&mut self) {
        *self = Self::default();
    }

    /// Takes bytes up to the end of a line.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> (usize, Piece<'a>) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        let is_of_head = matches!(self.part, Part::StartLine | Part::Header);
        let piece = if is_of_head { &bytes[..length] } else { &[] };
        if self.line.len() + length > LINE_MAX {
            return (length, Piece::Wrong(piece));
        }
        let Some(end) = end else {
            self.line.extend_from_slice(bytes);
            return (length, if is_of_head { Piece::Head(piece) } else { Piece::Nothing });
        };
        let mut begun = core::mem::take(&mut self.line);
        let line = match begun.is_empty() {
            true => &bytes[..end],
            false => {
                begun.extend_from_slice(&bytes[..end]);
                &begun
            }
        };
        let understood = self.understand(without_return(line), piece);
        (length, understood.unwrap_or(Piece::Wrong(piece)))
    }

    /// A line is there, whose last bytes are `piece` if it is of a head; `None` where it makes no
    /// sense.
    fn understand<'a>(&mut self, line: &[u8], piece: &'a [u8]) -> Option<Piece<'a>> {
        match self.part {
            Part::StartLine => {
                self.status = match start_line(line)? {
                    StartLine::Request { .. } => None,
                    StartLine::Response { status } => Some(status),
                };
                self.part = Part::Header;
                Some(Piece::Head(piece))
            }
            Part::Header if line.is_empty() => Some(Piece::HeadEnd(piece, self.begin_body()?)),
            Part::Header => {
                self.note(line)?;
                Some(Piece::Head(piece))
            }
            Part::ChunkSize => {
                self.part = match chunk_size(line)? {
                    0 => Part::Trailer,
                    size => Part::Chunk(size),
                };
                Some(Piece::Nothing)
            }
            Part::ChunkEnd if line.is_empty() => {
                self.part = Part::ChunkSize;
                Some(Piece::Nothing)
            }
            Part::Trailer if line.is_empty() => {
                *self = Self::default();
                Some(Piece::End)
            }
            Part::Trailer => Some(Piece::Nothing),
            // Others are no lines.
            Part::ChunkEnd | Part::Body(_) | Part::BodyUntilClose | Part::Chunk(_) => None,
        }
    }

    /// A field of the header, where it says how long the body is; `None` where it makes no sense.
    fn note(&mut self, line: &[u8]) -> Option<()> {
        let (name, value) = field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10)?;
            // Section 6.3: several that differ are an error that nothing mends.
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

    /// The header is over (section 6.3); `None` where nobody knows how long the body is.
    fn begin_body(&mut self) -> Option<Follows> {
        let is_request = self.status.is_none();
        self.part = match (self.status, self.encoding, self.length) {
            // RFC 9110 section 15.2: a final response follows an interim one.
            (Some(100 | 102..=199), ..) => {
                *self = Self::default();
                return Some(Follows::Response);
            }
            (Some(101 | 204 | 304), ..) | (_, None, Some(0)) => Part::StartLine,
            (_, Some(true), _) => Part::ChunkSize,
            (_, Some(false), _) if is_request => return None,
            (_, None, None) if is_request => Part::StartLine,
            (_, Some(false), _) | (_, None, None) => Part::BodyUntilClose,
            (_, None, Some(length)) => Part::Body(length),
        };
        if self.part == Part::StartLine {
            *self = Self::default();
            return Some(Follows::Message);
        }
        Some(Follows::Body)
    }
}

/// Whether the connection goes on behind a message that begins so (section 9.3).
pub fn keeps_connection(message: &[u8]) -> bool {
    let mut lines = message.split(|byte| *byte == b'\n').map(without_return);
    // Of a response it comes first, of a request last.
    let mut words = lines.next().unwrap_or_default().split(|byte| *byte == b' ');
    let version = words.next().filter(|it| it.starts_with(b"HTTP/")).or_else(|| words.next_back());
    let mut keeps = version != Some(b"HTTP/1.0");
    let fields = lines.take_while(|line| !line.is_empty()).filter_map(field);
    for (_, value) in fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"connection")) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            // "If the "close" connection option is present, the connection will not persist"; of
            // HTTP/1.0 it does with "keep-alive".
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    keeps
}

/// The lines of a whole head, without the empty one.
pub fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n').map(without_return).filter(|line| !line.is_empty())
}

/// Section 2.2: a single LF may end a line.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What the first line of a head says (sections 3 and 4).
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

/// The name and the value of another line of a head (section 5).
pub fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// The size of a chunk, without what is said beside it (section 7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?;
    number(size.trim_ascii(), 16)
}

/// Digits and nothing else.
pub(crate) fn number(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    })
}
