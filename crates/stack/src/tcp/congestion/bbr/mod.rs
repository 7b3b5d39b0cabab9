//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux.
//!
//! ```text
//! acknowledgements  -> delivery -> rate    -> windowed_max -> bandwidth \          / pacing rate
//!                                                                       > mode <
//!                              \-> round trip -> minimum of 10 s        /          \ window
//! ```
//!
//! In addition to the draft, the window has headroom for acknowledgements in batches, as in Linux
//! since 5.1 ([`Aggregation`]). The policer detection of Linux ("long-term bandwidth") is missing;
//! the draft does not have it.

mod delivery;
mod pacing;
mod windowed_max;

pub(in crate::tcp) use self::delivery::{Delivered, Delivery, Flight};
pub(in crate::tcp) use self::pacing::Pacing;
use self::windowed_max::WindowedMax;
use super::{WINDOW_MAX, Window};

/// Gains are in units of 1/256.
const UNIT: u64 = 256;
/// BBRHighGain: 2/ln(2), "the minimum gain value that will allow the sending rate to double each
/// round".
const HIGH_GAIN: u64 = 739;
/// Reciprocal of the high gain, which drains in one round the queue that startup built.
const DRAIN_GAIN: u64 = 88;
/// Pacing gains of PROBE_BW: one round trip to probe for more, one to drain, and six at the
/// estimate.
const CYCLE: [u64; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Window gain in PROBE_BW: twice the BDP, because acknowledgements may be delayed and batched.
const WINDOW_GAIN: u64 = 512;

/// BtlBwFilterLen, in round trips.
const BANDWIDTH_ROUNDS: u32 = 10;
/// RTpropFilterLen and ProbeRTTInterval, in microseconds.
const ROUND_TRIP_SPAN: u64 = 10_000_000;
/// ProbeRTTDuration, in microseconds.
const PROBE_ROUND_TRIP_SPAN: u64 = 200_000;
/// BBRMinPipeCwnd, in segments: enough for peers that acknowledge every second segment.
const SEGMENTS_MIN: u32 = 4;
/// Number of round trips without bandwidth growth of 25 % after which the pipe is full.
const FULL_ROUNDS: u8 = 3;

/// Microseconds per second.
const SECOND: u64 = 1_000_000;

/// Congestion window and pacing rate from a model of the path.
#[derive(Clone, Debug)]
pub struct Bbr {
    pub(super) window: Window,
    pub(in crate::tcp) delivery: Delivery,
    pub(in crate::tcp) pacing: Pacing,
    pub(in crate::tcp) before: AckContext,
    mode: Mode,
    /// BtlBw, in bytes per second.
    bandwidth: WindowedMax,
    /// round_count.
    rounds: u32,
    /// next_round_delivered: the round ends when this many bytes are delivered.
    round_ends: u64,
    is_round_start: bool,
    /// RTprop in microseconds, and the time of its measurement.
    least_round_trip: Option<u32>,
    least_at: u64,
    /// full_bw, and the number of rounds without significant growth above it.
    full_bandwidth: u64,
    full_rounds: u8,
    /// filled_pipe.
    is_full: bool,
    /// prior_cwnd: window before a recovery or PROBE_RTT.
    prior_window: u32,
    repair: RecoveryKind,
    /// packet_conservation: send no more than is delivered.
    conserves: bool,
    /// idle_restart.
    restarts: bool,
    initial_window: u32,
    aggregation: Aggregation,
}

/// State before the acknowledgement in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct AckContext {
    /// Bytes in flight.
    pub(in crate::tcp) in_flight: u32,
    /// Last sent part of the data that it delivers.
    pub(in crate::tcp) newest: Option<Flight>,
}

/// States of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Drains the queue that startup built.
    Drain,
    /// Probes for bandwidth; the average rate is that of the path.
    ProbeBandwidth { phase: u8, since: u64 },
    /// Keeps a minimum in flight to measure the round-trip time without a queue. `until` is set
    /// once the flight has shrunk; the state also lasts at least one round.
    ProbeRoundTrip { until: Option<u64>, has_round: bool },
}

