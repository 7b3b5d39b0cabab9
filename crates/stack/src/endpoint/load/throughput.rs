//! When flows are made that receive so much together.
//!
//! What flows receive, and how long they take, is measured. Flows that are over within a second are
//! started as if by a rate: one whenever what has been received, and what those that are there will
//! receive, is less than was asked for until now. So what is received is never more than that by
//! more than one flow's bytes, and less than one flow at once is possible. Flows that take longer
//! are held, as many as bring what was asked for by what those brought that are over, and one more
//! or less for what was missing or too much. While none is over yet, it is known what so many
//! receive, and that more receive in proportion. In all cases there are no more at once than was
//! found to help.

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

/// What has been received is looked at so often.
const INTERVAL: Duration = Duration::from_millis(100);

/// What is missing, or too much, is made up for within so many intervals while no flow is over.
const REPAY_INTERVALS: f64 = 10.0;

/// Flows that take so long, in seconds, are held, until they take less than the other.
const LONG: f64 = 1.0;
const NOT_LONG: f64 = 0.5;

/// How many short flows there may be at once at first.
const SHORT_FLOWS: u64 = 16;

/// Of what more flows would bring in proportion they are to bring such a part, or they are of no use.
const GAIN: f64 = 0.03;

/// Nothing is missing where so much of what was asked for is received.
const ENOUGH: f64 = 0.98;

/// How long it is believed that more flows are of no use: at first and at most.
const BELIEF_MIN: Duration = Duration::from_secs(1);
const BELIEF_MAX: Duration = Duration::from_secs(8);

/// What more flows bring is waited for so long at most, twice.
const LAG_MAX: Duration = Duration::from_secs(2);

/// What long flows receive is measured over so many seconds at most.
const SMOOTHED_MAX: f64 = 5.0;

/// Flows become no more than so many times as many at once.
const MORE_MAX: f64 = 4.0;

/// Flows of late are about so many.
const LATE_FLOWS: f64 = 8.0;

const BITS_PER_BYTE: f64 = 8.0;

/// Finds out when flows are to be made, and how many there may be.
#[derive(Clone, Debug)]
pub(in crate::endpoint) struct Throughput {
    /// Target of the run.
    bytes_per_second: f64,
    /// How many flows there may be at once.
    flows: u64,
    /// From when on so many bytes are to be received, as were by then, or were forgiven.
    since: Instant,
    base: f64,
    /// Of what was asked for, what is not to be received any more.
    forgiven: f64,
    outcome: Option<ThroughputOutcome>,
    over: Over,
    is_long: bool,
    /// When the next short flow is due, as was known last; `None`: whenever there is a place.
    due: Option<Instant>,
    looked_at: Instant,
    /// Bytes until then.
    received: u64,
    /// Bytes that were received too few by flows that are held, or below 0 too many.
    missing: f64,
    /// Whether a flow was due since then, and there was no place.
    is_short_of_places: bool,
    /// Bytes in a second, of late.
    rate: f64,
    climb: Climb,
}

/// What was received of what was asked for, from the first flow until no more were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputOutcome {
    /// Bytes of data that were asked for in that time.
    pub asked_bytes: u64,
    /// Those that were received.
    pub received_bytes: u64,
}

/// What is known of flows that are over.
#[derive(Clone, Debug, Default)]
struct Over {
    /// Those, and those that were looked at, with the bytes by then.
    flows: u64,
    seen: u64,
    received: u64,
    /// What one of them receives, and how many seconds it takes, of late; 0: it is not known.
    bytes: f64,
    seconds: f64,
}

