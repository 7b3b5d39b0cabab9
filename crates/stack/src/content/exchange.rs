//! Session of one TCP flow, and its bytes in flight.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::plain::Plain;
use super::queue::SendQueue;
use super::reassembly::Reassembly;
use super::{Handshake, Session, SessionCounters, SessionState};
use crate::program::{BufferId, Buffers};
use crate::tcp::connection::{Connection, State};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::receive::SegmentOutcome;
use crate::tcp::segment::Segment;
use crate::tcp::sequence::SequenceNumber;

/// Data that a program sends.
#[derive(Debug)]
pub(crate) enum SendData {
    /// Shared buffer.
    Buffer(BufferId),
    /// Bytes of this flow only.
    Bytes(Vec<u8>),
}

/// Data of a send step that the session has not taken completely.
#[derive(Debug)]
struct PendingSend {
    data: SendData,
    offset: u32,
}

/// Session of one TCP flow, with its send and receive queues.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// `None` once the connection is in TIME-WAIT or closed.
    session: Option<Box<dyn Session>>,
    sent: SendQueue,
    arrived: Reassembly,
    pending_send: Option<PendingSend>,
    /// Sequence number after the last byte of the last send step. `None` until the connection has
    /// all of it.
    sent_end: Option<SequenceNumber>,
    /// Whether the session takes no more plaintext until data of the peer arrives.
    is_blocked: bool,
    /// Start of the handshake, in microseconds.
    opened_at: Option<u64>,
    is_counted: bool,
    is_truncated: bool,
    has_failed: bool,
    /// Whether the session failed for another reason than the end of its connection.
    has_failed_first: bool,
    /// Whether the peer had closed its direction when the session was dropped.
    peer_has_ended: bool,
    /// Whether the program has closed the session: the flow sends nothing more.
    is_closed: bool,
}

/// Bytes of a send step that the session gets at once.
const PIECE: u32 = 16 << 10;

/// Unsent bytes at which a send step waits. The peer's window bounds the bytes in flight, so the
/// queue has a bound.
const UNSENT_MAX: u32 = 64 << 10;

/// Failures that the connection causes, not the session.
const CLOSED_EARLY: &str = "peer closed the connection during the handshake";
const ENDED_EARLY: &str = "connection lost during the handshake";

impl Exchange {
    pub(crate) fn new(session: Box<dyn Session>) -> Self {
        Self {
            session: Some(session),
            sent: SendQueue::default(),
            arrived: Reassembly::default(),
            pending_send: None,
            sent_end: None,
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

    /// Creates an exchange without a session: bytes pass through unchanged.
    pub(crate) fn plain() -> Self {
        Self::new(Box::new(Plain::default()))
    }

    /// Switches to another session, after the connection has taken all earlier data. The session
    /// first gets `came`, the bytes that arrived and that no step consumed. Returns the number of
    /// plaintext bytes for the program.
    pub(crate) fn start(
        &mut self,
        mut session: Box<dyn Session>,
        came: &[u8],
        now: Now,
        mut plaintext: impl FnMut(&[u8]),
    ) -> u32 {
        self.opened_at = Some(now.micros);
        let mut plaintext_length = 0;
        session.receive_data(came, &mut |plain| {
            plaintext_length += plain.len();
            plaintext(plain);
        });
        self.session = Some(session);
        plaintext_length as u32
    }

    fn state(&self) -> Option<SessionState> {
        self.session.as_ref().map(|session| session.state())
    }

    /// Whether the handshake is in progress.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.state() == Some(SessionState::Handshaking)
    }

    /// Whether the peer has closed its direction.
    pub(crate) fn is_peer_done(&self) -> bool {
        self.peer_has_ended || self.state() == Some(SessionState::PeerClosed)
    }

    /// Whether the session failed.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the session failed before its connection ended. A later reset is then the peer's
    /// answer to the failure.
    pub(crate) const fn has_failed_first(&self) -> bool {
        self.has_failed_first
    }

    /// Whether both sides have closed the session. A later reset loses no data. A peer that closes
    /// before it reads our close message sends one.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_closed && self.is_peer_done()
    }

