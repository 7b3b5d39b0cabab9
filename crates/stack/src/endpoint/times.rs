//! Times of flows and of stamped datagrams.

use wirestorm_base::histogram::Histogram;
use wirestorm_base::time::Duration;

use crate::tcp::now::Now;

/// Times since the start of each flow, in steps of 1 us. A client's flow starts when its first
/// packet is due, a server's when that packet arrives.
#[derive(Clone, Debug)]
pub struct Times {
    /// Time until the connection was established; UDP flows have none.
    pub connect: Histogram,
    /// Time until the first byte of data arrived in sequence.
    pub time_to_first_byte: Histogram,
    /// Time until both sides closed or the flow ended otherwise, without TIME-WAIT.
    pub duration: Histogram,
    /// Round-trip times of segments, as TCP measures them (RFC 6298). They include the delay of the
    /// acknowledgement.
    pub round_trip: Histogram,
}

impl Times {
    pub(super) fn new() -> Self {
        let new = Histogram::new;
        Self { connect: new(), time_to_first_byte: new(), duration: new(), round_trip: new() }
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.time_to_first_byte.merge(&other.time_to_first_byte);
        self.duration.merge(&other.duration);
        self.round_trip.merge(&other.round_trip);
    }
}

/// Times of datagrams with a time stamp, in steps of 1 us, up to 2^31. The side that sends first
/// measures round trips, the other side one-way times.
#[derive(Clone, Debug, Default)]
pub struct StampedTimes {
    /// All times.
    pub times: Histogram,
    /// Sum of all times, in microseconds.
    pub total_micros: u64,
    /// Minimum; `None` without datagrams.
    pub min: Option<Duration>,
}

impl StampedTimes {
    /// Records the arrival of a datagram that left at a time in microseconds.
    pub(super) fn record(&mut self, left_at: u32, now: Now) {
        // The sender may have read the clock later than the receiver did for this iteration.
        let micros = (now.micros as u32).wrapping_sub(left_at).cast_signed().max(0);
        let time = Duration::from_micros(micros.cast_unsigned().into());
        self.times.record(time);
        self.total_micros = self.total_micros.saturating_add(time.as_nanos() / 1_000);
        self.min = Some(self.min.map_or(time, |min| min.min(time)));
    }
}

/// Returns the time since `began_at`, in microseconds modulo 2^32.
pub(super) fn age(began_at: u32, now: Now) -> Duration {
    Duration::from_micros((now.micros as u32).wrapping_sub(began_at).into())
}
