//! One flow's session, and its bytes on the way.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::plain::Plain;
use super::queue::SendQueue;
use super::reassembly::Reassembly;
use super::{Handshake, Session, SessionCounters, SessionState};
use crate::program::{BufferId, Buffers};
use crate::tcp::arrival::Arrival;
use crate::tcp::connection::{Connection, Now, State};
use crate::tcp::counters::TcpCounters;
use crate::tcp::segment::Segment;
use crate::tcp::sequence::SequenceNumber;

/// What a program says.
#[derive(Debug)]
pub(crate) enum Saying {
    /// A buffer.
    Buffer(BufferId),
    /// Bytes of the flow's own.
    Own(Vec<u8>),
}

/// What was not said yet of something.
#[derive(Debug)]
struct Unsaid {
    saying: Saying,
    offset: u32,
}

/// What one flow exchanges with its peer, where it has a session.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None`: it is over, and nothing of it is needed any more.
    session: Option<Box<dyn Session>>,
    sent: SendQueue,
    arrived: Reassembly,
    unsaid: Option<Unsaid>,
    /// Behind the last byte of what the program said last, once all of it was handed over.
    said_to: Option<SequenceNumber>,
    /// Whether the session takes nothing until the peer has said something.
    is_blocked: bool,
    /// When the connection was established, in microseconds.
    opened_at: Option<u64>,
    is_counted: bool,
    is_truncated: bool,
    has_failed: bool,
    /// Whether that was for what it heard or said, and not for the end of its connection.
    has_failed_first: bool,
    /// Whether the peer had said in it that nothing more comes, now that it is over.
    peer_has_ended: bool,
    /// Whether nothing more is to be sent.
    is_closed: bool,
}

/// What a session is given at once of a program's buffer.
const PIECE: u32 = 16 << 10;

/// Nothing more is taken from a program while so many bytes wait to leave: what is in flight is
/// bounded by the peer's window, and the queue by both.
const UNSENT_MAX: u32 = 64 << 10;

/// Causes that are the connection's, not the session's.
const CLOSED_EARLY: &str = "peer closed the connection during the handshake";
const ENDED_EARLY: &str = "connection lost during the handshake";

impl Exchange {
    pub(crate) fn new(session: Box<dyn Session>) -> Self {
        Self {
            session: Some(session),
            sent: SendQueue::default(),
            arrived: Reassembly::default(),
            unsaid: None,
            said_to: None,
            is_blocked: false,
            opened_at: None,
            is_counted: false,
            is_truncated: false,
            has_failed: false,
            has_failed_first: false,
            peer_has_ended: false,
            is_closed: false,
        }
    }

    /// One without a session: bytes leave and arrive as they are.
    pub(crate) fn plain() -> Self {
        Self::new(Box::new(Plain::default()))
    }

    /// Goes on with another session, now that all was handed over that was said so far. It hears
    /// first what had come and nobody has taken. Returns how many bytes of that are for the program.
    pub(crate) fn start(
        &mut self,
        mut session: Box<dyn Session>,
        came: &[u8],
        now: Now,
        mut plaintext: impl FnMut(&[u8]),
    ) -> u32 {
        self.opened_at = Some(now.micros);
        let mut said = 0;
        session.hear(came, &mut |plain| {
            said += plain.len();
            plaintext(plain);
        });
        self.session = Some(session);
        said as u32
    }

    fn state(&self) -> Option<SessionState> {
        self.session.as_ref().map(|session| session.state())
    }

