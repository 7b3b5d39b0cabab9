//! Loss detection and fast recovery: RFC 5681 section 3.2, RFC 6582 without SACK, RFC 6675 with
//! SACK.

use wirestorm_wire::packet::tcp::Flags;

use super::connection::{Connection, RANGES_MAX, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use super::ranges::Ranges;
use super::segment::{Segment, sack_blocks};
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

impl Connection {
    /// Bytes sent and not acknowledged.
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.highest.distance_from(self.unacknowledged).max(0) as u32
    }

    /// FlightSize of RFC 5681 section 2: "The amount of data that has been sent but not yet
    /// cumulatively acknowledged."
    ///
    /// If the congestion window limited the last transmission, this is the window. The
    /// acknowledgements that reveal the loss may already have acknowledged a part of the flight.
    #[cold]
    pub(super) fn flight_size(&self) -> u32 {
        match self.marks.has(StateFlags::LIMITED) {
            true => self.congestion.window(),
            false => self.in_flight(),
        }
    }

    /// Estimate of the bytes in the network. RFC 6675 section 2: "'Pipe' is a sender's estimate of
    /// the number of bytes outstanding in the network." After a timeout, data sent before it counts
    /// as lost.
    #[inline]
    pub(super) fn pipe(&self) -> u32 {
        let is_repairing = self.marks.has(StateFlags::RECOVERY) && self.marks.has(StateFlags::RACK);
        if self.sacked().is_empty() && !is_repairing {
            return self.next.distance_from(self.unacknowledged).max(0) as u32;
        }
        if self.marks.has(StateFlags::RACK) {
            return self.pipe_rack();
        }
        // Data sent before a timeout counts as lost, data sent since as in the network.
        let lost_before = if self.is_recovering_from_timeout() { None } else { self.lost_before() };
        self.sacked().pipe(self.unacknowledged, self.next, self.high_rxt_or_una(), lost_before)
    }

    /// Pipe with RACK: sent bytes that are neither acknowledged with SACK nor marked as lost (RFC
    /// 8985 section 6.2).
    #[cold]
    fn pipe_rack(&self) -> u32 {
        let sent = self.next.distance_from(self.unacknowledged).max(0) as u32;
        let Some(disorder) = &self.disorder else { return sent };
        let sacked_bytes = disorder.sacked.bytes_before(self.next);
        let lost = disorder.rack.lost_bytes(self.unacknowledged, self.next, &disorder.sacked);
        sent.saturating_sub(sacked_bytes).saturating_sub(lost)
    }

    /// Number after the last unacknowledged retransmission of this recovery, or the oldest
    /// unacknowledged number.
    pub(super) fn high_rxt_or_una(&self) -> SequenceNumber {
        let resent_to = self.disorder.as_ref().and_then(|it| it.high_rxt);
        let is_beyond = |number: &SequenceNumber| self.unacknowledged.is_before(*number);
        resent_to.filter(is_beyond).unwrap_or(self.unacknowledged)
    }

    /// Number below which missing data is lost according to SACK (RFC 6675).
    pub(super) fn lost_before(&self) -> Option<SequenceNumber> {
        let disorder = self.disorder.as_ref()?;
        disorder.sacked.lost_before(self.data_size(), disorder.dupack_threshold)
    }

    /// Adds the SACK blocks of a segment to the scoreboard. Returns whether any of them is new.
    #[inline]
    pub(super) fn note_sack(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        counters: &mut TcpCounters,
    ) -> bool {
        if segment.sack.is_empty() || !self.marks.has(StateFlags::SACK) {
            return false;
        }
        let mut tells_news = false;
        counters.sack_rcv_blocks += 1;
        for block in sack_blocks(segment.sack) {
            // A block may be "a D-SACK block specifying the sequence numbers for the duplicate
            // segment" (RFC 2883 section 4), or invalid.
            let is_sensible = !block.is_empty()
                && segment.acknowledgement.is_before(block.start)
                && !block.start.is_before(self.unacknowledged)
                && block.start.is_before(self.highest)
                && !self.highest.is_before(block.end);
            if !is_sensible {
                continue;
            }
            let disorder = self.loss_state_mut();
            disorder.dupack_threshold = settings.dupack_threshold;
            match disorder.sacked.insert(block, RANGES_MAX) {
                Ok(new) => tells_news |= new > 0,
                // If the scoreboard is full, a timeout detects the loss later.
                Err(_) => counters.sack_sboverflow += 1,
            }
        }
        tells_news
    }

    /// Handles a duplicate acknowledgement.
    #[cold]
    pub(super) fn note_duplicate(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) {
        let duplicate_acks = self.duplicate_acks().saturating_add(1);
        self.loss_state_mut().duplicate_acks = duplicate_acks;
        // After a timeout, while the acknowledgement does not cover `recover`, "the TCP does not
        // enter fast retransmit and does not reset ssthresh" (RFC 6582 section 3.2, step 2).
        if self.marks.has(StateFlags::RECOVERY) || self.is_recovering_from_timeout() {
            return;
        }
        if self.marks.has(StateFlags::RACK) {
            return;
        }
        // RFC 6675 section 5: "(1) If DupAcks >= DupThresh, go to step (4)", and "(2) If DupAcks <
        // DupThresh but IsLost (HighACK + 1) returns true". Without SACK, RFC 5681 section 3.2:
        // "When the third duplicate ACK is received".
        let threshold = u16::from(settings.dupack_threshold);
        if duplicate_acks >= threshold || self.lost_before().is_some() {
            self.begin_recovery(now, counters);
        }
    }

    /// Enters fast recovery. A loss in a window of data for which the congestion window was reduced
    /// already does not reduce it again.
    pub(super) fn begin_recovery(&mut self, now: Now, counters: &mut TcpCounters) {
        counters.recovery_episode += 1;
        counters.sack_recovery_episode += u64::from(self.marks.has(StateFlags::SACK));
        if !self.is_recovering() {
            self.save_undo_state();
            self.reduce(now);
        }
        let highest = self.highest;
        let disorder = self.loss_state_mut();
        disorder.recover = Some(highest);
        disorder.is_after_timeout = false;
        disorder.high_rxt = None;
        self.marks.set(StateFlags::RECOVERY);
        self.marks.set(StateFlags::RESEND);
        // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
        // retransmitted".
        self.marks.clear(StateFlags::TIMED);
    }

    /// Retransmits everything in flight.
    pub(super) fn retransmit_all(&mut self) {
        self.next = self.unacknowledged;
        self.marks.clear(StateFlags::RECOVERY);
        self.marks.clear(StateFlags::RESEND);
        self.marks.clear(StateFlags::REORDER);
        self.marks.clear(StateFlags::TAIL_PROBE_DUE);
        let highest = self.highest;
        let disorder = self.loss_state_mut();
        disorder.recover = Some(highest);
        disorder.is_after_timeout = true;
        disorder.high_rxt = None;
        disorder.duplicate_acks = 0;
        disorder.undo = None;
        // RFC 2018 section 5: "the timeout might indicate that the data receiver has reneged."
        disorder.sacked = Ranges::new();
        disorder.rack.time_out();
    }

    /// Handles an acknowledgement of new data, up to `number`.
    #[inline]
    pub(super) fn note_progress(
        &mut self,
        number: SequenceNumber,
        bytes: u32,
        may_grow: bool,
        now: Now,
    ) {
        if !self.marks.has(StateFlags::RECOVERY) {
            // The flight size is no longer known here: earlier acknowledgements of the same batch
            // may have shrunk it, and nothing was sent since.
            let is_limited = may_grow && self.marks.has(StateFlags::LIMITED);
            let round_trip = self.round_trip.smoothed().unwrap_or(0);
            self.congestion.on_acknowledged(bytes, now.micros, round_trip, is_limited);
        }
        if self.disorder.is_some() {
            self.note_progress_in_disorder(number, bytes);
        }
    }

    #[cold]
    fn note_progress_in_disorder(&mut self, number: SequenceNumber, bytes: u32) {
        let is_partial = self.is_recovering() && self.marks.has(StateFlags::RECOVERY);
        let size = u32::from(self.data_size()).max(1);
        let disorder = self.loss_state_mut();
        disorder.sacked.advance(number);
        if is_partial {
            let segments = u16::try_from(bytes / size).unwrap_or(u16::MAX);
            let others = segments.saturating_sub(1);
            disorder.duplicate_acks = disorder.duplicate_acks.saturating_sub(others);
            // RFC 6582 section 3.2, step 3: "this is a partial ACK. In this case, retransmit the
            // first unacknowledged segment."
            if !self.marks.has(StateFlags::SACK) {
                self.marks.set(StateFlags::RESEND);
            }
            return;
        }
        disorder.duplicate_acks = 0;
        if self.marks.has(StateFlags::RECOVERY) {
            self.note_recovered();
        }
        self.marks.clear(StateFlags::RECOVERY);
        self.marks.clear(StateFlags::RESEND);
        if !self.is_recovering() {
            self.loss_state_mut().recover = None;
        }
        self.settle();
    }

    /// Whether a segment echoes a congestion mark (ECE).
    #[inline]
    pub(super) fn is_echo(&self, segment: &Segment<'_>) -> bool {
        self.marks.has(StateFlags::ECN) && segment.flags.contains(Flags::ECE)
    }

    /// Reduces the window for an ECN echo. RFC 3168 section 6.1.2: "TCP should not react to
    /// congestion indications more than once every window of data". Call it before the
    /// acknowledgement advances.
    #[inline]
    pub(super) fn handle_ecn_echo(&mut self, segment: &Segment<'_>, counters: &mut TcpCounters) {
        // The peer echoes until it receives CWR, which only new data can carry.
        let has_reduced = self.is_recovering() || self.marks.has(StateFlags::CWR_DUE);
        if !self.is_echo(segment) || has_reduced {
            return;
        }
        counters.ecn_rcwnd += 1;
        self.discard_undo_state();
        let in_flight = self.in_flight();
        self.congestion.on_ecn_echo(in_flight);
        let highest = self.highest;
        let disorder = self.loss_state_mut();
        disorder.recover = Some(highest);
        disorder.is_after_timeout = false;
        self.marks.set(StateFlags::CWR_DUE);
    }

    /// Records that CWR leaves with new data up to `end`. Until that is acknowledged, further
    /// echoes report the same congestion.
    #[cold]
    pub(super) fn note_cwr_sent(&mut self, end: SequenceNumber) {
        self.marks.clear(StateFlags::CWR_DUE);
        let recover = &mut self.loss_state_mut().recover;
        if recover.is_none_or(|recover| recover.is_before(end)) {
            *recover = Some(end);
        }
    }

    /// Returns the start and maximum length of the next retransmission. Returns `None` outside of
    /// recovery, or if enough data is in the network.
    pub(super) fn next_retransmission(&self, settings: &Settings) -> Option<(SequenceNumber, u32)> {
        let size = u32::from(self.data_size());
        if self.marks.has(StateFlags::TAIL_PROBE_DUE) {
            return (!self.can_probe_with_new(settings)).then(|| (self.tail(), size));
        }
        if self.marks.has(StateFlags::RACK) {
            return self.next_retransmission_rack(size);
        }
        if self.marks.has(StateFlags::RESEND) {
            return Some((self.unacknowledged, size));
        }
        if !self.marks.has(StateFlags::RECOVERY) || !self.marks.has(StateFlags::SACK) {
            return None;
        }
        // RFC 6675 section 5, step (C): "If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one
        // or more segments".
        if self.congestion.window() < self.pipe() + size {
            return None;
        }
        let hole = self.sacked().next_hole(self.high_rxt_or_una(), self.lost_before()?)?;
        Some((hole.start, size.min(hole.len())))
    }

    /// Selects the next retransmission with RACK: the first lost range, if the window has room for
    /// it. RFC 8985 section 9.3: "A segment marked as lost by RACK-TLP MUST NOT be retransmitted
    /// until congestion control deems this appropriate."
    fn next_retransmission_rack(&self, size: u32) -> Option<(SequenceNumber, u32)> {
        let disorder = self.disorder.as_ref()?;
        let hole = disorder.rack.first_lost(self.unacknowledged, &disorder.sacked)?;
        let has_room = self.congestion.window() >= self.pipe() + size;
        let is_due =
            self.marks.has(StateFlags::RESEND) || self.marks.has(StateFlags::RECOVERY) && has_room;
        is_due.then(|| (hole.start, size.min(hole.len())))
    }
}
