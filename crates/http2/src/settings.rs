//! HTTP/2 settings.

/// HTTP/2 settings of clients or servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Settings {
    /// Maximum number of concurrent streams that clients open and servers allow, 1 to
    /// [`STREAMS_MAX`](Self::STREAMS_MAX); default 100.
    pub streams: u32,
    /// Initial flow-control window of a stream in bytes, at most [`WINDOW_MAX`](Self::WINDOW_MAX);
    /// default 256 KiB.
    pub window: u32,
}

impl Http2Settings {
    /// Upper limit of `streams`.
    pub const STREAMS_MAX: u32 = 1_000;
    /// Upper limit of `window`, in bytes.
    pub const WINDOW_MAX: u32 = 16 << 20;
    /// Maximum size of a field section in bytes, counted as in RFC 9113 section 6.5.2.
    pub(crate) const HEADER_LIST_MAX: u32 = 64 << 10;

    /// Returns the sum of all stream windows, so that waiting responses never block the first one.
    pub(crate) const fn connection_window(self) -> u32 {
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
