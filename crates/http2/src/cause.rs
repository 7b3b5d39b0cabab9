//! Failure causes of HTTP/2 sessions.

use h2::Reason;

/// Failure cause by name, from a fixed set: peers cannot add names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause(pub(crate) &'static str);

impl Cause {
    pub(crate) const ALPN_MISMATCH: Self = Self("http2: peer does not agree on h2 (ALPN)");
    pub(crate) const NO_MESSAGE: Self = Self("http2: the program's data is not an HTTP/1 message");
    pub(crate) const NO_REQUEST: Self =
        Self("http2: the program's message is not a request with a Host");
    pub(crate) const NO_RESPONSE: Self =
        Self("http2: the program's message is not an HTTP/1 response");
    pub(crate) const NO_PENDING_REQUEST: Self =
        Self("http2: the program responds without a request");
    pub(crate) const CANCELLED: Self = Self("http2: peer cancelled a partly delivered request");
    pub(crate) const TOO_MANY: Self =
        Self("http2: peer cancels requests faster than the program responds");
    pub(crate) const GOING_AWAY: Self = Self("http2: peer accepts no more requests (GOAWAY)");
    pub(crate) const UNREAD_REPLIES: Self =
        Self("http2: peer does not read the replies to its frames");
    pub(crate) const INTERNAL: Self = Self("http2: internal error");

    /// Maps an error of the `h2` crate to a cause.
    pub(crate) fn of(error: &h2::Error) -> Self {
        let Some(reason) = error.reason() else { return Self::INTERNAL };
        Self(match (error.is_remote(), error.is_go_away()) {
            (true, true) => received_goaway(reason),
            (true, false) => received_reset(reason),
            (false, _) => found(reason),
        })
    }
}

/// Defines a function that names each error code of RFC 9113 section 7, behind a prefix.
macro_rules! by_reason {
    ($(#[$comment:meta])* $name:ident, $prefix:literal) => {
        $(#[$comment])*
        fn $name(reason: Reason) -> &'static str {
            match reason {
                Reason::NO_ERROR => concat!($prefix, "NO_ERROR"),
                Reason::PROTOCOL_ERROR => concat!($prefix, "PROTOCOL_ERROR"),
                Reason::INTERNAL_ERROR => concat!($prefix, "INTERNAL_ERROR"),
                Reason::FLOW_CONTROL_ERROR => concat!($prefix, "FLOW_CONTROL_ERROR"),
                Reason::SETTINGS_TIMEOUT => concat!($prefix, "SETTINGS_TIMEOUT"),
                Reason::STREAM_CLOSED => concat!($prefix, "STREAM_CLOSED"),
                Reason::FRAME_SIZE_ERROR => concat!($prefix, "FRAME_SIZE_ERROR"),
                Reason::REFUSED_STREAM => concat!($prefix, "REFUSED_STREAM"),
                Reason::CANCEL => concat!($prefix, "CANCEL"),
                Reason::COMPRESSION_ERROR => concat!($prefix, "COMPRESSION_ERROR"),
                Reason::CONNECT_ERROR => concat!($prefix, "CONNECT_ERROR"),
                Reason::ENHANCE_YOUR_CALM => concat!($prefix, "ENHANCE_YOUR_CALM"),
                Reason::INADEQUATE_SECURITY => concat!($prefix, "INADEQUATE_SECURITY"),
                Reason::HTTP_1_1_REQUIRED => concat!($prefix, "HTTP_1_1_REQUIRED"),
                _ => concat!($prefix, "another code"),
            }
        }
    };
}

by_reason!(
    /// Cause for a GOAWAY frame from the peer.
    received_goaway,
    "http2: received GOAWAY "
);
by_reason!(
    /// Cause for a RST_STREAM frame from the peer.
    received_reset,
    "http2: received RST_STREAM "
);
by_reason!(
    /// Cause for a protocol violation by the peer.
    found,
    "http2: peer misbehaved: "
);
