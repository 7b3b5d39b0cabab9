//! Output of a connection: which segments to send (RFC 9293 sections 3.7 and 3.8, RFC 5681).

use wirestorm_wire::packet::tcp::Flags;

use super::connection::{Connection, SACK_BLOCKS_WITH_TIMESTAMPS, State, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use super::ranges::SequenceRange;
use super::segment::{Options, Outgoing, SACK_BLOCKS_MAX, Timestamps, sack_length};
use super::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// Limits of a burst that leaves a connection at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstLimit {
    /// Maximum number of segments, at least 1.
    pub(crate) segments: u32,
    /// Whether the last of several segments may be shorter than the others.
    pub(crate) has_tail: bool,
}

impl BurstLimit {
    const ONE: Self = Self { segments: 1, has_tail: false };
}

/// Data of an established connection that leaves at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRange {
    pub(super) start: SequenceNumber,
    /// Length of the data in bytes.
    pub(super) length: u32,
    /// Whether FIN follows the data.
    pub(super) has_fin: bool,
    /// Whether any of the data was sent before.
    pub(super) is_again: bool,
    /// Number of equally long segments, and length of a shorter one after them.
    segments: u32,
    tail: u32,
}

impl SendRange {
    const NOTHING: Self = Self {
        start: SequenceNumber(0),
        length: 0,
        has_fin: false,
        is_again: false,
        segments: 1,
        tail: 0,
    };
}

