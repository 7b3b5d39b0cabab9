//! Round-trip time estimate and retransmission timeout (RFC 6298), in microseconds.

use wirestorm_model::tcp::RtoBounds;

/// Fraction bits of stored round-trip times. 64ths of a microsecond keep the small steps of many
/// samples per round (RFC 7323 appendix G).
const FRACTION_BITS: u32 = 6;

/// Bits of the stored minimum round-trip time, without its shift.
const LEAST_BITS: u32 = 12;

/// Maximum round-trip time sample: 60 s in microseconds; longer samples are clamped to it.
pub const SAMPLE_MAX: u32 = 60_000_000;

/// Clock granularity G of RFC 6298 section 2, in microseconds: timers have ticks of 1 ms.
const GRANULARITY: u32 = 1_000;

/// Initial retransmission timeout in microseconds "if the timer expires awaiting the ACK of a SYN
/// segment and the TCP implementation is using an RTO less than 3 seconds" (RFC 6298 section 5.7).
const INITIAL_AFTER_SYN_TIMEOUT: u32 = 3_000_000;

/// Maximum number of backoffs; with so many the timeout exceeds any bound.
const BACK_OFFS_MAX: u8 = 32;

/// Round-trip time estimate of a connection and backoff of its timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    /// SRTT, in 64ths of a microsecond.
    smoothed: u32,
    /// RTTVAR, in 64ths of a microsecond.
    variation: u32,
    /// Minimum sample: 12 bits of mantissa in the low bits, and the shift above them.
    least: u16,
    backoffs: u8,
    known: EstimateBasis,
}

/// Basis of the timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EstimateBasis {
    #[default]
    Nothing,
    /// No sample, and the timer expired for the SYN.
    SynTimedOut,
    Samples,
}

const _: () = assert!(size_of::<RoundTrip>() == 12);

impl RoundTrip {
    /// Returns an estimator without samples.
    pub const fn new() -> Self {
        Self { smoothed: 0, variation: 0, least: 0, backoffs: 0, known: EstimateBasis::Nothing }
    }

    /// Adds a sample of `micros` and ends the backoff.
    ///
    /// `expected` is the expected number of samples per window of data, at least 1. It is 1 if one
    /// segment in flight is timed at a time. It is [`expected_samples`] if each acknowledgment
    /// echoes a timestamp.
    ///
    /// The caller skips retransmissions: "RTT samples MUST NOT be made using segments that were
    /// retransmitted", except with timestamps (Karn's algorithm, RFC 6298 section 3).
    pub fn sample(&mut self, micros: u32, expected: u32) {
        if self.min_rtt().is_none_or(|least| micros < least) {
            let micros = micros.min(SAMPLE_MAX);
            let shift = (u32::BITS - micros.leading_zeros()).saturating_sub(LEAST_BITS);
            self.least = (shift << LEAST_BITS | micros >> shift) as u16;
        }
        let sample = micros.min(SAMPLE_MAX) << FRACTION_BITS;
        if self.has_sample() {
            // RFC 6298 section 2.3: "RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|" and
            // "SRTT <- (1 - alpha) * SRTT + alpha * R'", in this order, with alpha = 1/8 and
            // beta = 1/4. RFC 7323 appendix G: "alpha' = alpha / ExpectedSamples", "beta' = beta
            // / ExpectedSamples".
            let expected = i64::from(expected.max(1));
            let deviation = self.smoothed.abs_diff(sample);
            self.variation = approach(self.variation, deviation, 4 * expected);
            self.smoothed = approach(self.smoothed, sample, 8 * expected);
        } else {
            // Section 2.2: "SRTT <- R RTTVAR <- R/2".
            self.smoothed = sample;
            self.variation = sample / 2;
            self.known = EstimateBasis::Samples;
        }
        // Section 5: "once a new RTT measurement is obtained [...], the computations outlined in
        // Section 2 are performed, including the computation of RTO, which may result in
        // 'collapsing' RTO back down after it has been subject to exponential back off".
        self.backoffs = 0;
    }

    const fn has_sample(&self) -> bool {
        matches!(self.known, EstimateBasis::Samples)
    }

    /// Minimum sample in microseconds, rounded down by less than 1/2000; `None` before the first
    /// sample.
    pub fn min_rtt(&self) -> Option<u32> {
        const MASK: u16 = (1 << LEAST_BITS) - 1;
        let least = u32::from(self.least & MASK) << (self.least >> LEAST_BITS);
        self.has_sample().then_some(least)
    }

