//! CUBIC (RFC 9438), in integer arithmetic.
//!
//! Implements sections 4.2 to 4.8 and 4.10. Section 4.9, spurious congestion events, is in
//! `tcp::undo`, which detects them by DSACK (RFC 3708). Slow start follows RFC 5681, without
//! HyStart++ (RFC 9406).

use alloc::boxed::Box;

use super::{Phase, WINDOW_MAX, Window};

/// Fraction bits of W_est: 4096ths of a byte keep the small steps of large windows.
const FRACTION_BITS: u32 = 12;

/// Constant C of section 4.2, 0.4 segments per cubic second. The unit is cubic microseconds divided
/// by 2^30: 0.4 * 10^-18 * 2^30, times 2^64.
const C: u128 = (4 << (30 + 64)) / 10_u128.pow(19);

/// Multiplies by beta_cubic of section 4.6, 7/10.
const fn beta(bytes: u32) -> u32 {
    (bytes as u64 * 7 / 10) as u32
}

/// Congestion window that grows with the cube of the time since congestion avoidance began.
#[derive(Clone, Debug)]
pub struct Cubic {
    pub(super) window: Window,
    /// `None` before the first congestion avoidance stage.
    stage: Option<Box<Stage>>,
}

/// State of a congestion avoidance stage.
#[derive(Clone, Debug, Default)]
struct Stage {
    /// W_est, the window of Reno, in 4096ths of a byte.
    reno: u64,
    /// W_max in bytes: the window before the last reduction, or less after fast convergence. 0: the
    /// next stage starts from its own window.
    max: u32,
    /// K: time to reach W_max, in microseconds of the stage.
    k_us: u32,
    /// t: time of this stage during which the window was fully used, in microseconds; saturates at
    /// 71 minutes.
    elapsed_us: u32,
    /// Time until which `elapsed_us` counts: the lower half of the clock.
    counted_us: u32,
}

const _: () = assert!(size_of::<Cubic>() == 24);

impl Cubic {
    pub(super) fn new(window: Window) -> Self {
        Self { window, stage: None }
    }

    pub(super) fn on_acknowledged(&mut self, acked_bytes: u32, now_us: u64, rtt_us: u32) {
        // Section 4.10: slow start as in Reno. The RFC also uses it for cwnd = ssthresh, where RFC
        // 5681 leaves the choice. A reduction ends there, and no slow start must follow it.
        if self.window.slow_start(acked_bytes) {
            return;
        }
        let Self { window: shared, stage } = self;
        let stage = stage.get_or_insert_default();
        if shared.phase != Phase::Avoidance {
            stage.begin(shared, now_us);
        }
        let now_us = now_us as u32;
        stage.elapsed_us = stage.elapsed_us.saturating_add(now_us.wrapping_sub(stage.counted_us));
        stage.counted_us = now_us;

        let window = shared.bytes;
        // After a reduction, an acknowledgement of more than the window counts as one window.
        let acked = u64::from(acked_bytes.min(window));
        let reno = stage.grow_reno(shared, acked);
        let elapsed = u64::from(stage.elapsed_us);
        // Section 4.3: "CUBIC checks whether W_cubic(t) is less than W_est. If so, CUBIC is in the
        // Reno-friendly region and cwnd SHOULD be set to W_est at each reception of a new ACK." A
        // larger window stays, because the cubic function aims one round trip ahead.
        if stage.cubic(shared.mss, elapsed) < reno {
            shared.bytes = reno.max(window);
            return;
        }
        // Section 4.2: "CUBIC computes the _target_ congestion window size after the next _RTT_".
        // This is W_cubic(t + RTT), but at least cwnd and at most 1.5 * cwnd.
        let target = stage.cubic(shared.mss, elapsed + u64::from(rtt_us));
        let target = target.clamp(window, window + window / 2);
        // Sections 4.4 and 4.5: cwnd grows by (target - cwnd) / cwnd "for each received new ACK".
        // Here it counts acknowledged segments, so that cwnd reaches the target after one window.
        let growth = u64::from(target - window) * acked / u64::from(window);
        shared.grow(growth as u32);
    }

    /// Excludes the time until now from t, because the window was not fully used. Sections 4.2 and
    /// 5.8: t must not include periods in which the application limited the window.
    pub(super) fn skip_unused_time(&mut self, now_us: u64) {
        if let Some(stage) = &mut self.stage {
            stage.counted_us = now_us as u32;
        }
    }

    pub(super) fn on_loss(&mut self, flight: u32) {
        self.stage.get_or_insert_default().remember(self.window.bytes);
        self.window.reduce(beta(flight));
    }

