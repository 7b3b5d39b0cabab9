//! One side of an HTTP/2 connection, over TLS or plain TCP.

use std::collections::VecDeque;
use std::fmt::Debug;

use http::uri::Scheme;
use wirestorm_stack::content::{Handshake, MessageCounters, Session, SessionState};

use crate::cause::Cause;
use crate::pipe::Pipe;
use crate::settings::Http2Settings;

/// Client or server side of the `h2` library, which reads from a [`Pipe`] and writes to it.
pub(crate) trait End: Debug + Send + Sized {
    /// Starts the connection.
    fn begin(pipe: Pipe, settings: Http2Settings, scheme: Scheme) -> Result<Self, Cause>;

    /// Processes received bytes; passes data for the program to `plaintext`.
    fn receive_data(&mut self, plaintext: &mut dyn FnMut(&[u8])) -> Result<(), Cause>;

    /// Takes data from the program; returns the number of bytes taken.
    fn send_data(&mut self, bytes: &[u8]) -> Result<usize, Cause>;

    /// Ends the program's sending direction.
    fn close(&mut self);

    /// Returns whether the connection has ended.
    fn is_over(&self) -> bool;

    /// Returns the counts since the last call.
    fn take_counters(&mut self) -> MessageCounters;
}

/// Session that speaks HTTP/2 to the peer and HTTP/1 to the program.
#[derive(Debug)]
pub(crate) struct Http2Session<E> {
    /// TLS session below, or `None` for plain TCP.
    below: Option<Box<dyn Session>>,
    settings: Http2Settings,
    pipe: Pipe,
    /// `None` until the session below is open.
    end: Option<E>,
    state: SessionState,
    /// Whether to close the session below once all data has been sent.
    closes: bool,
}

/// ALPN protocol identifier (RFC 9113 section 3.2).
const PROTOCOL: &[u8] = b"h2";

/// Limit on bytes queued for the peer. It exceeds any window: only a peer that triggers replies,
/// such as to PING, without reading them can reach it.
const PENDING_BYTES_MAX: usize = 64 << 20;

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

    /// Starts the connection once the session below is open.
    fn begin(&mut self) -> Result<(), Cause> {
        if self.end.is_some() {
            return Ok(());
        }
        let scheme = match &self.below {
            None => Scheme::HTTP,
            Some(below) if below.protocol() != Some(PROTOCOL) => return Err(Cause::ALPN_MISMATCH),
            Some(_) => Scheme::HTTPS,
        };
        self.end = Some(E::begin(self.pipe.clone(), self.settings, scheme)?);
        self.state = SessionState::Open;
        Ok(())
    }

    /// Processes what has arrived.
    fn go_on(&mut self, plaintext: &mut dyn FnMut(&[u8])) {
        let below = self.below.as_ref().map_or(SessionState::Open, |below| below.state());
        match below {
            _ if self.has_failed() => {}
            SessionState::Failed(_) => self.state = below,
            SessionState::Handshaking => {}
            SessionState::Open | SessionState::PeerClosed => {
                let began = self.begin();
                let received = began.and_then(|()| match &mut self.end {
                    Some(end) if !self.closes => end.receive_data(plaintext),
                    _ => Ok(()),
                });
                if let Err(cause) = received {
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
    fn may_coalesce(&self) -> bool {
        true
    }

    fn receive_data(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8])) {
        match &mut self.below {
            Some(below) => below.receive_data(bytes, &mut |bytes| self.pipe.receive(bytes)),
            None => self.pipe.receive(bytes),
        }
        self.go_on(plaintext);
    }

    fn send_data(&mut self, plaintext: &[u8]) -> usize {
        let taken = self.end.as_mut().map_or(Ok(0), |end| end.send_data(plaintext));
        taken.unwrap_or_else(|cause| {
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

    fn transmit(&mut self, to: &mut VecDeque<u8>) {
        // After the peer has ended the session, send the last frames only once the program closes.
        // The peer may already be gone, and the program waits until it has acknowledged everything.
        if !self.closes && self.end.as_ref().is_some_and(E::is_over) {
            return;
        }
        let due = &mut self.pipe.queues().due;
        if let Some(below) = &mut self.below {
            below.transmit(to);
            while !due.is_empty() {
                let taken = below.send_data(due.as_slices().0);
                if taken == 0 {
                    break;
                }
                due.drain(..taken);
                below.transmit(to);
            }
            if self.closes && due.is_empty() {
                below.close();
                below.transmit(to);
            }
        } else {
            to.append(due);
        }
        if to.len() > PENDING_BYTES_MAX && matches!(self.state, SessionState::Open) {
            self.state = SessionState::Failed(Cause::UNREAD_REPLIES.0);
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
