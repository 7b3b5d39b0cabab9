//! Congestion control: how many bytes a connection may have in flight (RFC 5681).
//!
//! The window is told what happened by its connection, which finds losses and has its own view of
//! what is in flight:
//!
//! - [`Congestion::on_acknowledged`] for each acknowledgment of new data outside of recovery;
//!   within it the window stays as it is (RFC 6675 section 5). What RFC 6582 adds to the window
//!   for each duplicate acknowledgment of a peer without SACK is the connection's to add.
//! - [`Congestion::on_loss`] once for each recovery, when it begins; [`Congestion::on_ecn_echo`]
//!   once for each window of data; neither within a recovery that has begun.
//! - [`Congestion::on_timeout`] each time the retransmission timer expires.
//! - [`Congestion::after_idle`] before data is sent after nothing was for a timeout.
//!
//! BBR is told more, of what is sent and of what arrives, and paces: `tcp::paced`.

pub(in crate::tcp) mod bbr;
mod cubic;
mod new_reno;

use alloc::boxed::Box;

use wirestorm_model::tcp::Algorithm;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use new_reno::NewReno;

/// The greatest congestion window, in bytes: no receiver can offer more (RFC 7323 section 2.3).
pub const WINDOW_MAX: u32 = 1 << 30;

/// RFC 6928 section 2 counts segments of so many bytes.
const INITIAL_SEGMENT: u32 = 1_460;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// Halves at a loss and grows by a segment in each round trip.
    NewReno(NewReno),
    /// Grows by the time since the last loss, however long a round trip takes.
    Cubic(Cubic),
    /// Is about what the path holds, whatever is lost.
    Bbr(Box<Bbr>),
}

const _: () = assert!(size_of::<Congestion>() <= 24);

impl Congestion {
    /// The window of a new connection, which sends segments of `mss` bytes (0 counts as 1).
    ///
    /// `initial_window_segments` is 10 by RFC 6928, and 1 where the SYN or its answer was lost
    /// (RFC 5681 section 3.1); 0 counts as 1.
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

    /// cwnd: how many bytes may be in flight; one segment or more, [`WINDOW_MAX`] or less.
    #[inline]
    pub fn window(&self) -> u32 {
        self.shared().bytes
    }

    /// ssthresh, in bytes: slow start ends there. `u32::MAX` before the first loss: "the initial
    /// value of ssthresh SHOULD be set arbitrarily high" (RFC 5681 section 3.1).
    pub fn slow_start_threshold(&self) -> u32 {
        self.shared().slow_start_threshold
    }

    /// Whether the window grows by slow start.
    pub fn is_in_slow_start(&self) -> bool {
        self.shared().bytes < self.shared().slow_start_threshold
    }

    /// So many bytes were acknowledged for the first time, at `now_us` microseconds of any clock,
    /// with SRTT in microseconds.
    ///
    /// A window that was not used up (`is_window_limited`) does not grow: nothing is known of
    /// how the network would have carried more (RFC 9438 section 5.8, RFC 7661).
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
            Self::Cubic(window) => window.pass_unused(now_us),
            Self::Bbr(_) => {}
        }
    }

    /// A loss was found without the timer, with so many bytes sent and not acknowledged
    /// (FlightSize; without what limited transmit sent, RFC 5681 section 3.2).
    pub fn on_loss(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_loss(flight),
            Self::Cubic(window) => window.on_loss(flight),
            Self::Bbr(window) => window.on_loss(),
        }
    }

    /// The retransmission timer expired, with so many bytes sent and not acknowledged before it.
    pub fn on_timeout(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_timeout(flight),
            Self::Cubic(window) => window.on_timeout(flight),
            Self::Bbr(window) => window.on_timeout(),
        }
    }

    /// The peer echoes that the network marked a packet. "the TCP source halves the
    /// congestion window 'cwnd' and reduces the slow start threshold 'ssthresh'" as for a loss,
    /// and "should not react to congestion indications more than once every window of data"
    /// (RFC 3168 section 6.1.2), which the caller sees to. BBR does not ask for less.
    pub fn on_ecn_echo(&mut self, bytes_in_flight: u32) {
        let flight = self.flight(bytes_in_flight);
        match self {
            Self::NewReno(window) => window.on_loss(flight),
            Self::Cubic(window) => window.on_ecn_echo(flight),
            Self::Bbr(_) => {}
        }
    }

    /// Segments have another size from now on; the window stays what it is.
    pub fn set_segment_size(&mut self, mss: u16) {
        self.shared_mut().mss = mss.max(1);
    }

    /// Data is about to be sent, and none was for longer than a retransmission timeout.
    ///
    /// RFC 5681 section 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning
    /// transmission if the TCP has not sent data in an interval exceeding the retransmission
    /// timeout", where "RW = min(IW,cwnd)". RFC 2861 section 3 keeps what was known of the path:
    /// ssthresh is three quarters of the window or more, so slow start leads back to about there.
    /// BBR paces what it sends, and needs no restart.
    pub fn after_idle(&mut self, initial_window_segments: u32) {
        match self {
            Self::NewReno(window) => window.after_idle(initial_window_segments),
            Self::Cubic(window) => window.after_idle(initial_window_segments),
            Self::Bbr(_) => {}
        }
    }

    /// What is in flight of the present window: the rest was sent before an earlier reduction, and
    /// must not make the next one end above the window as it is.
    fn flight(&self, bytes_in_flight: u32) -> u32 {
        bytes_in_flight.min(self.window())
    }

    /// That of BBR, where it is one.
    pub(in crate::tcp) fn bbr_mut(&mut self) -> Option<&mut Bbr> {
        match self {
            Self::Bbr(bbr) => Some(bbr),
            Self::NewReno(_) | Self::Cubic(_) => None,
        }
    }

    /// The same.
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

