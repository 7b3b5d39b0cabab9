//! How long things take.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;

use crate::tcp::connection::Now;

/// Times of flows, from when each began: on the side of clients when the first packet was to be
/// sent, on that of servers when it arrived. In steps of 1 us.
#[derive(Clone, Debug)]
pub struct Times {
    /// Until a connection was established; flows of UDP have none.
    pub connect: Histogram,
    /// Until the first byte of data had arrived in sequence.
    pub first_byte: Histogram,
    /// Until both sides had closed it, or it ended otherwise; TIME-WAIT is not part of it.
    pub whole: Histogram,
    /// Not of flows, but of their segments: from when one was sent to when it was acknowledged, each
    /// time that TCP measures it (RFC 6298); what delays the acknowledgement is part of it.
    pub round_trip: Histogram,
}

impl Times {
    pub(super) fn new() -> Self {
        let new = Histogram::new;
        Self { connect: new(), first_byte: new(), whole: new(), round_trip: new() }
    }

    /// Adds another one's.
    pub fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
        self.whole.merge(&other.whole);
        self.round_trip.merge(&other.round_trip);
    }
}

/// How long ago something was, in microseconds modulo 2^32.
pub(super) fn age(began_at: u32, now: Now) -> Duration {
    Duration::from_micros((now.micros as u32).wrapping_sub(began_at).into())
}
