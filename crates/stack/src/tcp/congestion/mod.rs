//! Congestion control: how many bytes a connection may have in flight (RFC 5681).
//!
//! The connection detects losses and tracks the flight itself, and calls these methods:
//!
//! - [`Congestion::on_acknowledged`] for each acknowledgement of new data outside of recovery.
//!   During recovery the window is constant (RFC 6675 section 5). The connection itself adds the
//!   segments that RFC 6582 allows for duplicate acknowledgements of a peer without SACK.
//! - [`Congestion::on_loss`] once at the start of each recovery, and [`Congestion::on_ecn_echo`]
//!   once for each window of data. Neither is called during a recovery.
//! - [`Congestion::on_timeout`] for each expiry of the retransmission timer.
//! - [`Congestion::after_idle`] before data is sent after an idle time of one timeout.
//!
//! BBR also gets transmissions and deliveries, and paces: see `tcp::paced`.

pub(in crate::tcp) mod bbr;
mod cubic;
mod new_reno;

use alloc::boxed::Box;

use wirestorm_model::tcp::Algorithm;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use new_reno::NewReno;

/// Maximum congestion window in bytes: no receiver can offer more (RFC 7323 section 2.3).
pub const WINDOW_MAX: u32 = 1 << 30;

/// Segment size in the bound of RFC 6928 section 2, in bytes.
const INITIAL_SEGMENT: u32 = 1_460;

/// Congestion control state of one connection.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// Halves the window on loss and grows by one segment per round trip.
    NewReno(NewReno),
    /// Grows with the time since the last loss, independent of the round-trip time.
    Cubic(Cubic),
    /// Follows a model of the path, independent of losses.
    Bbr(Box<Bbr>),
}

const _: () = assert!(size_of::<Congestion>() <= 24);

