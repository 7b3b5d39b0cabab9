//! HTTP/2 (RFC 9113) between the programs and the connections of emulated clients and servers.
//!
//! Programs send and receive HTTP/1 messages. A session of this crate carries each message as an
//! HTTP/2 stream, over TLS or plain TCP:
//!
//! ```text
//! program's request  -> Speaker: head, body -> stream -> frames -> TLS -> connection
//! program's response <- Heard: head, body   <- stream <- frames <- TLS <- connection
//! ```
//!
//! Pipelined requests become concurrent streams. The program receives the responses in the order of
//! its requests. A response that waits for an earlier one keeps its stream's flow-control window
//! closed, which bounds the memory.
//!
//! The crate `h2` implements frames, HPACK and flow control. It is polled by hand over queues in
//! memory and needs no async runtime.
#![forbid(unsafe_code)]

mod cause;
mod client;
mod head;
mod incoming;
mod outgoing;
mod pipe;
mod server;
mod session;
mod settings;

use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_stack::content::{Session, SessionFactory};

use client::Client;
use server::Server;
use session::Http2Session;
pub use settings::Http2Settings;

/// HTTP/2 sessions of clients.
#[derive(Debug)]
pub struct Http2Clients {
    below: Option<Arc<dyn SessionFactory>>,
    settings: Http2Settings,
}

impl Http2Clients {
    /// Creates client sessions over TLS sessions that negotiate `h2`. Without TLS, clients assume
    /// that the server speaks HTTP/2 (prior knowledge, RFC 9113 section 3.3).
    pub fn new(below: Option<Arc<dyn SessionFactory>>, settings: Http2Settings) -> Self {
        Self { below, settings }
    }
}

impl SessionFactory for Http2Clients {
    fn begin(&self, local: IpAddr, peer: IpAddr) -> Box<dyn Session> {
        let below = self.below.as_ref().map(|below| below.begin(local, peer));
        Box::new(Http2Session::<Client>::new(below, self.settings))
    }
}

/// HTTP/2 sessions of servers.
#[derive(Debug)]
pub struct Http2Servers {
    below: Option<Arc<dyn SessionFactory>>,
    settings: Http2Settings,
}

impl Http2Servers {
    /// Creates server sessions over TLS sessions that negotiate `h2`, or over plain TCP.
    pub fn new(below: Option<Arc<dyn SessionFactory>>, settings: Http2Settings) -> Self {
        Self { below, settings }
    }
}

impl SessionFactory for Http2Servers {
    fn begin(&self, local: IpAddr, peer: IpAddr) -> Box<dyn Session> {
        let below = self.below.as_ref().map(|below| below.begin(local, peer));
        Box::new(Http2Session::<Server>::new(below, self.settings))
    }
}
