//! Sessions over datagrams: the layer between a program and its UDP flow, such as DTLS or QUIC.
//!
//! ```text
//! program's messages -> send_message -> DatagramSession -> transmit -------> datagrams
//! program's messages <----------------- DatagramSession <- receive_datagram <- datagrams
//!                                       DatagramSession <- expire <- the flow's timer
//! ```
//!
//! A session handles lost, duplicate and late datagrams with its own timer. This module keeps only
//! the datagram that waits for a free frame.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use wirestorm_base::time::{Duration, Instant};

use super::{Handshake, SessionCounters, SessionState};
use crate::tcp::now::Now;

/// One end of a datagram session, without I/O. Datagrams of the peer, messages of the program and
/// the time go in. Datagrams for the peer and messages for the program come out. No input of the
/// peer makes it panic.
pub trait DatagramSession: Debug + Send {
    /// Processes a datagram of the peer and calls `message` with each message that it completes.
    fn receive_datagram(&mut self, datagram: &[u8], now: Instant, message: &mut dyn FnMut(&[u8]));

    /// Takes a message of the program. The state must be [`SessionState::Open`] or
    /// [`SessionState::PeerClosed`].
    ///
    /// Returns false if the session cannot take the message now. It can after the next datagram of
    /// the peer or the next timer expiry.
    fn send_message(&mut self, message: &[u8], now: Instant) -> bool;

    /// Starts an orderly close: the program sends no more messages.
    fn close(&mut self, now: Instant);

    /// Writes the next due datagram to `to`, which is empty, and returns whether there is one. A
    /// datagram of more than `longest` bytes leaves in IP fragments.
    fn transmit(&mut self, now: Instant, longest: usize, to: &mut Vec<u8>) -> bool;

    /// Returns the time of the next call of [`Self::expire`], or `None` if no timer runs. The call
    /// may be late by about a millisecond.
    fn deadline(&self) -> Option<Instant>;

    /// Handles the expiry of the timer, after the deadline.
    fn expire(&mut self, now: Instant);

    /// Returns the state. After both sides have closed, the session receives no more datagrams.
    fn state(&self) -> SessionState;

    /// Returns the kind of the handshake, once it is complete.
    fn handshake(&self) -> Option<Handshake>;

    /// Returns whether work remains after [`Self::close`], such as an unacknowledged last message.
    /// The flow stays open until then.
    fn is_busy(&self) -> bool {
        false
    }
}

/// Session of one UDP flow, and the datagram that waits to be sent.
#[derive(Debug)]
pub(crate) struct DatagramExchange {
    session: Box<dyn DatagramSession>,
    /// Next datagram to send, valid if `has_datagram`.
    datagram: Vec<u8>,
    has_datagram: bool,
    /// Largest datagram in bytes that leaves in one packet.
    longest: usize,
    /// Start of the session, in microseconds.
    began_at: u64,
    is_counted: bool,
    has_failed: bool,
    is_closed: bool,
}

impl DatagramExchange {
    pub(crate) fn new(session: Box<dyn DatagramSession>, longest: usize, now: Now) -> Self {
        Self {
            session,
            datagram: Vec::new(),
            has_datagram: false,
            longest,
            began_at: now.micros,
            is_counted: false,
            has_failed: false,
            is_closed: false,
        }
    }

    /// Whether the session failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the program has closed the session.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the program has closed the session and no work remains.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed && !self.session.is_busy()
    }

    /// Whether the session takes messages of the program.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.session.state(), SessionState::Open | SessionState::PeerClosed)
    }

    /// Whether the peer has closed its direction.
    pub(crate) fn is_peer_done(&self) -> bool {
        self.session.state() == SessionState::PeerClosed
    }

    /// Next deadline in ms, at least one tick after `now`. `None` if no timer runs.
    pub(crate) fn deadline(&self, now: Now) -> Option<u32> {
        let at = self.session.deadline()?;
        let wait = at.saturating_since(now.instant());
        // Round up: the timer must not fire early. Work due now is done, so wait at least one tick.
        let millis = wait.as_nanos().div_ceil(1_000_000).clamp(1, i32::MAX as u64);
        Some(now.millis.wrapping_add(millis as u32))
    }

    /// Passes a datagram of the peer to the session.
    pub(crate) fn receive_datagram(
        &mut self,
        datagram: &[u8],
        now: Now,
        mut message: impl FnMut(&[u8]),
    ) {
        if !self.has_failed {
            self.session.receive_datagram(datagram, now.instant(), &mut message);
        }
    }

    /// Passes a message of the program to the session. Returns false if it cannot take it now.
    pub(crate) fn send_message(&mut self, message: &[u8], now: Now) -> bool {
        self.session.send_message(message, now.instant())
    }

    /// Closes the session. Later calls have no effect.
    pub(crate) fn close(&mut self, now: Now) {
        if !self.is_closed {
            self.is_closed = true;
            self.session.close(now.instant());
        }
    }

    /// Handles a due timer, counts the outcome of the session and fetches the next datagram.
    /// Returns whether a datagram waits to be sent.
    pub(crate) fn go_on(&mut self, now: Now, sessions: &mut SessionCounters) -> bool {
        if self.session.deadline().is_some_and(|at| at <= now.instant()) {
            self.session.expire(now.instant());
        }
        self.note(now, sessions);
        if !self.has_datagram {
            self.datagram.clear();
            let Self { session, datagram, longest, .. } = self;
            self.has_datagram = session.transmit(now.instant(), *longest, datagram);
        }
        self.has_datagram
    }

    /// Datagram to send next.
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// Marks the datagram as sent.
    pub(crate) const fn note_sent(&mut self) {
        self.has_datagram = false;
    }

    fn note(&mut self, now: Now, sessions: &mut SessionCounters) {
        if self.has_failed {
            return;
        }
        if let Some(handshake) = self.session.handshake().filter(|_| !self.is_counted) {
            self.is_counted = true;
            match handshake {
                Handshake::Full => sessions.full_handshakes += 1,
                Handshake::Resumed => sessions.resumed_handshakes += 1,
            }
            let took = now.micros.saturating_sub(self.began_at);
            sessions.handshake.record(Duration::from_micros(took));
        }
        if let SessionState::Failed(cause) = self.session.state() {
            self.has_failed = true;
            *sessions.failures.entry(cause).or_default() += 1;
        }
    }
}
