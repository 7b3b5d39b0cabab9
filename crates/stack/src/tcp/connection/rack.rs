//! Loss detection by time: RACK and tail loss probes (RFC 8985).
//!
//! One entry covers all data that was sent at the same time, in any number of segments.
//! "RACK.segment" and similar terms are ranges of sequence numbers here. The connection itself
//! stores the newest burst, so a connection with a single burst in flight needs no entry.

use alloc::vec::Vec;

use super::{Connection, RANGES_MAX, StateFlags};
use crate::tcp::counters::TcpCounters;
use crate::tcp::now::Now;
use crate::tcp::ranges::{Ranges, SequenceRange};
use crate::tcp::segment::{Segment, sack_blocks};
use crate::tcp::sequence::SequenceNumber;
use wirestorm_model::tcp::Settings;

/// Number of recoveries without a DSACK after which the reordering window returns to its initial
/// size (section 6.2, step 4).
const RECOVERIES: u8 = 16;

/// Probe timeout before the first round-trip time sample, in ms (section 7.2).
const PROBE_TIMEOUT_INITIAL: u32 = 1_000;

/// Minimum probe timeout in ms; a timer of one tick could expire at once.
const PROBE_TIMEOUT_MIN: u32 = 2;

/// Data that was last sent at one time: from the end of the previous entry up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transmission {
    end: SequenceNumber,
    /// Times when the first and last part was sent, in microseconds modulo 2^32. They differ only
    /// in entries that were merged for lack of room.
    first_at: u32,
    at: u32,
    is_retransmission: bool,
    is_lost: bool,
}

impl Transmission {
    /// Merges the next entry into this one and keeps the loss state of this one.
    ///
    /// The merged entry counts as lost when its last part would. If it arrives, only data sent
    /// before its first part counts as sent earlier.
    fn join(&mut self, next: &Self) {
        if next.at.wrapping_sub(self.at).cast_signed() > 0 {
            self.at = next.at;
        }
        if next.first_at.wrapping_sub(self.first_at).cast_signed() < 0 {
            self.first_at = next.first_at;
        }
        self.is_retransmission |= next.is_retransmission;
        self.end = next.end;
    }
}

/// Outstanding tail loss probe.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// TLP.end_seq.
    end: SequenceNumber,
    /// TLP.is_retrans.
    is_again: bool,
}

/// Transmission and delivery times of segments.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Rack {
    /// Data from the oldest unacknowledged number to the newest burst, in order.
    sent: Vec<Transmission>,
    /// RACK.xmit_ts and RACK.end_seq: transmission time and end of the last sent data that arrived.
    delivered: Option<(u32, SequenceNumber)>,
    /// RACK.rtt: round-trip time of that data, in microseconds.
    round_trip: u32,
    /// RACK.fack: number after the highest one that arrived.
    highest_delivered: Option<SequenceNumber>,
    /// RACK.reordering_seen.
    is_reordered: bool,
    /// Number of increments of RACK.reo_wnd_mult.
    reo_wnd_mult: u8,
    /// RACK.reo_wnd_persist.
    reo_wnd_persist: u8,
    /// RACK.dsack_round.
    dsack_round: Option<SequenceNumber>,
    /// Expiry of the reordering timer in ms; valid while `Marks::REORDER` is set.
    reorder_at: u32,
    /// Time of the last window reduction for a loss, in microseconds.
    reduced_at: u32,
    /// Bytes found lost since the last call of [`Self::take_lost`].
    lost: u32,
    probe: Option<Probe>,
}

/// "RACK_sent_after" of section 6.2, step 2: whether one segment was sent after another.
fn is_after(
    (at, end): (u32, SequenceNumber),
    (other_at, other_end): (u32, SequenceNumber),
) -> bool {
    match at.wrapping_sub(other_at).cast_signed() {
        0 => other_end.is_before(end),
        later => later > 0,
    }
}

impl Rack {
    /// Whether the state equals a new one when all sent data is acknowledged.
    pub(in crate::tcp) fn is_pristine(&self) -> bool {
        // A later acknowledgement decides whether a retransmitted probe repaired a loss.
        self.probe.is_none() && !self.is_reordered && self.reo_wnd_mult == 0
    }

    /// Returns the number of bytes found lost since the last call.
    pub(in crate::tcp) const fn take_lost(&mut self) -> u32 {
        core::mem::replace(&mut self.lost, 0)
    }

