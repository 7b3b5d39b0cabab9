//! Where a message of HTTP/1 ends (RFC 9112).

use alloc::vec::Vec;

use super::rule::{Reading, Taken};

/// A message that is being taken.
#[derive(Clone, Debug)]
pub(super) struct Message {
    part: Part,
    /// A line that has not ended yet, without its end.
    line: Vec<u8>,
    start: Start,
    length: Option<u64>,
    /// Whether it has a Transfer-Encoding, and whether chunked is the last of its codings.
    encoding: Option<bool>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    StartLine,
    Header,
    /// So many bytes of the body.
    Body(u64),
    BodyUntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

/// What its first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Request,
    /// With this status.
    Response(u16),
}

/// Bytes of a line, at most.
const LINE_MAX: usize = 64 << 10;

impl Default for Message {
    fn default() -> Self {
        Self {
            part: Part::StartLine,
            line: Vec::new(),
            start: Start::Request,
            length: None,
            encoding: None,
        }
    }
}

impl Message {
    /// Whether it has no other end than that of the connection.
    pub(super) fn ends_with_peer(&self) -> bool {
        self.part == Part::BodyUntilClose
    }

    /// Takes of bytes what belongs to it; returns how many those are, and how far it is.
    pub(super) fn read(&mut self, bytes: &[u8], taken: &mut Taken) -> (usize, Reading) {
        let mut rest = bytes;
        let mut reading = Reading::Unfinished;
        while !rest.is_empty() && reading == Reading::Unfinished {
            let length = match self.part {
                Part::Body(left) | Part::Chunk(left) => {
                    let length = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    taken.add(&rest[..length]);
                    let left = left - length as u64;
                    match self.part {
                        Part::Chunk(_) if left == 0 => self.part = Part::ChunkEnd,
                        Part::Chunk(_) => self.part = Part::Chunk(left),
                        _ if left == 0 => reading = Reading::Done,
                        _ => self.part = Part::Body(left),
                    }
                    length
                }
                Part::BodyUntilClose => {
                    taken.add(rest);
                    rest.len()
                }
                Part::StartLine
                | Part::Header
                | Part::ChunkSize
                | Part::ChunkEnd
                | Part::Trailer => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let length = end.map_or(rest.len(), |end| end + 1);
                    if matches!(self.part, Part::StartLine | Part::Header) {
                        taken.add(&rest[..length]);
                    }
                    self.line.extend_from_slice(&rest[..end.unwrap_or(length)]);
                    if self.line.len() > LINE_MAX {
                        reading = Reading::Wrong;
                    } else if end.is_some() {
                        let mut line = core::mem::take(&mut self.line);
                        // Section 2.2: a single LF may end a line.
                        line.pop_if(|last| *last == b'\r');
                        reading = self.understand(&line, taken);
                    }
                    length
                }
            };
            rest = &rest[length..];
        }
        (bytes.len() - rest.len(), reading)
    }

    /// A line is there.
    fn understand(&mut self, line: &[u8], taken: &mut Taken) -> Reading {
        match self.part {
            // Section 2.2: empty lines before a message are passed over.
            Part::StartLine if line.is_empty() => taken.clear(),
            Part::StartLine => match start(line) {
                Some(start) => (self.start, self.part) = (start, Part::Header),
                None => return Reading::Wrong,
            },
            Part::Header if line.is_empty() => return self.begin_body(taken),
            Part::Header => {
                if self.note(line).is_none() {
                    return Reading::Wrong;
                }
            }
            Part::ChunkSize => match chunk_size(line) {
                Some(0) => self.part = Part::Trailer,
                Some(size) => self.part = Part::Chunk(size),
                None => return Reading::Wrong,
            },
            Part::ChunkEnd if line.is_empty() => self.part = Part::ChunkSize,
            Part::ChunkEnd => return Reading::Wrong,
            Part::Trailer if line.is_empty() => return Reading::Done,
            // Others are no lines.
            Part::Trailer | Part::Body(_) | Part::BodyUntilClose | Part::Chunk(_) => {}
        }
        Reading::Unfinished
    }

    /// A field of the header, where it says how long the body is; `None` where it makes no sense.
    fn note(&mut self, line: &[u8]) -> Option<()> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
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

    /// The header is over (section 6.3).
    fn begin_body(&mut self, taken: &mut Taken) -> Reading {
        let is_request = self.start == Start::Request;
        match self.start {
            // RFC 9110 section 15.2: a final response follows an interim one.
            Start::Response(status) if (100..200).contains(&status) && status != 101 => {
                taken.clear();
                *self = Self::default();
                return Reading::Unfinished;
            }
            Start::Response(101 | 204 | 304) => return Reading::Done,
            _ => {}
        }
        self.part = match (self.encoding, self.length) {
            (Some(true), _) => Part::ChunkSize,
            (Some(false), _) if is_request => return Reading::Wrong,
            (Some(false), _) => Part::BodyUntilClose,
            (None, Some(0)) => return Reading::Done,
            (None, Some(length)) => Part::Body(length),
            (None, None) if is_request => return Reading::Done,
            (None, None) => Part::BodyUntilClose,
        };
        Reading::Unfinished
    }
}