/// Kind of loss recovery in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) enum RecoveryKind {
    #[default]
    None,
    /// Fast recovery.
    Recovery,
    /// Recovery from a retransmission timeout, until data sent before it is acknowledged.
    Timeout,
}

/// Content of an acknowledgement, in bytes and microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Acknowledgement {
    pub(in crate::tcp) now: u64,
    pub(in crate::tcp) delivered: Delivered,
    /// Bytes newly found to be lost.
    pub(in crate::tcp) lost: u32,
    pub(in crate::tcp) in_flight_before: u32,
    pub(in crate::tcp) in_flight: u32,
    pub(in crate::tcp) repair: RecoveryKind,
}

/// Estimate of how much more than the bandwidth is acknowledged at once, due to batches.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Bytes acknowledged since the start of the epoch.
    acknowledged: u64,
    since: u64,
    /// Maximum excess in the current and the previous window of rounds.
    most: [u64; 2],
    rounds: u8,
}

impl Aggregation {
    /// Number of rounds in each of the two windows.
    const ROUNDS: u8 = 5;
    /// Time in microseconds; the bandwidth times this time bounds the excess.
    const SPAN_MAX: u64 = 100_000;

    fn note(&mut self, ack: &Acknowledgement, is_round_start: bool, bandwidth: u64, window: u32) {
        if is_round_start {
            self.rounds += 1;
            if self.rounds >= Self::ROUNDS {
                self.rounds = 0;
                self.most = [0, self.most[0]];
            }
        }
        let mut expected = bytes_in(bandwidth, ack.now.saturating_sub(self.since));
        if self.acknowledged <= expected {
            (self.acknowledged, self.since, expected) = (0, ack.now, 0);
        }
        self.acknowledged += u64::from(ack.delivered.bytes);
        let extra = self.acknowledged.saturating_sub(expected).min(u64::from(window));
        self.most[0] = self.most[0].max(extra);
    }

    fn most(&self, bandwidth: u64) -> u64 {
        self.most[0].max(self.most[1]).min(bytes_in(bandwidth, Self::SPAN_MAX))
    }
}

