//! Bytes of single flows: what stands between a program and its connection where the bytes on the
//! wire are not those of the program's buffers, as with TLS, or where the program looks at what
//! arrives.
//!
//! ```text
//! program's buffers -> Session::say  -> Session::depart -> SendQueue  -> segments
//! program's count   <------------------ Session::hear   <- Reassembly <- segments
//! ```
//!
//! A session begins with its connection, or where the program says so
//! ([`Instruction::StartSession`](crate::program::Instruction::StartSession)). What had come by then
//! and nobody had taken is the first that it hears: none of it is lost, and none is handed to the
//! program as if it had come within the session.

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
pub(crate) use exchange::{Exchange, Saying};

/// What makes the sessions of a template's flows.
pub trait Sessions: Debug + Send + Sync {
    /// The session of a new flow between these two addresses: ours, and the peer's.
    fn begin(&self, own: IpAddr, peer: IpAddr) -> Box<dyn Session>;

    /// The same of a flow of UDP; `None`: programs say their datagrams as they are.
    fn begin_datagrams(&self, own: IpAddr, peer: IpAddr) -> Option<Box<dyn DatagramSession>> {
        let _ = (own, peer);
        None
    }
}

/// One end of a conversation about bytes, sans I/O: bytes of the peer and plaintext of the program
/// go in, bytes for the peer and plaintext for the program come out. Whatever the peer sends, it
/// does not panic.
pub trait Session: Debug + Send {
    /// Takes bytes of the peer, which come next in order; `plaintext` is called with what they hold
    /// for the program.
    fn hear(&mut self, bytes: &[u8], plaintext: &mut dyn FnMut(&[u8]));

    /// Takes plaintext of the program; only while it is [`SessionState::Open`]. Returns how many
    /// bytes it took. Where it took none, it takes more once the peer has said something.
    fn say(&mut self, plaintext: &[u8]) -> usize;

    /// Tells the peer that nothing more will be said.
    fn close(&mut self);

    /// Moves what is to be sent behind the bytes of a queue.
    fn depart(&mut self, to: &mut VecDeque<u8>);

    /// Its state.
    fn state(&self) -> SessionState;

    /// How it was opened, once it was.
    fn handshake(&self) -> Option<Handshake>;

    /// Whether what a program says in several steps may leave together: where it is messages, which
    /// tell where they end, and the program waits for nothing between them.
    fn gathers(&self) -> bool {
        false
    }

    /// What both agreed to speak within it (RFC 7301), where they did.
    fn protocol(&self) -> Option<&[u8]> {
        None
    }

    /// What was counted of messages since it was asked last, where it knows of messages.
    fn take_messages(&mut self) -> MessageCounters {
        MessageCounters::default()
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Both agree on how to go on.
    Handshaking,
    /// Plaintext can be said and heard.
    Open,
    /// The peer has said that nothing more comes; the program may still go on.
    PeerClosed,
    /// It cannot go on, for a cause that is counted by its name.
    Failed(&'static str),
}

/// How a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// From nothing.
    Full,
    /// With what both remembered of an earlier session.
    Resumed,
}

/// What is counted of sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionCounters {
    /// Handshakes from nothing.
    pub full: u64,
    /// Resumed handshakes.
    pub resumed: u64,
    /// Peers that ended the connection of an open session without having said so in it.
    pub truncated: u64,
    /// Sessions that failed, by cause.
    pub failures: BTreeMap<&'static str, u64>,
    /// From when the connection was established, or the program began its session, until that was
    /// open.
    pub handshake: Histogram,
    /// Messages, where sessions know of them.
    pub messages: MessageCounters,
}

/// What is counted of requests and responses, and the streams that carry them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounters {
    /// Requests that a client sent, or a server got.
    pub requests: u64,
    /// Final responses, by the first digit of their status, 1 to 5.
    pub responses: [u64; 5],
    /// Responses that did not come whole to flows that failed: of HTTP/1.
    pub missing: u64,
    /// Streams reset.
    pub resets: u64,
}

impl MessageCounters {
    /// Counts a response with a status; others than 100 to 599 are of no class.
    pub fn count_response(&mut self, status: u16) {
        let class = usize::from(status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.responses.get_mut(class)) {
            *count += 1;
        }
    }

    /// Adds others.
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
    /// Adds another's.
    pub fn merge(&mut self, other: &Self) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.truncated += other.truncated;
        for (cause, times) in &other.failures {
            *self.failures.entry(cause).or_default() += times;
        }
        self.handshake.merge(&other.handshake);
        self.messages.merge(&other.messages);
    }
}
