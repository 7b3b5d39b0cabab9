//! Input of a connection: RFC 9293 section 3.10.7 in its order of steps, with the additions of
//! later RFCs.

use wirestorm_wire::packet::tcp::Flags;

use super::congestion::Congestion;
use super::connection::{Connection, EndReason, State, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use super::ranges::SequenceRange;
use super::segment::{Ecn, Segment};
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// Effect of a received segment, for the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOutcome {
    /// Number of bytes that arrived next in sequence.
    pub data: u32,
    /// Number of bytes, from the start of the segment on, that were accepted beyond a hole.
    pub out_of_order: u32,
    /// Whether all of the peer's data has now arrived, including its FIN.
    pub is_end: bool,
    /// Whether the segment established the connection.
    pub is_established: bool,
    /// Number of our bytes that it newly acknowledged.
    pub acknowledged: u32,
    /// Sequence number of the RST to answer with, if the segment cannot belong to this connection.
    pub reset: Option<SequenceNumber>,
}

/// RFC 7323 section 5.5: "a mechanism to 'invalidate' the TS.Recent value when a connection is idle
/// for more than 24 days".
const TIMESTAMP_AGE_MAX: u32 = 24 * 24 * 3_600 * 1_000;

impl Connection {
    /// Processes a received segment.
    #[inline]
    pub fn handle_segment(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> SegmentOutcome {
        counters.rcvtotal += u64::from(segment.segments);
        self.start_keepalive(settings, now);
        match self.state {
            State::Closed => SegmentOutcome::default(),
            State::SynSent => self.arrive_in_syn_sent(segment, settings, now, counters),
            _ => self.arrive_synchronized(segment, settings, now, counters),
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn arrive_in_syn_sent(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> SegmentOutcome {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && !self.is_of_syn(segment.acknowledgement) {
            // First: it answers a SYN of an earlier connection.
            let is_reset = segment.flags.contains(Flags::RST);
            let reset = (!is_reset).then_some(segment.acknowledgement);
            return SegmentOutcome { reset, ..SegmentOutcome::default() };
        }
        if segment.flags.contains(Flags::RST) {
            // Second: a RST counts only if it acknowledges our SYN.
            if acknowledges {
                counters.rst_received += 1;
                self.finish(EndReason::Refused, counters);
            }
            return SegmentOutcome::default();
        }
        if !segment.flags.contains(Flags::SYN) {
            counters.badsyn += 1;
            return SegmentOutcome::default();
        }
        // Fourth.
        self.negotiate(settings, segment, now, counters);
        if !acknowledges {
            // Simultaneous open (RFC 9293 section 3.5, figure 7).
            self.state = State::SynReceived;
            self.marks.set(StateFlags::SYN_DUE);
            self.next = self.unacknowledged;
            return SegmentOutcome::default();
        }
        self.marks.set(StateFlags::ACK_DUE);
        self.establish(settings, now, counters);
        let acknowledged =
            self.acknowledge(segment.acknowledgement, false, settings, now, counters);
        let mut arrival =
            SegmentOutcome { is_established: true, acknowledged, ..SegmentOutcome::default() };
        counters.fast_open_acked += u64::from(acknowledged > 0);
        // Data sent with the SYN that the peer did not accept is sent again.
        self.next = segment.acknowledgement;
        if segment.length > 0 || segment.flags.contains(Flags::FIN) {
            // "If there are other controls or text in the segment, then continue processing at the
            // sixth step".
            // ECE and CWR with SYN negotiate ECN and signal no congestion (RFC 3168 section 6.1.1).
            let flags = Flags(segment.flags.0 & !(Flags::SYN | Flags::ECE | Flags::CWR).0);
            let behind = Segment { sequence: segment.sequence + 1, flags, ..*segment };
            self.arrive_data(&behind, settings, now, counters, &mut arrival);
        }
        arrival
    }

    fn establish(&mut self, settings: &Settings, now: Now, counters: &mut TcpCounters) {
        counters.connects += 1;
        self.state = State::Established;
        if self.marks.has(StateFlags::CLOSED) {
            self.state = State::FinWait1;
        }
        // RFC 6298 section 5.7: after a retransmission of the SYN, "the RTO MUST be re-initialized
        // to 3 seconds when data transmission begins".
        if self.expiries > 0 {
            self.round_trip.restart_after_syn_timeout();
        }
        // RFC 6928 section 2: the window starts with one segment after "more than one SYN or
        // SYN/ACK retransmissions", but not after one.
        if self.expiries > 1 {
            self.congestion = Congestion::new(settings.congestion, self.data_size(), 1);
        }
        self.marks.clear(StateFlags::KEEPALIVE);
        self.start_keepalive(settings, now);
        self.timestamp_at = now.millis;
    }

    /// RFC 9293 section 3.10.7.4.
    #[inline]
    fn arrive_synchronized(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> SegmentOutcome {
        let stripped;
        let mut segment = segment;
        if segment.flags.contains(Flags::SYN) && segment.sequence == self.initial_receive {
            stripped = self.strip_repeated_syn(segment);
            segment = &stripped;
        }
        if !self.is_timestamp_good(segment, now, counters)
            || !self.is_acceptable(segment, settings, now, counters)
        {
            return SegmentOutcome::default();
        }
        self.note_timestamp(segment, now);
        if segment.flags.contains(Flags::RST) {
            return self.arrive_reset(segment, now, counters);
        }
        if segment.flags.contains(Flags::SYN) {
            counters.badsyn += 1;
            if self.state == State::SynReceived && self.marks.has(StateFlags::PASSIVE) {
                // Fourth: "return this connection to the LISTEN state", which needs no state here.
                self.finish(EndReason::Refused, counters);
            } else {
                // RFC 5961 section 4.2: "If the SYN bit is set, irrespective of the sequence
                // number, TCP MUST send an ACK".
                self.challenge(now, counters);
            }
            return SegmentOutcome::default();
        }
        if !segment.flags.contains(Flags::ACK) {
            return SegmentOutcome::default();
        }
        let mut arrival = SegmentOutcome::default();
        if self.state == State::SynReceived {
            if !self.is_of_syn(segment.acknowledgement) {
                arrival.reset = Some(segment.acknowledgement);
                return arrival;
            }
            self.send_window = self.window_of(segment);
            self.window_sequence = segment.sequence;
            self.window_acknowledgement = segment.acknowledgement;
            self.establish(settings, now, counters);
            arrival.is_established = true;
        }
        let Some(acknowledged) = self.arrive_acknowledgement(segment, settings, now, counters)
        else {
            return arrival;
        };
        arrival.acknowledged = acknowledged;
        if self.state == State::Closed {
            return arrival;
        }
        self.note_congestion(segment, counters);
        if segment.length > 0 || segment.flags.contains(Flags::FIN) {
            self.arrive_data(segment, settings, now, counters, &mut arrival);
        }
        arrival
    }

    /// Strips the SYN from a segment that repeats the peer's SYN, and makes an answer due, because
    /// ours was lost. In figure 7 of RFC 9293 the segment acknowledges our own SYN.
    #[cold]
    fn strip_repeated_syn<'a>(&mut self, segment: &Segment<'a>) -> Segment<'a> {
        // ECE and CWR with SYN negotiate ECN and signal no congestion (RFC 3168 section 6.1.1).
        let flags = Flags(segment.flags.0 & !(Flags::SYN | Flags::ECE | Flags::CWR).0);
        if self.state == State::SynReceived && !flags.contains(Flags::ACK) {
            self.marks.set(StateFlags::SYN_DUE);
        } else {
            self.marks.set(StateFlags::ACK_DUE);
        }
        // RFC 7323 section 2.2: the window of a SYN "MUST NOT be scaled". Undo the shift of
        // `window_of`.
        let window = segment.window >> self.scales.send();
        Segment { flags, sequence: segment.sequence + 1, window, ..*segment }
    }

    /// Checks the timestamp to protect against wrapped sequence numbers (PAWS). RFC 7323 section
    /// 5.3, R1: if "SEG.TSval < TS.Recent, TS.Recent is valid [...], and if the RST bit is not set,
    /// then treat the arriving segment as not acceptable".
    #[inline]
    fn is_timestamp_good(
        &mut self,
        segment: &Segment<'_>,
        now: Now,
        counters: &mut TcpCounters,
    ) -> bool {
        if !self.marks.has(StateFlags::TIMESTAMPS) || segment.flags.contains(Flags::RST) {
            return true;
        }
        // RFC 7323 section 3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD
        // silently drop the segment."
        let Some(timestamps) = segment.options.timestamps else { return false };
        let is_older = (timestamps.value.wrapping_sub(self.timestamp) as i32) < 0;
        if is_older && now.millis.wrapping_sub(self.timestamp_at) < TIMESTAMP_AGE_MAX {
            counters.pawsdrop += 1;
            self.marks.set(StateFlags::ACK_DUE);
            return false;
        }
        true
    }

    /// Stores the timestamp to echo. RFC 7323 section 4.3: "If: SEG.TSval >= TS.Recent and SEG.SEQ
    /// <= Last.ACK.sent then SEG.TSval is copied to TS.Recent; otherwise, it is ignored."
    #[inline]
    fn note_timestamp(&mut self, segment: &Segment<'_>, now: Now) {
        if let Some(timestamps) = segment.options.timestamps
            && self.marks.has(StateFlags::TIMESTAMPS)
            && !self.acknowledged.is_before(segment.sequence)
        {
            self.timestamp = timestamps.value;
            self.timestamp_at = now.millis;
        }
    }

    /// First: whether any part of the segment is within the window.
    #[inline]
    fn is_acceptable(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> bool {
        let from_expected = segment.sequence.distance_from(self.expected);
        let window = self.offered.distance_from(self.expected);
        let span = segment.span() as i32;
        let starts_within = from_expected >= 0 && from_expected < window.max(1);
        let ends_within = span > 0 && from_expected < 0 && from_expected + span > 0;
        if starts_within && (span == 0 || window > 0) || ends_within {
            return true;
        }
        if segment.flags.contains(Flags::RST) {
            return false;
        }
        if from_expected.saturating_add(span) <= 0 {
            counters.rcvduppack += segment.with_data();
            counters.rcvdupbyte += u64::from(segment.length);
            let start = segment.data_start();
            self.note_duplicate_data(SequenceRange { start, end: start + segment.length });
        } else {
            counters.rcvpackafterwin += segment.with_data();
            counters.rcvbyteafterwin += u64::from(segment.length);
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            // Eighth: our last acknowledgement was lost.
            self.enter_time_wait(settings, now);
        }
        self.marks.set(StateFlags::ACK_DUE);
        false
    }

    /// Handles a RST. RFC 5961 section 3.2: only the exact next number resets. A RST that "does not
    /// exactly match the next expected sequence value, yet is within the current receive window"
    /// may be forged.
    fn arrive_reset(
        &mut self,
        segment: &Segment<'_>,
        now: Now,
        counters: &mut TcpCounters,
    ) -> SegmentOutcome {
        if segment.sequence != self.expected {
            self.challenge(now, counters);
            return SegmentOutcome::default();
        }
        counters.rst_received += 1;
        let end = match self.state {
            State::SynReceived => EndReason::Refused,
            State::Closing | State::LastAck | State::TimeWait => EndReason::Closed,
            State::CloseWait => EndReason::ResetAfterClose,
            _ => EndReason::Reset,
        };
        self.finish(end, counters);
        SegmentOutcome::default()
    }

    /// Fifth: processes the acknowledgement. Returns the number of acknowledged bytes, or `None` to
    /// drop the segment.
    #[inline]
    fn arrive_acknowledgement(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<u32> {
        let number = segment.acknowledgement;
        let advance = number.distance_from(self.unacknowledged);
        if self.highest.is_before(number) {
            counters.rcvacktoomuch += 1;
            self.marks.set(StateFlags::ACK_DUE);
            return None;
        }
        // RFC 5961 section 5.2: "The ACK value is considered acceptable only if it is in the range
        // of ((SND.UNA - MAX.SND.WND) <= SEG.ACK <= SND.NXT)."
        if advance < 0 && advance.unsigned_abs() > self.send_window_max {
            self.challenge(now, counters);
            return None;
        }
        let window = self.window_of(segment);
        let is_paced = self.marks.has(StateFlags::PACED);
        if is_paced {
            self.begin_measuring(segment);
        }
        let is_watched = self.marks.has(StateFlags::RACK)
            && (self.disorder.is_some() || !segment.sack.is_empty());
        if is_watched {
            self.note_delivery(segment, now);
            self.note_dsack(segment);
            self.undo_if_spurious(segment);
            self.finish_probe(segment, now, counters);
        }
        let tells_news = self.note_sack(segment, settings, counters);
        self.handle_ecn_echo(segment, counters);
        let mut acknowledged = 0;
        if advance > 0 {
            let may_grow = !self.is_echo(segment);
            acknowledged = self.acknowledge(number, may_grow, settings, now, counters);
        } else if advance == 0 && self.is_duplicate(segment, window, tells_news) {
            counters.rcvdupack += 1;
            self.note_duplicate(settings, now, counters);
        }
        if is_watched {
            self.find_losses(now, counters);
        }
        let is_newer = self.window_sequence.is_before(segment.sequence)
            || self.window_sequence == segment.sequence
                && !number.is_before(self.window_acknowledgement);
        if is_newer {
            if segment.span() == 0 && advance == 0 && window > self.send_window {
                counters.rcvwinupd += 1;
            }
            self.note_window(window, settings, now);
            self.window_sequence = segment.sequence;
            self.window_acknowledgement = number;
        }
        if is_paced {
            self.end_measuring(now);
        }
        Some(acknowledged)
    }

    /// Whether an acknowledgement of nothing new indicates that a segment arrived beyond a hole.
    /// With SACK this follows RFC 6675 section 2, else RFC 5681 section 2. Answers to window probes
    /// do not count.
    fn is_duplicate(&self, segment: &Segment<'_>, window: u32, tells_news: bool) -> bool {
        if self.marks.has(StateFlags::PERSIST) {
            return false;
        }
        if self.marks.has(StateFlags::SACK) {
            return tells_news;
        }
        let is_in_flight = self.unacknowledged != self.highest;
        is_in_flight && segment.span() == 0 && window == self.send_window
    }

    /// Returns the scaled window that a segment offers.
    #[inline]
    fn window_of(&self, segment: &Segment<'_>) -> u32 {
        u32::from(segment.window) << self.scales.send()
    }

    #[inline]
    fn note_window(&mut self, window: u32, settings: &Settings, now: Now) {
        self.send_window = window;
        self.send_window_max = self.send_window_max.max(window);
        if !self.marks.has(StateFlags::PERSIST) {
            return;
        }
        // The peer answers, so it may keep its window closed for any time.
        self.expiries = 0;
        // If nothing is in flight, the timer keeps running until it is worthwhile to send.
        // Otherwise a peer that opens its window byte by byte would delay it forever.
        let waits_on =
            self.unacknowledged == self.highest && self.marks.has(StateFlags::RETRANSMIT);
        if window > 0 && !waits_on {
            self.marks.clear(StateFlags::PERSIST);
            self.marks.clear(StateFlags::PROBE_DUE);
            // The peer may have discarded the byte of the probe.
            self.next = self.unacknowledged;
            self.round_trip.reset_back_off();
            self.restart_retransmission(settings, now);
        }
    }

    /// Processes an acknowledgement of new data up to `number`. `may_grow` allows the congestion
    /// window to grow. Returns the number of acknowledged bytes.
    #[inline]
    fn acknowledge(
        &mut self,
        number: SequenceNumber,
        may_grow: bool,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> u32 {
        let advance = number.distance_from(self.unacknowledged).max(0) as u32;
        counters.rcvackpack += 1;
        if self.marks.has(StateFlags::TIMED) && self.timed.is_before(number) {
            counters.rttupdated += 1;
            self.marks.clear(StateFlags::TIMED);
            self.marks.clear(StateFlags::PROBED);
            // Only one segment at a time is timed, so there is one sample per round trip.
            const SAMPLES: u32 = 1;
            let took = (now.micros as u32).wrapping_sub(self.timed_at);
            self.round_trip.sample(took, SAMPLES);
        }
        // SYN and FIN are not data.
        let of_syn = u32::from(self.marks.has(StateFlags::SYN_UNACKNOWLEDGED));
        self.marks.clear(StateFlags::SYN_UNACKNOWLEDGED);
        let of_fin = u32::from(self.queued.is_before(number));
        let bytes = advance.saturating_sub(of_syn + of_fin);
        counters.rcvackbyte += u64::from(bytes);
        self.unacknowledged = number;
        if self.next.is_before(number) {
            self.next = number;
        }
        self.note_progress(number, bytes, may_grow, now);
        self.expiries = 0;
        // RFC 6298 section 5 ends the backoff with the next sample (Karn's algorithm). On a path
        // with 10 % loss, samples without timestamps are rare, and the flow would stall for
        // minutes. So any acknowledgement of new data ends it here.
        self.round_trip.reset_back_off();
        self.restart_retransmission(settings, now);
        self.marks.clear(StateFlags::TAIL_PROBE_DUE);
        self.arm_probe_timer();
        if self.is_fin_acknowledged() {
            counters.rcvackbyte_of += u64::from(of_fin);
            match self.state {
                State::FinWait1 => self.state = State::FinWait2,
                State::Closing => self.enter_time_wait(settings, now),
                State::LastAck => self.finish(EndReason::Closed, counters),
                _ => {}
            }
        }
        bytes
    }

    /// Handles ECN marks and CWR. RFC 3168 section 6.1.3: the receiver sets ECE until it receives
    /// CWR.
    #[inline]
    fn note_congestion(&mut self, segment: &Segment<'_>, counters: &mut TcpCounters) {
        if !self.marks.has(StateFlags::ECN) {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.marks.clear(StateFlags::ECHO);
        }
        let segments = u64::from(segment.segments);
        match segment.ecn {
            Ecn::CE => {
                counters.ecn_ce += segments;
                self.marks.set(StateFlags::ECHO);
                self.marks.set(StateFlags::ACK_DUE);
            }
            Ecn::ECT_0 => counters.ecn_ect0 += segments,
            Ecn::ECT_1 => counters.ecn_ect1 += segments,
            _ => {}
        }
    }

    /// Seventh and eighth: processes data and FIN.
    ///
    /// Urgent data, the sixth step, is handled as normal data. "TCP implementations MUST still
    /// include support for the urgent mechanism" (RFC 9293 section 3.8.5), which means to "signal
    /// the user that the remote side has urgent data" (section 3.10.7.4). Programs here cannot use
    /// that signal, so URG and the urgent pointer are ignored.
    ///
    /// The urgent data stays in the stream: RFC 6093 section 6 has it "delivered in line, as
    /// intended by the IETF specifications". This end sends none ("new applications SHOULD NOT
    /// employ the TCP urgent mechanism").
    #[inline]
    fn arrive_data(
        &mut self,
        segment: &Segment<'_>,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
        arrival: &mut SegmentOutcome,
    ) {
        let can_receive =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if !can_receive {
            // The peer's FIN has arrived, so no data can follow.
            counters.rcvafterclose += segment.with_data();
            self.marks.set(StateFlags::ACK_DUE);
            return;
        }
        let mut start = segment.sequence;
        let mut end = segment.sequence + segment.length;
        let mut has_fin = segment.flags.contains(Flags::FIN);
        let before = self.expected.distance_from(start);
        if before > 0 {
            let before = (before as u32).min(segment.length);
            counters.rcvpartduppack += u64::from(before > 0);
            counters.rcvpartdupbyte += u64::from(before);
            self.note_duplicate_data(SequenceRange { start, end: start + before });
            start = self.expected;
            self.marks.set(StateFlags::ACK_DUE);
        }
        let beyond = end.distance_from(self.offered);
        if beyond > 0 {
            counters.rcvpackafterwin += 1;
            counters.rcvbyteafterwin += beyond as u64;
            end = self.offered;
            has_fin = false;
            self.marks.set(StateFlags::ACK_DUE);
        }
        if start != self.expected {
            let range = SequenceRange { start, end };
            arrival.out_of_order =
                self.keep_beyond_hole(range, segment.segments, has_fin, settings, counters);
            return;
        }
        let length = end.distance_from(start).max(0) as u32;
        self.expected = end;
        if length > 0 {
            counters.rcvpack += u64::from(segment.segments);
            counters.rcvoffloads += u64::from(segment.segments.saturating_sub(1));
        }
        let mut fin = has_fin.then_some(end);
        if self.disorder.is_some() {
            fin = fin.or(self.join_what_arrived(end, counters));
        }
        arrival.data = self.expected.distance_from(start).max(0) as u32;
        counters.rcvbyte += u64::from(arrival.data);
        let segments = u8::try_from(segment.segments).unwrap_or(u8::MAX);
        self.answer_data(segments, settings, now);
        if fin == Some(self.expected) {
            self.arrive_fin(settings, now);
            arrival.is_end = true;
        }
    }

    /// Schedules the acknowledgement of received data (RFC 9293 section 3.8.6.3, RFC 5681 section
    /// 4.2).
    #[inline]
    fn answer_data(&mut self, segments: u8, settings: &Settings, now: Now) {
        self.unacknowledged_segments = self.unacknowledged_segments.saturating_add(segments);
        let is_enough = match settings.ack_after_bytes {
            0 => self.unacknowledged_segments >= 2,
            bytes => self.expected.distance_from(self.acknowledged) as u32 >= bytes,
        };
        if is_enough || settings.delayed_ack_ms == 0 {
            self.marks.set(StateFlags::ACK_DUE);
        } else if !self.marks.has(StateFlags::ACK_WAITS) {
            self.marks.set(StateFlags::ACK_WAITS);
            self.acknowledge_at = now.millis.wrapping_add(u32::from(settings.delayed_ack_ms));
        }
    }

    /// Continues after in-order data up to `end` with the data that arrived beyond it. Returns the
    /// number of the peer's FIN, if it has arrived.
    #[cold]
    fn join_what_arrived(
        &mut self,
        end: SequenceNumber,
        counters: &mut TcpCounters,
    ) -> Option<SequenceNumber> {
        let disorder = self.disorder.as_mut()?;
        if !disorder.arrived.is_empty() {
            // RFC 5681 section 4.2: "the receiver SHOULD send an immediate ACK when it receives a
            // data segment that fills in all or part of a gap".
            self.marks.set(StateFlags::ACK_DUE);
            self.expected = disorder.arrived.join(end);
            if disorder.arrived.is_empty() {
                disorder.end_reassembly(counters);
            }
        }
        let fin = disorder.fin;
        disorder.fin = fin.filter(|fin| *fin != self.expected);
        self.settle();
        fin
    }

    /// Keeps the data of `segments` segments beyond a hole. Returns the number of accepted bytes.
    #[cold]
    fn keep_beyond_hole(
        &mut self,
        range: SequenceRange,
        segments: u16,
        has_fin: bool,
        settings: &Settings,
        counters: &mut TcpCounters,
    ) -> u32 {
        // RFC 5681 section 4.2: "the receiver SHOULD send an immediate duplicate ACK when it
        // receives a data segment above a gap in the sequence space."
        self.marks.set(StateFlags::ACK_DUE);
        self.marks.set(StateFlags::REORDERED);
        let segments = if range.is_empty() { 0 } else { segments };
        let twice = self.arrived().first_within(range);
        if let Some(twice) = twice {
            self.note_duplicate_data(twice);
        }
        let pieces_max = usize::from(settings.reassembly_max);
        let disorder = self.loss_state_mut();
        let has_room = range.is_empty() || pieces_max > 0;
        if !has_room || disorder.arrived.insert(range, pieces_max).is_err() {
            counters.rcvoopackdrop += u64::from(segments);
            counters.rcvoobytesdrop += u64::from(range.len());
            return 0;
        }
        if has_fin {
            disorder.fin = Some(range.end);
        }
        disorder.note_reassembly(counters);
        if twice == Some(range) {
            // As in tcp_reass() of BSD, data that was there completely counts as duplicate.
            counters.rcvduppack += u64::from(segments);
            counters.rcvdupbyte += u64::from(range.len());
            return range.len();
        }
        counters.rcvoopack += u64::from(segments);
        // Modulo 256.
        self.out_of_order = self.out_of_order.wrapping_add(segments as u8);
        counters.rcvoobyte += u64::from(range.len());
        range.len()
    }

    fn arrive_fin(&mut self, settings: &Settings, now: Now) {
        self.expected += 1;
        self.marks.set(StateFlags::ACK_DUE);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(settings, now),
            _ => {}
        }
    }
}