/// Bytes that a rate in bytes per second delivers in a time.
fn bytes_in(rate: u64, micros: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(micros) / u128::from(SECOND);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl Bbr {
    pub(super) fn new(window: Window) -> Self {
        Self {
            initial_window: window.bytes,
            window,
            delivery: Delivery::default(),
            pacing: Pacing::default(),
            before: AckContext::default(),
            mode: Mode::Startup,
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            rounds: 0,
            round_ends: 0,
            is_round_start: false,
            least_round_trip: None,
            least_at: 0,
            full_bandwidth: 0,
            full_rounds: 0,
            is_full: false,
            prior_window: 0,
            repair: RecoveryKind::None,
            conserves: false,
            restarts: false,
            aggregation: Aggregation::default(),
        }
    }

    fn segment(&self) -> u32 {
        u32::from(self.window.mss)
    }

    /// Minimum congestion window in bytes.
    fn window_min(&self) -> u32 {
        SEGMENTS_MIN * self.segment()
    }

    /// Handles a loss that was not detected by timeout.
    pub(super) fn on_loss(&mut self) {
        self.save_window();
    }

    /// Handles a retransmission timeout: restarts the estimate of the path.
    pub(super) fn on_timeout(&mut self) {
        self.save_window();
        self.window.bytes = self.segment();
        self.repair = RecoveryKind::Timeout;
        self.conserves = false;
        self.full_bandwidth = 0;
        self.is_round_start = true;
    }

    /// BBRSaveCwnd.
    fn save_window(&mut self) {
        let is_usual =
            self.repair == RecoveryKind::None && !matches!(self.mode, Mode::ProbeRoundTrip { .. });
        let before = if is_usual { 0 } else { self.prior_window };
        self.prior_window = self.window.bytes.max(before);
    }

    /// Sets the initial pacing rate from the round trip of the SYN (BBRInitPacingRate).
    pub(in crate::tcp) fn begin(&mut self, round_trip: Option<u32>) {
        if self.pacing.rate() == 0 {
            let micros = u64::from(round_trip.unwrap_or(1_000).max(1));
            let bandwidth = u64::from(self.window.bytes) * SECOND / micros;
            self.pacing.set_rate(bandwidth * HIGH_GAIN / UNIT);
        }
    }

    /// Handles the first transmission after an idle period (BBRHandleRestartFromIdle).
    pub(in crate::tcp) fn restart_from_idle(&mut self, now: u64) {
        self.restarts = true;
        self.aggregation.acknowledged = 0;
        self.aggregation.since = now;
        match self.mode {
            Mode::ProbeBandwidth { .. } => self.set_pacing_rate(UNIT),
            Mode::ProbeRoundTrip { .. } => self.end_probe(now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Processes an acknowledgement (BBRUpdateModelAndState and BBRUpdateControlParameters).
    pub(in crate::tcp) fn on_acknowledged(&mut self, ack: &Acknowledgement) {
        self.note_bandwidth(ack);
        if ack.delivered.bytes > 0 && ack.delivered.sample.is_some() {
            let (bandwidth, window) = (self.bandwidth.get(), self.window.bytes);
            self.aggregation.note(ack, self.is_round_start, bandwidth, window);
        }
        self.turn_cycle(ack);
        self.find_full(ack);
        self.drain(ack);
        self.note_round_trip(ack);
        let (pacing_gain, window_gain) = self.gains();
        self.set_pacing_rate(pacing_gain);
        self.set_window(ack, window_gain);
    }

    /// BBRUpdateRound and BBRUpdateBtlBw.
    fn note_bandwidth(&mut self, ack: &Acknowledgement) {
        self.is_round_start = false;
        let Some(sample) = ack.delivered.sample else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = self.delivery.total;
            self.rounds = self.rounds.wrapping_add(1);
            self.is_round_start = true;
            self.conserves = false;
        }
        let rate = sample.bytes.saturating_mul(SECOND) / sample.interval;
        // A low application-limited sample says nothing about the path.
        if !sample.is_app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.note(self.rounds, rate);
        }
    }

    /// BBRCheckCyclePhase and BBRIsNextCyclePhase.
    fn turn_cycle(&mut self, ack: &Acknowledgement) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let passed = self.delivery.at.saturating_sub(since);
        let is_whole = passed > u64::from(self.least_round_trip.unwrap_or(0));
        let gain = CYCLE[usize::from(phase) % CYCLE.len()];
        let is_over = match gain {
            UNIT => is_whole,
            // Until the flight has grown by the gain, or a loss occurred.
            320 => is_whole && (ack.lost > 0 || ack.in_flight_before >= self.inflight(gain)),
            // Until the flight fits the BDP again.
            _ => is_whole || ack.in_flight_before <= self.inflight(UNIT),
        };
        if is_over {
            self.begin_phase(phase + 1, ack.now);
        }
    }

    fn begin_phase(&mut self, phase: u8, now: u64) {
        let phase = phase % CYCLE.len() as u8;
        self.mode = Mode::ProbeBandwidth { phase, since: now };
    }

    /// Starts at a random phase except the draining one (BBREnterProbeBW), so that flows do not
    /// synchronize.
    fn begin_cycle(&mut self, now: u64) {
        // The time in microseconds is random enough.
        let random = (now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (CYCLE.len() as u64 - 1);
        let phase = if random == 0 { 0 } else { random as u8 + 1 };
        self.begin_phase(phase, now);
    }

    /// BBRCheckFullPipe.
    fn find_full(&mut self, ack: &Acknowledgement) {
        let is_limited = ack.delivered.sample.is_none_or(|it| it.is_app_limited);
        if self.is_full || !self.is_round_start || is_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth >= self.full_bandwidth.saturating_mul(5) / 4 {
            (self.full_bandwidth, self.full_rounds) = (bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    /// BBRCheckDrain.
    fn drain(&mut self, ack: &Acknowledgement) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(UNIT) {
            self.begin_cycle(ack.now);
        }
    }

    /// BBRUpdateRTprop and BBRCheckProbeRTT.
    fn note_round_trip(&mut self, ack: &Acknowledgement) {
        let now = ack.now;
        let is_old =
            self.least_round_trip.is_some() && now.saturating_sub(self.least_at) > ROUND_TRIP_SPAN;
        if let Some(sample) = ack.delivered.round_trip
            && (is_old || self.least_round_trip.is_none_or(|least| sample <= least))
        {
            (self.least_round_trip, self.least_at) = (Some(sample), now);
        }
        let is_probing = matches!(self.mode, Mode::ProbeRoundTrip { .. });
        if is_old && !self.restarts && !is_probing {
            self.save_window();
            self.mode = Mode::ProbeRoundTrip { until: None, has_round: false };
        }
        self.probe_round_trip(ack);
        if ack.delivered.bytes > 0 {
            self.restarts = false;
        }
    }

    /// BBRHandleProbeRTT.
    fn probe_round_trip(&mut self, ack: &Acknowledgement) {
        let Mode::ProbeRoundTrip { until, has_round } = self.mode else { return };
        // The path does not limit the rate now.
        self.delivery.mark_application_limited(ack.in_flight);
        match until {
            None if ack.in_flight <= self.window_min() => {
                let until = Some(ack.now + PROBE_ROUND_TRIP_SPAN);
                self.mode = Mode::ProbeRoundTrip { until, has_round: false };
                self.round_ends = self.delivery.total;
            }
            None => {}
            Some(_) => {
                let has_round = has_round || self.is_round_start;
                self.mode = Mode::ProbeRoundTrip { until, has_round };
                if has_round {
                    self.end_probe(ack.now);
                }
            }
        }
    }

    /// Leaves PROBE_RTT if its time is over (BBRExitProbeRTT).
    fn end_probe(&mut self, now: u64) {
        let Mode::ProbeRoundTrip { until: Some(until), .. } = self.mode else { return };
        if now <= until {
            return;
        }
        self.least_at = now;
        self.window.bytes = self.window.bytes.max(self.prior_window);
        match self.is_full {
            true => self.begin_cycle(now),
            false => self.mode = Mode::Startup,
        }
    }

    /// Returns the pacing gain and the window gain.
    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth { phase, .. } => {
                (CYCLE[usize::from(phase) % CYCLE.len()], WINDOW_GAIN)
            }
            Mode::ProbeRoundTrip { .. } => (UNIT, UNIT),
        }
    }

    /// Sets the pacing rate (BBRSetPacingRate): 1 % below the bandwidth, as in Linux, so that
    /// queues drain.
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate =
            u128::from(self.bandwidth.get()) * u128::from(gain * 99) / u128::from(UNIT * 100);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if rate > 0 && (self.is_full || rate > self.pacing.rate()) {
            self.pacing.set_rate(rate);
        }
    }

    /// BBRInflight: the BDP times a gain, plus headroom for segments being sent and acknowledged.
    fn inflight(&self, gain: u64) -> u32 {
        let Some(round_trip) = self.least_round_trip else { return self.initial_window };
        let product = bytes_in(self.bandwidth.get(), round_trip.into());
        let target = u128::from(product) * u128::from(gain) / u128::from(UNIT);
        let target = u64::try_from(target).unwrap_or(u64::MAX);
        let is_asking = matches!(self.mode, Mode::ProbeBandwidth { phase: 0, .. });
        let room = 3 * u64::from(self.pacing.quantum(self.segment()))
            + if is_asking { 2 * u64::from(self.segment()) } else { 0 };
        u32::try_from(target.saturating_add(room)).unwrap_or(WINDOW_MAX).min(WINDOW_MAX)
    }

    /// BBRSetCwnd.
    fn set_window(&mut self, ack: &Acknowledgement, gain: u64) {
        let newly = ack.delivered.bytes;
        if newly > 0 && !self.follow_repair(ack) {
            let extra = if self.is_full { self.aggregation.most(self.bandwidth.get()) } else { 0 };
            let extra = u32::try_from(extra).unwrap_or(WINDOW_MAX);
            let target = self.inflight(gain).saturating_add(extra).min(WINDOW_MAX);
            let grown = self.window.bytes.saturating_add(newly).min(WINDOW_MAX);
            let is_beginning = self.delivery.total < u64::from(self.initial_window);
            if self.is_full {
                self.window.bytes = grown.min(target);
            } else if self.window.bytes < target || is_beginning {
                self.window.bytes = grown;
            }
            self.window.bytes = self.window.bytes.max(self.window_min());
        }
        if matches!(self.mode, Mode::ProbeRoundTrip { .. }) {
            self.window.bytes = self.window.bytes.min(self.window_min());
        }
    }

    /// Applies BBRModulateCwndForRecovery. Returns whether the recovery determines the window.
    fn follow_repair(&mut self, ack: &Acknowledgement) -> bool {
        let before = self.repair;
        // BBR ignores recoveries for other reasons, such as an ECN mark.
        self.repair = match ack.repair {
            RecoveryKind::Timeout if before == RecoveryKind::None => RecoveryKind::None,
            repair => repair,
        };
        let conserved = ack.in_flight.saturating_add(ack.delivered.bytes).min(WINDOW_MAX);
        let segment = self.segment();
        self.window.bytes = self.window.bytes.saturating_sub(ack.lost).max(segment);
        match self.repair {
            RecoveryKind::Recovery if before != RecoveryKind::Recovery => {
                self.conserves = true;
                self.round_ends = self.delivery.total;
                self.window.bytes = conserved.max(segment);
            }
            RecoveryKind::None if before != RecoveryKind::None => {
                self.conserves = false;
                self.window.bytes = self.window.bytes.max(self.prior_window);
            }
            _ => {}
        }
        if self.conserves {
            self.window.bytes = self.window.bytes.max(conserved);
        }
        self.conserves
    }
}

#[cfg(test)]
mod tests {
    use super::delivery::RateSample;
    use super::*;
    use alloc::vec::Vec;

    const SEGMENT: u16 = 1_000;
    /// 10 MB/s over 20 ms: a BDP of 200 segments.
    const RATE: u64 = 10_000_000;
    const ROUND_TRIP: u32 = 20_000;
    const FITS: u32 = 200_000;

    fn bbr() -> Bbr {
        let mut bbr = Bbr::new(Window::new(SEGMENT, 10));
        bbr.begin(Some(ROUND_TRIP));
        bbr
    }

    /// Sends one acknowledgement for a round over a path with a rate; returns its time.
    fn round(bbr: &mut Bbr, now: u64, rate: u64, in_flight: u32) -> u64 {
        let now = now + u64::from(ROUND_TRIP) + 1;
        let bytes = bytes_in(rate, ROUND_TRIP.into());
        acknowledge(bbr, now, bytes, in_flight, |_| {});
        now
    }

    fn acknowledge(
        bbr: &mut Bbr,
        now: u64,
        bytes: u64,
        in_flight: u32,
        change: impl Fn(&mut Acknowledgement),
    ) {
        let prior_delivered = bbr.delivery.total;
        (bbr.delivery.total, bbr.delivery.at) = (prior_delivered + bytes, now);
        let interval = ROUND_TRIP.into();
        let sample = RateSample { bytes, interval, prior_delivered, is_app_limited: false };
        let round_trip = Some(ROUND_TRIP);
        let delivered = Delivered { bytes: bytes as u32, sample: Some(sample), round_trip };
        let in_flight_before = in_flight + bytes as u32;
        let mut ack = Acknowledgement {
            now,
            delivered,
            in_flight_before,
            in_flight,
            ..Acknowledgement::default()
        };
        change(&mut ack);
        bbr.on_acknowledged(&ack);
    }

    /// Marks the sample as application-limited.
    fn limited(ack: &mut Acknowledgement) {
        if let Some(sample) = &mut ack.delivered.sample {
            sample.is_app_limited = true;
        }
    }

    /// Returns a state with a known path, at the start of a phase with gain 1.
    fn steady() -> (Bbr, u64) {
        let (mut bbr, mut now) = (bbr(), 1_000_000);
        for _ in 0..6 {
            now = round(&mut bbr, now, RATE, FITS);
        }
        while !matches!(bbr.mode, Mode::ProbeBandwidth { phase: 2, .. }) {
            assert!(now < 9_000_000, "{:?}", bbr.mode);
            now = round(&mut bbr, now, RATE, 0);
        }
        (bbr, now)
    }

    #[test]
    fn initial_rate_sends_the_initial_window_in_a_round_trip() {
        // 10 segments in 20 ms, times 2.89.
        assert!((1_443_000..1_444_000).contains(&bbr().pacing.rate()), "{:?}", bbr().pacing);
    }

    #[test]
    fn startup_ends_after_three_rounds_without_growth_and_drains() {
        let (mut bbr, mut now) = (bbr(), 1_000_000);
        for doubled in [RATE / 8, RATE / 4, RATE / 2, RATE] {
            now = round(&mut bbr, now, doubled, FITS);
            assert_eq!(bbr.mode, Mode::Startup);
            assert_eq!(bbr.pacing.rate(), doubled * HIGH_GAIN * 99 / (UNIT * 100));
        }
        for _ in 0..2 {
            now = round(&mut bbr, now, RATE * 6 / 5, 2 * FITS);
            assert_eq!(bbr.mode, Mode::Startup);
        }
        now = round(&mut bbr, now, RATE, 2 * FITS);
        assert_eq!(bbr.mode, Mode::Drain);
        assert!(bbr.pacing.rate() < RATE * 6 / 5 * 35 / 100);
        now = round(&mut bbr, now, RATE, 2 * FITS);
        assert_eq!(bbr.mode, Mode::Drain);
        round(&mut bbr, now, RATE, FITS);
        assert!(matches!(bbr.mode, Mode::ProbeBandwidth { phase: 0 | 2.., .. }));
    }

    #[test]
    fn application_limited_samples_do_not_end_startup() {
        let (mut bbr, mut now) = (bbr(), 1_000_000);
        now = round(&mut bbr, now, RATE, 0);
        for _ in 0..20 {
            now += u64::from(ROUND_TRIP) + 1;
            acknowledge(&mut bbr, now, 5_000, 0, limited);
        }
        assert_eq!((bbr.mode, bbr.bandwidth.get()), (Mode::Startup, RATE));
        // A higher rate counts even if it is application-limited.
        acknowledge(&mut bbr, now, 400_000, 0, limited);
        assert_eq!(bbr.bandwidth.get(), 2 * RATE);
    }

    #[test]
    fn probe_cycle_probes_drains_and_cruises_for_six_round_trips() {
        let (mut bbr, mut now) = steady();
        let mut rates = Vec::new();
        for _ in 0..16 {
            rates.push(bbr.pacing.rate() * 100 / RATE);
            // The flight follows the gain: larger while probing, empty while draining.
            let in_flight = if bbr.gains().0 > UNIT { FITS * 5 / 4 } else { 0 };
            now = round(&mut bbr, now, RATE, in_flight);
        }
        let cycle = [99, 99, 99, 99, 99, 99, 123, 74];
        assert_eq!(rates, [cycle, cycle].concat());
        // Twice the BDP, plus headroom.
        let window = bbr.window.bytes;
        assert!((2 * FITS..2 * FITS + 250_000).contains(&window), "{window}");
    }

    #[test]
    fn probing_phase_ends_when_the_flight_has_grown_or_a_loss_occurs() {
        let at_more = || {
            let (mut bbr, mut now) = steady();
            while bbr.gains().0 != 320 {
                assert!(now < 9_000_000, "{:?}", bbr.mode);
                now = round(&mut bbr, now, RATE, 0);
            }
            (bbr, now)
        };
        let (mut bbr, mut now) = at_more();
        for _ in 0..3 {
            now += u64::from(ROUND_TRIP) + 1;
            acknowledge(&mut bbr, now, 10_000, 0, |_| {});
            assert_eq!(bbr.gains().0, 320);
        }
        acknowledge(&mut bbr, now + 1, 10_000, 0, |ack| ack.lost = 1_000);
        assert_eq!(bbr.gains().0, 192);
        let (mut bbr, now) = at_more();
        acknowledge(&mut bbr, now + u64::from(ROUND_TRIP) + 1, 10_000, 2 * FITS, |_| {});
        assert_eq!(bbr.gains().0, 192);
    }

    #[test]
    fn bandwidth_samples_expire_after_ten_rounds() {
        let (mut bbr, mut now) = steady();
        let known = bbr.rounds;
        for _ in 0..9 {
            now = round(&mut bbr, now, RATE / 2, 0);
        }
        assert_eq!((bbr.rounds - known, bbr.bandwidth.get()), (9, RATE));
        now = round(&mut bbr, now, RATE / 2, 0);
        assert_eq!(bbr.bandwidth.get(), RATE / 2);
        round(&mut bbr, now, RATE / 2, 0);
        assert!(bbr.pacing.rate() <= RATE * 5 / 8);
    }

    #[test]
    fn probe_rtt_follows_ten_seconds_and_lasts_200_ms_and_a_round() {
        let (mut bbr, mut now) = steady();
        let before = bbr.window.bytes;
        let longer = |ack: &mut Acknowledgement| {
            ack.delivered.round_trip = Some(ROUND_TRIP + 5_000);
        };
        let since = bbr.least_at;
        while now - since <= ROUND_TRIP_SPAN {
            now += u64::from(ROUND_TRIP);
            acknowledge(&mut bbr, now, 200_000, 0, longer);
        }
        assert_eq!(bbr.least_round_trip, Some(ROUND_TRIP + 5_000));
        assert!(matches!(bbr.mode, Mode::ProbeRoundTrip { .. }));
        assert_eq!(bbr.window.bytes, 4_000);
        let begin = now;
        while matches!(bbr.mode, Mode::ProbeRoundTrip { .. }) {
            now += 1_000;
            assert!(now - begin < 1_000_000, "{:?}", bbr.mode);
            acknowledge(&mut bbr, now, 4_000, 4_000, limited);
        }
        assert!((200..205).contains(&((now - begin) / 1_000)), "{}", now - begin);
        assert_eq!(bbr.least_round_trip, Some(ROUND_TRIP));
        assert!(bbr.window.bytes >= before.min(2 * FITS), "{} of {before}", bbr.window.bytes);
        assert_eq!(bbr.least_at, now);
    }

    #[test]
    fn recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
        let (mut bbr, now) = steady();
        let before = bbr.window.bytes;
        bbr.on_loss();
        let repairs = |ack: &mut Acknowledgement| ack.repair = RecoveryKind::Recovery;
        acknowledge(&mut bbr, now + 10, 1_000, 150_000, repairs);
        assert_eq!(bbr.window.bytes, 151_000);
        // In the first round the flight does not grow.
        let within = |ack: &mut Acknowledgement| {
            ack.repair = RecoveryKind::Recovery;
            ack.delivered.sample = None;
        };
        acknowledge(&mut bbr, now + 20, 1_000, 150_000, within);
        assert_eq!(bbr.window.bytes, 151_000);
        // After it, the window is the BDP; the pacing rate never dropped.
        acknowledge(&mut bbr, now + 30, 1_000, 150_000, repairs);
        assert_eq!(bbr.window.bytes, 152_000);
        assert!(bbr.pacing.rate() > RATE * 98 / 100);
        acknowledge(&mut bbr, now + 40, 1_000, 150_000, |_| {});
        assert!(bbr.window.bytes >= before, "{} of {before}", bbr.window.bytes);
    }

    #[test]
    fn window_regrows_from_one_segment_after_a_timeout() {
        let (mut bbr, now) = steady();
        let before = bbr.window.bytes;
        bbr.on_timeout();
        assert_eq!(bbr.window.bytes, 1_000);
        let repairs = |ack: &mut Acknowledgement| ack.repair = RecoveryKind::Timeout;
        acknowledge(&mut bbr, now + 10, 1_000, 0, repairs);
        assert_eq!(bbr.window.bytes, 4_000);
        acknowledge(&mut bbr, now + 20, 4_000, 0, repairs);
        assert_eq!(bbr.window.bytes, 8_000);
        acknowledge(&mut bbr, now + 30, 1_000, 0, |_| {});
        assert!(bbr.window.bytes >= before, "{} of {before}", bbr.window.bytes);
    }

    #[test]
    fn ecn_mark_is_not_a_timeout() {
        let (mut bbr, now) = steady();
        bbr.prior_window = 900_000;
        let marked = |ack: &mut Acknowledgement| ack.repair = RecoveryKind::Timeout;
        acknowledge(&mut bbr, now + 10, 1_000, 0, marked);
        acknowledge(&mut bbr, now + 20, 1_000, 0, |_| {});
        assert!(bbr.window.bytes < 900_000);
    }
}
