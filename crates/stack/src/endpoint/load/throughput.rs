//! Load with a target throughput.
//!
//! The load measures what flows receive and how long they take. Flows of less than a second start
//! like those of a rate. One is due while the received data, plus the expected data of existing
//! flows, is below the target so far. So the surplus is at most one flow, and less than one flow at
//! once is possible.
//!
//! Longer flows are held. Their number follows from the target and the data of flows that are over,
//! plus or minus one for a deficit or surplus. Before any is over, data is assumed proportional to
//! the number of flows. There are no more flows at once than were found to help.

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

/// Interval of measurements.
const INTERVAL: Duration = Duration::from_millis(100);

/// Number of intervals in which a deficit or surplus is corrected before a flow is over.
const REPAY_INTERVALS: f64 = 10.0;

/// Durations in seconds above which flows become long, and below which they become short.
const LONG: f64 = 1.0;
const NOT_LONG: f64 = 0.5;

/// Initial maximum number of short flows at once.
const SHORT_FLOWS: u64 = 16;

/// Share of the proportional gain that more flows must bring to be useful.
const GAIN: f64 = 0.03;

/// Share of the target that counts as reached.
const ENOUGH: f64 = 0.98;

/// Time without another attempt after a useless one: initial and maximum.
const RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(8);

/// Maximum delay assumed for data of new flows. An attempt is judged after twice the delay.
const LAG_MAX: Duration = Duration::from_secs(2);

/// Maximum time in seconds over which the throughput of long flows is averaged.
const SMOOTHED_MAX: f64 = 5.0;

/// Maximum factor by which the number of flows grows at once.
const MORE_MAX: f64 = 4.0;

/// Number of recent flows in the averages.
const LATE_FLOWS: f64 = 8.0;

const BITS_PER_BYTE: f64 = 8.0;

/// State of a load with a target throughput.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Throughput {
    /// Target throughput.
    bytes_per_second: f64,
    /// Maximum number of flows at once.
    flows: u64,
    /// Start of the current target, and the bytes that it expects at that time.
    since: Instant,
    base: f64,
    /// Bytes of the target that are waived.
    waived: f64,
    outcome: Option<ThroughputOutcome>,
    over: CompletedFlows,
    is_long: bool,
    /// Due time of the next short flow, as last computed; `None`: as soon as there is a place.
    due: Option<Instant>,
    adjusted_at: Instant,
    /// Bytes received until then.
    received: u64,
    /// Deficit of held flows in bytes; negative: surplus.
    missing: f64,
    /// Whether a due flow found no place since then.
    is_short_of_places: bool,
    /// Recent average in bytes a second.
    rate: f64,
    growth: GrowthAttempt,
}

/// Result of a throughput load, from its start until it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputOutcome {
    /// Target in bytes of data for that time.
    pub target_bytes: u64,
    /// Received bytes of data.
    pub received_bytes: u64,
}

/// Measurements of flows that are over.
#[derive(Clone, Debug, Default)]
struct CompletedFlows {
    /// Number of flows, number of those in the averages, and the bytes received by then.
    flows: u64,
    seen: u64,
    received: u64,
    /// Recent averages of a flow: received bytes, and duration in seconds; 0: unknown.
    bytes: f64,
    seconds: f64,
}

impl CompletedFlows {
    /// Updates the averages with the bytes received so far.
    #[inline]
    fn look(&mut self, received: u64) {
        if self.flows != self.seen {
            self.learn(received);
        }
    }

    fn learn(&mut self, received: u64) {
        let flows = (self.flows - self.seen) as f64;
        let each = received.wrapping_sub(self.received) as f64 / flows;
        let weight = if self.bytes > 0.0 { flows / (flows + LATE_FLOWS) } else { 1.0 };
        self.bytes += (each - self.bytes) * weight;
        (self.seen, self.received) = (self.flows, received);
    }

    fn note(&mut self, seconds: f64, bytes: Option<u32>) {
        let weight = if self.flows > 0 { 1.0 / LATE_FLOWS } else { 1.0 };
        self.seconds += (seconds - self.seconds) * weight;
        self.flows += 1;
        if let Some(bytes) = bytes {
            self.bytes += (f64::from(bytes) - self.bytes) * weight;
            self.seen = self.flows;
        }
    }
}

/// Attempts with more flows.
#[derive(Clone, Debug)]
struct GrowthAttempt {
    /// Current attempt: the earlier maximum of flows, and the bytes a second that it must reach.
    before: Option<(u64, f64)>,
    /// Time at which the attempt is judged.
    judged_at: Instant,
    /// Time until the first data of the first flow.
    lag: Duration,
    /// Time without another attempt after a useless one, and its end.
    retry_delay: Duration,
    retry_at: Instant,
    is_saturated: bool,
}