impl Over {
    /// So many bytes have been received.
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

/// What came of more flows.
#[derive(Clone, Debug)]
struct Climb {
    /// Before there were more: how many there might be; and what is to be received in a second now.
    before: Option<(u64, f64)>,
    /// When it is looked at what came of them.
    judged_at: Instant,
    /// How long it took until the first flow received anything.
    lag: Duration,
    /// How long it is believed that more are of no use, and until when.
    belief: Duration,
    tries_at: Instant,
    is_in_vain: bool,
}

impl Throughput {
    pub(in crate::endpoint) fn new(bits_per_second: u64, start: Instant) -> Self {
        Self {
            bytes_per_second: bits_per_second as f64 / BITS_PER_BYTE,
            flows: 1,
            since: start,
            base: 0.0,
            forgiven: 0.0,
            outcome: None,
            over: Over::default(),
            is_long: true,
            due: None,
            looked_at: start,
            received: 0,
            missing: 0.0,
            is_short_of_places: false,
            rate: 0.0,
            climb: Climb::new(start),
        }
    }

    /// From now on it is so many bits.
    pub(in crate::endpoint) fn set(&mut self, bits_per_second: u64, now: Instant) {
        self.base = self.asked(now);
        self.since = now;
        self.bytes_per_second = bits_per_second as f64 / BITS_PER_BYTE;
        self.missing = 0.0;
        self.due = self.due.map(|_| now);
        self.climb.before = None;
        self.climb.tries_at = now;
        self.climb.is_in_vain = false;
    }

    /// At how many flows at once more have brought no more, where less is received than was asked
    /// for.
    pub(in crate::endpoint) fn in_vain(&self) -> Option<u64> {
        self.climb.is_in_vain.then_some(self.flows)
    }

    /// No more flows are made from a time on, by which so many bytes were received.
    pub(in crate::endpoint) fn end(&mut self, now: Instant, received_bytes: u64) {
        let asked_bytes = libm::round(self.asked(now) + self.forgiven) as u64;
        self.outcome = Some(ThroughputOutcome { asked_bytes, received_bytes });
    }

    /// What came of it, once it has ended.
    pub(in crate::endpoint) fn outcome(&self) -> Option<ThroughputOutcome> {
        self.outcome
    }

    /// A flow is over that took so long, and received so many bytes where that is known of one.
    pub(in crate::endpoint) fn note_end(&mut self, took: Duration, bytes: Option<u32>) {
        self.over.note(took.as_secs_f64(), bytes);
    }

    /// When to ask again, where there are so many flows.
    pub(in crate::endpoint) fn next(&self, active: u64) -> Instant {
        let look = self.looked_at.saturating_add(INTERVAL);
        if active >= self.flows {
            return look;
        }
        self.due.unwrap_or(Instant::ZERO).min(look)
    }

    /// Bytes that are to be received by a time.
    fn asked(&self, now: Instant) -> f64 {
        self.base + now.saturating_since(self.since).as_secs_f64() * self.bytes_per_second
    }

    /// Bytes that are received by flows that are there, and were: those are seldom fewer.
    fn promised(&self, active: u64, received: u64) -> f64 {
        received as f64 + active as f64 * self.over.bytes
    }

    /// Whether a flow is due where there are so many, beside so many places that stay empty, and so
    /// many bytes were received.
    #[inline]
    pub(in crate::endpoint) fn take(
        &mut self,
        now: Instant,
        active: u64,
        empty: u64,
        received: u64,
    ) -> bool {
        self.over.look(received);
        if now.saturating_since(self.looked_at) >= INTERVAL {
            self.adjust(now, active, received);
        }
        self.choose_pace(now, active, received);
        let missing = self.promised(active, received) - self.asked(now);
        if !self.is_long && missing > 0.0 {
            let wait = missing / self.bytes_per_second.max(1.0) * NANOSECONDS_PER_SECOND as f64;
            // No sooner than time goes on.
            self.due =
                Some(now.saturating_add(Duration::from_nanos((wait as u64).saturating_add(1))));
            return false;
        }
        self.due = None;
        let has_place = active + empty < self.flows;
        self.is_short_of_places |= !has_place;
        has_place
    }