impl Congestion {
    /// Creates the state of a new connection with segments of `mss` bytes (0 counts as 1).
    ///
    /// `initial_window_segments` is 10 by RFC 6928, and 1 after a lost SYN or SYN-ACK (RFC 5681
    /// section 3.1); 0 counts as 1.
    #[inline]
    pub fn new(algorithm: Algorithm, mss: u16, initial_window_segments: u32) -> Self {
        let window = Window::new(mss, initial_window_segments);
        match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(window)),
            Algorithm::Cubic => Self::Cubic(Cubic::new(window)),
            Algorithm::Bbr => Self::with_bbr(window),
        }
    }

    #[cold]
    fn with_bbr(window: Window) -> Self {
        Self::Bbr(Box::new(Bbr::new(window)))
    }

    /// cwnd: maximum number of bytes in flight, from one segment to [`WINDOW_MAX`].
    #[inline]
    pub fn window(&self) -> u32 {
        self.shared().bytes
    }

    /// ssthresh in bytes. `u32::MAX` before the first loss: "the initial value of ssthresh SHOULD
    /// be set arbitrarily high" (RFC 5681 section 3.1).
    pub fn slow_start_threshold(&self) -> u32 {
        self.shared().slow_start_threshold
    }

    /// Whether the window is in slow start.
    pub fn is_in_slow_start(&self) -> bool {
        self.shared().bytes < self.shared().slow_start_threshold
    }

    /// Handles an acknowledgement of `acked_bytes` new bytes at `now_us`, microseconds of a
    /// monotonic clock.
    ///
    /// The window does not grow unless the flow used it fully (`is_window_limited`), because
    /// otherwise the network was not tested (RFC 9438 section 5.8, RFC 7661).
    #[inline]
    pub fn on_acknowledged(
        &mut self,
        acked_bytes: u32,
        now_us: u64,
        smoothed_rtt_us: u32,
        is_window_limited: bool,
    ) {
        self.shared_mut().note_acknowledgment();
        match self {
            Self::NewReno(window) if is_window_limited => window.on_acknowledged(acked_bytes),
            Self::NewReno(_) => {}
            Self::Cubic(window) if is_window_limited => {
                window.on_acknowledged(acked_bytes, now_us, smoothed_rtt_us);
            }
            Self::Cubic(window) => window.skip_unused_time(now_us),
            Self::Bbr(_) => {}
        }
    }

    /// Handles a loss that was not detected by timeout. `bytes_in_flight` is FlightSize, without
    /// the segments of limited transmit (RFC 5681 section 3.2).
    pub fn on_loss(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_loss(flight),
            Self::Cubic(window) => window.on_loss(flight),
            Self::Bbr(window) => window.on_loss(),
        }
    }

    /// Handles a retransmission timeout; `bytes_in_flight` is the FlightSize before it.
    pub fn on_timeout(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_timeout(flight),
            Self::Cubic(window) => window.on_timeout(flight),
            Self::Bbr(window) => window.on_timeout(),
        }
    }

    /// Handles an ECN echo of the peer as a loss (RFC 3168 section 6.1.2): "the TCP source halves
    /// the congestion window 'cwnd' and reduces the slow start threshold 'ssthresh'".
    ///
    /// The caller ensures that it "should not react to congestion indications more than once every
    /// window of data". BBR ignores the echo.
    pub fn on_ecn_echo(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_loss(flight),
            Self::Cubic(window) => window.on_ecn_echo(flight),
            Self::Bbr(_) => {}
        }
    }

    /// Changes the segment size; the window stays the same.
    pub fn set_segment_size(&mut self, mss: u16) {
        self.shared_mut().mss = mss.max(1);
    }

    /// Handles a transmission after an idle time longer than the retransmission timeout.
    ///
    /// RFC 5681 section 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning
    /// transmission if the TCP has not sent data in an interval exceeding the retransmission
    /// timeout", where "RW = min(IW,cwnd)". RFC 2861 section 3 keeps the knowledge of the path:
    /// ssthresh is at least three quarters of the window, so slow start returns to about there. BBR
    /// paces and needs no restart.
    pub fn after_idle(&mut self, initial_window_segments: u32) {
        match self {
            Self::NewReno(window) => window.after_idle(initial_window_segments),
            Self::Cubic(window) => window.after_idle(initial_window_segments),
            Self::Bbr(_) => {}
        }
    }

    /// Limits the flight to the current window. Data beyond it was sent before an earlier reduction
    /// and must not raise the next window.
    fn flight(&self, bytes_in_flight: u32) -> u32 {
        bytes_in_flight.min(self.window())
    }

    /// Returns the BBR state, if BBR is in use.
    pub(in crate::tcp) fn bbr_mut(&mut self) -> Option<&mut Bbr> {
        match self {
            Self::Bbr(bbr) => Some(bbr),
            Self::NewReno(_) | Self::Cubic(_) => None,
        }
    }

    /// Returns the BBR state, if BBR is in use.
    pub(in crate::tcp) fn bbr(&self) -> Option<&Bbr> {
        match self {
            Self::Bbr(bbr) => Some(bbr),
            Self::NewReno(_) | Self::Cubic(_) => None,
        }
    }

    #[inline]
    fn shared(&self) -> &Window {
        match self {
            Self::NewReno(window) => &window.window,
            Self::Cubic(window) => &window.window,
            Self::Bbr(bbr) => &bbr.window,
        }
    }

    #[inline]
    fn shared_mut(&mut self) -> &mut Window {
        match self {
            Self::NewReno(window) => &mut window.window,
            Self::Cubic(window) => &mut window.window,
            Self::Bbr(bbr) => &mut bbr.window,
        }
    }
}

/// State that all algorithms share: the window, and slow start for NewReno and CUBIC.
#[derive(Clone, Debug)]
struct Window {
    bytes: u32,
    slow_start_threshold: u32,
    mss: u16,
    phase: Phase,
}

/// Phase of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Slow start, or congestion avoidance before the first acknowledgement in it (CUBIC).
    SlowStart,
    /// After a retransmission timeout, before any acknowledgement.
    TimedOut,
    /// Slow start after a timeout.
    SlowStartAfterTimeout,
    /// Congestion avoidance stage of CUBIC; NewReno does not use it.
    Avoidance,
}

impl Window {
    fn new(mss: u16, initial_window_segments: u32) -> Self {
        let mss = mss.max(1);
        Self {
            bytes: initial_window(mss, initial_window_segments),
            slow_start_threshold: u32::MAX,
            mss,
            phase: Phase::SlowStart,
        }
    }

    fn note_acknowledgment(&mut self) {
        if self.phase == Phase::TimedOut {
            self.phase = Phase::SlowStartAfterTimeout;
        }
    }

