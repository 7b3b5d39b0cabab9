//! What a program says on one stream after the other.

use std::task::{Context, Poll};

use bytes::Bytes;
use h2::SendStream;

use crate::cause::Cause;
use crate::said::{Length, Next, Said};

/// Takes messages that a program says, and their bodies as streams have room for them.
#[derive(Debug, Default)]
pub(crate) struct Speaker {
    said: Said,
    /// Where the body goes; `None`: nowhere, as the peer does not want it any more.
    stream: Option<SendStream<Bytes>>,
}

/// What came of bytes that were said.
#[derive(Debug)]
pub(crate) enum Step {
    /// So many of them are done with.
    Took(usize),
    /// These as well, and with them a head is whole; then [`Speaker::begin_body`] is to be called.
    Head(usize, Vec<u8>),
    /// Nothing can go on until the peer has said something.
    Blocked,
}

impl Speaker {
    /// Goes on with bytes, of which there is at least one.
    pub(crate) fn step(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<Step, Cause> {
        let (done, next) = self.said.next(bytes)?;
        match next {
            Next::Nothing => Ok(Step::Took(done)),
            Next::Head(head) => Ok(Step::Head(done, head)),
            Next::End => {
                self.send(&[], true);
                Ok(Step::Took(done))
            }
            Next::Body(body) => {
                let length = self.room(body.len(), context);
                if length == 0 {
                    return Ok(Step::Blocked);
                }
                let is_end = self.said.advance(length as u64);
                self.send(&body[..length], is_end);
                Ok(Step::Took(length))
            }
        }
    }

    /// Where the body of the head that was there goes, and where it ends.
    pub(crate) fn begin_body(&mut self, stream: Option<SendStream<Bytes>>, length: Length) {
        self.stream = stream.filter(|_| length != Length::Nothing);
        self.said.begin_body(length);
    }

    /// The program says no more.
    pub(crate) fn close(&mut self) {
        if self.said.ends_with_program() {
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