    /// Reduces the window for an ECN echo. Section 4.6 of RFC 9438: as for a loss, but with
    /// "max(ssthresh, 1)" segments, so the window may become one segment.
    pub(super) fn on_ecn_echo(&mut self, flight: u32) {
        self.on_loss(flight);
        let bytes = beta(flight).max(u32::from(self.window.mss));
        self.window.bytes = self.window.bytes.min(bytes);
    }

    /// Handles a timeout. Section 4.8: "In the case of a timeout, CUBIC follows Reno to reduce
    /// _cwnd_", with a ssthresh of beta_cubic. "During the first congestion avoidance stage after a
    /// timeout, [...] _K_ is set to 0, and _W_max_ is set to the congestion window size at the
    /// beginning of the current congestion avoidance stage."
    pub(super) fn on_timeout(&mut self, flight: u32) {
        self.stage.get_or_insert_default().max = 0;
        self.window.time_out(beta(flight));
    }

    pub(super) fn after_idle(&mut self, initial_window_segments: u32) {
        self.window.restart(initial_window_segments);
    }
}

impl Stage {
    /// Sets W_max before a reduction (sections 4.6 and 4.7).
    ///
    /// If cwnd was below W_max, fast convergence sets it to cwnd * (1 + beta_cubic) / 2. So a flow
    /// with a shrinking share frees bandwidth.
    fn remember(&mut self, window: u32) {
        self.max = if window < self.max { (u64::from(window) * 17 / 20) as u32 } else { window };
    }

    /// Starts a congestion avoidance stage at its first acknowledgement.
    fn begin(&mut self, shared: &mut Window, now_us: u64) {
        shared.phase = Phase::Avoidance;
        self.elapsed_us = 0;
        self.counted_us = now_us as u32;
        let window = shared.bytes;
        // Section 4.3: W_est "is set equal to cwnd_epoch at the start of the congestion avoidance
        // stage".
        self.reno = u64::from(window) << FRACTION_BITS;
        // Section 4.2, figure 2: K is the cubic root of (W_max - cwnd_epoch) / C, in segments and
        // seconds. A window above W_max starts from itself (sections 4.8 and 4.10).
        self.max = self.max.max(window);
        let segments_per_c = u128::from(self.max - window) * (10_u128.pow(19) / 4);
        self.k_us = cubic_root(segments_per_c / u128::from(shared.mss));
    }

    /// W_cubic in bytes at a time of the stage. Section 4.2, figure 1: C * (t - K)^3 + W_max.
    fn cubic(&self, mss: u16, time_us: u64) -> u32 {
        let distance = u128::from(time_us.abs_diff(u64::from(self.k_us)));
        // Both times are below 2^33, so the cube is below 2^99 and the product below 2^118.
        let cube = (distance * distance * distance) >> 30;
        let bytes = (cube * u128::from(mss) * C) >> 64;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if time_us < u64::from(self.k_us) {
            self.max.saturating_sub(bytes)
        } else {
            self.max.saturating_add(bytes).min(WINDOW_MAX)
        }
    }

    /// Grows W_est for acknowledged bytes, at most a window, and returns it in bytes.
    ///
    /// Section 4.3, figure 4: W_est grows by alpha_cubic * segments_acked / cwnd. Here alpha_cubic
    /// is `3 * (1 - beta_cubic) / (1 + beta_cubic)`, 9/17. The sender SHOULD set alpha_cubic to 1
    /// once W_est reaches the window before the last reduction. Linux does not, and neither does
    /// this. With 1, a flow with 1 % frame loss is a fifth faster than Linux.
    fn grow_reno(&mut self, shared: &Window, acked: u64) -> u32 {
        let bytes = acked * u64::from(shared.mss) * 9;
        self.reno += (bytes << FRACTION_BITS) / (u64::from(shared.bytes) * 17);
        (self.reno >> FRACTION_BITS).min(u64::from(WINDOW_MAX)) as u32
    }
}