    /// Grows the window if it is in slow start. Returns whether it is.
    fn slow_start(&mut self, acked_bytes: u32) -> bool {
        // RFC 5681 section 3.1: "The slow start algorithm is used when cwnd < ssthresh".
        if self.bytes >= self.slow_start_threshold {
            return false;
        }
        // RFC 9406 section 4.2: "cwnd = cwnd + min(N, L * SMSS)", where N bytes were acknowledged.
        // L is 8 without pacing, so that acknowledgements of many segments do not slow it down. RFC
        // 3465 section 2.3: L is 1 after a timeout, because one acknowledgement may then cover data
        // that was not lost.
        let limit = match self.phase {
            Phase::SlowStartAfterTimeout => u32::from(self.mss),
            _ => 8 * u32::from(self.mss),
        };
        self.grow(acked_bytes.min(limit));
        true
    }

    fn grow(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_add(bytes).min(WINDOW_MAX);
    }

    /// Reduces the window to the threshold (at least two segments) after a loss without timeout. A
    /// window of one segment stays.
    fn reduce(&mut self, threshold: u32) {
        self.slow_start_threshold = threshold.max(2 * u32::from(self.mss));
        self.bytes = self.bytes.min(self.slow_start_threshold);
        self.phase = Phase::SlowStart;
    }

    /// Reduces the window to one segment after a retransmission timeout.
    fn time_out(&mut self, threshold: u32) {
        // RFC 5681 section 3.1: "when a TCP sender detects segment loss using the retransmission
        // timer and the given segment has already been retransmitted by way of the retransmission
        // timer at least once, the value of ssthresh is held constant."
        if self.phase != Phase::TimedOut {
            self.slow_start_threshold = threshold.max(2 * u32::from(self.mss));
        }
        // "upon a timeout [...] cwnd MUST be set to no more than the loss window, LW, which equals
        // 1 full-sized segment (regardless of the value of IW)."
        self.bytes = u32::from(self.mss);
        self.phase = Phase::TimedOut;
    }

    fn restart(&mut self, initial_window_segments: u32) {
        self.slow_start_threshold = self.slow_start_threshold.max(self.bytes / 4 * 3);
        self.bytes = self.bytes.min(initial_window(self.mss, initial_window_segments));
        self.phase = Phase::SlowStart;
    }
}