    /// SRTT in microseconds; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<u32> {
        if self.has_sample() { Some(self.smoothed >> FRACTION_BITS) } else { None }
    }

    /// RTTVAR in microseconds; `None` before the first sample.
    pub const fn variation(&self) -> Option<u32> {
        if self.has_sample() { Some(self.variation >> FRACTION_BITS) } else { None }
    }

    /// RTO in microseconds; at most `bounds.max`.
    pub fn retransmission_timeout(&self, bounds: &RtoBounds) -> u32 {
        let timeout = if self.has_sample() {
            // Sections 2.2 and 2.3: "RTO <- SRTT + max (G, K*RTTVAR) where K = 4".
            let spread = self.variation >> (FRACTION_BITS - 2);
            let margin = spread.max(GRANULARITY).max(bounds.min);
            (self.smoothed >> FRACTION_BITS).saturating_add(margin)
        } else if self.known == EstimateBasis::SynTimedOut {
            bounds.initial.max(INITIAL_AFTER_SYN_TIMEOUT)
        } else {
            bounds.initial
        };
        // Section 5.5: "The host MUST set RTO <- RTO * 2 ('back off the timer'). The maximum value
        // discussed in (2.5) above may be used to provide an upper bound".
        let backed_off = u64::from(timeout) << self.backoffs;
        backed_off.min(u64::from(bounds.max)) as u32
    }

    /// Doubles the timeout after an expiry (section 5.5).
    ///
    /// Section 5 allows to clear SRTT and RTTVAR after several backoffs, "as it is likely that the
    /// current SRTT and RTTVAR are bogus". This keeps them: after an outage the path is usually the
    /// same, and one new sample alone would be a poor estimate.
    pub fn back_off(&mut self) {
        self.backoffs = (self.backoffs + 1).min(BACK_OFFS_MAX);
    }

    /// Number of expiries since the last sample or reset, at most 32.
    pub const fn back_offs(&self) -> u8 {
        self.backoffs
    }

    /// Ends the backoff after an acknowledgement of new data that gives no sample.
    pub fn reset_back_off(&mut self) {
        self.backoffs = 0;
    }

    /// Sets the timeout after a handshake whose SYN was retransmitted by timeout, until the first
    /// sample. Section 5.7: "the RTO MUST be re-initialized to 3 seconds when data transmission
    /// begins".
    pub fn restart_after_syn_timeout(&mut self) {
        self.backoffs = 0;
        if !self.has_sample() {
            self.known = EstimateBasis::SynTimedOut;
        }
    }
}

/// Returns the expected number of samples per window, at least 1; both arguments are in bytes.
///
/// RFC 7323 appendix G: "ExpectedSamples = ceiling(FlightSize / (SMSS * 2))", where "the factor 2
/// in ExpectedSamples is due to 'Delayed ACKs'".
pub const fn expected_samples(flight_size: u32, mss: u16) -> u32 {
    let samples = flight_size.div_ceil(if mss == 0 { 2 } else { mss as u32 * 2 });
    if samples == 0 { 1 } else { samples }
}

