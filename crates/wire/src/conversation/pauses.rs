//! Cause of a pause while one side sends: the sender itself or the network.
//!
//! A sender with more data sends full segments and stops only until an acknowledgement arrives. So
//! the network causes a pause after a full segment that ends soon after an acknowledgement could
//! arrive. All other pauses are the sender's. After a short segment it had no more data. If an
//! acknowledgement arrived and it sent nothing, it had no data either.

use wirestorm_base::time::{Duration, Instant};

/// Data that one side of a connection sends, as seen at the capture point.
#[derive(Debug, Default)]
pub(super) struct PauseDetector {
    /// Time of the last segment.
    last: Option<Instant>,
    /// Whether the last segment was full.
    was_full: bool,
    /// Time of the first new acknowledgement since then.
    acknowledged: Option<Instant>,
    /// Whether all data is acknowledged.
    is_acknowledged: bool,
    /// Shortest time from a segment to the acknowledgement of the other side.
    ack_delay: Option<Duration>,
}

impl PauseDetector {
    /// Takes a SYN, or a segment with new data of `length` bytes. The MSS is `full`.
    pub(super) fn send(&mut self, now: Instant, length: usize, full: u16) {
        /// Longest TCP options, which reduce the data of a segment.
        const OPTIONS: usize = 40;
        self.last = Some(now);
        self.was_full = length + OPTIONS >= usize::from(full);
        self.acknowledged = None;
        self.is_acknowledged = false;
    }

    /// Takes an acknowledgement of the other side. `is_new`: it acknowledges new data; `is_all`: it
    /// acknowledges everything seen so far.
    pub(super) fn acknowledge(&mut self, now: Instant, is_new: bool, is_all: bool) {
        if is_new {
            self.acknowledged.get_or_insert(now);
        }
        if let (Some(last), true, false) = (self.last, is_all, self.is_acknowledged) {
            let echo = now.saturating_since(last);
            self.ack_delay = Some(self.ack_delay.map_or(echo, |known| known.min(echo)));
            self.is_acknowledged = true;
        }
    }

    /// Returns whether the network caused the pause until now. `other` is the opposite direction.
    pub(super) fn is_network_pause(&self, now: Instant, other: &Self) -> bool {
        /// Tolerance for times that were measured only once.
        const SLACK: Duration = Duration::from_millis(1);
        let Some(last) = self.last.filter(|_| self.was_full) else { return false };
        let there = self.ack_delay.unwrap_or(Duration::ZERO);
        let back = other.ack_delay.unwrap_or(Duration::ZERO);
        // Without an acknowledgement, full segments follow at the rate of the path.
        let acknowledged_at = self.acknowledged.unwrap_or_else(|| last.saturating_add(there));
        let slack = Duration::from_nanos(back.as_nanos() / 4).saturating_add(SLACK);
        now <= acknowledged_at.saturating_add(back).saturating_add(slack)
    }
}