/// RFC 6928 section 2: "min (10*MSS, max (2*MSS, 14600))", generalized to any number of segments.
fn initial_window(mss: u16, segments: u32) -> u32 {
    let (mss, segments) = (u32::from(mss), segments.max(1));
    let bound = segments.saturating_mul(INITIAL_SEGMENT).max(2 * mss);
    segments.saturating_mul(mss).min(bound).min(WINDOW_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(mss: u16) -> [Congestion; 2] {
        [Algorithm::NewReno, Algorithm::Cubic].map(|algorithm| Congestion::new(algorithm, mss, 10))
    }

    #[test]
    fn initial_window_is_ten_segments_or_14600_bytes() {
        for (mss, expected) in [(536, 5_360), (1_460, 14_600), (1_461, 14_600), (8_960, 17_920)] {
            for congestion in both(mss) {
                assert_eq!(congestion.window(), expected);
                assert_eq!(congestion.slow_start_threshold(), u32::MAX);
            }
        }
        assert_eq!(Congestion::new(Algorithm::Cubic, 1_460, 1).window(), 1_460);
        assert_eq!(Congestion::new(Algorithm::Cubic, 0, 0).window(), 1);
    }

    #[test]
    fn slow_start_grows_by_acknowledged_bytes_up_to_eight_segments() {
        for mut congestion in both(1_000) {
            congestion.on_acknowledged(300, 0, 10_000, true);
            assert_eq!(congestion.window(), 10_300);
            congestion.on_acknowledged(2_000, 0, 10_000, true);
            assert_eq!(congestion.window(), 12_300);
            congestion.on_acknowledged(9_000, 0, 10_000, true);
            assert_eq!(congestion.window(), 20_300);
            assert!(congestion.is_in_slow_start());
        }
    }

    #[test]
    fn unused_window_does_not_grow() {
        for mut congestion in both(1_000) {
            congestion.on_acknowledged(2_000, 0, 10_000, false);
            assert_eq!(congestion.window(), 10_000);
            congestion.on_loss(10_000);
            let reduced = congestion.window();
            for round in 0..100 {
                congestion.on_acknowledged(2_000, round * 100_000, 100_000, false);
            }
            assert_eq!(congestion.window(), reduced);
        }
    }

    #[test]
    fn slow_start_after_a_timeout_grows_by_single_segments() {
        for (mut congestion, threshold) in both(1_000).into_iter().zip([5_000, 7_000]) {
            congestion.on_timeout(10_000);
            assert_eq!(congestion.window(), 1_000);
            assert_eq!(congestion.slow_start_threshold(), threshold);
            // Another timeout for the same segment keeps the threshold.
            congestion.on_timeout(1_000);
            assert_eq!(congestion.slow_start_threshold(), threshold);
            for window in (2_000..=threshold).step_by(1_000) {
                congestion.on_acknowledged(3_000, 0, 10_000, true);
                assert_eq!(congestion.window(), window);
            }
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            assert!(congestion.window() < threshold + 1_000);
            assert!(!congestion.is_in_slow_start());
            // After an acknowledgement, a timeout is a new loss.
            congestion.on_timeout(4_000);
            assert!(congestion.slow_start_threshold() < threshold);
        }
    }

    #[test]
    fn acknowledgment_without_growth_also_ends_a_timeout() {
        for mut congestion in both(1_000) {
            congestion.on_timeout(10_000);
            congestion.on_acknowledged(1_000, 0, 10_000, false);
            congestion.on_timeout(1_000);
            assert_eq!(congestion.slow_start_threshold(), 2_000);
        }
    }

    #[test]
    fn thresholds_are_at_least_two_segments() {
        for mut congestion in both(1_000) {
            congestion.on_loss(1_000);
            assert_eq!(congestion.window(), 2_000);
            assert_eq!(congestion.slow_start_threshold(), 2_000);
            congestion.on_timeout(1_000);
            assert_eq!(congestion.window(), 1_000);
            assert_eq!(congestion.slow_start_threshold(), 2_000);
        }
    }

    #[test]
    fn reductions_never_raise_the_window() {
        for mut congestion in both(1_000) {
            congestion.on_timeout(10_000);
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            // Data sent before the timeout is still in flight.
            congestion.on_loss(100_000);
            assert!(congestion.window() <= 3_000);
            congestion.on_ecn_echo(100_000);
            assert!(congestion.window() <= 2_100);
            congestion.on_timeout(2_000);
            congestion.on_loss(1_000);
            assert_eq!(congestion.window(), 1_000);
            congestion.on_ecn_echo(1_000);
            assert_eq!(congestion.window(), 1_000);
        }
    }

    #[test]
    fn idle_restart_keeps_the_threshold() {
        for mut congestion in both(1_000) {
            for _ in 0..45 {
                congestion.on_acknowledged(2_000, 0, 10_000, true);
            }
            assert_eq!(congestion.window(), 100_000);
            congestion.on_loss(40_000);
            let reduced = congestion.window();
            congestion.after_idle(10);
            assert_eq!(congestion.window(), 10_000);
            assert_eq!(congestion.slow_start_threshold(), reduced);
            assert!(congestion.is_in_slow_start());
            congestion.on_acknowledged(2_000, 0, 10_000, true);
            assert_eq!(congestion.window(), 12_000);
            // The window has grown beyond its threshold.
            congestion.on_timeout(12_000);
            for _ in 0..1_000 {
                congestion.on_acknowledged(1_000, 0, 10_000, true);
            }
            let window = congestion.window();
            congestion.after_idle(10);
            assert_eq!(congestion.slow_start_threshold(), window / 4 * 3);
            // A window below the initial window stays.
            congestion.on_timeout(2_000);
            congestion.after_idle(10);
            assert_eq!(congestion.window(), 1_000);
        }
    }

    #[test]
    fn window_never_exceeds_the_maximum_receive_window() {
        for mut congestion in both(u16::MAX) {
            for _ in 0..20_000 {
                congestion.on_acknowledged(u32::MAX, 0, u32::MAX, true);
            }
            assert_eq!(congestion.window(), WINDOW_MAX);
            congestion.on_loss(u32::MAX);
            for round in 0..20_000 {
                congestion.on_acknowledged(u32::MAX, round << 24, u32::MAX, true);
            }
            assert_eq!(congestion.window(), WINDOW_MAX);
        }
    }
}
