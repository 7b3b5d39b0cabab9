//! A capture at an interface that any backend can send to.

use wirestorm_testkit::net::{Capture, CaptureOptions, Captured, End, NetError, PollingSink};

/// An interface that takes redirected XDP frames, and tcpdump there. It shows frames in the order
/// in which they arrived, whatever protocol they are of.
#[derive(Debug)]
pub struct Receiver {
    capture: Capture,
    /// When frames arrive in a bunch, the kernel hands those of a protocol that it does not know
    /// to the oldest packet socket of an interface only after the frame behind them
    /// (`__netif_receive_skb_list_core`). So the oldest is this one, which nobody reads.
    _oldest_socket: Capture,
    _polling: PollingSink,
}

impl Receiver {
    /// Returns when the kernel is capturing.
    ///
    /// # Errors
    /// When clang, ip, ethtool or tcpdump fail.
    pub fn start(end: &End) -> Result<Self, NetError> {
        let polling = end.polling_sink()?;
        let nothing = CaptureOptions { filter: "less 1".into(), ..CaptureOptions::default() };
        let oldest_socket = end.capture_with(&nothing)?;
        let capture = end.capture_with(&CaptureOptions::bulk())?;
        Ok(Self { capture, _oldest_socket: oldest_socket, _polling: polling })
    }

    /// Ends the capture, as [`Capture::finish`] does.
    ///
    /// # Errors
    /// As there.
    pub fn finish(self, expected: u64) -> Result<Captured, NetError> {
        self.capture.finish(expected)
    }
}
