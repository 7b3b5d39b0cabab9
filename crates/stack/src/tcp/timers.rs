//! Timers of a connection.

use super::connection::{Connection, EndReason, State, StateFlags};
use super::counters::TcpCounters;
use super::now::Now;
use wirestorm_model::tcp::Settings;

impl Connection {
    /// Returns the time of the next call of [`Self::handle_timeout`] in ms, or `None` if no timer runs.
    #[inline(always)]
    pub fn deadline(&self, settings: &Settings, now: Now) -> Option<u32> {
        let timers = [
            (StateFlags::RETRANSMIT, self.loss_at(settings)),
            (StateFlags::ACK_WAITS, self.acknowledge_at),
            (StateFlags::KEEPALIVE, self.keepalive_at),
        ];
        let running = timers.into_iter().filter(|(mark, _)| self.marks.has(*mark));
        let first = |at: &u32| at.wrapping_sub(now.millis).cast_signed();
        let at = running.map(|(_, at)| at).min_by_key(first);
        match self.marks.has(StateFlags::PACE) {
            true => at.into_iter().chain([self.pace_at()]).min_by_key(first),
            false => at,
        }
    }

    /// Returns the first expiry of the timers that detect losses.
    #[inline]
    fn loss_at(&self, settings: &Settings) -> u32 {
        let mut at = self.retransmit_at;
        if self.marks.has(StateFlags::PROBE_TIMER) {
            at = self.probe_deadline(settings);
        }
        if self.marks.has(StateFlags::REORDER) {
            let reorder_at = self.reorder_at();
            at = if reorder_at.wrapping_sub(at).cast_signed() < 0 { reorder_at } else { at };
        }
        at
    }

    /// Handles all timers that have expired.
    pub fn handle_timeout(&mut self, settings: &Settings, now: Now, counters: &mut TcpCounters) {
        let is_due = |at: u32| now.millis.wrapping_sub(at).cast_signed() >= 0;
        if self.marks.has(StateFlags::ACK_WAITS) && is_due(self.acknowledge_at) {
            self.marks.clear(StateFlags::ACK_WAITS);
            self.marks.set(StateFlags::ACK_DUE);
            counters.delack += 1;
        }
        if self.marks.has(StateFlags::PACE) && is_due(self.pace_at()) {
            self.marks.clear(StateFlags::PACE);
        }
        if self.marks.has(StateFlags::REORDER) && is_due(self.reorder_at()) {
            self.find_losses(now, counters);
        }
        if self.marks.has(StateFlags::PROBE_TIMER) && is_due(self.probe_deadline(settings)) {
            self.expire_probe_timer(settings, now);
        }
        // A tail probe has restarted the retransmission timer; without a probe it is unchanged.
        if self.marks.has(StateFlags::RETRANSMIT) && is_due(self.retransmit_at) {
            self.expire_retransmission(settings, now, counters);
        }
        if self.marks.has(StateFlags::KEEPALIVE) && is_due(self.keepalive_at) {
            self.expire_keepalive(settings, now, counters);
        }
    }

    /// Starts the retransmission timer unless it runs. RFC 6298 section 5.1: "if the timer is not
    /// running, start it running so that it will expire after RTO seconds".
    #[inline]
    pub(super) fn start_retransmission(&mut self, settings: &Settings, now: Now) {
        if !self.marks.has(StateFlags::RETRANSMIT) {
            self.marks.set(StateFlags::RETRANSMIT);
            self.retransmit_at = now.millis.wrapping_add(self.timeout_ms(settings));
        }
    }

    /// Restarts the retransmission timer, or stops it if nothing is outstanding. RFC 6298 section
    /// 5.2: "When all outstanding data has been acknowledged, turn off the retransmission timer."
    /// Section 5.3: "When an ACK is received that acknowledges new data, restart the retransmission
    /// timer".
    #[inline]
    pub(super) fn restart_retransmission(&mut self, settings: &Settings, now: Now) {
        self.marks.clear(StateFlags::RETRANSMIT);
        if self.unacknowledged != self.highest {
            self.start_retransmission(settings, now);
        }
    }

    pub(super) fn timeout_ms(&self, settings: &Settings) -> u32 {
        self.round_trip.retransmission_timeout(&settings.retransmission).div_ceil(1_000)
    }

