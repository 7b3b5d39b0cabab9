//! What a program says on one stream after the other.

use std::task::{Context, Poll};

use bytes::Bytes;
use h2::SendStream;
use wirestorm_stack::http1::{Follows, MessageReader, Piece};

use crate::cause::Cause;

/// Takes messages that a program says, and their bodies as streams have room for them.
#[derive(Debug, Default)]
pub(crate) struct Speaker {
    reader: MessageReader,
    /// A head that has not ended yet.
    head: Vec<u8>,
    /// Where the body goes; `None`: nowhere, as the peer does not want it any more.
    stream: Option<SendStream<Bytes>>,
    /// Whether the program may say the body of the head that was there, or not.
    may_lack_body: bool,
}

/// What came of bytes that were said.
#[derive(Debug)]
pub(crate) enum Step {
    /// So many of them are done with.
    Took(usize),
    /// These as well, and with them a head is whole; then [`Speaker::begin_body`] is to be called.
    Head {
        /// How many of them.
        length: usize,
        head: Vec<u8>,
        /// Whether a body follows.
        has_body: bool,
    },
    /// Nothing can go on until the peer has said something.
    Blocked,
}

/// Bytes of a head, at most.
const HEAD_MAX: usize = 64 << 10;

impl Speaker {
    /// Goes on with bytes, of which there is at least one.
    pub(crate) fn step(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<Step, Cause> {
        if std::mem::take(&mut self.may_lack_body) && may_be_response(bytes) {
            self.reader.leave_out_body();
        }
        let (length, piece) = self.reader.next(bytes);
        match piece {
            Piece::Nothing => Ok(Step::Took(length)),
            Piece::Wrong(_) => Err(Cause::NO_MESSAGE),
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

    /// Where the body of the head that was there goes.
    pub(crate) fn begin_body(&mut self, stream: Option<SendStream<Bytes>>) {
        self.stream = stream;
    }

    /// The head that was there answers HEAD. RFC 9110 section 9.3.2 has no body then; where a program
    /// says one all the same, as it does not look at methods, it goes nowhere.
    pub(crate) fn pass_over_body(&mut self) {
        self.stream = None;
        self.may_lack_body = true;
    }

    /// The program says no more.
    pub(crate) fn close(&mut self) {
        if self.reader.ends_with_connection() {
            self.send(&[], true);
        }
        self.stream = None;
    }

    /// How many of so many bytes the peer's windows have room for.
    fn room(&mut self, length: usize, context: &mut Context<'_>) -> usize {
        let Some(stream) = &mut self.stream else { return length };
        stream.reserve_capacity(length);
        let room = stream.capacity().min(length);
        // Where there is none, the stream may have been reset.
        if room == 0 && matches!(stream.poll_capacity(context), Poll::Ready(None | Some(Err(_)))) {
            self.stream = None;
            return length;
        }
        room
    }

    fn send(&mut self, bytes: &[u8], is_end: bool) {
        let Some(stream) = &mut self.stream else { return };
        let sent = stream.send_data(Bytes::copy_from_slice(bytes), is_end);
        // A stream that takes nothing was reset: what becomes of it is found where it is heard.
        if sent.is_err() || is_end {
            self.stream = None;
        }
    }
}

/// Whether bytes may be the beginning of a response.
fn may_be_response(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"HTTP/1.").all(|(found, expected)| found == expected)
}
