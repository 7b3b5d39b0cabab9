//! Per-flow payload: the layer between a program and its connection. It is present if the bytes on
//! the wire differ from the program's buffers, as with TLS. It is also present if the program
//! examines received data.
//!
//! ```text
//! program's buffers -> Session::send_data    -> Session::transmit     -> SendQueue  -> segments
//! received data     <------------------------- Session::receive_data <- Reassembly <- segments
//! ```
//!
//! A session starts with its connection, or at
//! [`Instruction::StartSession`](crate::program::Instruction::StartSession). In the second case it
//! first gets the bytes that arrived before and that no step consumed. None is lost, and none
//! reaches the program as if it came within the session.

mod datagrams;
mod exchange;
mod plain;
mod queue;
mod reassembly;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::fmt::Debug;
use core::net::IpAddr;

use wirestorm_base::histogram::Histogram;

pub(crate) use datagrams::DatagramExchange;
pub use datagrams::DatagramSession;
pub(crate) use exchange::{Exchange, SendData};

/// Factory of the sessions of a template's flows.
pub trait SessionFactory: Debug + Send + Sync {
    /// Creates the session of a new TCP flow between our address and the peer's.
    fn begin(&self, local: IpAddr, peer: IpAddr) -> Box<dyn Session>;

    /// Creates the session of a new UDP flow. `None`: datagrams carry the program's messages
    /// unchanged.
    fn begin_datagrams(&self, local: IpAddr, peer: IpAddr) -> Option<Box<dyn DatagramSession>> {
        let _ = (local, peer);
        None
    }
}

/// One end of a session over a byte stream, without I/O. Bytes of the peer and plaintext of the
/// program go in. Bytes for the peer and plaintext for the program come out. No input of the peer
/// makes it panic.
pub trait Session: Debug + Send {
    /// Processes the next bytes of the peer in order, and calls `plaintext` with the data for the
    /// program.
    fn receive_data(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8]));

    /// Takes plaintext of the program and returns how many bytes it took. The state must be
    /// [`SessionState::Open`] or [`SessionState::PeerClosed`].
    ///
    /// After 0, the session takes more once data of the peer arrives.
    fn send_data(&mut self, plaintext: &[u8]) -> usize;

    /// Starts an orderly close: the program sends no more data.
    fn close(&mut self);

    /// Appends the bytes for the peer to `to`.
    fn transmit(&mut self, to: &mut VecDeque<u8>);

    /// Returns the state.
    fn state(&self) -> SessionState;

    /// Returns the kind of the handshake, once it is complete.
    fn handshake(&self) -> Option<Handshake>;

    /// Returns whether the data of several send steps may share segments. True if the data is
    /// self-delimiting messages and the program waits for nothing between them.
    fn may_coalesce(&self) -> bool {
        false
    }

    /// Returns the application protocol that both sides agreed on (ALPN, RFC 7301), if any.
    fn protocol(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the message counters since the last call; 0 for a session without messages.
    fn take_messages(&mut self) -> MessageCounters {
        MessageCounters::default()
    }
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The handshake is in progress.
    Handshaking,
    /// Plaintext passes in both directions.
    Open,
    /// The peer has closed its direction; the program may still send.
    PeerClosed,
    /// The session failed. The cause is the key of its counter.
    Failed(&'static str),
}

/// Kind of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Full handshake.
    Full,
    /// Resumption of an earlier session.
    Resumed,
}

/// Counters of sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionCounters {
    /// Full handshakes.
    pub full_handshakes: u64,
    /// Resumed handshakes.
    pub resumed_handshakes: u64,
    /// Open sessions whose peer closed the connection without an orderly close of the session.
    pub truncated: u64,
    /// Failed sessions, by cause.
    pub failures: BTreeMap<&'static str, u64>,
    /// Handshake times: from the established connection, or the start of the session, until the
    /// session is open.
    pub handshake: Histogram,
    /// Message counters, for sessions that have messages.
    pub messages: MessageCounters,
}

/// Counters of requests, responses and the streams that carry them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounters {
    /// Requests that a client sent or a server received.
    pub requests: u64,
    /// Final responses, by the first digit of their status, 1 to 5.
    pub responses: [u64; 5],
    /// HTTP/1 responses that failed flows did not receive completely.
    pub missing: u64,
    /// Reset streams.
    pub resets: u64,
}

impl MessageCounters {
    /// Counts a response by its status; ignores a status outside 100 to 599.
    pub fn count_response(&mut self, status: u16) {
        let class = usize::from(status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.responses.get_mut(class)) {
            *count += 1;
        }
    }

    /// Adds the counters of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.missing += other.missing;
        self.resets += other.resets;
        for (count, others) in self.responses.iter_mut().zip(other.responses) {
            *count += others;
        }
    }
}

impl SessionCounters {
    /// Adds the counters of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
        self.truncated += other.truncated;
        for (cause, times) in &other.failures {
            *self.failures.entry(cause).or_default() += times;
        }
        self.handshake.merge(&other.handshake);
        self.messages.merge(&other.messages);
    }
}
