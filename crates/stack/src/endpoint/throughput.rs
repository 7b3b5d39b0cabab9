//! How many flows it takes to receive so much.

use wirestorm_base::time::{Duration, Instant};

/// What has been received is looked at so often.
const INTERVAL: Duration = Duration::from_millis(100);

/// What is missing, or too much, is made up for within so many intervals.
const REPAY_INTERVALS: f64 = 10.0;

/// Finds out how many flows receive so many bits a second: where so many received so much, more
/// receive in proportion.
#[derive(Clone, Debug)]
pub(super) struct Throughput {
    bits_per_second: u64,
    flows: u64,
    looked_at: Instant,
    /// Bytes until then.
    received: u64,
    /// Bits that were received too few, or below 0 too many.
    missing: f64,
}

impl Throughput {
    pub(super) const fn new(bits_per_second: u64, start: Instant) -> Self {
        Self { bits_per_second, flows: 1, looked_at: start, received: 0, missing: 0.0 }
    }

    /// How many flows there are to be.
    pub(super) const fn flows(&self) -> u64 {
        self.flows
    }

    /// When to look again.
    pub(super) const fn next(&self) -> Instant {
        self.looked_at.saturating_add(INTERVAL)
    }

    /// From now on it is so many bits.
    pub(super) const fn set(&mut self, bits_per_second: u64) {
        self.bits_per_second = bits_per_second;
        self.missing = 0.0;
    }

    /// Looks at how many bytes have been received, where it is time to.
    #[inline]
    pub(super) fn look(&mut self, now: Instant, received: u64) {
        if now >= self.next() {
            self.adjust(now, received);
        }
    }

    #[cold]
    fn adjust(&mut self, now: Instant, received: u64) {
        let seconds = now.saturating_since(self.looked_at).as_secs_f64();
        let bits = received.wrapping_sub(self.received) as f64 * 8.0;
        (self.looked_at, self.received) = (now, received);
        let asked = self.bits_per_second as f64;
        // No more is made up for than what an interval has: the beginning is no debt.
        let interval = asked * INTERVAL.as_secs_f64();
        self.missing = (self.missing + asked * seconds - bits).clamp(-interval, interval);
        let wanted = asked * seconds + self.missing / REPAY_INTERVALS;
        // From little to much in steps: what was begun last has not received all yet.
        let flows = self.flows as f64;
        let in_proportion = if bits > 0.0 { flows * wanted / bits } else { flows + 1.0 };
        let most = if bits > 0.0 { 2.0 * flows } else { flows + 1.0 };
        self.flows = libm::round(in_proportion.clamp(flows / 2.0, most)).max(1.0) as u64;
    }
}