/// What all of them have: the window; and what two have: slow start.
#[derive(Clone, Debug)]
struct Window {
    bytes: u32,
    slow_start_threshold: u32,
    mss: u16,
    phase: Phase,
}

/// What the window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Slow start; or congestion avoidance that CUBIC has not begun.
    SlowStart,
    /// The retransmission timer expired, and nothing was acknowledged since.
    TimedOut,
    /// Slow start after that.
    SlowStartAfterTimeout,
    /// A stage of CUBIC's congestion avoidance; NewReno has none to keep apart.
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

    /// Grows the window where it is in slow start, and says whether it is.
    fn slow_start(&mut self, acked_bytes: u32) -> bool {
        // RFC 5681 section 3.1: "The slow start algorithm is used when cwnd < ssthresh".
        if self.bytes >= self.slow_start_threshold {
            return false;
        }
        // RFC 9406 section 4.2: "cwnd = cwnd + min(N, L * SMSS)", where N bytes were acknowledged and
        // L is 8 where segments leave without pacing, so that acknowledgments of many segments do
        // not slow it down. RFC 3465 section 2.3: L is 1 after a timeout, as one acknowledgment
        // may then cover much that was not lost.
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

    /// A loss found without the timer: the window is the threshold, two segments or more, where it
    /// was not one segment already.
    fn reduce(&mut self, threshold: u32) {
        self.slow_start_threshold = threshold.max(2 * u32::from(self.mss));
        self.bytes = self.bytes.min(self.slow_start_threshold);
        self.phase = Phase::SlowStart;
    }

    /// The retransmission timer expired.
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

/// RFC 6928 section 2: "min (10*MSS, max (2*MSS, 14600))", for 10 segments and any other number.
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
    fn the_initial_window_is_ten_segments_or_14600_bytes() {
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
    fn slow_start_grows_by_what_was_acknowledged_up_to_eight_segments() {
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
    fn a_window_that_is_not_used_up_does_not_grow() {
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
    fn after_a_timeout_slow_start_goes_by_single_segments_up_to_the_threshold() {
        for (mut congestion, threshold) in both(1_000).into_iter().zip([5_000, 7_000]) {
            congestion.on_timeout(10_000);
            assert_eq!(congestion.window(), 1_000);
            assert_eq!(congestion.slow_start_threshold(), threshold);
            // Again, for the same segment: the threshold stays.
            congestion.on_timeout(1_000);
            assert_eq!(congestion.slow_start_threshold(), threshold);
            for window in (2_000..=threshold).step_by(1_000) {
                congestion.on_acknowledged(3_000, 0, 10_000, true);
                assert_eq!(congestion.window(), window);
            }
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            assert!(congestion.window() < threshold + 1_000);
            assert!(!congestion.is_in_slow_start());
            // Something was acknowledged since, so this is another loss.
            congestion.on_timeout(4_000);
            assert!(congestion.slow_start_threshold() < threshold);
        }
    }

    #[test]
    fn an_acknowledgment_that_grows_nothing_ends_a_timeout_too() {
        for mut congestion in both(1_000) {
            congestion.on_timeout(10_000);
            congestion.on_acknowledged(1_000, 0, 10_000, false);
            congestion.on_timeout(1_000);
            assert_eq!(congestion.slow_start_threshold(), 2_000);
        }
    }

    #[test]
    fn thresholds_are_two_segments_or_more() {
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
    fn no_reduction_ends_above_the_window() {
        for mut congestion in both(1_000) {
            congestion.on_timeout(10_000);
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            congestion.on_acknowledged(1_000, 0, 10_000, true);
            // What was sent before the timeout still is in flight.
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
    fn after_idle_the_window_starts_again_and_remembers_where_it_was() {
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
            // The window has been greater than its threshold.
            congestion.on_timeout(12_000);
            for _ in 0..1_000 {
                congestion.on_acknowledged(1_000, 0, 10_000, true);
            }
            let window = congestion.window();
            congestion.after_idle(10);
            assert_eq!(congestion.slow_start_threshold(), window / 4 * 3);
            // A window below the initial one stays.
            congestion.on_timeout(2_000);
            congestion.after_idle(10);
            assert_eq!(congestion.window(), 1_000);
        }
    }

    #[test]
    fn no_window_grows_beyond_the_greatest_a_receiver_can_offer() {
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
