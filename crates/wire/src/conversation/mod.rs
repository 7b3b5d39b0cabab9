//! Import of the data that clients and servers exchanged from the frames of a capture.
//!
//! ```text
//! frame -> packet (flow, direction, payload) -> flow: a stream for each side -> turns
//! ```
//!
//! A stream reassembles the segments of one side. It drops retransmitted bytes and holds segments
//! that arrive early. Data that the capture lacks is an error, never a guess.

mod error;
mod flow;
mod gaps;
mod importer;
mod packet;
mod pauses;
mod stream;

use alloc::vec::Vec;
use core::net::SocketAddr;

use wirestorm_base::time::Duration;

pub use error::{ConversationError, LimitError};
pub use gaps::Gaps;
pub use importer::{ImportLimits, Imported, Importer};

/// A conversation: the data that the two ends of a flow exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Transport protocol.
    pub transport: Transport,
    /// Address and port of the client: the sender of the first SYN, or of the first data if there
    /// is no SYN.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Number of its first packet in the capture, from 1.
    pub packet: u64,
    /// Whether its first packet was captured; for TCP, whether there is a SYN.
    pub has_beginning: bool,
    /// Actions of both ends, in order.
    pub turns: Vec<Turn>,
}

/// Transport protocol of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// An end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opened the conversation.
    Client,
    /// The other end.
    Server,
}

/// An action of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// End that acts.
    pub side: Side,
    /// Time since the end of the previous turn; for the first turn, since the last SYN.
    pub gap: Duration,
    /// Action.
    pub act: Action,
}

/// An action of an end of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends these bytes. UDP: one datagram. TCP: all bytes until the other end sends data, or this
    /// end pauses for a reason other than missing acknowledgements.
    Send(Vec<u8>),
    /// Closes its direction: it sends no more data.
    Close,
    /// Resets the connection, which ends it.
    Reset,
}

impl Conversation {
    /// Returns whether an end sent data.
    pub fn has_data(&self) -> bool {
        self.turns.iter().any(|turn| matches!(turn.act, Action::Send(_)))
    }
}

impl Side {
    /// Returns the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns `client` or `server`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
