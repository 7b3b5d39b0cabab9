//! Callbacks of the caller of a replay.

use wirestorm_base::time::Instant;

/// Called with the number of the next packet. Returns how many packets to send now, or `None` to
/// end.
pub type PacketPrompt = Box<dyn FnMut(u64) -> Option<u64> + Send>;

/// Called with the capture time and the bytes of each frame before it leaves.
pub type FrameCallback = Box<dyn FnMut(Instant, &[u8]) + Send>;

/// Callbacks of the caller of a replay.
#[derive(Default)]
pub struct Callbacks {
    /// Decides how many packets to send next, for interactive plans.
    pub ask: Option<PacketPrompt>,
    /// Receives each frame, for plans that show frames.
    pub show: Option<FrameCallback>,
    /// Whether to publish a snapshot at the end of each pass. With several workers, the passes of
    /// the first one count.
    pub passes: bool,
}