    /// Drops entries of acknowledged data.
    fn advance(&mut self, to: SequenceNumber) {
        let gone = self.sent.partition_point(|sent| !to.is_before(sent.end));
        self.sent.drain(..gone);
    }

    /// Returns the sent ranges from the oldest unacknowledged number on.
    fn ranges(&self, from: SequenceNumber) -> impl Iterator<Item = (SequenceRange, Transmission)> {
        let known = self.sent.iter().filter(move |sent| from.is_before(sent.end));
        known.scan(from, |start, sent| {
            let range = SequenceRange { start: *start, end: sent.end };
            *start = sent.end;
            Some((range, *sent))
        })
    }

    /// Splits an entry so that one ends at `at`.
    fn split(&mut self, at: SequenceNumber) {
        let place = self.sent.partition_point(|sent| sent.end.is_before(at));
        if let Some(sent) = self.sent.get(place).copied()
            && sent.end != at
        {
            self.sent.insert(place, Transmission { end: at, ..sent });
        }
    }

    /// Adds newly sent data after all other.
    fn push(
        &mut self,
        end: SequenceNumber,
        unacknowledged: SequenceNumber,
        at: u32,
        sacked: &Ranges,
    ) {
        self.sent.push(Transmission {
            end,
            first_at: at,
            at,
            is_retransmission: false,
            is_lost: false,
        });
        self.compact(unacknowledged, sacked);
    }

    /// Records a retransmission.
    fn repeat(
        &mut self,
        range: SequenceRange,
        unacknowledged: SequenceNumber,
        at: u32,
        sacked: &Ranges,
    ) {
        self.advance(unacknowledged);
        if unacknowledged.is_before(range.start) {
            self.split(range.start);
        }
        self.split(range.end);
        let first = self.sent.partition_point(|sent| !range.start.is_before(sent.end));
        let behind = self.sent.partition_point(|sent| !range.end.is_before(sent.end));
        let again = Transmission {
            end: range.end,
            first_at: at,
            at,
            is_retransmission: true,
            is_lost: false,
        };
        self.sent.splice(first..behind, [again]);
        self.compact(unacknowledged, sacked);
    }

    /// Merges equal entries that are adjacent, and more if there are too many; the first entry
    /// starts at `from`.
    ///
    /// If there is no room, data that arrived merges with the next entry, and lost data with
    /// adjacent lost data. Then the oldest of the remaining entries merge, which delays the
    /// detection of their loss.
    fn compact(&mut self, from: SequenceNumber, sacked: &Ranges) {
        self.sent.dedup_by(|sent, before| {
            let is_same = Transmission { end: before.end, ..*sent } == *before;
            if is_same {
                before.end = sent.end;
            }
            is_same
        });
        if self.sent.len() <= RANGES_MAX {
            return;
        }
        let mut start = None;
        let newest = self.sent.last().map(|sent| sent.end);
        self.sent.retain(|sent| {
            let from = start.replace(sent.end);
            let has_arrived = from.is_some_and(|from| sacked.next_hole(from, sent.end).is_none());
            !has_arrived || newest == Some(sent.end)
        });
        self.join_lost();
        while self.sent.len() > RANGES_MAX {
            self.join_two(from);
        }
    }

    /// Merges adjacent entries that are lost and not retransmitted; their transmission time no
    /// longer matters.
    fn join_lost(&mut self) {
        self.sent.dedup_by(|sent, before| {
            let are_lost = sent.is_lost && before.is_lost;
            if are_lost {
                before.join(sent);
            }
            are_lost
        });
    }

    /// Merges the two oldest adjacent entries that are not lost. Their losses would be known by
    /// now, unlike those of recent entries.
    ///
    /// Without such a pair, the shortest entry between lost ones counts as lost as well and is
    /// retransmitted. No loss is ever dropped, because it would need a timeout to repair.
    #[cold]
    fn join_two(&mut self, from: SequenceNumber) {
        let are_not_lost = |two: &[Transmission]| !two[0].is_lost && !two[1].is_lost;
        if let Some(place) = self.sent.windows(2).position(are_not_lost) {
            let second = self.sent.remove(place + 1);
            return self.sent[place].join(&second);
        }
        let mut start = from;
        let (mut between, mut shortest) = (0, u32::MAX);
        for (place, sent) in self.sent.iter().enumerate() {
            let length = sent.end.distance_from(start).max(0) as u32;
            if !sent.is_lost && length < shortest {
                (between, shortest) = (place, length);
            }
            start = sent.end;
        }
        self.sent[between].is_lost = true;
        self.lost = self.lost.saturating_add(shortest);
        self.join_lost();
    }

