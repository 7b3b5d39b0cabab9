//! Snapshot of the state of one connection, for reports.

use super::connection::{Connection, State, StateFlags};
use super::now::Now;
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// State of a connection at one moment. Lengths are in bytes, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Connection state.
    pub state: State,
    /// Maximum data length of a segment.
    pub segment_size: u16,
    /// Congestion window.
    pub congestion_window: u32,
    /// Slow start threshold; `u32::MAX` before the first loss.
    pub slow_start_threshold: u32,
    /// Window that the peer offers.
    pub send_window: u32,
    /// Window that this end offers.
    pub receive_window: u32,
    /// Window shifts of the peer and of this end; `None` without window scaling.
    pub window_scales: Option<(u8, u8)>,
    /// Whether both ends use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether both ends use SACK (RFC 2018).
    pub sack: bool,
    /// Whether both ends use ECN (RFC 3168).
    pub ecn: bool,
    /// Time since the last segment of the peer in milliseconds; `None` without keepalive probes and
    /// timestamps, which record it.
    pub idle_ms: Option<u32>,
    /// Queued bytes that are not acknowledged.
    pub bytes_in_flight: u32,
    /// Queued bytes that were never sent.
    pub unsent: u32,
    /// Acknowledged bytes, modulo 2^32.
    pub acknowledged: u32,
    /// Bytes received in sequence, modulo 2^32.
    pub received: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub round_trip_us: Option<u32>,
    /// Round-trip time variation.
    pub variation_us: Option<u32>,
    /// Minimum round-trip time.
    pub min_rtt_us: Option<u32>,
    /// Retransmission timeout.
    pub timeout_us: u32,
    /// Expiries of the retransmission timer since the last acknowledgement of new data.
    pub expiries: u8,
    /// Retransmitted segments with data, modulo 256. A reader that polls a connection adds up the
    /// differences.
    pub repeats: u8,
    /// Segments with data that arrived beyond a hole, modulo 256.
    pub out_of_order: u8,
}

impl Connection {
    /// Returns the current state; `initial` is the initial sequence number of this end.
    pub(crate) fn details(
        &self,
        settings: &Settings,
        initial: SequenceNumber,
        now: Now,
    ) -> Details {
        // The options of our SYN are only an offer.
        let has = |mark| self.state != State::SynSent && self.marks.has(mark);
        Details {
            state: self.state,
            segment_size: self.data_size(),
            congestion_window: self.congestion.window(),
            slow_start_threshold: self.congestion.slow_start_threshold(),
            send_window: self.send_window,
            receive_window: self.receive_window(),
            window_scales: has(StateFlags::SCALED)
                .then_some((self.scales.send(), self.scales.receive())),
            timestamps: has(StateFlags::TIMESTAMPS),
            sack: has(StateFlags::SACK),
            ecn: has(StateFlags::ECN),
            idle_ms: self.silent_ms(settings, now),
            bytes_in_flight: self.backlog(),
            unsent: self.unsent(),
            acknowledged: self.bytes_acknowledged(initial),
            received: self.bytes_received(),
            round_trip_us: self.round_trip.smoothed(),
            variation_us: self.round_trip.variation(),
            min_rtt_us: self.round_trip.min_rtt(),
            timeout_us: self.round_trip.retransmission_timeout(&settings.retransmission),
            expiries: self.expiries,
            repeats: self.retransmitted,
            out_of_order: self.out_of_order,
        }
    }

    fn bytes_acknowledged(&self, initial: SequenceNumber) -> u32 {
        // A FIN also takes a number.
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

    /// Returns the time since the peer's last segment, in ms. The keepalive timer restarts with
    /// each segment and each probe; timestamps record the arrival of segments in sequence.
    fn silent_ms(&self, settings: &Settings, now: Now) -> Option<u32> {
        if !self.marks.has(StateFlags::KEEPALIVE) || !self.is_established() {
            let is_noted = self.state != State::SynSent && self.marks.has(StateFlags::TIMESTAMPS);
            return is_noted.then(|| now.millis.wrapping_sub(self.timestamp_at));
        }
        let probes = settings.keepalive_interval_ms.wrapping_mul(self.probes.into());
        let keepalive_timeout = settings.keepalive_ms.wrapping_add(probes);
        let left = self.keepalive_at.wrapping_sub(now.millis).cast_signed();
        Some(keepalive_timeout.saturating_sub_signed(left))
    }

    /// Bytes of data received in order, modulo 2^32.
    pub(crate) fn bytes_received(&self) -> u32 {
        if self.state == State::SynSent {
            return 0;
        }
        let numbers = self.expected.0.wrapping_sub(self.initial_receive.0);
        // A connection that ended early may not have received a SYN.
        numbers.saturating_sub(1 + u32::from(self.has_received_fin()))
    }
}