    /// Whether the session has not taken all data of the last send step.
    pub(crate) const fn has_pending_send(&self) -> bool {
        self.pending_send.is_some()
    }

    /// Whether the peer has not acknowledged all data of the program. Bytes that the session adds,
    /// such as an HTTP/2 SETTINGS acknowledgement, do not count. Nothing answers them, so their
    /// acknowledgement is delayed.
    pub(crate) fn is_unacknowledged(&self, connection: &Connection) -> bool {
        let is_before = |end| connection.unacknowledged().is_before(end);
        self.has_pending_send() || self.sent_end.is_none_or(is_before)
    }

    /// Whether a send step has more data and the connection has room for it.
    pub(crate) fn is_due(&self, connection: &Connection) -> bool {
        self.has_pending_send()
            && !self.is_blocked
            && self.is_open()
            && connection.state() != State::Closed
            && connection.unsent() < UNSENT_MAX
    }

    /// Whether the program may send more before its last data leaves.
    pub(crate) fn has_room_to_coalesce(&self, connection: &Connection) -> bool {
        let gathers = self.session.as_ref().is_some_and(|session| session.may_coalesce());
        gathers && !self.has_pending_send() && connection.unsent() < UNSENT_MAX
    }

    /// Whether the session takes plaintext. A peer that closed its direction may still receive.
    fn is_open(&self) -> bool {
        matches!(self.state(), Some(SessionState::Open | SessionState::PeerClosed))
            && !self.is_closed
    }

    /// Copies sent bytes from a sequence number on, and returns their one's complement sum.
    pub(crate) fn copy(&self, number: SequenceNumber, to: &mut [u8]) -> u16 {
        self.sent.copy(number, to)
    }

    /// Processes the data of a segment and calls `plaintext` with the data for the program. Returns
    /// the number of plaintext bytes.
    pub(crate) fn receive(
        &mut self,
        segment: &Segment<'_>,
        data: &[u8],
        arrival: &SegmentOutcome,
        connection: &Connection,
        now: Now,
        mut plaintext: impl FnMut(&[u8]),
    ) -> u32 {
        let Some(session) = &mut self.session else { return 0 };
        self.opened_at.get_or_insert(now.micros);
        let start = segment.data_start();
        let beyond = data.get(..arrival.out_of_order as usize).unwrap_or_default();
        self.arrived.keep(start, beyond);
        let mut plaintext_length = 0;
        if arrival.data > 0 {
            self.is_blocked = false;
            let mut hand_on = |bytes: &[u8]| {
                session.receive_data(bytes, &mut |plain| {
                    plaintext_length += plain.len();
                    plaintext(plain);
                })
            };
            // FIN occupies a sequence number after the data.
            let end = connection.expected() - u32::from(arrival.is_end);
            let next = end - arrival.data;
            let known = next.distance_from(start).max(0) as usize;
            let new = data.get(known..).unwrap_or_default();
            let new = &new[..new.len().min(arrival.data as usize)];
            hand_on(new);
            self.arrived.take(next + new.len() as u32, end, hand_on);
        }
        plaintext_length as u32
    }

    /// Takes the data of a send step, which leaves as the connection has room.
    pub(crate) fn send(&mut self, data: SendData) {
        self.pending_send = Some(PendingSend { data, offset: 0 });
        self.sent_end = None;
    }