/// Returns the greatest integer whose cube is at most `cube`, which must be below 2^96.
fn cubic_root(cube: u128) -> u32 {
    let mut root = 0_u128;
    for bit in (0..u32::BITS).rev() {
        let greater = root | 1 << bit;
        if greater * greater * greater <= cube {
            root = greater;
        }
    }
    // The loop sets only the lower 32 bits.
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::Congestion;
    use wirestorm_model::tcp::Algorithm;

    const MSS: u16 = 1_460;

    /// Equations of RFC 9438 as written there, in segments and seconds.
    #[derive(Debug)]
    struct Model {
        cwnd: f64,
        ssthresh: f64,
        w_max: f64,
        w_est: f64,
        k: f64,
        t_epoch: Option<f64>,
        has_timed_out: bool,
    }

    impl Model {
        const C: f64 = 0.4;
        const BETA: f64 = 0.7;

        fn new(cwnd: f64) -> Self {
            Self {
                cwnd,
                ssthresh: f64::INFINITY,
                w_max: 0.0,
                w_est: 0.0,
                k: 0.0,
                t_epoch: None,
                has_timed_out: false,
            }
        }

        fn w_cubic(&self, t: f64) -> f64 {
            Self::C * (t - self.k).powi(3) + self.w_max
        }

        fn acknowledge(&mut self, segments: f64, now: f64, rtt: f64) {
            if self.cwnd < self.ssthresh {
                self.cwnd += segments.min(if self.has_timed_out { 1.0 } else { 8.0 });
                return;
            }
            let t_epoch = *self.t_epoch.get_or_insert_with(|| {
                if self.has_timed_out || self.w_max < self.cwnd {
                    self.w_max = self.cwnd;
                }
                self.has_timed_out = false;
                self.k = ((self.w_max - self.cwnd) / Self::C).cbrt();
                self.w_est = self.cwnd;
                now
            });
            let t = now - t_epoch;
            let alpha = 3.0 * (1.0 - Self::BETA) / (1.0 + Self::BETA);
            self.w_est += alpha * segments / self.cwnd;
            if self.w_cubic(t) < self.w_est {
                self.cwnd = self.cwnd.max(self.w_est);
            } else {
                let target = self.w_cubic(t + rtt).clamp(self.cwnd, 1.5 * self.cwnd);
                self.cwnd += (target - self.cwnd) / self.cwnd * segments;
            }
        }

        fn lose(&mut self) {
            self.w_max = if self.cwnd < self.w_max {
                self.cwnd * (1.0 + Self::BETA) / 2.0
            } else {
                self.cwnd
            };
            self.ssthresh = (self.cwnd * Self::BETA).max(2.0);
            self.cwnd = self.ssthresh;
            self.t_epoch = None;
        }

        fn time_out(&mut self) {
            self.ssthresh = (self.cwnd * Self::BETA).max(2.0);
            self.cwnd = 1.0;
            self.has_timed_out = true;
            self.t_epoch = None;
        }
    }

    /// A connection that always has data to send, together with the model.
    struct Pair {
        congestion: Congestion,
        model: Model,
        now_us: u64,
        rtt_us: u32,
    }

    impl Pair {
        fn new(rtt_us: u32) -> Self {
            let congestion = Congestion::new(Algorithm::Cubic, MSS, 10);
            Self { congestion, model: Model::new(10.0), now_us: 1 << 33, rtt_us }
        }

        fn segments(&self) -> f64 {
            f64::from(self.congestion.window()) / f64::from(MSS)
        }

        /// Applies the evenly spaced acknowledgements of a round trip, each for two segments, and
        /// compares the windows to within 1 %. Returns the window in segments.
        fn round(&mut self) -> f64 {
            let acknowledgments = self.congestion.window().div_ceil(2 * u32::from(MSS));
            let begin = self.now_us;
            for number in 1..=acknowledgments {
                self.now_us =
                    begin + u64::from(number) * u64::from(self.rtt_us) / u64::from(acknowledgments);
                let (before, acked) = (self.segments(), 2 * u32::from(MSS));
                self.congestion.on_acknowledged(acked, self.now_us, self.rtt_us, true);
                let (now, rtt) = (self.now_us as f64 / 1e6, f64::from(self.rtt_us) / 1e6);
                self.model.acknowledge(2.0, now, rtt);
                assert!(self.segments() >= before, "window shrank without a loss");
                let difference = (self.segments() / self.model.cwnd - 1.0).abs();
                assert!(difference < 0.01, "{} segments beside {:?}", self.segments(), self.model);
            }
            self.segments()
        }

        fn lose(&mut self) {
            self.congestion.on_loss(self.congestion.window());
            self.model.lose();
        }

        fn time_out(&mut self) {
            self.congestion.on_timeout(self.congestion.window());
            self.model.time_out();
        }
    }

    #[test]
    fn windows_match_the_equations() {
        // With 40 segments and 100 ms, the Reno window overtakes the cubic function before K.
        let cases = [100, 1_000, 10_000, 100_000, 300_000].map(|rtt_us| (rtt_us, 1_000.0));
        for (rtt_us, segments) in cases.into_iter().chain([(100_000, 40.0)]) {
            let mut pair = Pair::new(rtt_us);
            while pair.round() < segments {}
            // Beyond W_max before the next loss, and below it (fast convergence).
            let rounds = (12_000_000 / rtt_us).min(2_000);
            for part in [1, 2, 8, 1, 30] {
                pair.lose();
                for _ in 0..rounds / part {
                    pair.round();
                }
            }
            pair.time_out();
            for _ in 0..rounds {
                pair.round();
            }
        }
    }

    #[test]
    fn window_reaches_w_max_after_k_and_is_flat_there() {
        let mut pair = Pair::new(100_000);
        while pair.round() < 1_000.0 {}
        let (before, begin) = (pair.segments(), pair.now_us);
        pair.lose();
        assert!((pair.segments() - before * 0.7).abs() < 1.0);
        // K = cubic root of (W_max * 0.3 / 0.4).
        let k = (before * 0.75).cbrt();
        let (mut sum, mut rounds) = (0.0, 0.0);
        while ((pair.now_us - begin) as f64) < k * 1e6 {
            sum += pair.segments();
            rounds += 1.0;
            pair.round();
        }
        assert!((pair.segments() / before - 1.0).abs() < 0.001, "{}", pair.segments());
        // The average is (3 + beta_cubic) / 4 of W_max, as in section 5.1.
        let average = sum / rounds / before;
        assert!((average / 0.925 - 1.0).abs() < 0.005, "{average}");
        // Half a second later: 0.4 * 0.125 segments.
        for _ in 0..5 {
            pair.round();
        }
        assert!((pair.segments() - before).abs() < 1.0, "{}", pair.segments());
    }

    #[test]
    fn small_windows_are_reno_friendly() {
        let mut pair = Pair::new(1_000);
        pair.round();
        let prior = pair.segments();
        pair.lose();
        // 9/17 of a segment for each acknowledged window, also beyond the window before the loss.
        let mut window = pair.segments();
        while window < prior + 3.0 {
            let next = pair.round();
            assert!((next - window - 9.0 / 17.0).abs() < 0.1, "{window} {next}");
            window = next;
        }
    }

    #[test]
    fn ecn_echo_may_reduce_the_window_to_one_segment() {
        let mut congestion = Congestion::new(Algorithm::Cubic, 1_000, 2);
        congestion.on_ecn_echo(2_000);
        assert_eq!(congestion.window(), 1_400);
        assert_eq!(congestion.slow_start_threshold(), 2_000);
        congestion.on_ecn_echo(1_400);
        assert_eq!(congestion.window(), 1_000);
    }

    #[test]
    fn acknowledged_window_adds_at_most_half_of_it() {
        let mut congestion = Congestion::new(Algorithm::Cubic, 1_000, 20);
        congestion.on_loss(20_000);
        assert_eq!(congestion.window(), 14_000);
        congestion.on_acknowledged(1, 0, 1_000, true);
        // A minute later the cubic function is far above the window.
        congestion.on_acknowledged(14_000, 60_000_000, 1_000, true);
        assert_eq!(congestion.window(), 21_000);
        // Data sent before a reduction counts as at most the reduced window.
        congestion.on_acknowledged(1_000_000, 60_000_000, 1_000, true);
        assert_eq!(congestion.window(), 31_500);
    }

    #[test]
    fn window_above_both_functions_stays() {
        let mut congestion = Congestion::new(Algorithm::Cubic, 1_000, 20);
        congestion.on_loss(20_000);
        congestion.on_acknowledged(1, 0, 1_000, true);
        // K is 2.47 s; a round trip of 10 s aims far beyond it.
        congestion.on_acknowledged(14_000, 2_000_000, 10_000_000, true);
        assert_eq!(congestion.window(), 21_000);
        // The round trip becomes short. W_cubic(2 s) is 19,960, and W_est overtakes it.
        for _ in 0..14 {
            congestion.on_acknowledged(21_000, 2_000_000, 1_000, true);
            assert!(congestion.window() >= 21_000);
        }
        // W_est grows from 14,529 by 9/17 of a segment, slightly less while the window is above
        // 21,000.
        assert_eq!(congestion.window(), 21_931);
    }

    #[test]
    fn time_with_an_unused_window_does_not_count() {
        let after = |pause_us: u64| {
            let mut pair = Pair::new(100_000);
            while pair.round() < 100.0 {}
            pair.lose();
            for _ in 0..10 {
                pair.round();
            }
            pair.congestion.on_acknowledged(1_000, pair.now_us + pause_us, 100_000, false);
            let now = pair.now_us + pause_us + 1_000;
            pair.congestion.on_acknowledged(10 * u32::from(MSS), now, 100_000, true);
            pair.congestion.window()
        };
        assert_eq!(after(0), after(60_000_000));
    }

    #[test]
    fn roots_are_exact() {
        for root in [0, 1, 2, 3, 1_000, 1_476_000_000, u32::MAX] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cubic_root(cube), root);
            if root > 0 {
                assert_eq!(cubic_root(cube - 1), root - 1);
            }
        }
    }
}
