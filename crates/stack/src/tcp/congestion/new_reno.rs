//! NewReno: additive increase and multiplicative decrease (RFC 5681, RFC 3465, RFC 6582).

use super::Window;

/// Congestion window that grows by one segment per round trip.
#[derive(Clone, Debug)]
pub struct NewReno {
    pub(super) window: Window,
    /// bytes_acked of RFC 3465: bytes acknowledged since the window last grew.
    acknowledged: u32,
}

const _: () = assert!(size_of::<NewReno>() == 16);

impl NewReno {
    pub(super) fn new(window: Window) -> Self {
        Self { window, acknowledged: 0 }
    }

    pub(super) fn on_acknowledged(&mut self, acked_bytes: u32) {
        if self.window.slow_start(acked_bytes) {
            return;
        }
        // RFC 3465 section 2.1: "When bytes_acked becomes greater than or equal to the value of the
        // congestion window, bytes_acked is reduced by the value of cwnd. Next, cwnd is incremented
        // by a full-sized segment (SMSS)." A window of 5.5 segments holds only 5 in flight, and
        // must grow by one per round trip (RFC 5681 section 3.1). So the fractional segment does
        // not count.
        self.acknowledged = self.acknowledged.saturating_add(acked_bytes);
        let mss = u32::from(self.window.mss);
        let whole = self.window.bytes - self.window.bytes % mss.max(1);
        if self.acknowledged >= whole {
            self.acknowledged -= whole;
            self.window.grow(mss);
        }
    }

    /// Halves the window. RFC 5681 section 3.1, to which RFC 6582 refers: "ssthresh = max
    /// (FlightSize / 2, 2*SMSS)". RFC 6675 section 5: "ssthresh = cwnd = (FlightSize / 2)".
    pub(super) fn on_loss(&mut self, flight: u32) {
        self.window.reduce(flight / 2);
        self.acknowledged = 0;
    }

    /// Handles a timeout (RFC 5681 section 3.1).
    pub(super) fn on_timeout(&mut self, flight: u32) {
        self.window.time_out(flight / 2);
        self.acknowledged = 0;
    }

    pub(super) fn after_idle(&mut self, initial_window_segments: u32) {
        self.window.restart(initial_window_segments);
        self.acknowledged = 0;
    }
}

#[cfg(test)]
mod tests {
    use crate::tcp::congestion::Congestion;
    use wirestorm_model::tcp::Algorithm;

    fn new_reno() -> Congestion {
        Congestion::new(Algorithm::NewReno, 1_000, 10)
    }

    fn acknowledge(congestion: &mut Congestion, bytes: u32) {
        congestion.on_acknowledged(bytes, 0, 10_000, true);
    }

    #[test]
    fn loss_halves_the_flight_size() {
        let mut congestion = new_reno();
        for _ in 0..5 {
            acknowledge(&mut congestion, 2_000);
        }
        assert_eq!(congestion.window(), 20_000);
        congestion.on_loss(18_000);
        assert_eq!((congestion.window(), congestion.slow_start_threshold()), (9_000, 9_000));
        assert!(!congestion.is_in_slow_start());
    }

    #[test]
    fn ecn_echo_counts_as_a_loss() {
        let mut congestion = new_reno();
        congestion.on_ecn_echo(10_000);
        assert_eq!((congestion.window(), congestion.slow_start_threshold()), (5_000, 5_000));
    }

    #[test]
    fn avoidance_grows_by_a_segment_per_acknowledged_window() {
        let mut congestion = new_reno();
        congestion.on_loss(10_000);
        // In pieces of any size; the rest counts for the next segment.
        for (bytes, window) in [
            (4_999, 5_000),
            (1, 6_000),
            (5_000, 6_000),
            (2_000, 7_000),
            (5_999, 7_000),
            (1, 8_000),
            (7_999, 8_000),
            (1, 9_000),
        ] {
            acknowledge(&mut congestion, bytes);
            assert_eq!(congestion.window(), window, "{bytes}");
        }
    }

    #[test]
    fn fractional_segments_of_a_window_do_not_count() {
        let mut congestion = new_reno();
        acknowledge(&mut congestion, 2_000);
        congestion.on_loss(11_000);
        for (bytes, window) in [(4_999, 5_500), (1, 6_500), (5_999, 6_500), (1, 7_500)] {
            acknowledge(&mut congestion, bytes);
            assert_eq!(congestion.window(), window, "{bytes}");
        }
    }

    #[test]
    fn reduction_resets_the_acknowledged_bytes() {
        let events: [fn(&mut Congestion); 3] = [
            |congestion| congestion.on_loss(10_000),
            |congestion| congestion.on_timeout(10_000),
            |congestion| congestion.after_idle(2),
        ];
        for event in events {
            let mut congestion = new_reno();
            congestion.on_loss(10_000);
            acknowledge(&mut congestion, 4_900);
            event(&mut congestion);
            while congestion.is_in_slow_start() {
                acknowledge(&mut congestion, 1_000);
            }
            let window = congestion.window();
            let whole = window / 1_000 * 1_000;
            acknowledge(&mut congestion, whole - 1);
            assert_eq!(congestion.window(), window);
            acknowledge(&mut congestion, 1);
            assert_eq!(congestion.window(), window + 1_000);
        }
    }
}