    /// Clears all loss marks after a timeout, which retransmits everything.
    pub(in crate::tcp) fn time_out(&mut self) {
        for sent in &mut self.sent {
            sent.is_lost = false;
        }
        self.probe = None;
    }

    /// Returns the first range that is lost, not retransmitted and not received.
    pub(in crate::tcp) fn first_lost(
        &self,
        unacknowledged: SequenceNumber,
        sacked: &Ranges,
    ) -> Option<SequenceRange> {
        let lost = self.ranges(unacknowledged).filter(|(_, sent)| sent.is_lost);
        lost.filter_map(|(range, _)| sacked.next_hole(range.start, range.end)).next()
    }

    /// Returns the number of sent and lost bytes below `to`.
    pub(in crate::tcp) fn lost_bytes(
        &self,
        unacknowledged: SequenceNumber,
        to: SequenceNumber,
        sacked: &Ranges,
    ) -> u32 {
        let lost = self.ranges(unacknowledged).filter(|(_, sent)| sent.is_lost);
        lost.flat_map(|(range, _)| {
            let end = if to.is_before(range.end) { to } else { range.end };
            holes(sacked, SequenceRange { start: range.start, end })
        })
        .map(SequenceRange::len)
        .sum()
    }
}

/// Returns the parts of a range that are missing in `there`.
pub(in crate::tcp) fn holes(
    there: &Ranges,
    range: SequenceRange,
) -> impl Iterator<Item = SequenceRange> {
    let mut from = range.start;
    core::iter::from_fn(move || {
        let hole = there.next_hole(from, range.end)?;
        from = hole.end;
        Some(hole)
    })
}

impl Connection {
    /// Records the departure of a segment; call it before `highest` includes the segment.
    ///
    /// Section 6.1 asks for the last transmission time of each segment.
    #[inline]
    pub(in crate::tcp) fn note_departure(
        &mut self,
        start: SequenceNumber,
        end: SequenceNumber,
        now: Now,
    ) {
        let micros = (now.micros as u32).wrapping_sub(now.millis.wrapping_mul(1_000)) as u16;
        if self.marks.has(StateFlags::RACK) {
            if start != self.highest {
                self.note_repeat(start, end, now);
            } else if self.unacknowledged == start {
                self.burst = start;
            } else if self.sent_at != now.millis || self.sent_micros != micros {
                self.end_burst();
            }
        }
        self.sent_at = now.millis;
        self.sent_micros = micros;
    }

    /// Moves the newest burst to the list of entries.
    fn end_burst(&mut self) {
        let at = self.sent_at.wrapping_mul(1_000).wrapping_add(self.sent_micros.into());
        let (burst, highest, unacknowledged) = (self.burst, self.highest, self.unacknowledged);
        self.burst = highest;
        if burst.is_before(highest) && unacknowledged.is_before(highest) {
            let disorder = self.loss_state_mut();
            disorder.rack.advance(unacknowledged);
            disorder.rack.push(highest, unacknowledged, at, &disorder.sacked);
        }
    }

    #[cold]
    fn note_repeat(&mut self, start: SequenceNumber, end: SequenceNumber, now: Now) {
        self.end_burst();
        // Data after `highest` is new, not retransmitted.
        let end = if self.highest.is_before(end) { self.highest } else { end };
        let unacknowledged = self.unacknowledged;
        let range = SequenceRange { start, end };
        let disorder = self.loss_state_mut();
        disorder.rack.repeat(range, unacknowledged, now.micros as u32, &disorder.sacked);
    }