impl Throughput {
    pub(in crate::endpoint) fn new(bits_per_second: u64, start: Instant) -> Self {
        Self {
            bytes_per_second: bits_per_second as f64 / BITS_PER_BYTE,
            flows: 1,
            since: start,
            base: 0.0,
            waived: 0.0,
            outcome: None,
            over: CompletedFlows::default(),
            is_long: true,
            due: None,
            adjusted_at: start,
            received: 0,
            missing: 0.0,
            is_short_of_places: false,
            rate: 0.0,
            growth: GrowthAttempt::new(start),
        }
    }

    /// Changes the target from now on.
    pub(in crate::endpoint) fn set(&mut self, bits_per_second: u64, now: Instant) {
        self.base = self.target(now);
        self.since = now;
        self.bytes_per_second = bits_per_second as f64 / BITS_PER_BYTE;
        self.missing = 0.0;
        self.due = self.due.map(|_| now);
        self.growth.before = None;
        self.growth.retry_at = now;
        self.growth.is_saturated = false;
    }

    /// Returns the number of flows at which more brought no more data, if the target is missed.
    pub(in crate::endpoint) fn in_vain(&self) -> Option<u64> {
        self.growth.is_saturated.then_some(self.flows)
    }

    /// Ends the load, after `received_bytes` were received.
    pub(in crate::endpoint) fn end(&mut self, now: Instant, received_bytes: u64) {
        let target_bytes = libm::round(self.target(now) + self.waived) as u64;
        self.outcome = Some(ThroughputOutcome { target_bytes, received_bytes });
    }

    /// Returns the result, once the load has ended.
    pub(in crate::endpoint) fn outcome(&self) -> Option<ThroughputOutcome> {
        self.outcome
    }

    /// Records the duration of a flow that is over, and its received bytes, if known.
    pub(in crate::endpoint) fn note_end(&mut self, took: Duration, bytes: Option<u32>) {
        self.over.note(took.as_secs_f64(), bytes);
    }

    /// Returns when to ask again with `active` flows.
    pub(in crate::endpoint) fn next(&self, active: u64) -> Instant {
        let look = self.adjusted_at.saturating_add(INTERVAL);
        if active >= self.flows {
            return look;
        }
        self.due.unwrap_or(Instant::ZERO).min(look)
    }

    /// Returns the target in bytes at a time.
    fn target(&self, now: Instant) -> f64 {
        self.base + now.saturating_since(self.since).as_secs_f64() * self.bytes_per_second
    }

    /// Returns the received bytes plus those expected by existing flows, which seldom receive less.
    fn expected_bytes(&self, active: u64, received: u64) -> f64 {
        received as f64 + active as f64 * self.over.bytes
    }

    /// Whether a flow is due with `active` flows, `empty` places that back off, and `received`
    /// bytes.
    #[inline]
    pub(in crate::endpoint) fn take(
        &mut self,
        now: Instant,
        active: u64,
        empty: u64,
        received: u64,
    ) -> bool {
        self.over.look(received);
        if now.saturating_since(self.adjusted_at) >= INTERVAL {
            self.adjust(now, active, received);
        }
        self.choose_pace(now, active, received);
        let missing = self.expected_bytes(active, received) - self.target(now);
        if !self.is_long && missing > 0.0 {
            let wait = missing / self.bytes_per_second.max(1.0) * NANOSECONDS_PER_SECOND as f64;
            // Round up, so that the clock advances.
            self.due =
                Some(now.saturating_add(Duration::from_nanos((wait as u64).saturating_add(1))));
            return false;
        }
        self.due = None;
        let has_place = active + empty < self.flows;
        self.is_short_of_places |= !has_place;
        has_place
    }

    /// Selects the mode: short flows once some are over quickly, else long ones.
    #[inline]
    fn choose_pace(&mut self, now: Instant, active: u64, received: u64) {
        let limit = if self.is_long { NOT_LONG } else { LONG };
        let is_long = self.over.bytes <= 0.0 || self.over.seconds > limit;
        if is_long == self.is_long {
            return;
        }
        self.is_long = is_long;
        self.missing = 0.0;
        if !is_long {
            self.flows = self.flows.max(SHORT_FLOWS);
            // Keep a surplus of one flow at most, and drop any deficit.
            self.waive(now, active, received, 0.0);
            let too_much = received as f64 - self.target(now);
            self.shift((too_much - self.over.bytes).max(0.0));
        }
    }

