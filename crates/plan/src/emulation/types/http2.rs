//! HTTP/2 settings of a template.

/// What is asked of HTTP/2, on both sides of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Streams at once, at most: those that clients open, and servers allow.
    pub streams: u32,
    /// Bytes that the peer may send on a stream before they are taken.
    pub window: u32,
}

/// The most streams at once.
pub const STREAMS_MAX: u32 = 1_000;

/// The greatest window.
pub const WINDOW_MAX: u32 = 16 << 20;

impl Default for Http2 {
    fn default() -> Self {
        Self { streams: 100, window: 256 << 10 }
    }
}