    #[cold]
    fn expire_retransmission(&mut self, settings: &Settings, now: Now, counters: &mut TcpCounters) {
        self.marks.clear(StateFlags::RETRANSMIT);
        if self.state == State::TimeWait {
            self.finish(EndReason::Closed, counters);
            return;
        }
        let is_syn = matches!(self.state, State::SynSent | State::SynReceived);
        let retries = if is_syn { settings.syn_retries } else { settings.retries };
        let is_probe = self.marks.has(StateFlags::PERSIST);
        // RFC 9293 section 3.8.6.1: a window may stay closed indefinitely while the peer answers;
        // each answer resets the count.
        if self.expiries >= retries {
            counters.timeoutdrop += u64::from(!is_syn && !is_probe);
            counters.persistdrop += u64::from(is_probe);
            let end = if is_syn { EndReason::Unanswered } else { EndReason::TimedOut };
            self.finish(end, counters);
            return;
        }
        self.expiries += 1;
        self.round_trip.back_off();
        if is_probe {
            counters.persisttimeo += 1;
            self.marks.set(StateFlags::PROBE_DUE);
            self.next = self.unacknowledged;
        } else if is_syn {
            counters.rexmttimeo += 1;
            counters.rexmttimeo_syn += 1;
            self.disable_fast_open();
            self.marks.set(StateFlags::SYN_DUE);
        } else {
            counters.rexmttimeo += 1;
            self.congestion.on_timeout(self.in_flight());
            self.retransmit_all();
        }
        // RFC 6298 section 3: "RTT samples MUST NOT be made using segments that were
        // retransmitted".
        self.marks.clear(StateFlags::TIMED);
        self.start_retransmission(settings, now);
    }

    /// Enters TIME-WAIT, or restarts its timer.
    pub(super) fn enter_time_wait(&mut self, settings: &Settings, now: Now) {
        self.state = State::TimeWait;
        self.marks.clear(StateFlags::KEEPALIVE);
        self.marks.clear(StateFlags::PERSIST);
        self.marks.clear(StateFlags::PROBE_TIMER);
        self.marks.clear(StateFlags::REORDER);
        self.marks.clear(StateFlags::PACE);
        self.marks.set(StateFlags::RETRANSMIT);
        self.retransmit_at = now.millis.wrapping_add(settings.time_wait_ms);
    }

    /// Limits the time to open the connection, with the keepalive timer.
    pub(super) fn start_open_timeout(&mut self, settings: &Settings, now: Now) {
        if settings.open_timeout_ms > 0 {
            self.marks.set(StateFlags::KEEPALIVE);
            self.keepalive_at = now.millis.wrapping_add(settings.open_timeout_ms);
        }
    }

    /// Restarts the keepalive timer when a segment arrives or the connection opens.
    #[inline]
    pub(super) fn start_keepalive(&mut self, settings: &Settings, now: Now) {
        if settings.keepalive_ms > 0 && self.is_established() && self.state != State::TimeWait {
            self.probes = 0;
            self.marks.set(StateFlags::KEEPALIVE);
            self.keepalive_at = now.millis.wrapping_add(settings.keepalive_ms);
        }
    }

    #[cold]
    fn expire_keepalive(&mut self, settings: &Settings, now: Now, counters: &mut TcpCounters) {
        self.marks.clear(StateFlags::KEEPALIVE);
        if !self.is_established() {
            counters.keeptimeo += 1;
            counters.keepdrops += 1;
            self.finish(EndReason::Unanswered, counters);
            return;
        }
        if self.state == State::TimeWait {
            return;
        }
        if self.unacknowledged != self.highest {
            // "Keep-alive packets MUST only be sent when no sent data is outstanding" (RFC 9293
            // section 3.8.4). The retransmission timer detects a dead peer then.
            self.start_keepalive(settings, now);
            return;
        }
        counters.keeptimeo += 1;
        if self.probes >= settings.keepalive_probes {
            counters.keepdrops += 1;
            self.finish(EndReason::KeepaliveTimeout, counters);
            return;
        }
        self.probes += 1;
        self.marks.set(StateFlags::KEEPALIVE_DUE);
        self.marks.set(StateFlags::KEEPALIVE);
        self.keepalive_at = now.millis.wrapping_add(settings.keepalive_interval_ms);
    }
}