    /// Waives the deficit beyond `missing_max` bytes.
    fn waive(&mut self, now: Instant, active: u64, received: u64, missing_max: f64) {
        let missing = self.target(now) - self.expected_bytes(active, received);
        self.shift(-(missing - missing_max).max(0.0));
    }

    /// Adds bytes to the internal target that do not belong to the requested one.
    fn shift(&mut self, bytes: f64) {
        self.base += bytes;
        self.waived -= bytes;
    }

    #[cold]
    fn adjust(&mut self, now: Instant, active: u64, received: u64) {
        let seconds = now.saturating_since(self.adjusted_at).as_secs_f64();
        let bytes = received.wrapping_sub(self.received) as f64;
        if self.received == 0 && received > 0 {
            self.growth.lag = now.saturating_since(self.since).min(LAG_MAX);
        }
        (self.adjusted_at, self.received) = (now, received);
        let (target, interval) = (self.bytes_per_second, INTERVAL.as_secs_f64());
        // The data of a flow may arrive all at once at its end.
        let over = self.over.seconds.min(SMOOTHED_MAX);
        self.rate += (bytes / seconds - self.rate) * seconds / (seconds + over);
        let rate = self.rate;
        if let Some(before) = self.growth.judge(now, rate, rate >= ENOUGH * target) {
            self.flows = self.flows.min(before);
        }
        let flows = self.flows as f64;
        // Number of flows that start while one of them exists.
        let at_once = match self.over.bytes > 0.0 {
            true => (target * self.over.seconds / self.over.bytes).min(MORE_MAX * flows),
            false => 0.0,
        };
        if self.is_long {
            // Correct by at most the data of one flow or, before that is known, of one interval.
            // The start of the load is no deficit.
            let most = if self.over.bytes > 0.0 { self.over.bytes } else { target * interval };
            self.missing = (self.missing + target * seconds - bytes).clamp(-most, most);
        }
        let target_flows = if self.is_long && self.over.bytes > 0.0 {
            libm::round(at_once + self.missing / self.over.bytes).max(0.0) as u64
        } else if self.is_long {
            let target_bytes = target * seconds + self.missing / REPAY_INTERVALS;
            // Without data, the effect of more flows is unknown.
            let in_proportion =
                if bytes > 0.0 { active as f64 * target_bytes / bytes } else { flows };
            libm::round(in_proportion.clamp(flows / 2.0, 2.0 * flows)).max(1.0) as u64
        } else {
            self.waive(now, active, received, (target * interval).max(self.over.bytes));
            let is_missing = self.is_short_of_places && rate < ENOUGH * target;
            if is_missing { at_once.max(2.0 * flows) as u64 } else { self.flows }
        };
        self.is_short_of_places = false;
        let seconds = self.over.seconds;
        if target_flows <= self.flows
            || self.growth.begins(now, self.flows, target_flows, rate, seconds)
        {
            self.flows = target_flows;
        }
    }
}

impl GrowthAttempt {
    fn new(start: Instant) -> Self {
        Self {
            before: None,
            judged_at: start,
            lag: Duration::ZERO,
            retry_delay: RETRY_DELAY_MIN,
            retry_at: start,
            is_saturated: false,
        }
    }

    /// Starts an attempt with more flows, if its time has come. `flows` receive `rate` bytes a
    /// second, and a flow takes `over` seconds.
    fn begins(
        &mut self,
        now: Instant,
        flows: u64,
        target_flows: u64,
        rate: f64,
        over: f64,
    ) -> bool {
        if self.before.is_some() || now < self.retry_at {
            return false;
        }
        let more = target_flows as f64 / flows.max(1) as f64 - 1.0;
        self.before = Some((flows, rate * (1.0 + GAIN * more)));
        let over = 2.0 * over.min(SMOOTHED_MAX) * NANOSECONDS_PER_SECOND as f64;
        let wait = self.lag.saturating_add(self.lag).max(Duration::from_nanos(over as u64));
        let wait = wait.saturating_add(INTERVAL).saturating_add(INTERVAL);
        self.judged_at = now.saturating_add(wait);
        true
    }