impl Connection {
    /// Returns the next segment to send, and counts it as sent. Call it until it returns `None`.
    pub fn poll_transmit(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<Outgoing> {
        self.poll_transmit_burst(BurstLimit::ONE, settings, now, counters)
    }

    /// Like [`Self::poll_transmit`], but new data may fill several segments, up to `room`. They come as
    /// one segment with others after it ([`Outgoing::more`]).
    #[inline]
    pub(crate) fn poll_transmit_burst(
        &mut self,
        room: BurstLimit,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<Outgoing> {
        let outgoing = match self.is_established() {
            true => {
                let part = self.part_due(room, settings, now, counters)?;
                self.segment(&part, settings, now)
            }
            false => self.depart_unestablished(room, settings, now, counters)?,
        };
        counters.sndtotal += u64::from(outgoing.segments());
        counters.sack_send_blocks += u64::from(outgoing.sack_blocks > 0);
        Some(outgoing)
    }

    /// Whether there may be something to send. A cheap check: if it returns false, [`Self::poll_transmit`]
    /// returns `None`.
    #[inline]
    pub(crate) fn may_transmit(&self) -> bool {
        self.next != self.send_end() || self.marks.has(StateFlags::ANY_DUE)
    }

    /// Selects what an established connection sends next.
    #[inline]
    fn part_due(
        &mut self,
        room: BurstLimit,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<SendRange> {
        if self.marks.has(StateFlags::PACED) {
            return self.part_due_paced(room, settings, now, counters);
        }
        self.repair_due(settings, now, counters)
            .or_else(|| self.data_due(room, settings, now, counters))
            .or_else(|| self.acknowledgement_due(counters))
    }

    #[cold]
    fn depart_unestablished(
        &mut self,
        room: BurstLimit,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<Outgoing> {
        match self.state {
            State::Closed => self.depart_reset(now, counters),
            _ if self.marks.has(StateFlags::SYN_DUE) => {
                Some(self.depart_syn(settings, now, counters))
            }
            State::SynReceived => {
                let part = match self.may_answer_early() {
                    true => self.part_due(room, settings, now, counters)?,
                    false => self.acknowledgement_due(counters)?,
                };
                // The retransmission timer must resend the SYN, not the data after it.
                self.marks.clear(StateFlags::PROBE_TIMER);
                Some(self.segment(&part, settings, now))
            }
            _ => None,
        }
    }

    fn depart_reset(&mut self, now: Now, counters: &mut TcpCounters) -> Option<Outgoing> {
        if !self.marks.has(StateFlags::RESET_DUE) {
            return None;
        }
        self.marks.clear(StateFlags::RESET_DUE);
        counters.rst_sent += 1;
        counters.sndctrl += 1;
        Some(self.reset(Flags::RST | Flags::ACK, now))
    }

    fn reset(&self, flags: Flags, now: Now) -> Outgoing {
        let acknowledges = flags.contains(Flags::ACK);
        Outgoing {
            sequence: self.highest,
            acknowledgement: if acknowledges { self.expected } else { SequenceNumber(0) },
            flags,
            window: 0,
            // RFC 7323 section 3.2: TSopt "SHOULD be sent in an <RST> segment".
            options: if acknowledges { self.timestamps(now) } else { Options::default() },
            sack_blocks: 0,
            length: 0,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable: false,
        }
    }

    /// Returns the RST that aborts a connection at the end of the run, and counts it as sent.
    /// Returns `None` if the peer has no state or closes by itself.
    ///
    /// RFC 9293 section 3.10.5 sends no RST in SYN-SENT, CLOSING and LAST-ACK, where the peer ends
    /// by itself. However, a peer in SYN-RECEIVED or one that waits for our FIN times out after a
    /// minute only, and keeps its state until then.
    #[cold]
    pub(crate) fn abort_segment(&self, now: Now, counters: &mut TcpCounters) -> Option<Outgoing> {
        let flags = match self.state {
            State::TimeWait | State::Closed => return None,
            // The SYN has not left yet.
            State::SynSent if self.highest == self.unacknowledged => return None,
            State::SynSent => Flags::RST,
            _ => Flags::RST | Flags::ACK,
        };
        counters.rst_sent += 1;
        counters.sndctrl += 1;
        counters.sndtotal += 1;
        Some(self.reset(flags, now))
    }

    fn timestamps(&self, now: Now) -> Options {
        let timestamps = Timestamps { value: now.millis, echo: self.timestamp };
        let are_agreed = self.marks.has(StateFlags::TIMESTAMPS);
        Options { timestamps: are_agreed.then_some(timestamps), ..Options::default() }
    }

    fn depart_syn(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Outgoing {
        self.marks.clear(StateFlags::SYN_DUE);
        counters.sndctrl += 1;
        let is_first = self.highest == self.unacknowledged;
        if is_first {
            self.time(self.unacknowledged, now, counters);
        } else {
            self.marks.clear(StateFlags::TIMED);
        }
        let is_answer = self.state == State::SynReceived;
        let length = if is_answer { 0 } else { self.syn_data() };
        counters.fast_open_sent += u64::from(length > 0);
        counters.sndpack += u64::from(length > 0);
        counters.sndbyte_ok += u64::from(length);
        self.next = self.unacknowledged + 1 + length;
        if self.highest.is_before(self.next) {
            self.highest = self.next;
        }
        self.start_retransmission(settings, now);
        let mut flags = Flags::SYN;
        if is_answer {
            flags |= Flags::ACK;
        }
        if self.marks.has(StateFlags::ECN) {
            // RFC 3168 section 6.1.1: the "ECN-setup SYN packet" and the "ECN-setup SYN-ACK
            // packet".
            flags |= if is_answer { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
        let scales = settings.window_scaling && (!is_answer || self.marks.has(StateFlags::SCALED));
        let window = settings.receive_buffer.min(u32::from(u16::MAX));
        if is_answer {
            self.note_acknowledging();
        }
        Outgoing {
            sequence: self.unacknowledged,
            acknowledgement: if is_answer { self.expected } else { SequenceNumber(0) },
            flags,
            window: window as u16,
            options: Options {
                maximum_segment_size: Some(settings.maximum_segment_size),
                window_scale: scales.then(|| settings.window_scale()),
                sack_permitted: self.marks.has(StateFlags::SACK),
                // The owner of the cookie sets its length.
                cookie_length: self.marks.has(StateFlags::FAST_OPEN).then_some(0),
                ..self.timestamps(now)
            },
            sack_blocks: 0,
            length,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable: false,
        }
    }

    /// Selects the next retransmission that repairs a loss.
    #[inline]
    pub(super) fn repair_due(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<SendRange> {
        if !self.marks.has(StateFlags::ANY_REPAIR) {
            return None;
        }
        self.repair(settings, now, counters)
    }

    #[cold]
    fn repair(
        &mut self,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<SendRange> {
        let (start, length_max) = self.next_retransmission(settings)?;
        let is_probe = self.marks.has(StateFlags::TAIL_PROBE_DUE);
        self.marks.clear(StateFlags::RESEND);
        // Data that was never sent is new data, and subject to the windows.
        let left = self.sent_to().distance_from(start).max(0) as u32;
        let length = left.min(length_max).min(self.data_size_now().into());
        let end = start + length;
        let has_fin = self.marks.has(StateFlags::CLOSED)
            && end == self.queued
            && self.queued.is_before(self.highest);
        if length == 0 && !has_fin {
            return None;
        }
        let behind = end + u32::from(has_fin);
        if self.high_rxt_or_una().is_before(behind) {
            self.loss_state_mut().high_rxt = Some(behind);
        }
        if !self.timed.is_before(start) && self.timed.is_before(behind) {
            // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
            // retransmitted".
            self.marks.clear(StateFlags::TIMED);
        }
        self.note_departure(start, behind, now);
        match is_probe {
            true => self.note_probe(true, counters),
            false => self.note_retransmission(SequenceRange { start, end }),
        }
        // A probe of the tail, or of all data in flight, fills no hole that SACK reported.
        let is_sacked = self.sacked().end().is_some_and(|sacked_end| start.is_before(sacked_end));
        if is_sacked && !is_probe && length > 0 {
            counters.sack_rexmits += 1;
            counters.sack_rexmit_bytes += u64::from(length);
        }
        counters.sndctrl += u64::from(has_fin);
        counters.sndrexmitpack += u64::from(length > 0);
        self.retransmitted = self.retransmitted.wrapping_add(u8::from(length > 0));
        counters.sndrexmitbyte += u64::from(length);
        self.restart_retransmission(settings, now);
        Some(SendRange { start, length, has_fin, is_again: true, ..SendRange::NOTHING })
    }

    /// Selects new data, or after a timeout data that was sent before, and FIN after the last byte.
    #[inline]
    pub(super) fn data_due(
        &mut self,
        most: BurstLimit,
        settings: &Settings,
        now: Now,
        counters: &mut TcpCounters,
    ) -> Option<SendRange> {
        let end = self.send_end();
        if self.next == end {
            self.marks.clear(StateFlags::LIMITED);
            return None;
        }
        if self.next.is_before(self.highest) {
            self.skip_sacked();
        }
        if self.unacknowledged == self.highest {
            self.restart_after_idle(settings, now);
        }
        let left = self.queued.distance_from(self.next).max(0) as u32;
        let size = u32::from(self.data_size_now());
        let pipe = self.pipe();
        // RFC 8985 section 7.3: "the FlightSize could be one packet greater than the congestion
        // window temporarily".
        let is_tail_probe = self.marks.has(StateFlags::TAIL_PROBE_DUE);
        let window = match is_tail_probe {
            true => u32::MAX,
            false => self.congestion_window(size).saturating_sub(pipe),
        };
        let offered = self.offered_end(settings);
        let room = offered.distance_from(self.next).max(0) as u32;
        let is_again = self.next.is_before(self.highest);
        let is_probe = self.marks.has(StateFlags::PROBE_DUE);
        self.marks.put(StateFlags::LIMITED, window < left.min(size).min(room));
        let possible = left.min(window).min(room);
        let mut length = possible.min(size);
        let mut segments = 1;
        // Segments differ from the next ones if each has PSH, or if the first one has CWR.
        let are_unlike =
            is_again || is_tail_probe || settings.push_all || self.marks.has(StateFlags::CWR_DUE);
        let mut tail = 0;
        if possible / 2 >= size && most.segments > 1 && !are_unlike {
            segments = (possible / size).min(most.segments);
            length = segments * size;
            // The rules against short segments are below; they never hold back FIN.
            let may_be_short = settings.no_delay || self.marks.has(StateFlags::CLOSED);
            if most.has_tail && may_be_short && possible == left && segments < most.segments {
                tail = left - length;
                length = left;
            }
        }
        let has_fin = length == left && self.marks.has(StateFlags::CLOSED);
        if is_probe && left > 0 {
            // RFC 9293 section 3.8.6.1: "transmit at least one octet of new data (if available)".
            // Section 3.8.6.2.1 sends what fits "if the override timeout occurs", and "It may be
            // convenient to combine this timer with the timer used to probe zero windows".
            counters.sndprobe += u64::from(length == 0);
            length = length.max(1);
        } else if length < size && !has_fin && !is_tail_probe {
            // RFC 9293 section 3.8.6.2.1, against silly windows: "if at least a fraction Fs of the
            // maximum window can be sent", with Fs = 1/2. Section 3.7.4, Nagle: the sender "buffers
            // all user data [...] until the outstanding data has been acknowledged or until the TCP
            // endpoint can send a full-sized segment".
            // Our own SYN in flight does not count as outstanding data.
            let is_idle = pipe == u32::from(self.marks.has(StateFlags::SYN_UNACKNOWLEDGED));
            let is_worth_it = if is_again {
                // RFC 6675 section 5 (C) begins "If cwnd - pipe >= 1 SMSS". The data in flight
                // makes room for the rest of a segment that was sent before.
                is_idle || window >= left.min(room)
            } else if length < left {
                let window_max = self.send_window_max.min(settings.send_buffer);
                // If the congestion window is the limit, no timer waits for a larger one.
                length >= window_max / 2 || is_idle && window < room
            } else {
                is_idle || settings.no_delay
            };
            if length == 0 || !is_worth_it {
                self.wait_for_window(pipe, left, settings, now);
                return None;
            }
        }
        if length == 0 && !has_fin {
            self.wait_for_window(pipe, left, settings, now);
            return None;
        }
        if self.marks.has(StateFlags::PERSIST) {
            self.leave_persist(length <= room);
        }
        let start = self.next;
        self.next = start + length + u32::from(has_fin);
        self.note_departure(start, self.next, now);
        if is_again {
            counters.sndrexmitpack += u64::from(length > 0);
            self.retransmitted = self.retransmitted.wrapping_add(u8::from(length > 0));
            // A segment may start with data that was sent before (a probe) and continue with new
            // data.
            let again = length.min(self.highest.distance_from(start).max(0) as u32);
            counters.sndrexmitbyte += u64::from(again);
            counters.sndbyte_ok += u64::from(length - again);
        } else if length > 0 {
            counters.sndpack += u64::from(segments + u32::from(tail > 0));
            counters.sndbyte_ok += u64::from(length);
            if !self.marks.has(StateFlags::TIMED) {
                self.time(start, now, counters);
            }
        }
        counters.sndctrl += u64::from(has_fin);
        if self.highest.is_before(self.next) {
            self.highest = self.next;
        }
        self.start_retransmission(settings, now);
        match is_tail_probe {
            true => self.note_probe(is_again, counters),
            false => self.arm_probe_timer(),
        }
        Some(SendRange { start, length, has_fin, is_again, segments, tail })
    }

    /// Returns the maximum number of segments of the next [`Self::poll_transmit_burst`], at least 1. The
    /// caller uses it to allocate frames.
    #[inline]
    pub(crate) fn burst_max(&self) -> u32 {
        let left = self.queued.distance_from(self.next).max(0) as u32;
        let size = self.segment_size_max();
        if left <= size { 1 } else { left.min(self.congestion.window()) / size + 1 }
    }

    /// Maximum data length of a segment with few options; at least 1.
    #[inline]
    pub(crate) fn segment_size_max(&self) -> u32 {
        u32::from(self.segment_size).max(1)
    }

    /// Reduces the congestion window after an idle period. RFC 5681 section 4.1: "a TCP SHOULD set
    /// cwnd to no more than RW before beginning transmission if the TCP has not sent data in an
    /// interval exceeding the retransmission timeout."
    #[inline]
    fn restart_after_idle(&mut self, settings: &Settings, now: Now) {
        if now.millis.wrapping_sub(self.sent_at) > self.timeout_ms(settings) {
            self.congestion.after_idle(u32::from(settings.initial_window));
        }
    }

    /// Returns the congestion window plus one segment for each duplicate acknowledgement.
    ///
    /// RFC 5681 section 3.2: "On the first and second duplicate ACKs received at a sender, a TCP
    /// SHOULD send a segment of previously unsent data per \[RFC3042\]", and "For each additional
    /// duplicate ACK received (after the third), cwnd MUST be incremented by SMSS." With SACK
    /// information there is no addition, because the pipe already excludes data that left the
    /// network.
    #[inline]
    fn congestion_window(&self, size: u32) -> u32 {
        let window = self.congestion.window();
        let duplicate_acks = self.duplicate_acks();
        if duplicate_acks == 0 {
            return window;
        }
        let has_sacked = !self.sacked().is_empty();
        let extra = if has_sacked { 0 } else { u32::from(duplicate_acks) };
        window.saturating_add(extra * size)
    }

    /// After a timeout, skips data that the peer has acknowledged with SACK.
    #[cold]
    fn skip_sacked(&mut self) {
        if !self.sacked().is_empty() {
            let hole = self.sacked().next_hole(self.next, self.highest);
            self.next = hole.map_or(self.highest, |hole| hole.start);
        }
    }

    /// Starts the persist timer if no acknowledgement can open a window that is closed or too small
    /// to send.
    fn wait_for_window(&mut self, pipe: u32, left: u32, settings: &Settings, now: Now) {
        if left > 0 && pipe == 0 && !self.marks.has(StateFlags::RETRANSMIT) {
            self.marks.set(StateFlags::PERSIST);
            self.start_retransmission(settings, now);
        }
    }

    /// Ends the persist state: the held-back data leaves. If it `fits` the peer's window, the
    /// normal retransmission timer replaces the persist timer.
    #[cold]
    fn leave_persist(&mut self, fits: bool) {
        self.marks.clear(StateFlags::PROBE_DUE);
        if fits {
            self.marks.clear(StateFlags::PERSIST);
            self.marks.clear(StateFlags::RETRANSMIT);
        }
    }

    /// Selects a segment without data, if one is due.
    #[inline]
    pub(super) fn acknowledgement_due(&mut self, counters: &mut TcpCounters) -> Option<SendRange> {
        if !self.marks.has(StateFlags::ANY_ACK) {
            return None;
        }
        let mut start = self.highest;
        if self.marks.has(StateFlags::KEEPALIVE_DUE) {
            // The peer must answer a number which it has already acknowledged.
            self.marks.clear(StateFlags::KEEPALIVE_DUE);
            counters.keepprobe += 1;
            start = self.unacknowledged - 1;
        }
        counters.challenge_ack += u64::from(self.marks.has(StateFlags::CHALLENGE_DUE));
        counters.sndacks += 1;
        Some(SendRange { start, ..SendRange::NOTHING })
    }

    /// Returns the number of SACK blocks to send, limited by the space for options.
    #[inline]
    fn sack_blocks_due(&self) -> u8 {
        if self.disorder.is_none() || !self.marks.has(StateFlags::SACK) {
            return 0;
        }
        let room = match self.marks.has(StateFlags::TIMESTAMPS) {
            true => SACK_BLOCKS_WITH_TIMESTAMPS,
            false => SACK_BLOCKS_MAX,
        };
        self.blocks_due().min(room) as u8
    }

    /// Maximum data length of a segment now, less the space for SACK blocks. RFC 9293 section
    /// 3.7.1: "for each segment sent, the sender should adjust the data length accordingly".
    #[inline]
    fn data_size_now(&self) -> u16 {
        let blocks = sack_length(self.sack_blocks_due().into()) as u16;
        self.data_size().saturating_sub(blocks).max(1)
    }

    /// Builds a segment of an established connection, which acknowledges all received data.
    #[inline]
    fn segment(&mut self, part: &SendRange, settings: &Settings, now: Now) -> Outgoing {
        let SendRange { start, length, has_fin, is_again, segments, tail } = *part;
        self.note_acknowledging();
        let mut flags = Flags::ACK;
        if has_fin {
            flags |= Flags::FIN;
        }
        // RFC 9293 section 3.9.1.2: the sender "MUST set the PSH bit in the last buffered segment
        // (i.e., when there is no more queued data to be sent)".
        if length > 0 && (settings.push_all || start + length == self.queued) {
            flags |= Flags::PSH;
        }
        if self.marks.has(StateFlags::ECHO) {
            flags |= Flags::ECE;
        }
        // RFC 3168 section 6.1.5: senders "MUST NOT set either ECT codepoint (ECT(0) or ECT(1)) in
        // the IP header for retransmitted data packets".
        let is_ecn_capable = self.marks.has(StateFlags::ECN) && !is_again && length > 0;
        if is_ecn_capable && self.marks.has(StateFlags::CWR_DUE) {
            self.note_cwr_sent(start + length);
            flags |= Flags::CWR;
        }
        let window = (settings.receive_buffer >> self.scales.receive()).min(u32::from(u16::MAX));
        let edge = self.expected + (window << self.scales.receive());
        if self.offered.is_before(edge) {
            self.offered = edge;
        }
        let sack_blocks = self.sack_blocks_due();
        if self.disorder.is_some() {
            self.mark_blocks_reported();
        }
        let mut outgoing = Outgoing {
            sequence: start,
            acknowledgement: self.expected,
            flags,
            window: window as u16,
            options: self.timestamps(now),
            sack_blocks,
            length,
            more: 0,
            tail: 0,
            last_flags: Flags(0),
            is_ecn_capable,
        };
        if segments > 1 {
            outgoing.split(segments, tail);
        }
        outgoing
    }

    #[inline]
    fn note_acknowledging(&mut self) {
        self.acknowledged = self.expected;
        self.marks.clear(StateFlags::ACK_DUE);
        self.marks.clear(StateFlags::ACK_WAITS);
        self.marks.clear(StateFlags::CHALLENGE_DUE);
        self.unacknowledged_segments = 0;
    }

    #[inline]
    fn time(&mut self, number: SequenceNumber, now: Now, counters: &mut TcpCounters) {
        counters.segstimed += 1;
        self.marks.set(StateFlags::TIMED);
        self.timed = number;
        self.timed_at = now.micros as u32;
    }
}
