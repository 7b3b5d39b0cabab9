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

/// How long datagrams took that came with the time at which they had left: on the side that sent
/// first until an answer came, and on the other one from end to end. In steps of 1 us, up to 2^31.
#[derive(Clone, Debug, Default)]
pub struct StampedTimes {
    /// All of them.
    pub times: Histogram,
    /// Their sum, in microseconds.
    pub total_micros: u64,
    /// The shortest; `None` where none has come.
    pub min: Option<Duration>,
}

impl StampedTimes {
    /// One that left at a time, in microseconds, has arrived.
    pub(super) fn record(&mut self, left_at: u32, now: Now) {
        // Who sent it may have looked at the clock a little later than we did before we heard it.
        let micros = (now.micros as u32).wrapping_sub(left_at).cast_signed().max(0);
        let time = Duration::from_micros(micros.cast_unsigned().into());
        self.times.record(time);
        self.total_micros = self.total_micros.saturating_add(time.as_nanos() / 1_000);
        self.min = Some(self.min.map_or(time, |min| min.min(time)));
    }
}

/// How long ago something was, in microseconds modulo 2^32.
pub(super) fn age(began_at: u32, now: Now) -> Duration {
    Duration::from_micros((now.micros as u32).wrapping_sub(began_at).into())
}