    /// Whether its session does not take plaintext yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.state() == Some(SessionState::Handshaking)
    }

    /// Whether the peer has said that nothing more comes.
    pub(crate) fn is_peer_done(&self) -> bool {
        self.peer_has_ended || self.state() == Some(SessionState::PeerClosed)
    }

    /// Whether its session failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether its session failed while its connection was there: a reset that comes then is the peer's
    /// answer to that.
    pub(crate) const fn has_failed_first(&self) -> bool {
        self.has_failed_first
    }

    /// Whether both sides have ended it. Whatever becomes of the connection then, all was said: a
    /// peer that closes with our end unread resets it.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_closed && self.is_peer_done()
    }

    /// Whether not all of a buffer was handed over to the connection.
    pub(crate) const fn has_unsaid(&self) -> bool {
        self.unsaid.is_some()
    }

    /// Whether not all was acknowledged that the program said. What a session adds by itself, as
    /// HTTP/2 acknowledges settings, is not waited for: nobody answers it, so it is acknowledged late.
    pub(crate) fn is_unheard(&self, connection: &Connection) -> bool {
        let is_before = |end| connection.unacknowledged().is_before(end);
        self.has_unsaid() || self.said_to.is_none_or(is_before)
    }

    /// Whether it has more for the connection, which has room.
    pub(crate) fn is_due(&self, connection: &Connection) -> bool {
        self.has_unsaid()
            && !self.is_blocked
            && self.is_open()
            && connection.state() != State::Closed
            && connection.unsent() < UNSENT_MAX
    }

    /// Whether the program may say more before what it said last leaves.
    pub(crate) fn takes_more(&self, connection: &Connection) -> bool {
        let gathers = self.session.as_ref().is_some_and(|session| session.gathers());
        gathers && !self.has_unsaid() && connection.unsent() < UNSENT_MAX
    }

    /// Whether it takes plaintext: a peer that says no more may still listen.
    fn is_open(&self) -> bool {
        matches!(self.state(), Some(SessionState::Open | SessionState::PeerClosed))
            && !self.is_closed
    }

    /// Copies what was sent from a number on, and returns its sum.
    pub(crate) fn copy(&self, number: SequenceNumber, to: &mut [u8]) -> u16 {
        self.sent.copy(number, to)
    }

    /// Takes what a segment brought, hands on what of it is for the program, and returns how many
    /// bytes that is.
    pub(crate) fn hear(
        &mut self,
        segment: &Segment<'_>,
        data: &[u8],
        arrival: &Arrival,
        connection: &Connection,
        now: Now,
        mut plaintext: impl FnMut(&[u8]),
    ) -> u32 {
        let Some(session) = &mut self.session else { return 0 };
        self.opened_at.get_or_insert(now.micros);
        let start = segment.data_start();
        let beyond = data.get(..arrival.beyond as usize).unwrap_or_default();
        self.arrived.keep(start, beyond);
        let mut said = 0;
        if arrival.data > 0 {
            self.is_blocked = false;
            let mut hand_on = |bytes: &[u8]| {
                session.hear(bytes, &mut |plain| {
                    said += plain.len();
                    plaintext(plain);
                })
            };
            // The end may have arrived with it, and FIN takes a number.
            let end = connection.expected() - u32::from(arrival.is_end);
            let next = end - arrival.data;
            let known = next.distance_from(start).max(0) as usize;
            let own = data.get(known..).unwrap_or_default();
            let own = &own[..own.len().min(arrival.data as usize)];
            hand_on(own);
            self.arrived.take(next + own.len() as u32, end, hand_on);
        }
        said as u32
    }

    /// Takes what the program says, to be said as there is room.
    pub(crate) fn say(&mut self, saying: Saying) {
        self.unsaid = Some(Unsaid { saying, offset: 0 });
        self.said_to = None;
    }

    /// Moves between session and connection what there is to be moved, and counts what happened.
    /// Returns whether it can go on.
    pub(crate) fn go_on(
        &mut self,
        connection: &mut Connection,
        buffers: &Buffers,
        counters: &mut TcpCounters,
        sessions: &mut SessionCounters,
        now: Now,
    ) -> bool {
        self.sent.forget_before(connection.unacknowledged());
        let is_established = connection.is_established();
        if is_established {
            self.opened_at.get_or_insert(now.micros);
            self.note(connection, sessions, now);
        }
        // What needs no handshake waits in the connection until that is open, or leaves with SYN (TCP
        // Fast Open).
        if is_established || self.is_open() && connection.state() != State::Closed {
            self.fetch(connection, counters);
            while self.is_due(connection) && self.say_a_piece(buffers) {
                self.fetch(connection, counters);
            }
            if !self.has_unsaid() {
                self.said_to.get_or_insert(connection.queued());
            }
        }
        if is_established {
            // A session may fail for what the program says.
            self.note(connection, sessions, now);
        } else if connection.state() == State::Closed && self.opened_at.is_some() {
            // A reset may come with what opened the session.
            self.note_handshake(sessions, now);
            if self.is_handshaking() {
                self.fail(ENDED_EARLY, sessions);
            }
        }
        if let Some(session) = &mut self.session {
            sessions.messages.merge(&session.take_messages());
        }
        // A session takes far more memory than what is left of its connection.
        if matches!(connection.state(), State::TimeWait | State::Closed) {
            self.peer_has_ended = self.is_peer_done();
            self.session = None;
            self.sent.clear();
            self.arrived.clear();
        }
        !self.has_failed
    }

    /// Tells the peer that nothing more comes; what is said later is not sent.
    pub(crate) fn close(&mut self, connection: &mut Connection, counters: &mut TcpCounters) {
        self.unsaid = None;
        if self.is_closed {
            return;
        }
        if let Some(session) = self.session.as_mut().filter(|_| !self.has_failed) {
            session.close();
        }
        self.fetch(connection, counters);
        self.is_closed = true;
    }

    /// Counts what has become of the session.
    fn note(&mut self, connection: &Connection, sessions: &mut SessionCounters, now: Now) {
        self.note_handshake(sessions, now);
        let Some(session) = self.session.as_ref().filter(|_| !self.has_failed) else { return };
        match session.state() {
            // What the peer says once we have said all is nobody's concern.
            _ if self.is_closed => {}
            SessionState::Failed(cause) => self.fail(cause, sessions),
            SessionState::Handshaking if connection.is_peer_done() => {
                self.fail(CLOSED_EARLY, sessions);
            }
            // Only what was opened by a handshake is to be closed in words.
            SessionState::Open
                if connection.is_peer_done() && self.is_counted && !self.is_truncated =>
            {
                self.is_truncated = true;
                sessions.truncated += 1;
            }
            _ => {}
        }
    }

    /// Counts how the session was opened, once it is.
    fn note_handshake(&mut self, sessions: &mut SessionCounters, now: Now) {
        let session = self.session.as_ref().filter(|_| !self.is_counted && !self.has_failed);
        let Some(handshake) = session.and_then(|it| it.handshake()) else { return };
        self.is_counted = true;
        match handshake {
            Handshake::Full => sessions.full += 1,
            Handshake::Resumed => sessions.resumed += 1,
        }
        let took = now.micros.saturating_sub(self.opened_at.unwrap_or(now.micros));
        sessions.handshake.record(wirestorm_base::time::Duration::from_micros(took));
    }

    fn fail(&mut self, cause: &'static str, sessions: &mut SessionCounters) {
        if !self.has_failed {
            self.has_failed = true;
            self.has_failed_first = cause != ENDED_EARLY;
            *sessions.failures.entry(cause).or_default() += 1;
        }
    }

    /// Moves what the session has for the peer into the connection.
    fn fetch(&mut self, connection: &mut Connection, counters: &mut TcpCounters) {
        let Some(session) = self.session.as_mut().filter(|_| !self.is_closed) else { return };
        let added = self.sent.add(connection.queued(), |bytes| session.depart(bytes));
        if added > 0 {
            connection.queue(added, counters);
        }
    }

    /// Gives a part of the buffer to the session; returns whether it took any.
    fn say_a_piece(&mut self, buffers: &Buffers) -> bool {
        let (Some(session), Some(unsaid)) = (&mut self.session, &mut self.unsaid) else {
            return false;
        };
        let size = match &unsaid.saying {
            Saying::Buffer(buffer) => buffers.get(*buffer).size(),
            Saying::Own(bytes) => bytes.len() as u32,
        };
        let left = size.saturating_sub(unsaid.offset);
        let length = left.min(PIECE);
        let taken = match &unsaid.saying {
            Saying::Buffer(buffer) => {
                let mut piece = vec![0; length as usize];
                buffers.get(*buffer).copy(unsaid.offset, &mut piece);
                session.say(&piece)
            }
            Saying::Own(bytes) => {
                let piece = bytes.get(unsaid.offset as usize..).unwrap_or_default();
                session.say(&piece[..piece.len().min(length as usize)])
            }
        };
        let taken = taken as u32;
        self.is_blocked = taken == 0 && left > 0;
        unsaid.offset += taken;
        if taken >= left {
            self.unsaid = None;
        }
        taken > 0
    }
}