    /// Whether flows are short, now that some are over.
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
            // One flow too many is waited for; what else was too much, or missing, is forgotten.
            self.forgive(now, active, received, 0.0);
            let too_much = received as f64 - self.asked(now);
            self.shift((too_much - self.over.bytes).max(0.0));
        }
    }

    /// Forgets what is missing beyond so many bytes.
    fn forgive(&mut self, now: Instant, active: u64, received: u64, missing_max: f64) {
        let missing = self.asked(now) - self.promised(active, received);
        self.shift(-(missing - missing_max).max(0.0));
    }

    /// So many bytes more are to be received by now, which nobody asked for.
    fn shift(&mut self, bytes: f64) {
        self.base += bytes;
        self.forgiven -= bytes;
    }

    #[cold]
    fn adjust(&mut self, now: Instant, active: u64, received: u64) {
        let seconds = now.saturating_since(self.looked_at).as_secs_f64();
        let bytes = received.wrapping_sub(self.received) as f64;
        if self.received == 0 && received > 0 {
            self.climb.lag = now.saturating_since(self.since).min(LAG_MAX);
        }
        (self.looked_at, self.received) = (now, received);
        let (asked, interval) = (self.bytes_per_second, INTERVAL.as_secs_f64());
        // What flows receive may come all at once, at their end.
        let over = self.over.seconds.min(SMOOTHED_MAX);
        self.rate += (bytes / seconds - self.rate) * seconds / (seconds + over);
        let rate = self.rate;
        if let Some(before) = self.climb.judge(now, rate, rate >= ENOUGH * asked) {
            self.flows = self.flows.min(before);
        }
        let flows = self.flows as f64;
        // As many as begin while one of them is there.
        let at_once = match self.over.bytes > 0.0 {
            true => (asked * self.over.seconds / self.over.bytes).min(MORE_MAX * flows),
            false => 0.0,
        };
        if self.is_long {
            // No more is made up for than one flow brings, or while that is not known, than what an
            // interval has: the beginning is no debt.
            let most = if self.over.bytes > 0.0 { self.over.bytes } else { asked * interval };
            self.missing = (self.missing + asked * seconds - bytes).clamp(-most, most);
        }
        let wanted = if self.is_long && self.over.bytes > 0.0 {
            libm::round(at_once + self.missing / self.over.bytes).max(0.0) as u64
        } else if self.is_long {
            let wanted = asked * seconds + self.missing / REPAY_INTERVALS;
            // Where nothing comes, nobody knows what more flows would bring.
            let in_proportion = if bytes > 0.0 { active as f64 * wanted / bytes } else { flows };
            libm::round(in_proportion.clamp(flows / 2.0, 2.0 * flows)).max(1.0) as u64
        } else {
            self.forgive(now, active, received, (asked * interval).max(self.over.bytes));
            let is_missing = self.is_short_of_places && rate < ENOUGH * asked;
            if is_missing { at_once.max(2.0 * flows) as u64 } else { self.flows }
        };
        self.is_short_of_places = false;
        let seconds = self.over.seconds;
        if wanted <= self.flows || self.climb.begins(now, self.flows, wanted, rate, seconds) {
            self.flows = wanted;
        }
    }
}

impl Climb {
    fn new(start: Instant) -> Self {
        Self {
            before: None,
            judged_at: start,
            lag: Duration::ZERO,
            belief: BELIEF_MIN,
            tries_at: start,
            is_in_vain: false,
        }
    }

    /// Whether more flows may be tried, where so many receive so much, and each is there for so many
    /// seconds.
    fn begins(&mut self, now: Instant, flows: u64, wanted: u64, rate: f64, over: f64) -> bool {
        if self.before.is_some() || now < self.tries_at {
            return false;
        }
        let more = wanted as f64 / flows.max(1) as f64 - 1.0;
        self.before = Some((flows, rate * (1.0 + GAIN * more)));
        let over = 2.0 * over.min(SMOOTHED_MAX) * NANOSECONDS_PER_SECOND as f64;
        let wait = self.lag.saturating_add(self.lag).max(Duration::from_nanos(over as u64));
        let wait = wait.saturating_add(INTERVAL).saturating_add(INTERVAL);
        self.judged_at = now.saturating_add(wait);
        true
    }

