//! How losses are noticed and repaired: RFC 5681 section 3.2, RFC 6582 without SACK, RFC 6675 with.

use wirestorm_wire::packet::tcp::Flags;

use super::connection::{Connection, Marks, Now, RANGES_MAX};
use super::counters::TcpCounters;
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
    /// cumulatively acknowledged." Where the window was full when something was sent last, it is
    /// the window: a part of what was in flight then may be acknowledged by what tells of the loss,
    /// and by what came in one batch with it.
    #[cold]
    pub(super) fn flight_size(&self) -> u32 {
        match self.marks.has(Marks::LIMITED) {
            true => self.congestion.window(),
            false => self.in_flight(),
        }
    }

    /// Bytes that are thought to be on their way. RFC 6675 section 2: "'Pipe' is a sender's
    /// estimate of the number of bytes outstanding in the network." Where all is sent again after a
    /// timeout, what was sent before is taken for lost.
    #[inline]
    pub(super) fn pipe(&self) -> u32 {
        let is_repairing = self.marks.has(Marks::RECOVERY) && self.marks.has(Marks::RACK);
        if self.sacked().is_empty() && !is_repairing {
            return self.next.distance_from(self.unacknowledged).max(0) as u32;
        }
        if self.marks.has(Marks::RACK) {
            return self.pipe_by_time();
        }
        // What was sent before a timeout is gone, and what was sent since may arrive.
        let lost_before = if self.is_starting_over() { None } else { self.lost_before() };
        self.sacked().pipe(self.unacknowledged, self.next, self.resent(), lost_before)
    }

    /// The same by RFC 8985, whose section 6.2 marks segments as lost: what is neither told of nor
    /// that.
    #[cold]
    fn pipe_by_time(&self) -> u32 {
        let sent = self.next.distance_from(self.unacknowledged).max(0) as u32;
        let Some(disorder) = &self.disorder else { return sent };
        let told = disorder.sacked.bytes_before(self.next);
        let lost = disorder.rack.lost_bytes(self.unacknowledged, self.next, &disorder.sacked);
        sent.saturating_sub(told).saturating_sub(lost)
    }

    /// Behind what was sent again in this recovery and is not acknowledged.
    pub(super) fn resent(&self) -> SequenceNumber {
        let resent_to = self.disorder.as_ref().and_then(|it| it.resent_to);
        let is_beyond = |number: &SequenceNumber| self.unacknowledged.is_before(*number);
        resent_to.filter(is_beyond).unwrap_or(self.unacknowledged)
    }

    /// Behind what is lost, as far as SACK tells.
    pub(super) fn lost_before(&self) -> Option<SequenceNumber> {
        let disorder = self.disorder.as_ref()?;
        disorder.sacked.lost_before(self.data_size(), disorder.dupack_threshold)
    }

    /// Notes what arrived beyond holes. Returns whether any of it was not known.
    #[inline]
    pub(super) fn note_sack(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        counters: &mut TcpCounters,
    ) -> bool {
        if segment.sack.is_empty() || !self.marks.has(Marks::SACK) {
            return false;
        }
        let mut tells_news = false;
        counters.sack_rcv_blocks += 1;
        for block in sack_blocks(segment.sack) {
            // A block may be "a D-SACK block specifying the sequence numbers for the duplicate
            // segment" (RFC 2883 section 4), or make no sense.
            let is_sensible = !block.is_empty()
                && segment.acknowledgement.is_before(block.start)
                && !block.start.is_before(self.unacknowledged)
                && block.start.is_before(self.highest)
                && !self.highest.is_before(block.end);
            if !is_sensible {
                continue;
            }
            let disorder = self.disorder_mut();
            disorder.dupack_threshold = settings.dupack_threshold;
            match disorder.sacked.insert(block, RANGES_MAX) {
                Ok(new) => tells_news |= new > 0,
                // Where the board is full, the loss is found later, by a timeout.
                Err(_) => counters.sack_sboverflow += 1,
            }
        }
        tells_news
    }

    /// A duplicate acknowledgement arrived.
    #[cold]
    pub(super) fn note_duplicate(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) {
        let duplicate_acks = self.duplicate_acks().saturating_add(1);
        self.disorder_mut().duplicate_acks = duplicate_acks;
        // RFC 6582 section 3.2, step 2, of a timeout: where the acknowledgement does not cover `recover`, "the
        // TCP does not enter fast retransmit and does not reset ssthresh."
        if self.marks.has(Marks::RECOVERY) || self.is_starting_over() {
            return;
        }
        if self.marks.has(Marks::RACK) {
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

    /// Repairs a loss; what was lost in a window of data that was reduced for already reduces
    /// nothing.
    pub(super) fn begin_recovery(&mut self, now: Now, counters: &mut TcpCounters) {
        counters.recovery_episode += 1;
        counters.sack_recovery_episode += u64::from(self.marks.has(Marks::SACK));
        if !self.is_recovering() {
            self.remember_window();
            self.reduce(now);
        }
        let highest = self.highest;
        let disorder = self.disorder_mut();
        disorder.recover = Some(highest);
        disorder.has_started_over = false;
        disorder.resent_to = None;
        self.marks.set(Marks::RECOVERY);
        self.marks.set(Marks::RESEND);
        // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
        // retransmitted".
        self.marks.clear(Marks::TIMED);
    }

    /// All that is in flight is to be sent again.
    pub(super) fn start_over(&mut self) {
        self.next = self.unacknowledged;
        self.marks.clear(Marks::RECOVERY);
        self.marks.clear(Marks::RESEND);
        self.marks.clear(Marks::REORDER);
        self.marks.clear(Marks::TAIL_DUE);
        let highest = self.highest;
        let disorder = self.disorder_mut();
        disorder.recover = Some(highest);
        disorder.has_started_over = true;
        disorder.resent_to = None;
        disorder.duplicate_acks = 0;
        disorder.undo = None;
        // RFC 2018 section 5: "the timeout might indicate that the data receiver has reneged."
        disorder.sacked = Ranges::new();
        disorder.rack.time_out();
    }

    /// Something new was acknowledged, up to a number.
    #[inline]
    pub(super) fn note_progress(
        &mut self,
        number: SequenceNumber,
        bytes: u32,
        may_grow: bool,
        now: Now,
    ) {
        if !self.marks.has(Marks::RECOVERY) {
            // What is in flight now does not tell: others of the same batch may have acknowledged
            // the rest, and nothing was sent since.
            let is_limited = may_grow && self.marks.has(Marks::LIMITED);
            let round_trip = self.round_trip.smoothed().unwrap_or(0);
            self.congestion.on_acknowledged(bytes, now.micros, round_trip, is_limited);
        }
        if self.disorder.is_some() {
            self.note_progress_in_disorder(number, bytes);
        }
    }

    #[cold]
    fn note_progress_in_disorder(&mut self, number: SequenceNumber, bytes: u32) {
        let is_partial = self.is_recovering() && self.marks.has(Marks::RECOVERY);
        let size = u32::from(self.data_size()).max(1);
        let disorder = self.disorder_mut();
        disorder.sacked.advance(number);
        if is_partial {
            let segments = u16::try_from(bytes / size).unwrap_or(u16::MAX);
            let others = segments.saturating_sub(1);
            disorder.duplicate_acks = disorder.duplicate_acks.saturating_sub(others);
            // RFC 6582 section 3.2, step 3: "this is a partial ACK. In this case, retransmit the
            // first unacknowledged segment."
            if !self.marks.has(Marks::SACK) {
                self.marks.set(Marks::RESEND);
            }
            return;
        }
        disorder.duplicate_acks = 0;
        if self.marks.has(Marks::RECOVERY) {
            self.note_recovered();
        }
        self.marks.clear(Marks::RECOVERY);
        self.marks.clear(Marks::RESEND);
        if !self.is_recovering() {
            self.disorder_mut().recover = None;
        }
        self.settle();
    }

    /// Whether a segment tells that ours met congestion.
    #[inline]
    pub(super) fn is_echo(&self, segment: &Segment<'_>) -> bool {
        self.marks.has(Marks::ECN) && segment.flags.contains(Flags::ECE)
    }

    /// RFC 3168 section 6.1.2: "TCP should not react to congestion indications more than once every
    /// window of data". It looks at what was in flight before the segment.
    #[inline]
    pub(super) fn note_echo(&mut self, segment: &Segment<'_>, counters: &mut TcpCounters) {
        // The peer goes on echoing until it hears CWR, which only new data can have.
        let is_told = self.is_recovering() || self.marks.has(Marks::CWR_DUE);
        if !self.is_echo(segment) || is_told {
            return;
        }
        counters.ecn_rcwnd += 1;
        self.forget_window();
        let in_flight = self.in_flight();
        self.congestion.on_ecn_echo(in_flight);
        let highest = self.highest;
        let disorder = self.disorder_mut();
        disorder.recover = Some(highest);
        disorder.has_started_over = false;
        self.marks.set(Marks::CWR_DUE);
    }

    /// CWR leaves with new data that ends there. Until that is acknowledged, what the peer echoes is what
    /// it has heard of before.
    #[cold]
    pub(super) fn note_reduction_told(&mut self, end: SequenceNumber) {
        self.marks.clear(Marks::CWR_DUE);
        let recover = &mut self.disorder_mut().recover;
        if recover.is_none_or(|recover| recover.is_before(end)) {
            *recover = Some(end);
        }
    }

    /// What to send again now, and how many bytes of it at most; nothing where no loss is being
    /// repaired, or enough is on its way.
    pub(super) fn to_resend(&self, settings: &Settings) -> Option<(SequenceNumber, u32)> {
        let size = u32::from(self.data_size());
        if self.marks.has(Marks::TAIL_DUE) {
            return (!self.can_probe_with_new(settings)).then(|| (self.tail(), size));
        }
        if self.marks.has(Marks::RACK) {
            return self.to_resend_by_time(size);
        }
        if self.marks.has(Marks::RESEND) {
            return Some((self.unacknowledged, size));
        }
        if !self.marks.has(Marks::RECOVERY) || !self.marks.has(Marks::SACK) {
            return None;
        }
        // RFC 6675 section 5, step (C): "If cwnd - pipe >= 1 SMSS, the sender SHOULD transmit one
        // or more segments".
        if self.congestion.window() < self.pipe() + size {
            return None;
        }
        let hole = self.sacked().next_hole(self.resent(), self.lost_before()?)?;
        Some((hole.start, size.min(hole.len())))
    }

    /// The same by RFC 8985: the first that is lost, and of those that follow as many as there is
    /// room for in the window. Section 9.3: "A segment marked as lost by RACK-TLP MUST NOT be
    /// retransmitted until congestion control deems this appropriate."
    fn to_resend_by_time(&self, size: u32) -> Option<(SequenceNumber, u32)> {
        let disorder = self.disorder.as_ref()?;
        let hole = disorder.rack.first_lost(self.unacknowledged, &disorder.sacked)?;
        let has_room = self.congestion.window() >= self.pipe() + size;
        let is_due = self.marks.has(Marks::RESEND) || self.marks.has(Marks::RECOVERY) && has_room;
        is_due.then(|| (hole.start, size.min(hole.len())))
    }
}