    /// Updates the delivery state from a received segment, before its SACK blocks enter the
    /// scoreboard (section 6.2, steps 1 to 3).
    #[cold]
    pub(in crate::tcp) fn note_delivery(&mut self, segment: &Segment<'_>, now: Now) {
        let is_in_order = self.sacked().is_empty()
            && !self.marks.has(StateFlags::RECOVERY)
            && !self.marks.has(StateFlags::REORDER);
        if is_in_order {
            // An old delivery says nothing about data that is sent now.
            let rack = &mut self.loss_state_mut().rack;
            (rack.delivered, rack.highest_delivered) = (None, None);
            if segment.sack.is_empty() {
                return;
            }
        }
        self.end_burst();
        let (unacknowledged, highest) = (self.unacknowledged, self.highest);
        let echo = segment.options.timestamps.filter(|_| self.marks.has(StateFlags::TIMESTAMPS));
        let least = self.round_trip.min_rtt().unwrap_or(0);
        let disorder = self.disorder.get_or_insert_default();
        let (rack, sacked) = (&mut disorder.rack, &disorder.sacked);
        rack.advance(unacknowledged);
        let acknowledged = SequenceRange { start: unacknowledged, end: segment.acknowledgement };
        let is_sent = |block: &SequenceRange| {
            !block.start.is_before(unacknowledged) && !highest.is_before(block.end)
        };
        let delivered = sack_blocks(segment.sack).map(|block| (block, None));
        // RFC 7323 section 4.3: "An <ACK> for an out-of-order segment SHOULD, therefore, contain
        // the timestamp from the most recent segment that advanced RCV.NXT". That timestamp does
        // not tell which transmission arrived.
        let delivered = delivered.chain([(acknowledged, echo)]).filter(|(block, _)| is_sent(block));
        let mut last: Option<(u32, SequenceNumber)> = None;
        let mut highest_delivered = rack.highest_delivered;
        let mut is_reordered = rack.is_reordered;
        let news = delivered
            .clone()
            .flat_map(|(block, echo)| holes(sacked, block).map(move |it| (it, echo)));
        for (new, echo) in news {
            let parts = rack.ranges(unacknowledged).filter(|(range, _)| {
                range.start.is_before(new.end) && new.start.is_before(range.end)
            });
            for (range, sent) in parts {
                let end = if new.end.is_before(range.end) { new.end } else { range.end };
                let took = (now.micros as u32).wrapping_sub(sent.first_at);
                if sent.is_retransmission {
                    // "To avoid spurious inferences, ignore a segment as invalid if any of its
                    // sequence range has been retransmitted before and if either of two conditions
                    // is true". One is an echoed timestamp (of the segment itself) older than the
                    // retransmission. The other: it "was last retransmitted less than RACK.min_rtt
                    // ago".
                    let sent_at = (now.micros.saturating_sub(took.into()) / 1_000) as u32;
                    let is_earlier =
                        echo.is_some_and(|it| it.echo.wrapping_sub(sent_at).cast_signed() < 0);
                    if is_earlier || took < least {
                        continue;
                    }
                } else {
                    // "If a never-retransmitted segment that's below RACK.fack is (selectively or
                    // cumulatively) acknowledged, it has been delivered out of order."
                    is_reordered |= rack.highest_delivered.is_some_and(|it| end.is_before(it));
                }
                if last.is_none_or(|last| is_after((sent.first_at, end), last)) {
                    last = Some((sent.first_at, end));
                }
            }
        }
        for (SequenceRange { end, .. }, _) in delivered {
            if highest_delivered.is_none_or(|highest| highest.is_before(end)) {
                highest_delivered = Some(end);
            }
        }
        rack.highest_delivered = highest_delivered;
        rack.is_reordered = is_reordered;
        if let Some((at, end)) = last
            && rack.delivered.is_none_or(|delivered| is_after((at, end), delivered))
        {
            rack.delivered = Some((at, end));
            rack.round_trip = (now.micros as u32).wrapping_sub(at);
        }
    }

    /// Widens the reordering window when the peer reports a duplicate, once per round trip (section
    /// 6.2, step 4).
    pub(in crate::tcp) fn note_dsack(&mut self, segment: &Segment<'_>) {
        if dsack_block(segment).is_none() {
            return;
        }
        let (unacknowledged, highest) = (self.unacknowledged, self.highest);
        let rack = &mut self.loss_state_mut().rack;
        if rack.dsack_round.is_none_or(|round| !unacknowledged.is_before(round)) {
            rack.dsack_round = Some(highest);
            rack.reo_wnd_mult = rack.reo_wnd_mult.saturating_add(1);
            rack.reo_wnd_persist = RECOVERIES;
        }
    }