    /// Looks at what came of more flows, when it is time to. Returns how many there may be instead
    /// where nothing did.
    fn judge(&mut self, now: Instant, rate: f64, is_enough: bool) -> Option<u64> {
        if is_enough {
            (self.belief, self.is_in_vain) = (BELIEF_MIN, false);
        }
        let (flows, expected) = self.before.filter(|_| now >= self.judged_at)?;
        self.before = None;
        self.is_in_vain = !is_enough && rate < expected;
        if !self.is_in_vain {
            self.belief = BELIEF_MIN;
            return None;
        }
        self.tries_at = now.saturating_add(self.belief);
        self.belief = self.belief.saturating_add(self.belief).min(BELIEF_MAX);
        Some(flows)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    use super::*;

    /// Flows of so many bytes each, which receive a window in each round trip.
    struct Flows {
        bytes: u32,
        round_trip: Duration,
        window: u32,
    }

    impl Flows {
        /// What a flow receives, how long after it was made, and whether it is over with that.
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

        /// Megabits that are received in each second, and whether more flows seemed to be in vain.
        fn receive(&self, bits_per_second: u64, seconds: usize) -> (Vec<f64>, bool) {
            let mut throughput = Throughput::new(bits_per_second, Instant::ZERO);
            let mut arrivals = BTreeMap::new();
            let (mut now, mut active, mut received, mut made) = (Instant::ZERO, 0, 0, 0);
            let mut each = vec![0.0; seconds];
            loop {
                while throughput.take(now, active, 0, received) {
                    (active, made) = (active + 1, made + 1);
                    for (place, (after, bytes, is_last)) in self.arrivals().enumerate() {
                        let key = (now.saturating_add(after), made, place);
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
    fn what_was_asked_for_is_all_that_was_however_much_was_forgiven() {
        let second = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut throughput = Throughput::new(8_000, Instant::ZERO);
        assert!(throughput.take(Instant::ZERO, 0, 0, 0));
        throughput.note_end(Duration::from_millis(1), Some(100));
        // Nothing comes for long.
        assert!(throughput.take(second(9), 0, 0, 100));
        assert!(throughput.forgiven > 8_000.0);
        throughput.set(80_000, second(10));
        assert_eq!(throughput.outcome(), None);
        throughput.end(second(12), 300);
        let expected = ThroughputOutcome { asked_bytes: 30_000, received_bytes: 300 };
        assert_eq!(throughput.outcome(), Some(expected));
    }

    #[test]
    fn flows_of_any_length_receive_what_was_asked_for() {
        let ms = Duration::from_millis;
        for (megabits, flows) in [
            (100, Flows { bytes: 1_000_000, round_trip: ms(50), window: 32 << 10 }),
            (100, Flows { bytes: 1_000_000, round_trip: ms(50), window: 256 << 10 }),
            (100, Flows { bytes: 10_000_000, round_trip: ms(50), window: 256 << 10 }),
            (100, Flows { bytes: 10_000_000, round_trip: ms(50), window: 32 << 10 }),
            (100, Flows { bytes: 100_000, round_trip: ms(50), window: 256 << 10 }),
            (1_000, Flows { bytes: 1_000_000, round_trip: ms(1), window: 256 << 10 }),
            // Less than one flow at once.
            (10, Flows { bytes: 10_000_000, round_trip: ms(50), window: 256 << 10 }),
        ] {
            let (each, is_in_vain) = flows.receive(megabits * 1_000_000, 50);
            let mean = each[10..].iter().sum::<f64>() / 40.0;
            let of_asked = mean / megabits as f64;
            let case = format!("{megabits} Mb/s of {} bytes: {each:?}", flows.bytes);
            assert!((0.9..1.1).contains(&of_asked), "{mean} {case}");
            assert!(!is_in_vain, "{case}");
            // Flows receive several tens of Mb/s each.
            let least = each[3..].iter().copied().fold(f64::MAX, f64::min);
            assert!(megabits == 10 || least > 0.6 * megabits as f64, "{least} {case}");
        }
    }
}
