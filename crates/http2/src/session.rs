//! One end of HTTP/2, over TLS or not.

use std::collections::VecDeque;
use std::fmt::Debug;

use http::uri::Scheme;
use wirestorm_stack::content::{Handshake, MessageCounters, Session, SessionState};

use crate::Http2Settings;
use crate::cause::Cause;
use crate::pipe::Pipe;

/// One end, as the library has it: it reads from its pipe and writes to it.
pub(crate) trait End: Debug + Send + Sized {
    /// Begins.
    fn begin(pipe: Pipe, settings: Http2Settings, scheme: Scheme) -> Result<Self, Cause>;

    /// Understands what has come; `plaintext` is called with what of it is for the program.
    fn hear(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause>;

    /// Takes what the program says; returns how many bytes of it.
    fn say(&mut self, bytes: &[u8]) -> Result<usize, Cause>;

    /// The program says no more.
    fn close(&mut self);

    /// Whether nothing more comes.
    fn is_over(&self) -> bool;

    /// What was counted since it was asked last.
    fn take_counters(&mut self) -> MessageCounters;
}

/// A session that speaks HTTP/2 with the peer and HTTP/1 with the program.
#[derive(Debug)]
pub(crate) struct Http2Session<E> {
    /// What is between it and the connection: TLS, or nothing.
    below: Option<Box<dyn Session>>,
    settings: Http2Settings,
    pipe: Pipe,
    /// There once the session below is open.
    end: Option<E>,
    state: SessionState,
    /// Whether the peer is to be told that nothing more comes, once all has left.
    closes: bool,
}

/// What both agree upon by ALPN (RFC 9113 section 3.2).
const PROTOCOL: &[u8] = b"h2";

/// Bytes that may wait for a peer. More than any window is what a peer asks for again and again, by
/// PING say, without ever taking the answers.
const WAITING_MAX: usize = 64 << 20;

impl<E: End> Http2Session<E> {
    pub(crate) fn new(below: Option<Box<dyn Session>>, settings: Http2Settings) -> Self {
        let mut session = Self {
            below,
            settings,
            pipe: Pipe::default(),
            end: None,
            state: SessionState::Handshaking,
            closes: false,
        };
        session.go_on(&mut |_| {});
        session
    }

    fn has_failed(&self) -> bool {
        matches!(self.state, SessionState::Failed(_))
    }

    fn fail(&mut self, Cause(cause): Cause) {
        self.state = SessionState::Failed(cause);
        self.closes = true;
    }

    /// Begins once the session below is open.
    fn begin(&mut self) -> Result<(), Cause> {
        if self.end.is_some() {
            return Ok(());
        }
        let scheme = match &self.below {
            None => Scheme::HTTP,
            Some(below) if below.protocol() != Some(PROTOCOL) => return Err(Cause::NOT_AGREED),
            Some(_) => Scheme::HTTPS,
        };
        self.end = Some(E::begin(self.pipe.clone(), self.settings, scheme)?);
        self.state = SessionState::Open;
        Ok(())
    }

    /// Goes on with what has come.
    fn go_on(&mut self, plaintext: &mut dyn FnMut(&[u8])) {
        let below = self.below.as_ref().map_or(SessionState::Open, |below| below.state());
        match below {
            _ if self.has_failed() => {}
            SessionState::Failed(_) => self.state = below,
            SessionState::Handshaking => {}
            SessionState::Open | SessionState::PeerClosed => {
                let began = self.begin();
                let heard = began.and_then(|()| match &mut self.end {
                    Some(end) if !self.closes => end.hear(plaintext),
                    _ => Ok(()),
                });
                if let Err(cause) = heard {
                    return self.fail(cause);
                }
                let is_over = self.end.as_ref().is_some_and(E::is_over);
                if below == SessionState::PeerClosed || is_over {
                    self.state = SessionState::PeerClosed;
                }
            }
        }
    }
}

impl<E: End> Session for Http2Session<E> {
    fn gathers(&self) -> bool {
        true
    }

    fn hear(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8])) {
        match &mut self.below {
            Some(below) => below.hear(bytes, &mut |bytes| self.pipe.hear(bytes)),
            None => self.pipe.hear(bytes),
        }
        self.go_on(plaintext);
    }

    fn say(&mut self, plaintext: &[u8]) -> usize {
        let said = self.end.as_mut().map_or(Ok(0), |end| end.say(plaintext));
        said.unwrap_or_else(|cause| {
            self.fail(cause);
            0
        })
    }

    fn close(&mut self) {
        if let Some(end) = &mut self.end {
            end.close();
        }
        self.closes = true;
    }

    fn depart(&mut self, to: &mut VecDeque<u8>) {
        // To a peer that says no more the last word is said once the program has ended: it may be
        // gone by then, and its program waits until all is acknowledged.
        if !self.closes && self.end.as_ref().is_some_and(E::is_over) {
            return;
        }
        let due = &mut self.pipe.queues().due;
        if let Some(below) = &mut self.below {
            below.depart(to);
            while !due.is_empty() {
                let taken = below.say(due.as_slices().0);
                if taken == 0 {
                    break;
                }
                due.drain(..taken);
                below.depart(to);
            }
            if self.closes && due.is_empty() {
                below.close();
                below.depart(to);
            }
        } else {
            to.append(due);
        }
        if to.len() > WAITING_MAX && matches!(self.state, SessionState::Open) {
            self.state = SessionState::Failed(Cause::NOT_TAKEN.0);
        }
    }

    fn state(&self) -> SessionState {
        self.state
    }

    fn handshake(&self) -> Option<Handshake> {
        self.below.as_ref()?.handshake()
    }

    fn take_messages(&mut self) -> MessageCounters {
        self.end.as_mut().map(E::take_counters).unwrap_or_default()
    }
}
