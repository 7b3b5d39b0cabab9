//! What can be told of one connection.

use super::connection::{Connection, Marks, Now, State};
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

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
    /// What the peer may send.
    pub receive_window: u32,
    /// By how many bits the peer's windows are shifted, and ours; `None` where both are as they are
    /// told.
    pub window_scales: Option<(u8, u8)>,
    /// Whether timestamps were agreed upon (RFC 7323).
    pub timestamps: bool,
    /// Whether losses are told by SACK (RFC 2018).
    pub sack: bool,
    /// Whether ECN was agreed upon (RFC 3168).
    pub ecn: bool,
    /// How long ago the peer was heard, in milliseconds; `None` where there are neither keepalive
    /// probes nor timestamps, of which that is known.
    pub silent_ms: Option<u32>,
    /// What was handed over and is not acknowledged.
    pub backlog: u32,
    /// What of that was never sent.
    pub unsent: u32,
    /// What was acknowledged, modulo 2^32.
    pub acknowledged: u32,
    /// What arrived in sequence, modulo 2^32.
    pub received: u32,
    /// The smoothed round-trip time; `None` before the first one was measured.
    pub round_trip_us: Option<u32>,
    /// How much round trips vary.
    pub variation_us: Option<u32>,
    /// The least round-trip time.
    pub least_us: Option<u32>,
    /// The retransmission timeout.
    pub timeout_us: u32,
    /// How often the retransmission timer has expired since anything was acknowledged.
    pub expiries: u8,
    /// Segments with data sent again, modulo 256: who follows a connection adds up.
    pub repeats: u8,
    /// Segments with data that arrived beyond a hole, modulo 256.
    pub out_of_order: u8,
}

impl Connection {
    /// What it is at this moment; `initial`: its first number.
    pub(crate) fn details(
        &self,
        settings: &Settings,
        initial: SequenceNumber,
        now: Now,
    ) -> Details {
        // What a SYN of ours offers is not agreed upon yet.
        let has = |mark| self.state != State::SynSent && self.marks.has(mark);
        Details {
            state: self.state,
            segment_size: self.data_size(),
            congestion_window: self.congestion.window(),
            slow_start_threshold: self.congestion.slow_start_threshold(),
            send_window: self.send_window,
            receive_window: self.receive_window(),
            window_scales: has(Marks::SCALED)
                .then_some((self.scales.send(), self.scales.receive())),
            timestamps: has(Marks::TIMESTAMPS),
            sack: has(Marks::SACK),
            ecn: has(Marks::ECN),
            silent_ms: self.silent_ms(settings, now),
            backlog: self.backlog(),
            unsent: self.unsent(),
            acknowledged: self.bytes_acknowledged(initial),
            received: self.bytes_received(),
            round_trip_us: self.round_trip.smoothed(),
            variation_us: self.round_trip.variation(),
            least_us: self.round_trip.least(),
            timeout_us: self.round_trip.retransmission_timeout(&settings.retransmission),
            expiries: self.expiries,
            repeats: self.repeats,
            out_of_order: self.out_of_order,
        }
    }

    fn bytes_acknowledged(&self, initial: SequenceNumber) -> u32 {
        // FIN has a number as well.
        let is_all = self.queued.is_before(self.unacknowledged);
        let end = if is_all { self.queued } else { self.unacknowledged };
        if end == initial { 0 } else { end.0.wrapping_sub(initial.0).wrapping_sub(1) }
    }

    fn receive_window(&self) -> u32 {
        if self.state == State::SynSent {
            return 0;
        }
        self.offered.0.wrapping_sub(self.expected.0)
    }

    /// The keepalive timer was started then, and again with each probe; timestamps are noted of
    /// all that arrives in sequence.
    fn silent_ms(&self, settings: &Settings, now: Now) -> Option<u32> {
        if !self.marks.has(Marks::KEEPALIVE) || !self.is_established() {
            let is_noted = self.state != State::SynSent && self.marks.has(Marks::TIMESTAMPS);
            return is_noted.then(|| now.millis.wrapping_sub(self.timestamp_at));
        }
        let probes = settings.keepalive_interval_ms.wrapping_mul(self.probes.into());
        let whole = settings.keepalive_ms.wrapping_add(probes);
        let left = self.keepalive_at.wrapping_sub(now.millis).cast_signed();
        Some(whole.saturating_sub_signed(left))
    }

    /// Bytes of data that came in order, modulo 2^32.
    pub(crate) fn bytes_received(&self) -> u32 {
        if self.state == State::SynSent {
            return 0;
        }
        let numbers = self.expected.0.wrapping_sub(self.peer_initial.0);
        // Not even SYN has come where a connection was given up before.
        numbers.saturating_sub(1 + u32::from(self.is_peer_done()))
    }
}
