//! What can be told of one connection.

use super::connection::{Connection, State};

/// A connection as it is at a moment. Lengths are in bytes, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Its state.
    pub state: State,
    /// The longest data of a segment.
    pub segment_size: u16,
    /// The congestion window.
    pub congestion_window: u32,
    /// Where slow start ends; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// What the peer has room for.
    pub send_window: u32,
    /// What was handed over and is not acknowledged.
    pub backlog: u32,
    /// What of that was never sent.
    pub unsent: u32,
    /// The smoothed round-trip time; `None` before the first one was measured.
    pub round_trip_us: Option<u32>,
    /// How much round trips vary.
    pub variation_us: Option<u32>,
    /// The least round-trip time.
    pub least_us: Option<u32>,
    /// How often the retransmission timer has expired since anything was acknowledged.
    pub expiries: u8,
}

impl Connection {
    /// What it is at this moment.
    pub fn details(&self) -> Details {
        Details {
            state: self.state,
            segment_size: self.data_size(),
            congestion_window: self.congestion.window(),
            slow_start_threshold: self.congestion.slow_start_threshold(),
            send_window: self.send_window,
            backlog: self.backlog(),
            unsent: self.unsent(),
            round_trip_us: self.round_trip.smoothed(),
            variation_us: self.round_trip.variation(),
            least_us: self.round_trip.least(),
            expiries: self.expiries,
        }
    }
}
