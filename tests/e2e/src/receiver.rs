//! A capture on an interface that accepts frames from any backend.

use wirestorm_testkit::net::{Capture, CaptureOptions, Captured, End, NetError, PollingSink};

/// tcpdump on an interface that accepts redirected XDP frames. It records frames in order of
/// arrival, whatever their protocol.
#[derive(Debug)]
pub struct Receiver {
    capture: Capture,
    /// If frames arrive in a burst, the kernel delays frames of unknown protocols for the oldest
    /// packet socket of an interface until the next frame (`__netif_receive_skb_list_core`). So
    /// this capture, which is never read, is the oldest one.
    _oldest_socket: Capture,
    _polling: PollingSink,
}

impl Receiver {
    /// Starts the capture; returns once the kernel captures.
    ///
    /// # Errors
    /// Fails if clang, ip, ethtool or tcpdump fails.
    pub fn start(end: &End) -> Result<Self, NetError> {
        let polling = end.polling_sink()?;
        let nothing = CaptureOptions { filter: "less 1".into(), ..CaptureOptions::default() };
        let oldest_socket = end.capture_with(&nothing)?;
        let capture = end.capture_with(&CaptureOptions::bulk())?;
        Ok(Self { capture, _oldest_socket: oldest_socket, _polling: polling })
    }

    /// Ends the capture, see [`Capture::finish`].
    ///
    /// # Errors
    /// Same as [`Capture::finish`].
    pub fn finish(self, expected: u64) -> Result<Captured, NetError> {
        self.capture.finish(expected)
    }
}