    /// Counts the end of a recovery (section 6.2, step 4, "exiting Fast or RTO recovery").
    pub(in crate::tcp) fn note_recovered(&mut self) {
        let rack = &mut self.loss_state_mut().rack;
        rack.reo_wnd_persist = rack.reo_wnd_persist.saturating_sub(1);
        if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_mult = 0;
        }
    }

    /// "RACK.reo_wnd", in microseconds.
    fn reordering_window(&self, rack: &Rack) -> u32 {
        // "If RACK.reordering_seen is FALSE: If in Fast or RTO recovery: Return 0 Else if
        // RACK.segs_sacked >= DupThresh: Return 0".
        let has_enough = || self.lost_before().is_some();
        if !rack.is_reordered && (self.is_recovering() || has_enough()) {
            return 0;
        }
        // "Return min(RACK.reo_wnd_mult * RACK.min_RTT / 4, SRTT)". The minimum RTT covers the
        // whole connection. Section 6.2, step 1, suggests one that adapts when the path becomes
        // longer.
        let smoothed = self.round_trip.smoothed().unwrap_or(0);
        let least = self.round_trip.min_rtt().unwrap_or(0);
        (least / 4).saturating_mul(u32::from(rack.reo_wnd_mult) + 1).min(smoothed)
    }

    /// Marks data as lost that was sent long enough before data which arrived (section 6.2, step
    /// 5).
    #[cold]
    pub(in crate::tcp) fn find_losses(&mut self, now: Now, counters: &mut TcpCounters) {
        self.marks.clear(StateFlags::REORDER);
        let Some(disorder) = &self.disorder else { return };
        let Some((delivered_at, delivered_end)) = disorder.rack.delivered else { return };
        let (unacknowledged, micros) = (self.unacknowledged, now.micros as u32);
        let window = self.reordering_window(&disorder.rack);
        let is_repairing = self.marks.has(StateFlags::RECOVERY);
        let disorder = self.disorder.get_or_insert_default();
        let (rack, sacked) = (&mut disorder.rack, &disorder.sacked);
        rack.advance(unacknowledged);
        self.marks.clear(StateFlags::PROBE_TIMER);
        // Of the data sent at that same time, only lower numbers count as sent earlier.
        if unacknowledged.is_before(delivered_end) {
            rack.split(delivered_end);
        }
        let (mut start, mut timeout, mut is_lost_again) = (unacknowledged, 0, false);
        for sent in &mut rack.sent {
            let range = SequenceRange { start, end: sent.end };
            start = sent.end;
            // Section 6.2, step 2, orders segments sent at the same time by their numbers. A
            // retransmission may, however, have left after new data of the same time.
            let is_later = match sent.is_retransmission {
                true => sent.at.wrapping_sub(delivered_at).cast_signed() >= 0,
                false => is_after((sent.at, sent.end), (delivered_at, delivered_end)),
            };
            if sent.is_lost || is_later || sacked.next_hole(range.start, range.end).is_none() {
                continue;
            }
            let waits = rack.round_trip.saturating_add(window);
            let remaining = sent.at.wrapping_add(waits).wrapping_sub(micros).cast_signed();
            if remaining > 0 {
                timeout = timeout.max(remaining);
                continue;
            }
            sent.is_lost = true;
            let bytes = holes(sacked, range).map(SequenceRange::len).sum();
            rack.lost = rack.lost.saturating_add(bytes);
            if sent.is_retransmission {
                counters.sack_lostrexmt += 1;
                let since = sent.at.wrapping_sub(rack.reduced_at).cast_signed();
                is_lost_again |= is_repairing && since >= 0;
            }
        }
        rack.compact(unacknowledged, sacked);
        let has_lost = rack.first_lost(unacknowledged, sacked).is_some();
        if timeout > 0 {
            rack.reorder_at = (now.micros + timeout as u64).div_ceil(1_000) as u32;
            self.marks.set(StateFlags::REORDER);
        }
        // After a timeout, the retransmission of everything comes first.
        let can_repair = self.next == self.highest;
        if has_lost && !is_repairing && can_repair {
            self.begin_recovery(now, counters);
        } else if is_lost_again {
            // RFC 5681 section 4.3: "the loss of a retransmission, should be taken as two
            // indications of congestion".
            self.discard_undo_state();
            self.reduce(now);
        }
    }

    /// Reduces the congestion window for a loss.
    pub(in crate::tcp) fn reduce(&mut self, now: Now) {
        self.congestion.on_loss(self.flight_size());
        self.loss_state_mut().rack.reduced_at = now.micros as u32;
    }

    /// Returns the expiry of the reordering timer in ms; valid while it runs.
    pub(in crate::tcp) fn reorder_at(&self) -> u32 {
        self.disorder.as_ref().map_or(0, |it| it.rack.reorder_at)
    }

    /// Starts the probe timer if it may run: "unless it is already in fast recovery, RTO recovery,
    /// or segments have been SACKed (i.e., RACK.segs_sacked is not zero)" (section 7.2).
    #[inline]
    pub(in crate::tcp) fn arm_probe_timer(&mut self) {
        if self.marks.has(StateFlags::RACK) {
            let is_in_order =
                self.disorder.is_none() || self.sacked().is_empty() && !self.is_recovering();
            let is_in_flight = self.unacknowledged != self.highest;
            let may_run = is_in_order && is_in_flight && !self.marks.has(StateFlags::PERSIST);
            self.marks.put(StateFlags::PROBE_TIMER, may_run);
        }
    }

    /// Returns the expiry of the probe timer in ms, valid while it runs ("TLP_calc_PTO" of section
    /// 7.2).
    ///
    /// The timeout counts from the last new data, or from the last start of the retransmission
    /// timer by an acknowledgement.
    #[inline]
    pub(in crate::tcp) fn probe_deadline(&self, settings: &Settings) -> u32 {
        let started = self.retransmit_at.wrapping_sub(self.timeout_ms(settings));
        let is_sent_later = self.sent_at.wrapping_sub(started).cast_signed() > 0;
        let from = if is_sent_later { self.sent_at } else { started };
        let timeout = self.round_trip.smoothed().map_or(PROBE_TIMEOUT_INITIAL, |smoothed| {
            // "If FlightSize is one segment: PTO += TLP.max_ack_delay".
            let is_single = self.in_flight() <= u32::from(self.data_size());
            let delay = if is_single { settings.retransmission.min } else { 0 };
            smoothed.saturating_mul(2).saturating_add(delay).div_ceil(1_000).max(PROBE_TIMEOUT_MIN)
        });
        // "If Now() + PTO > TCP_RTO_expiration(): PTO = TCP_RTO_expiration() - Now()".
        let at = from.wrapping_add(timeout);
        match self.retransmit_at.wrapping_sub(at).cast_signed() < 0 {
            true => self.retransmit_at,
            false => at,
        }
    }

    /// Handles the expiry of the probe timer (section 7.3). A probe is due unless another one is
    /// outstanding, or no round trip was measured since the last one.
    ///
    /// "The sender MUST re-arm the RTO timer, not the PTO timer"; without a probe the RTO timer
    /// keeps running.
    #[cold]
    pub(in crate::tcp) fn expire_probe_timer(&mut self, settings: &Settings, now: Now) {
        self.marks.clear(StateFlags::PROBE_TIMER);
        let is_probing = self.disorder.as_ref().is_some_and(|it| it.rack.probe.is_some());
        if !is_probing && !self.marks.has(StateFlags::PROBED) {
            self.marks.set(StateFlags::TAIL_PROBE_DUE);
            self.restart_retransmission(settings, now);
        }
    }

    /// Whether a probe may carry new data: "the sender SHOULD transmit a previously unsent data
    /// segment, if one exists and the receive window allows" (section 7.3).
    pub(in crate::tcp) fn can_probe_with_new(&self, settings: &Settings) -> bool {
        let offered = self.offered_end(settings);
        self.next == self.highest
            && self.highest.is_before(self.queued)
            && self.highest.is_before(offered)
    }

    /// Returns the start of the segment to probe with: "Retransmit the highest-sequence segment
    /// sent so far".
    pub(in crate::tcp) fn tail(&self) -> SequenceNumber {
        let start = self.sent_to() - u32::from(self.data_size());
        if start.is_before(self.unacknowledged) { self.unacknowledged } else { start }
    }

    /// Records that a probe has left.
    #[cold]
    pub(in crate::tcp) fn note_probe(&mut self, is_again: bool, counters: &mut TcpCounters) {
        self.marks.clear(StateFlags::TAIL_PROBE_DUE);
        self.marks.clear(StateFlags::PROBE_TIMER);
        self.marks.set(StateFlags::PROBED);
        counters.tlpresends += u64::from(is_again);
        counters.tlpnewdata += u64::from(!is_again);
        let end = self.highest;
        self.loss_state_mut().rack.probe = Some(Probe { end, is_again });
    }

    /// Detects losses that a probe repaired (section 7.4.2). No other mechanism sees a loss that a
    /// retransmitted probe repaired, so this reduces the window.
    #[cold]
    pub(in crate::tcp) fn finish_probe(
        &mut self,
        segment: &Segment<'_>,
        now: Now,
        counters: &mut TcpCounters,
    ) {
        let number = segment.acknowledgement;
        let probe = self.disorder.as_ref().and_then(|it| it.rack.probe);
        let Some(Probe { end, is_again }) = probe.filter(|it| !number.is_before(it.end)) else {
            return;
        };
        let is_needless = dsack_block(segment).is_some_and(|block| block.end == end)
            || number == self.unacknowledged && segment.sack.is_empty() && segment.span() == 0;
        let is_beyond = end.is_before(number);
        if is_again && !is_needless && !is_beyond {
            return;
        }
        self.loss_state_mut().rack.probe = None;
        if is_again && !is_needless && !self.is_recovering() {
            counters.recovery_episode += 1;
            self.reduce(now);
            let highest = self.highest;
            let disorder = self.loss_state_mut();
            disorder.recover = Some(highest);
            disorder.is_after_timeout = false;
        }
    }
}