/// Moves `value` towards `target` by 1/`divisor` of the difference, rounded to the nearest integer.
fn approach(value: u32, target: u32, divisor: i64) -> u32 {
    let difference = i64::from(target) - i64::from(value);
    let step = (difference + difference.signum() * (divisor / 2)) / divisor;
    // The result lies between two values of 32 bits.
    (i64::from(value) + step) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: RtoBounds = RtoBounds { initial: 1_000_000, min: 0, max: 60_000_000 };

    #[test]
    fn minimum_sample_is_accurate_to_a_two_thousandth() {
        let mut round_trip = RoundTrip::new();
        assert_eq!(round_trip.min_rtt(), None);
        for (sample, least) in [
            (u32::MAX, SAMPLE_MAX),
            (1_234_567, 1_234_567),
            (2_000_000, 1_234_567),
            (4_096, 4_096),
            (4_095, 4_095),
            (0, 0),
        ] {
            round_trip.sample(sample, 1);
            let min_rtt = round_trip.min_rtt().unwrap();
            assert!((least - least / 2_000..=least).contains(&min_rtt), "{min_rtt} of {least}");
        }
    }

    #[test]
    fn initial_timeout_is_one_second_until_the_first_sample() {
        let mut round_trip = RoundTrip::new();
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 1_000_000);
        assert_eq!((round_trip.smoothed(), round_trip.variation()), (None, None));
        round_trip.sample(100_000, 1);
        assert_eq!(round_trip.smoothed(), Some(100_000));
        assert_eq!(round_trip.variation(), Some(50_000));
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 300_000);
    }

    #[test]
    fn later_samples_have_weights_of_an_eighth_and_a_quarter() {
        let mut round_trip = RoundTrip::new();
        round_trip.sample(100_000, 1);
        round_trip.sample(180_000, 1);
        // 50 + (80 - 50) / 4, and 100 + 80 / 8.
        assert_eq!(round_trip.variation(), Some(57_500));
        assert_eq!(round_trip.smoothed(), Some(110_000));
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 340_000);
        round_trip.sample(70_000, 1);
        // 57.5 + (40 - 57.5) / 4, and 110 - 40 / 8.
        assert_eq!(round_trip.variation(), Some(53_125));
        assert_eq!(round_trip.smoothed(), Some(105_000));
    }

    #[test]
    fn many_samples_in_a_round_weigh_about_as_much_as_one() {
        let mut once = RoundTrip::new();
        let mut often = RoundTrip::new();
        once.sample(10_000, 1);
        often.sample(10_000, 1);
        once.sample(30_000, 1);
        let expected = expected_samples(1_000 * 1_460, 1_460);
        assert_eq!(expected, 500);
        for _ in 0..expected {
            often.sample(30_000, expected);
        }
        // 1 - (1 - 1/4000)^500 = 0.1175 of the 20 ms, instead of 1/8.
        assert_eq!(once.smoothed(), Some(12_500));
        let smoothed = often.smoothed().unwrap();
        assert!((12_330..=12_370).contains(&smoothed), "{smoothed}");
        // RTTVAR follows a deviation that shrinks meanwhile: 8.04 ms instead of 8.75.
        assert_eq!(once.variation(), Some(8_750));
        let variation = often.variation().unwrap();
        assert!((8_030..=8_055).contains(&variation), "{variation}");
    }

    #[test]
    fn constant_round_trip_time_leaves_the_minimum_margin() {
        let mut round_trip = RoundTrip::new();
        for _ in 0..200 {
            round_trip.sample(250, 1);
        }
        assert_eq!(round_trip.smoothed(), Some(250));
        assert_eq!(round_trip.variation(), Some(0));
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 250 + GRANULARITY);
        let bounds = RtoBounds::default();
        assert_eq!(round_trip.retransmission_timeout(&bounds), 200_250);
    }

    #[test]
    fn each_expiry_doubles_the_timeout_up_to_its_bound() {
        let mut round_trip = RoundTrip::new();
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(round_trip.retransmission_timeout(&BOUNDS), expected * 1_000_000);
            round_trip.back_off();
        }
        for _ in 0..300 {
            round_trip.back_off();
        }
        let bounds = RtoBounds { max: u32::MAX, ..BOUNDS };
        assert_eq!(round_trip.retransmission_timeout(&bounds), u32::MAX);
        assert_eq!(round_trip.back_offs(), 32);
        round_trip.reset_back_off();
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 1_000_000);
    }

    #[test]
    fn sample_ends_the_backoff() {
        let mut round_trip = RoundTrip::new();
        round_trip.sample(100_000, 1);
        round_trip.back_off();
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 600_000);
        round_trip.sample(100_000, 1);
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 250_000);
    }

    #[test]
    fn timeout_after_a_lost_syn_is_three_seconds() {
        let mut round_trip = RoundTrip::new();
        round_trip.back_off();
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 2_000_000);
        round_trip.restart_after_syn_timeout();
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 3_000_000);
        let bounds = RtoBounds { initial: 5_000_000, ..BOUNDS };
        assert_eq!(round_trip.retransmission_timeout(&bounds), 5_000_000);
        round_trip.sample(10_000, 1);
        assert_eq!(round_trip.retransmission_timeout(&BOUNDS), 30_000);
    }

    #[test]
    fn steps_are_rounded_to_the_nearest() {
        assert_eq!([approach(0, 100, 64), approach(100, 0, 64)], [2, 98]);
        assert_eq!([approach(0, 31, 64), approach(0, u32::MAX, 1)], [0, u32::MAX]);
    }

    #[test]
    fn extreme_samples_are_clamped() {
        let mut round_trip = RoundTrip::new();
        for micros in [u32::MAX, 0, u32::MAX, 0] {
            round_trip.sample(micros, u32::MAX);
            assert!(round_trip.smoothed() <= Some(SAMPLE_MAX));
            assert!(round_trip.retransmission_timeout(&BOUNDS) <= BOUNDS.max);
        }
        assert_eq!(expected_samples(0, 0), 1);
        assert_eq!(expected_samples(u32::MAX, 1), 1 << 31);
    }
}