/// What a first line says (sections 3 and 4).
fn start(line: &[u8]) -> Option<Start> {
    if let Some(status) = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(1..)) {
        let status = status.strip_prefix(b" ")?.get(..3)?;
        return Some(Start::Response(number(status, 10)? as u16));
    }
    let version = line.rsplit(|byte| *byte == b' ').next()?;
    version.starts_with(b"HTTP/1.").then_some(Start::Request)
}

/// The size of a chunk, without what is said beside it (section 7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?;
    number(size.trim_ascii(), 16)
}

/// Digits and nothing else.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::super::rule::{Reader, Reading, Rule, Taken};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// What is taken of bytes that come in parts of a length, and how many are left.
    fn read(bytes: &[u8], part: usize) -> (Reading, Vec<u8>, usize, bool) {
        let (mut reader, mut taken) = (Reader::new(&Rule::Http), Taken::default());
        let mut read = 0;
        for part in bytes.chunks(part) {
            let (length, reading) = reader.read(&Rule::Http, part, &mut taken);
            read += length;
            if reading != Reading::Unfinished {
                return (reading, taken.bytes, bytes.len() - read, false);
            }
        }
        (Reading::Unfinished, taken.bytes, bytes.len() - read, reader.ends_with_peer())
    }

    #[test]
    fn messages_end_where_they_say() {
        for (message, body, left) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", "GET"),
            ("POST / HTTP/1.1\r\ncontent-length:  3 \r\n\r\n", "abc", "def"),
            ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc", "HTTP"),
            ("HTTP/1.0 200\nContent-Length: 3\n\n", "abc", "x"),
            ("HTTP/1.1 204 No Content\r\n\r\n", "", "x"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", "x"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "x"),
        ] {
            let all = [message, body, left].concat();
            for part in 1..all.len() {
                let (reading, taken, rest, _) = read(all.as_bytes(), part);
                assert_eq!((reading, rest), (Reading::Done, left.len()), "{message} by {part}");
                let expected = [message, body].concat();
                assert_eq!(taken, expected.trim_start().as_bytes(), "{message} by {part}");
            }
        }
    }

    #[test]
    fn of_chunks_their_content_is_kept_and_of_interim_responses_nothing() {
        let head =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 1\r\n\r\n";
        let chunks = "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n";
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let all = [interim, head, chunks, "next"].concat();
        for part in 1..all.len() {
            let (reading, taken, left, _) = read(all.as_bytes(), part);
            assert_eq!((reading, left), (Reading::Done, 4), "by {part}");
            assert_eq!(taken, [head, "abc0123456789"].concat().as_bytes(), "by {part}");
        }
    }

    #[test]
    fn a_response_without_a_length_ends_with_its_connection() {
        let (reading, taken, _, ends) = read(b"HTTP/1.1 200 OK\r\n\r\nall of it", 7);
        assert_eq!((reading, ends), (Reading::Unfinished, true));
        assert!(taken.ends_with(b"all of it"));
        let (_, _, _, ends) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234", 7);
        assert!(!ends);
    }

    #[test]
    fn what_makes_no_sense_is_wrong() {
        for message in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 abc\r\n",
            "HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nno field\r\n",
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        ] {
            assert_eq!(read(message.as_bytes(), 5).0, Reading::Wrong, "{message}");
        }
        let endless = alloc::vec![b'x'; super::LINE_MAX + 10];
        assert_eq!(read(&endless, 1_000).0, Reading::Wrong);
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm_and_parts_make_no_difference(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
                    Just(b"GET / HTTP/1.1\r\n".to_vec()),
                    Just(b"Content-Length: 7\r\n".to_vec()),
                    Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
                    Just(b"\r\n".to_vec()),
                    Just(b"5\r\n".to_vec()),
                    Just(b"hello".to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..9),
                ],
                0..12,
            ),
            part in 1_usize..20,
        ) {
            let bytes = bytes.concat();
            prop_assert_eq!(read(&bytes, part), read(&bytes, bytes.len().max(1)));
        }
    }
}
