//! Pacing and delivery rate measurement, for connections with BBR.

use super::congestion::bbr::{AckContext, Acknowledgement, Flight, RecoveryKind};
use super::connection::rack::holes;
use super::connection::{Connection, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use super::ranges::SequenceRange;
use super::segment::{Segment, sack_blocks};
use super::transmit::{BurstLimit, SendRange};
use wirestorm_model::tcp::Settings;

impl Connection {
    /// Returns the time of the next departure in ms; valid while `Marks::PACE` is set.
    #[cold]
    pub(super) fn pace_at(&self) -> u32 {
        self.congestion.bbr().map_or(0, |bbr| bbr.pacing.due_at())
    }

    /// Selects what to send next, like `part_due`, but not before the pacing time. Pure
    /// acknowledgements do not wait.
    #[cold]
    pub(super) fn part_due_paced(
        &mut self,
        room: BurstLimit,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<SendRange> {
        let (in_flight, round_trip) = (self.pipe(), self.round_trip.smoothed());
        let segment = self.segment_size_max();
        let has_data = self.next != self.send_end();
        let bbr = self.congestion.bbr_mut()?;
        bbr.begin(round_trip);
        if has_data {
            bbr.delivery.note_ready(in_flight, now.micros);
        }
        if !bbr.pacing.is_due(now) {
            let has_more = has_data || self.next_retransmission(settings).is_some();
            self.marks.put(StateFlags::PACE, has_more);
            return self.acknowledgement_due(counters);
        }
        self.marks.clear(StateFlags::PACE);
        let segments = (bbr.pacing.quantum(segment) / segment).clamp(1, room.segments.max(1));
        let part = self
            .repair_due(settings, now, counters)
            .or_else(|| self.data_due(BurstLimit { segments, ..room }, settings, now, counters));
        let Some(part) = part else { return self.acknowledgement_due(counters) };
        self.note_paced(&part, in_flight, now);
        self.note_dry(now);
        Some(part)
    }

    /// Records that the connection is application-limited: nothing to send although the window has
    /// room.
    fn note_dry(&mut self, now: Now) {
        let has_room = self.next == self.send_end() && self.pipe() < self.congestion.window();
        if let Some(bbr) = self.congestion.bbr_mut().filter(|_| has_room) {
            bbr.delivery.note_no_data(now.micros);
        }
    }

    /// Records the departure of data or FIN.
    fn note_paced(&mut self, part: &SendRange, in_flight: u32, now: Now) {
        let end = part.start + part.length + u32::from(part.has_fin);
        let range = SequenceRange { start: part.start, end };
        let (unacknowledged, is_again) = (self.unacknowledged, part.is_again);
        let Some(bbr) = self.congestion.bbr_mut() else { return };
        bbr.pacing.note_sent(part.length, now);
        if bbr.delivery.note_sent(range, is_again, unacknowledged, in_flight, now.micros) {
            bbr.restart_from_idle(now.micros);
        }
    }

    /// Records the newest data that a segment will deliver, and the bytes in flight before it. Call
    /// it before the segment is processed.
    #[cold]
    pub(super) fn begin_measuring(&mut self, segment: &Segment<'_>) {
        let newest = self.newest_delivered(segment);
        let before = AckContext { in_flight: self.pipe(), newest };
        if let Some(bbr) = self.congestion.bbr_mut() {
            bbr.before = before;
        }
    }

    /// Updates the model after the segment is processed.
    #[cold]
    pub(super) fn end_measuring(&mut self, now: Now) {
        self.note_delivered(now);
        self.note_dry(now);
    }

    /// Returns the last sent part of the data that a segment newly acknowledges, cumulatively or
    /// with SACK.
    fn newest_delivered(&self, segment: &Segment<'_>) -> Option<Flight> {
        let (unacknowledged, highest) = (self.unacknowledged, self.highest);
        let delivery = &self.congestion.bbr()?.delivery;
        let acknowledged = SequenceRange { start: unacknowledged, end: segment.acknowledgement };
        let delivered = sack_blocks(segment.sack).filter(|_| self.marks.has(StateFlags::SACK));
        let is_sent = |block: &SequenceRange| {
            !block.start.is_before(unacknowledged) && !highest.is_before(block.end)
        };
        let delivered = delivered.chain([acknowledged]).filter(is_sent);
        let new = delivered.flat_map(|block| holes(self.sacked(), block));
        new.filter_map(|range| delivery.newest(range, unacknowledged)).max_by_key(Flight::order)
    }

    fn note_delivered(&mut self, now: Now) {
        let lost = self.disorder.as_mut().map_or(0, |it| it.rack.take_lost());
        let repair = match (self.marks.has(StateFlags::RECOVERY), self.is_recovering()) {
            (true, _) => RecoveryKind::Recovery,
            // The recovery counts only if a timeout started it.
            (false, true) => RecoveryKind::Timeout,
            (false, false) => RecoveryKind::None,
        };
        let (in_flight, beyond) = (self.pipe(), self.sacked().bytes());
        let least = self.round_trip.min_rtt().unwrap_or(0);
        let (unacknowledged, now) = (self.unacknowledged, now.micros);
        let Some(bbr) = self.congestion.bbr_mut() else { return };
        let AckContext { newest, in_flight: in_flight_before } = bbr.before;
        let delivered = bbr.delivery.note_delivered(unacknowledged, beyond, newest, least, now);
        bbr.on_acknowledged(&Acknowledgement {
            now,
            delivered,
            lost,
            in_flight_before,
            in_flight,
            repair,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_wire::packet::tcp::Flags;

    use crate::tcp::connection::loss_state::tests::segment;
    use crate::tcp::sequence::SequenceNumber;
    use wirestorm_model::tcp::Algorithm;

    /// Sends all due segments, as an endpoint does; returns the number of bytes.
    fn serve(connection: &mut Connection, settings: &Settings, now: Now) -> u32 {
        let counters = &mut TcpCounters::default();
        let mut bytes = 0;
        while connection.may_transmit() {
            let Some(outgoing) = connection.poll_transmit(settings, now, counters) else { break };
            bytes += outgoing.length;
        }
        bytes
    }

    fn at(millis: u64) -> Now {
        Now::from_micros(millis * 1_000)
    }

    /// Returns a connection that was opened within 10 ms.
    fn opened(settings: &Settings) -> Connection {
        let counters = &mut TcpCounters::default();
        let mut connection =
            Connection::connect(settings, SequenceNumber(0), Now::default(), counters);
        connection.poll_transmit(settings, Now::default(), counters).unwrap();
        let answer = Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1) };
        connection.handle_segment(&answer, settings, at(10), counters);
        serve(&mut connection, settings, at(10));
        connection
    }

    #[test]
    fn window_is_paced_over_a_round_trip() {
        let settings = Settings { congestion: Algorithm::Bbr, ..Settings::default() };
        let mut connection = opened(&settings);
        connection.queue(100_000, &mut TcpCounters::default());
        let first = serve(&mut connection, &settings, at(10));
        // Pacing allows two milliseconds of credit, as after a late timer.
        assert!((1_072..=3_216).contains(&first), "{first}");
        let due = connection.deadline(&settings, at(10)).unwrap();
        assert!((11..13).contains(&due), "{due}");
        let mut all = first;
        for now in 11..20 {
            connection.handle_timeout(&settings, at(now), &mut TcpCounters::default());
            all += serve(&mut connection, &settings, at(now));
        }
        // The whole initial window: 10 segments of 536 bytes.
        assert_eq!(all, 5_360);
        // Now the window is the limit, and an acknowledgement opens it.
        let counters = &mut TcpCounters::default();
        connection.handle_segment(&segment(1, 1 + 1_072), &settings, at(21), counters);
        assert!(serve(&mut connection, &settings, at(21)) > 0);
    }

    #[test]
    fn application_limited_and_paced_senders_are_distinguished() {
        let settings = Settings { congestion: Algorithm::Bbr, ..Settings::default() };
        let counters = &mut TcpCounters::default();
        let is_limited = |it: &Connection| {
            it.congestion.bbr().is_some_and(|bbr| bbr.delivery.is_limited_by_program())
        };
        let mut connection = opened(&settings);
        for _ in 0..4 {
            // All data leaves; the next data is there at once and waits for its pacing time.
            connection.queue(536, counters);
            serve(&mut connection, &settings, at(10));
        }
        serve(&mut connection, &settings, at(12));
        assert!(!is_limited(&connection));
        connection.handle_segment(&segment(1, 1 + 4 * 536), &settings, at(22), counters);
        assert!(!is_limited(&connection));
        connection.queue(536, counters);
        serve(&mut connection, &settings, at(50));
        assert!(is_limited(&connection));
        connection.handle_segment(&segment(1, 1 + 5 * 536), &settings, at(60), counters);
        assert!(!is_limited(&connection));
    }
}
