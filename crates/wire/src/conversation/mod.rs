//! What clients and servers said to each other, out of the frames of a capture.
//!
//! ```text
//! frame -> packet (which flow, whose, what payload) -> flow: a stream for each side -> turns
//! ```
//!
//! A stream puts the segments of one side in order: what comes again or overlaps is dropped, what
//! comes too early waits. What the capture lacks is told, never guessed.

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

pub use error::{BoundError, ConversationError};
pub use gaps::Gaps;
pub use importer::{Bounds, Imported, Importer};

/// What the two ends of a flow said to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// What carried it.
    pub transport: Transport,
    /// The client's address and port: of the sender of the first SYN; where there is none, of the
    /// first data.
    pub client: SocketAddr,
    /// The server's address and port.
    pub server: SocketAddr,
    /// The number of its first packet in the capture, from 1.
    pub packet: u64,
    /// Whether its first packet was captured; of TCP: whether there is a SYN.
    pub has_beginning: bool,
    /// What they did, in order.
    pub turns: Vec<Turn>,
}

/// What carries a conversation.
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
    /// The one that began it.
    Client,
    /// The other one.
    Server,
}

/// What one end did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which.
    pub side: Side,
    /// Time since the end of the turn before; of the first one, since the last SYN.
    pub gap: Duration,
    /// What.
    pub act: Act,
}

/// What an end of a conversation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Says these bytes: of UDP, one datagram; of TCP, all up to where the other end says
    /// something, or it pauses for another reason than that it waits for acknowledgements.
    Says(Vec<u8>),
    /// Closes its direction: nothing more comes from it.
    Closes,
    /// Resets the connection, which ends it.
    Resets,
}

impl Conversation {
    /// Whether an end said anything.
    pub fn has_data(&self) -> bool {
        self.turns.iter().any(|turn| matches!(turn.act, Act::Says(_)))
    }
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// File name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
