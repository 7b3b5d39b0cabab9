//! Sessions over datagrams: what stands between a program and its flow of UDP, as DTLS and QUIC do.
//!
//! ```text
//! program's messages -> DatagramSession::say  -> DatagramSession::depart -> datagrams
//! program's messages <- DatagramSession::hear <---------------------------- datagrams
//!                       DatagramSession::expire <- the flow's timer
//! ```
//!
//! A datagram may be lost, come twice or late: whatever is to be done about that the session does, by
//! its own timer. Nothing is kept here but the datagram that waits for a free frame.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use wirestorm_base::time::{Duration, Instant};

use super::{Handshake, SessionCounters, SessionState};
use crate::tcp::connection::Now;

/// One end of a conversation in datagrams, sans I/O: datagrams of the peer, messages of the program
/// and time go in, datagrams for the peer and messages for the program come out. Whatever the peer
/// sends, it does not panic.
pub trait DatagramSession: Debug + Send {
    /// Takes a datagram of the peer; `message` is called with each message that it completes for the
    /// program.
    fn hear(&mut self, datagram: &[u8], now: Instant, message: &mut dyn FnMut(&[u8]));

    /// Takes a message of the program; only while it is [`SessionState::Open`] or
    /// [`SessionState::PeerClosed`]. Returns whether it took it. Where it did not, it does so once the
    /// peer has said something, or its timer has expired.
    fn say(&mut self, message: &[u8], now: Instant) -> bool;

    /// Tells the peer that nothing more will be said.
    fn close(&mut self, now: Instant);

    /// Appends the next datagram that is to be sent now, which is empty before, and returns whether
    /// there is any. One of more than `longest` bytes leaves in fragments.
    fn depart(&mut self, now: Instant, longest: usize, to: &mut Vec<u8>) -> bool;

    /// When [`Self::expire`] is to be called; `None`: never. It may be called later, by a
    /// millisecond or so.
    fn deadline(&self) -> Option<Instant>;

    /// The deadline has passed.
    fn expire(&mut self, now: Instant);

    /// Its state. Once it is closed by both sides, nothing more is heard.
    fn state(&self) -> SessionState;

    /// How it was opened, once it was.
    fn handshake(&self) -> Option<Handshake>;

    /// Whether something is left to do after [`Self::close`], such as to wait until the last message
    /// is acknowledged: its flow stays for so long.
    fn is_busy(&self) -> bool {
        false
    }
}

/// What one flow exchanges with its peer, where it has a session.
#[derive(Debug)]
pub(crate) struct DatagramExchange {
    session: Box<dyn DatagramSession>,
    /// The datagram that is to be sent next, where there is one.
    datagram: Vec<u8>,
    has_datagram: bool,
    /// The longest that is to leave in one packet.
    longest: usize,
    /// When it began, in microseconds.
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

    /// Whether its session failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the program has said all.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed && !self.session.is_busy()
    }

    /// Whether the program may begin.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.session.state(), SessionState::Open | SessionState::PeerClosed)
    }

    /// Whether the peer has said that nothing more comes.
    pub(crate) fn is_peer_done(&self) -> bool {
        self.session.state() == SessionState::PeerClosed
    }

    /// When it has something to do, in ms.
    pub(crate) fn deadline(&self, now: Now) -> Option<u32> {
        let at = self.session.deadline()?;
        let wait = at.saturating_since(now.instant());
        // No sooner, and a tick at least: what is due now was done.
        let millis = wait.as_nanos().div_ceil(1_000_000).clamp(1, i32::MAX as u64);
        Some(now.millis.wrapping_add(millis as u32))
    }

    /// Takes a datagram of the peer.
    pub(crate) fn hear(&mut self, datagram: &[u8], now: Now, mut message: impl FnMut(&[u8])) {
        if !self.has_failed {
            self.session.hear(datagram, now.instant(), &mut message);
        }
    }

    /// Takes a message of the program, if it can.
    pub(crate) fn say(&mut self, message: &[u8], now: Now) -> bool {
        self.session.say(message, now.instant())
    }

    /// The program sends nothing more.
    pub(crate) fn close(&mut self, now: Now) {
        if !self.is_closed {
            self.is_closed = true;
            self.session.close(now.instant());
        }
    }

    /// Does what is due and counts what has become of the session. Returns whether a datagram is to be
    /// sent.
    pub(crate) fn go_on(&mut self, now: Now, sessions: &mut SessionCounters) -> bool {
        if self.session.deadline().is_some_and(|at| at <= now.instant()) {
            self.session.expire(now.instant());
        }
        self.note(now, sessions);
        if !self.has_datagram {
            self.datagram.clear();
            let Self { session, datagram, longest, .. } = self;
            self.has_datagram = session.depart(now.instant(), *longest, datagram);
        }
        self.has_datagram
    }

    /// What is to be sent.
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// It was sent.
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
                Handshake::Full => sessions.full += 1,
                Handshake::Resumed => sessions.resumed += 1,
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
