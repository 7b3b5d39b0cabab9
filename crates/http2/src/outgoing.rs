//! Splits the program's HTTP/1 byte stream into heads and bodies for HTTP/2 streams.

use std::task::{Context, Poll};

use bytes::Bytes;
use h2::SendStream;
use wirestorm_stack::http1::{Follows, MessageReader, Piece};

use crate::cause::Cause;

/// Reads the program's messages and sends their bodies as flow control permits.
#[derive(Debug, Default)]
pub(crate) struct MessageWriter {
    reader: MessageReader,
    /// Incomplete head.
    head: Vec<u8>,
    /// Stream of the current body; `None` discards it because the peer no longer wants it.
    stream: Option<SendStream<Bytes>>,
    /// Whether the program may omit the body of the last head (a response to HEAD).
    may_lack_body: bool,
}

/// Result of one step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Consumed this many bytes.
    Took(usize),
    /// Consumed bytes and completed a head. The caller must call [`MessageWriter::begin_body`] or
    /// [`MessageWriter::skip_body`] next.
    Head {
        /// Bytes consumed.
        length: usize,
        head: Vec<u8>,
        /// Whether a body follows.
        has_body: bool,
    },
    /// Flow control blocks the body until the peer opens its window.
    Blocked,
}

/// Maximum length of a head in bytes.
const HEAD_MAX: usize = 64 << 10;

impl MessageWriter {
    /// Processes bytes, of which there must be at least one.
    pub(crate) fn step(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<Step, Cause> {
        if std::mem::take(&mut self.may_lack_body) && may_be_response(bytes) {
            self.reader.skip_body();
        }
        let (length, piece) = self.reader.next(bytes);
        match piece {
            Piece::Framing => Ok(Step::Took(length)),
            Piece::Invalid(_) => Err(Cause::NO_MESSAGE),
            Piece::Head(part) => {
                self.add(part)?;
                Ok(Step::Took(length))
            }
            Piece::HeadEnd(part, follows) => {
                self.add(part)?;
                let head = std::mem::take(&mut self.head);
                Ok(Step::Head { length, head, has_body: follows == Follows::Body })
            }
            Piece::Body(body) => {
                let length = self.room(body.len(), context);
                if length == 0 {
                    return Ok(Step::Blocked);
                }
                let is_end = self.reader.advance(length);
                self.send(&body[..length], is_end);
                Ok(Step::Took(length))
            }
            Piece::End => {
                self.send(&[], true);
                Ok(Step::Took(length))
            }
        }
    }

    fn add(&mut self, part: &[u8]) -> Result<(), Cause> {
        if self.head.len() + part.len() > HEAD_MAX {
            return Err(Cause::NO_MESSAGE);
        }
        self.head.extend_from_slice(part);
        Ok(())
    }

    /// Sets the stream that carries the body of the last head.
    pub(crate) fn begin_body(&mut self, stream: Option<SendStream<Bytes>>) {
        self.stream = stream;
    }

    /// Marks the last head as a response to HEAD, which has no body (RFC 9110 section 9.3.2). A
    /// program that does not track methods may send one; it is discarded.
    pub(crate) fn skip_body(&mut self) {
        self.stream = None;
        self.may_lack_body = true;
    }

    /// Ends the program's output. A body without a length ends here.
    pub(crate) fn close(&mut self) {
        if self.reader.ends_with_connection() {
            self.send(&[], true);
        }
        self.stream = None;
    }

    /// Returns how many of `length` bytes the peer's windows permit.
    fn room(&mut self, length: usize, context: &mut Context<'_>) -> usize {
        let Some(stream) = &mut self.stream else { return length };
        stream.reserve_capacity(length);
        let room = stream.capacity().min(length);
        // No capacity may also mean that the peer has reset the stream.
        if room == 0 && matches!(stream.poll_capacity(context), Poll::Ready(None | Some(Err(_)))) {
            self.stream = None;
            return length;
        }
        room
    }

    fn send(&mut self, bytes: &[u8], is_end: bool) {
        let Some(stream) = &mut self.stream else { return };
        let sent = stream.send_data(Bytes::copy_from_slice(bytes), is_end);
        // The peer has reset the stream. The receiving side reports the reset.
        if sent.is_err() || is_end {
            self.stream = None;
        }
    }
}

/// Returns whether the bytes may begin a response.
fn may_be_response(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"HTTP/1.").all(|(found, expected)| found == expected)
}
