//! HTTP/2 settings of a template.

/// HTTP/2 settings of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Maximum number of concurrent streams, for clients to open and servers to allow; at most
    /// [`STREAMS_MAX`]. Default 100.
    pub streams: u32,
    /// Flow-control window of a stream in bytes, at most [`WINDOW_MAX`]. Default 256 KiB.
    pub window: u32,
}

/// Upper bound of [`Http2::streams`].
pub const STREAMS_MAX: u32 = 1_000;

/// Upper bound of [`Http2::window`].
pub const WINDOW_MAX: u32 = 16 << 20;

impl Default for Http2 {
    fn default() -> Self {
        Self { streams: 100, window: 256 << 10 }
    }
}