    /// Moves bytes between session and connection, and counts events. Returns false once the
    /// session failed.
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
        // Data that needs no handshake waits in the connection until it is established, or leaves
        // with SYN (TCP Fast Open).
        if is_established || self.is_open() && connection.state() != State::Closed {
            self.fetch(connection, counters);
            while self.is_due(connection) && self.send_piece(buffers) {
                self.fetch(connection, counters);
            }
            if !self.has_pending_send() {
                self.sent_end.get_or_insert(connection.queued());
            }
        }
        if is_established {
            // Data of the program may make the session fail.
            self.note(connection, sessions, now);
        } else if connection.state() == State::Closed && self.opened_at.is_some() {
            // A reset may arrive together with the end of the handshake.
            self.note_handshake(sessions, now);
            if self.is_handshaking() {
                self.fail(ENDED_EARLY, sessions);
            }
        }
        if let Some(session) = &mut self.session {
            sessions.messages.merge(&session.take_messages());
        }
        // Free the session early: it takes far more memory than the rest of its connection.
        if matches!(connection.state(), State::TimeWait | State::Closed) {
            self.peer_has_ended = self.is_peer_done();
            self.session = None;
            self.sent.clear();
            self.arrived.clear();
        }
        !self.has_failed
    }

    /// Closes the session; the flow sends no later data of the program.
    pub(crate) fn close(&mut self, connection: &mut Connection, counters: &mut TcpCounters) {
        self.pending_send = None;
        if self.is_closed {
            return;
        }
        if let Some(session) = self.session.as_mut().filter(|_| !self.has_failed) {
            session.close();
        }
        self.fetch(connection, counters);
        self.is_closed = true;
    }

    /// Counts the failure or truncation of the session.
    fn note(&mut self, connection: &Connection, sessions: &mut SessionCounters, now: Now) {
        self.note_handshake(sessions, now);
        let Some(session) = self.session.as_ref().filter(|_| !self.has_failed) else { return };
        match session.state() {
            // After our close, the peer's state does not matter.
            _ if self.is_closed => {}
            SessionState::Failed(cause) => self.fail(cause, sessions),
            SessionState::Handshaking if connection.has_received_fin() => {
                self.fail(CLOSED_EARLY, sessions);
            }
            // Only a session with a handshake needs an orderly close.
            SessionState::Open
                if connection.has_received_fin() && self.is_counted && !self.is_truncated =>
            {
                self.is_truncated = true;
                sessions.truncated += 1;
            }
            _ => {}
        }
    }

    /// Counts the handshake once it is complete.
    fn note_handshake(&mut self, sessions: &mut SessionCounters, now: Now) {
        let session = self.session.as_ref().filter(|_| !self.is_counted && !self.has_failed);
        let Some(handshake) = session.and_then(|it| it.handshake()) else { return };
        self.is_counted = true;
        match handshake {
            Handshake::Full => sessions.full_handshakes += 1,
            Handshake::Resumed => sessions.resumed_handshakes += 1,
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

    /// Moves the session's output into the connection.
    fn fetch(&mut self, connection: &mut Connection, counters: &mut TcpCounters) {
        let Some(session) = self.session.as_mut().filter(|_| !self.is_closed) else { return };
        let added = self.sent.add(connection.queued(), |bytes| session.transmit(bytes));
        if added > 0 {
            connection.queue(added, counters);
        }
    }

    /// Passes a piece of a send step's data to the session; returns whether it took any.
    fn send_piece(&mut self, buffers: &Buffers) -> bool {
        let (Some(session), Some(pending_send)) = (&mut self.session, &mut self.pending_send)
        else {
            return false;
        };
        let size = match &pending_send.data {
            SendData::Buffer(buffer) => buffers.get(*buffer).size(),
            SendData::Bytes(bytes) => bytes.len() as u32,
        };
        let left = size.saturating_sub(pending_send.offset);
        let length = left.min(PIECE);
        let taken = match &pending_send.data {
            SendData::Buffer(buffer) => {
                let mut piece = vec![0; length as usize];
                buffers.get(*buffer).copy(pending_send.offset, &mut piece);
                session.send_data(&piece)
            }
            SendData::Bytes(bytes) => {
                let piece = bytes.get(pending_send.offset as usize..).unwrap_or_default();
                session.send_data(&piece[..piece.len().min(length as usize)])
            }
        };
        let taken = taken as u32;
        self.is_blocked = taken == 0 && left > 0;
        pending_send.offset += taken;
        if taken >= left {
            self.pending_send = None;
        }
        taken > 0
    }
}
