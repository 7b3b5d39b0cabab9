//! HTTP/2 (RFC 9113) between the programs and the connections of emulated clients and servers.
//!
//! Programs say and hear messages of HTTP/1; a session of this crate carries each of them as a
//! stream, over the session of TLS or without one:
//!
//! ```text
//! program's request  -> Speaker: head, body -> stream -> frames -> TLS -> connection
//! program's response <- Heard: head, body   <- stream <- frames <- TLS <- connection
//! ```
//!
//! Several requests said at once are streams at once. Their answers are handed on in the order in
//! which they were asked for, whatever order they come in: those that wait hold their stream's
//! window, which bounds them.
//!
//! Frames, HPACK and windows are those of the crate `h2`, polled by hand over queues in memory: no
//! runtime is needed.
#![forbid(unsafe_code)]

mod cause;
mod client;
mod head;
mod heard;
mod pipe;
mod server;
mod session;
mod speaker;

use std::net::IpAddr;
use std::sync::Arc;

use wirestorm_stack::content::{Session, Sessions};

use client::Client;
use server::Server;
use session::Http2Session;

/// What is asked of HTTP/2, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Settings {
    /// Streams at once: those that clients open, and servers allow; 1 to
    /// [`STREAMS_MAX`](Self::STREAMS_MAX).
    pub streams: u32,
    /// Bytes that the peer may send on a stream before they are taken; at most
    /// [`WINDOW_MAX`](Self::WINDOW_MAX).
    pub window: u32,
}

impl Http2Settings {
    /// The most streams at once.
    pub const STREAMS_MAX: u32 = 1_000;
    /// The greatest window of a stream.
    pub const WINDOW_MAX: u32 = 16 << 20;
    /// Bytes of a header, as RFC 9113 section 6.5.2 counts them.
    const HEADER_LIST_MAX: u32 = 64 << 10;

    /// As much as all streams together, so that those that wait never keep the first one waiting.
    const fn connection_window(self) -> u32 {
        // RFC 9113 section 6.9.1.
        const MAX: u32 = (1 << 31) - 1;
        let all = self.streams.saturating_mul(self.window);
        if all > MAX { MAX } else { all }
    }
}

impl Default for Http2Settings {
    fn default() -> Self {
        Self { streams: 100, window: 256 << 10 }
    }
}

/// The sessions of clients.
#[derive(Debug)]
pub struct Http2Clients {
    below: Option<Arc<dyn Sessions>>,
    settings: Http2Settings,
}

impl Http2Clients {
    /// Clients over sessions of TLS that agree on `h2`; without them the server is known to speak
    /// HTTP/2 (RFC 9113 section 3.3).
    pub fn new(below: Option<Arc<dyn Sessions>>, settings: Http2Settings) -> Self {
        Self { below, settings }
    }
}

impl Sessions for Http2Clients {
    fn begin(&self, own: IpAddr, peer: IpAddr) -> Box<dyn Session> {
        let below = self.below.as_ref().map(|below| below.begin(own, peer));
        Box::new(Http2Session::<Client>::new(below, self.settings))
    }
}

/// The sessions of servers.
#[derive(Debug)]
pub struct Http2Servers {
    below: Option<Arc<dyn Sessions>>,
    settings: Http2Settings,
}

impl Http2Servers {
    /// Servers over sessions of TLS that agree on `h2`, or without.
    pub fn new(below: Option<Arc<dyn Sessions>>, settings: Http2Settings) -> Self {
        Self { below, settings }
    }
}

impl Sessions for Http2Servers {
    fn begin(&self, own: IpAddr, peer: IpAddr) -> Box<dyn Session> {
        let below = self.below.as_ref().map(|below| below.begin(own, peer));
        Box::new(Http2Session::<Server>::new(below, self.settings))
    }
}
