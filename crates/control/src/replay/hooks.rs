//! What the user's side of a replay takes part in.

use wirestorm_base::time::Instant;

/// Asked before a packet is sent, with its number: how many to send now, `None` to end.
pub type Ask = Box<dyn FnMut(u64) -> Option<u64> + Send>;

/// Shown every frame with its capture time before it leaves.
pub type ShowFrame = Box<dyn FnMut(Instant, &[u8]) + Send>;

/// What the user's side of a replay takes part in.
#[derive(Default)]
pub struct Hooks {
    /// Who answers how many packets come next; for plans that ask.
    pub ask: Option<Ask>,
    /// Who sees every frame; for plans that show them.
    pub show: Option<ShowFrame>,
    /// Whether a snapshot is published at the end of every pass too, with what was sent by then.
    /// With several workers, it is the first whose passes count.
    pub passes: bool,
}