    /// Judges an attempt, if its time has come. Returns the earlier maximum of flows if it was
    /// useless.
    fn judge(&mut self, now: Instant, rate: f64, is_enough: bool) -> Option<u64> {
        if is_enough {
            (self.retry_delay, self.is_saturated) = (RETRY_DELAY_MIN, false);
        }
        let (flows, expected) = self.before.filter(|_| now >= self.judged_at)?;
        self.before = None;
        self.is_saturated = !is_enough && rate < expected;
        if !self.is_saturated {
            self.retry_delay = RETRY_DELAY_MIN;
            return None;
        }
        self.retry_at = now.saturating_add(self.retry_delay);
        self.retry_delay = self.retry_delay.saturating_add(self.retry_delay).min(RETRY_DELAY_MAX);
        Some(flows)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    use super::*;

    /// Flows of a fixed size that receive one window per round trip.
    struct Flows {
        bytes: u32,
        round_trip: Duration,
        window: u32,
    }

    impl Flows {
        /// Returns the data of a flow: time since its start, bytes, and whether it is the last.
        fn arrivals(&self) -> impl Iterator<Item = (Duration, u32, bool)> {
            let (mut left, mut window, mut at) = (self.bytes, 14_600, self.round_trip);
            core::iter::from_fn(move || {
                let bytes = left.min(window);
                left -= bytes;
                window = (2 * window).min(self.window);
                at = at.saturating_add(self.round_trip);
                (bytes > 0).then_some((at, bytes, left == 0))
            })
        }

        /// Returns the received megabits of each second, and whether more flows seemed useless.
        fn receive(&self, bits_per_second: u64, seconds: usize) -> (Vec<f64>, bool) {
            let mut throughput = Throughput::new(bits_per_second, Instant::ZERO);
            let mut arrivals = BTreeMap::new();
            let (mut now, mut active, mut received, mut started) = (Instant::ZERO, 0, 0, 0);
            let mut each = vec![0.0; seconds];
            loop {
                while throughput.take(now, active, 0, received) {
                    (active, started) = (active + 1, started + 1);
                    for (place, (after, bytes, is_last)) in self.arrivals().enumerate() {
                        let key = (now.saturating_add(after), started, place);
                        arrivals.insert(key, (bytes, is_last, now));
                    }
                }
                let next = throughput.next(active).max(now.saturating_add(Duration::from_nanos(1)));
                let Some(first) = arrivals.first_entry().filter(|it| it.key().0 <= next) else {
                    now = next;
                    continue;
                };
                now = first.key().0;
                let (bytes, is_last, began) = first.remove();
                let second = (now.as_nanos() / NANOSECONDS_PER_SECOND) as usize;
                let Some(megabits) = each.get_mut(second) else { break };
                *megabits += f64::from(bytes) * BITS_PER_BYTE / 1e6;
                received += u64::from(bytes);
                if is_last {
                    active -= 1;
                    throughput.note_end(now.saturating_since(began), Some(self.bytes));
                }
            }
            (each, throughput.in_vain().is_some())
        }
    }

    #[test]
    fn waived_bytes_stay_in_the_target_of_the_outcome() {
        let second = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut throughput = Throughput::new(8_000, Instant::ZERO);
        assert!(throughput.take(Instant::ZERO, 0, 0, 0));
        throughput.note_end(Duration::from_millis(1), Some(100));
        // No data arrives for a long time.
        assert!(throughput.take(second(9), 0, 0, 100));
        assert!(throughput.waived > 8_000.0);
        throughput.set(80_000, second(10));
        assert_eq!(throughput.outcome(), None);
        throughput.end(second(12), 300);
        let expected = ThroughputOutcome { target_bytes: 30_000, received_bytes: 300 };
        assert_eq!(throughput.outcome(), Some(expected));
    }

    #[test]
    fn flows_of_any_length_reach_the_target() {
        let ms = Duration::from_millis;
        for (megabits, flows) in [
            (100, Flows { bytes: 1_000_000, round_trip: ms(50), window: 32 << 10 }),
            (100, Flows { bytes: 1_000_000, round_trip: ms(50), window: 256 << 10 }),
            (100, Flows { bytes: 10_000_000, round_trip: ms(50), window: 256 << 10 }),
            (100, Flows { bytes: 10_000_000, round_trip: ms(50), window: 32 << 10 }),
            (100, Flows { bytes: 100_000, round_trip: ms(50), window: 256 << 10 }),
            (1_000, Flows { bytes: 1_000_000, round_trip: ms(1), window: 256 << 10 }),
            // Less than one flow at once on average.
            (10, Flows { bytes: 10_000_000, round_trip: ms(50), window: 256 << 10 }),
        ] {
            let (each, is_in_vain) = flows.receive(megabits * 1_000_000, 50);
            let mean = each[10..].iter().sum::<f64>() / 40.0;
            let share_of_target = mean / megabits as f64;
            let case = format!("{megabits} Mb/s of {} bytes: {each:?}", flows.bytes);
            assert!((0.9..1.1).contains(&share_of_target), "{mean} {case}");
            assert!(!is_in_vain, "{case}");
            // Flows receive several tens of Mb/s each.
            let least = each[3..].iter().copied().fold(f64::MAX, f64::min);
            assert!(megabits == 10 || least > 0.6 * megabits as f64, "{least} {case}");
        }
    }
}