/// Returns the DSACK block of a segment: its first block, if that is acknowledged or lies within
/// the second block (RFC 2883 section 4).
pub(in crate::tcp) fn dsack_block(segment: &Segment<'_>) -> Option<SequenceRange> {
    let mut blocks = sack_blocks(segment.sack);
    let first = blocks.next().filter(|block| !block.is_empty())?;
    let is_within = |second: SequenceRange| {
        !first.start.is_before(second.start) && !second.end.is_before(first.end)
    };
    let is_acknowledged = !segment.acknowledgement.is_before(first.end);
    (is_acknowledged || blocks.next().is_some_and(is_within)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    use crate::tcp::connection::loss_state::tests::{established, segment};

    /// For each byte: its last transmission time, and whether that was a retransmission.
    type Model = Vec<(u32, bool)>;

    fn transmissions(rack: &Rack, from: u32) -> Model {
        let ranges = rack.ranges(SequenceNumber(from));
        ranges
            .flat_map(|(range, sent)| {
                (0..range.len()).map(move |_| (sent.at, sent.is_retransmission))
            })
            .collect()
    }

    #[derive(Clone, Debug)]
    enum Step {
        New(u32),
        Again(u32, u32),
        Acknowledged(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..10_u32).prop_map(Step::New),
            (0..40_u32, 1..10_u32).prop_map(|(start, length)| Step::Again(start, length)),
            (0..20_u32).prop_map(Step::Acknowledged),
        ]
    }

    proptest! {
        #[test]
        fn each_byte_has_its_last_transmission_time(
            steps in prop::collection::vec(step(), 1..60),
            begin in prop_oneof![Just(0_u32), Just(u32::MAX - 50)],
        ) {
            let (mut rack, mut model, mut first) = (Rack::default(), Model::new(), begin);
            for (at, step) in (0_u32..).zip(steps) {
                let length = model.len() as u32;
                match step {
                    Step::New(bytes) => {
                        model.resize((length + bytes) as usize, (at, false));
                        let una = SequenceNumber(first);
                        rack.push(una + length + bytes, una, at, &Ranges::new());
                    }
                    Step::Again(start, bytes) if start < length => {
                        let end = (start + bytes).min(length);
                        model[start as usize..end as usize].fill((at, true));
                        let una = SequenceNumber(first);
                        let range = SequenceRange { start: una + start, end: una + end };
                        rack.repeat(range, una, at, &Ranges::new());
                    }
                    Step::Again(..) => {}
                    Step::Acknowledged(bytes) => {
                        let bytes = bytes.min(length);
                        model.drain(..bytes as usize);
                        first = first.wrapping_add(bytes);
                    }
                }
                prop_assert_eq!(transmissions(&rack, first), model.clone());
                rack.compact(SequenceNumber(first), &Ranges::new());
                prop_assert_eq!(transmissions(&rack, first), model.clone());
            }
        }
    }

    const ZERO: SequenceNumber = SequenceNumber(0);

    #[test]
    fn full_list_merges_the_oldest_entries_that_are_not_lost() {
        let mut rack = Rack::default();
        let sent = RANGES_MAX as u32 + 10;
        for at in 0..sent {
            rack.push(SequenceNumber(at + 1), ZERO, at, &Ranges::new());
            // The second of the first three entries is lost.
            rack.sent[1.min(at as usize)].is_lost = at > 0;
        }
        assert_eq!(rack.sent.len(), RANGES_MAX);
        let model: Model =
            (0..sent).map(|at| (if at < 2 { at } else { at.max(12) }, false)).collect();
        assert_eq!(transmissions(&rack, 0), model);
        // The merged entry keeps the time of its first part.
        assert_eq!((rack.sent[2].first_at, rack.sent[2].at), (2, 12));
        // A recent retransmission makes the entry that it merges with equally recent.
        let again = SequenceRange { start: SequenceNumber(4), end: SequenceNumber(5) };
        rack.repeat(again, ZERO, 1_000, &Ranges::new());
        assert_eq!(rack.sent.len(), RANGES_MAX);
        assert!(transmissions(&rack, 0)[2..=12].iter().all(|(at, _)| *at == 12 || *at == 1_000));
        assert!(rack.sent[1].is_lost);
    }

    #[test]
    fn full_list_keeps_all_losses() {
        // One of `every` bursts of 10 bytes is lost; data sent before some of them is
        // retransmitted.
        for (every, again) in [(1, 3), (2, 20), (2, 1_000), (3, 60), (50, 300)] {
            let mut rack = Rack::default();
            let mut lost: Vec<SequenceRange> = Vec::new();
            for number in 1..4 * RANGES_MAX as u32 {
                let range =
                    SequenceRange { start: ZERO + number * 10 - 10, end: ZERO + number * 10 };
                rack.push(range.end, ZERO, number * 7, &Ranges::new());
                if number % every == 0 {
                    let place = rack.sent.len() - 1;
                    // An entry that is merged with others would make them lost as well.
                    if rack.ranges(ZERO).last().is_some_and(|(it, _)| it == range) {
                        rack.sent[place].is_lost = true;
                        lost.push(range);
                    }
                }
                if number % again == 0 && !lost.is_empty() {
                    let oldest = lost.remove(0);
                    rack.repeat(oldest, ZERO, number * 7 + 1, &Ranges::new());
                }
                assert!(rack.sent.len() <= RANGES_MAX);
            }
            assert!(lost.len() > 2);
            let is_lost: Vec<bool> = rack
                .ranges(ZERO)
                .flat_map(|(range, sent)| (0..range.len()).map(move |_| sent.is_lost))
                .collect();
            for range in &lost {
                let mut bytes = range.start.distance_from(ZERO)..range.end.distance_from(ZERO);
                assert!(bytes.all(|byte| is_lost[byte as usize]), "{range:?}, every {every}");
            }
            let first = rack.first_lost(ZERO, &Ranges::new()).unwrap().start;
            assert!(!lost[0].start.is_before(first));
        }
    }

    #[test]
    fn full_list_drops_received_entries_first() {
        let (mut rack, mut sacked) = (Rack::default(), Ranges::new());
        let sent = 2 * RANGES_MAX as u32 - 2;
        for number in (1..sent).step_by(2) {
            let range =
                SequenceRange { start: SequenceNumber(number), end: SequenceNumber(number + 1) };
            assert!(sacked.insert(range, RANGES_MAX).is_ok());
        }
        for at in 0..sent {
            rack.push(SequenceNumber(at + 1), ZERO, at, &sacked);
        }
        let transmissions = transmissions(&rack, 0);
        assert!((0..sent).step_by(2).all(|number| transmissions[number as usize].0 == number));
    }

    #[test]
    fn pending_probe_is_cancelled_when_all_is_acknowledged() {
        let settings = Settings::default();
        let counters = &mut TcpCounters::default();
        let at = |millis: u64| Now::from_micros(millis * 1_000);
        let mut connection = established(counters);
        connection.queue(2 * 536, counters);
        while connection.poll_transmit(&settings, at(10), counters).is_some() {}
        let due = connection.deadline(&settings, at(10)).unwrap();
        assert_eq!(due, 10 + 2 * 10);
        connection.handle_timeout(&settings, at(30), counters);
        assert!(connection.marks.has(StateFlags::TAIL_PROBE_DUE));
        connection.handle_segment(&segment(1, 1 + 2 * 536), &settings, at(31), counters);
        assert_eq!(connection.poll_transmit(&settings, at(31), counters), None);
        connection.queue(536, counters);
        assert!(connection.poll_transmit(&settings, at(31), counters).is_some());
        assert_eq!((counters.tlpnewdata, counters.tlpresends), (0, 0));
    }

    #[test]
    fn reordering_window_shrinks_after_sixteen_recoveries() {
        let mut connection = Connection::connect(
            &Settings::default(),
            SequenceNumber(0),
            Now::default(),
            &mut TcpCounters::default(),
        );
        let rack = &mut connection.loss_state_mut().rack;
        (rack.reo_wnd_mult, rack.reo_wnd_persist) = (3, RECOVERIES);
        for _ in 1..RECOVERIES {
            connection.note_recovered();
        }
        assert_eq!(connection.loss_state_mut().rack.reo_wnd_mult, 3);
        connection.note_recovered();
        assert_eq!(connection.loss_state_mut().rack.reo_wnd_mult, 0);
        // The state is as new, so the connection frees its memory.
        assert!(connection.loss_state_mut().rack.is_pristine());
    }
}
