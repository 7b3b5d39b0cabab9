//! How long things take.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;

use super::flow::Flow;
use crate::tcp::connection::Now;

/// Times of connections, from when each began: on the side of clients when SYN was to be sent, on
/// that of servers when it arrived. In steps of 1 us.
#[derive(Clone, Debug)]
pub struct Times {
    /// Until it was established.
    pub connect: Histogram,
    /// Until the first byte of data had arrived in sequence.
    pub first_byte: Histogram,
    /// Until it was forgotten, TIME-WAIT included.
    pub whole: Histogram,
}

impl Times {
    pub(super) fn new() -> Self {
        Self { connect: Histogram::new(), first_byte: Histogram::new(), whole: Histogram::new() }
    }
}

impl Flow {
    /// How long ago it began.
    pub(super) fn age(&self, now: Now) -> Duration {
        Duration::from_micros((now.micros as u32).wrapping_sub(self.began_at).into())
    }
}
