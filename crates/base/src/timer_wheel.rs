//! A timing wheel: timers for millions of flows. To set or cancel a timer takes constant time.
//!
//! A tick is a number of eleven digits in base 64, and each digit is a level of 64 slots. A timer
//! is on the level of the highest digit in which its tick differs from the present. Its slot there
//! is the value of that digit:
//!
//! ```text
//! level 2   slots of 4096 ticks   [ ][ ][x][ ] ...    an hour from now
//! level 1   slots of 64 ticks     [ ][x][ ][x] ...    later than this lap of level 0
//! level 0   slots of one tick     [ ][ ][ ][x] ...    exact
//! ```
//!
//! So timers on a lower level are due before those on a higher one. The first used slot of the
//! lowest used level is the next to expire. When the present reaches a slot of a higher level, its
//! timers move down. A bit mask for each level marks the used slots, so a jump over any time visits
//! only used slots.
//!
//! Most retransmission deadlines move before they are due and then never go down a level: with
//! ticks of 1 ms they begin on level 1.

use alloc::vec::Vec;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// As many digits as a 64-bit tick has.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// End of a list, and the link of a timer that is not set.
const NONE: u32 = u32::MAX;

/// Timers with small numbers, such as flow numbers, each set to a tick of any unit.
///
/// Memory: 3 KB, and 12 bytes for each number up to the greatest one used.
#[derive(Clone, Debug)]
pub struct TimerWheel {
    /// Tick up to which all due timers have expired.
    now: u64,
    /// Bit mask of the used slots of each level.
    used: [u64; LEVELS],
    /// First timer of each slot.
    first: [[u32; SLOTS]; LEVELS],
    timers: Vec<Timer>,
}

/// A timer in the circular list of its slot.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// Lower half of the tick. The upper half follows from the present.
    tick: u32,
    next: u32,
    previous: u32,
}

const _: () = assert!(size_of::<Timer>() == 12);

impl Timer {
    const UNSET: Self = Self { tick: 0, next: NONE, previous: NONE };

    const fn is_set(&self) -> bool {
        self.next != NONE
    }
}

impl TimerWheel {
    /// Creates a wheel without timers, at the tick `now`.
    pub fn new(now: u64) -> Self {
        Self { now, used: [0; LEVELS], first: [[NONE; SLOTS]; LEVELS], timers: Vec::new() }
    }

    /// Greatest distance of a timer from the present, in ticks.
    pub const AHEAD_MAX: u64 = u32::MAX as u64;

    /// Reserves memory for the timers below `timers`, so that setting them allocates nothing.
    pub fn reserve(&mut self, timers: u32) {
        self.timers.reserve((timers as usize).saturating_sub(self.timers.len()));
    }

    /// Sets a timer to a tick and replaces its earlier setting. A tick in the past is due at the
    /// next [`Self::expire`]. A tick further ahead than [`Self::AHEAD_MAX`] is limited to that.
    /// Allocates only if `timer` exceeds all earlier numbers and the reserved ones.
    ///
    /// # Panics
    /// If `timer` is `u32::MAX`, which is not a timer number.
    #[inline]
    pub fn set(&mut self, timer: u32, tick: u64) {
        if timer as usize >= self.timers.len() {
            self.grow(timer);
        } else if self.timers[timer as usize].is_set() {
            self.unlink(timer);
        }
        let latest = self.now.saturating_add(Self::AHEAD_MAX);
        self.timers[timer as usize].tick = tick.clamp(self.now, latest) as u32;
        self.link(timer);
    }

    /// Cancels a timer if it is set.
    #[inline]
    pub fn cancel(&mut self, timer: u32) {
        if self.timers.get(timer as usize).is_some_and(Timer::is_set) {
            self.unlink(timer);
            self.timers[timer as usize] = Timer::UNSET;
        }
    }

    /// Appends the timers with ticks up to and including `now` to `due` and cancels them. They are
    /// in tick order; timers of the same tick are in the order in which they were set. If `now` is
    /// before that of an earlier call, nothing expires.
    pub fn expire(&mut self, now: u64, due: &mut Vec<u32>) {
        while let Some((level, slot)) = self.next_slot() {
            let start = self.start_of(level, slot);
            if start > now {
                break;
            }
            // No timer lies between the present and this slot, so all others keep their slots.
            self.now = start;
            self.empty(level, slot, due);
        }
        self.now = self.now.max(now);
    }

    /// Returns a tick before which nothing is due, or `None` if no timer is set. It is never before
    /// that of the last [`Self::expire`]. Within the present 64 ticks it is the tick of the first
    /// timer, else the start of the slot that holds it.
    pub fn next_tick(&self) -> Option<u64> {
        self.next_slot().map(|(level, slot)| self.start_of(level, slot))
    }

    /// Returns the level and number of the first used slot.
    fn next_slot(&self) -> Option<(usize, usize)> {
        let level = self.used.iter().position(|&slots| slots != 0)?;
        Some((level, self.used[level].trailing_zeros() as usize))
    }

    /// Returns the first tick of a slot: the present's digits above the level, then the slot.
    fn start_of(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * DIGIT_BITS;
        let above = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
        self.now & above | (slot as u64) << shift
    }

    /// Returns the level and slot for the tick with this lower half. The tick is not before the
    /// present and at most [`Self::AHEAD_MAX`] ahead.
    fn place_of(&self, tick: u32) -> (usize, usize) {
        let ahead = tick.wrapping_sub(self.now as u32);
        // The addition cannot overflow, since no tick exceeds `u64::MAX`.
        let tick = self.now + u64::from(ahead);
        let highest_bit = (tick ^ self.now).checked_ilog2().unwrap_or(0);
        let level = highest_bit / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize & (SLOTS - 1);
        (level as usize, digit)
    }

    /// Removes all timers from a slot that the present has reached. Those of level 0 are due, the
    /// others move down.
    fn empty(&mut self, level: usize, slot: usize, due: &mut Vec<u32>) {
        let first = core::mem::replace(&mut self.first[level][slot], NONE);
        self.used[level] &= !(1 << slot);
        let mut timer = first;
        loop {
            let next = self.timers[timer as usize].next;
            if level == 0 {
                self.timers[timer as usize] = Timer::UNSET;
                due.push(timer);
            } else {
                self.link(timer);
            }
            if next == first {
                break;
            }
            timer = next;
        }
    }

    /// Appends a timer, whose tick is set, to its slot.
    fn link(&mut self, timer: u32) {
        let (level, slot) = self.place_of(self.timers[timer as usize].tick);
        let first = self.first[level][slot];
        let (previous, next) = if first == NONE {
            self.first[level][slot] = timer;
            self.used[level] |= 1 << slot;
            (timer, timer)
        } else {
            (self.timers[first as usize].previous, first)
        };
        self.timers[previous as usize].next = timer;
        self.timers[next as usize].previous = timer;
        let entry = &mut self.timers[timer as usize];
        (entry.previous, entry.next) = (previous, next);
    }

    /// Removes a timer that is set from its slot.
    fn unlink(&mut self, timer: u32) {
        let Timer { tick, next, previous } = self.timers[timer as usize];
        self.timers[previous as usize].next = next;
        self.timers[next as usize].previous = previous;
        let (level, slot) = self.place_of(tick);
        if self.first[level][slot] == timer {
            let is_last = next == timer;
            self.first[level][slot] = if is_last { NONE } else { next };
            self.used[level] &= !(u64::from(is_last) << slot);
        }
    }

    #[cold]
    fn grow(&mut self, timer: u32) {
        assert!(timer != NONE, "a timer's number is below {NONE}");
        self.timers.resize(timer as usize + 1, Timer::UNSET);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec;
    use proptest::prelude::*;

    fn due(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.expire(now, &mut due);
        due
    }

    #[test]
    fn timers_are_due_at_their_ticks_and_once() {
        let mut wheel = TimerWheel::new(1_000);
        wheel.set(7, 1_002);
        wheel.set(3, 1_001);
        assert_eq!(wheel.next_tick(), Some(1_001));
        assert_eq!(due(&mut wheel, 1_000), vec![]);
        assert_eq!(due(&mut wheel, 1_001), vec![3]);
        assert_eq!(due(&mut wheel, 5_000), vec![7]);
        assert_eq!(wheel.next_tick(), None);
        assert_eq!(due(&mut wheel, u64::MAX), vec![]);
    }

    #[test]
    fn timers_of_one_tick_expire_in_the_order_they_were_set() {
        let mut wheel = TimerWheel::new(0);
        // They begin on a higher level and must keep their order on the way down.
        for timer in [5, 2, 9, 4] {
            wheel.set(timer, 300_000);
        }
        wheel.set(2, 300_000);
        assert_eq!(due(&mut wheel, 299_990), vec![]);
        wheel.set(1, 300_000);
        wheel.set(8, 299_999);
        assert_eq!(due(&mut wheel, 300_000), vec![8, 5, 9, 4, 2, 1]);
    }

    #[test]
    fn a_tick_that_has_passed_is_due_at_once() {
        let mut wheel = TimerWheel::new(50);
        assert_eq!(due(&mut wheel, 70), vec![]);
        wheel.set(1, 3);
        assert_eq!(wheel.next_tick(), Some(70));
        assert_eq!(due(&mut wheel, 70), vec![1]);
        assert_eq!(due(&mut wheel, 70), vec![]);
    }

    #[test]
    fn a_clock_that_goes_back_expires_nothing() {
        let mut wheel = TimerWheel::new(100);
        wheel.set(1, 10);
        wheel.set(2, 110);
        assert_eq!(due(&mut wheel, 50), vec![]);
        assert_eq!(due(&mut wheel, 60), vec![]);
        assert_eq!(due(&mut wheel, 109), vec![1]);
        assert_eq!(due(&mut wheel, 110), vec![2]);
    }

    #[test]
    fn timers_at_the_last_tick_expire() {
        let mut wheel = TimerWheel::new(u64::MAX - 1_000);
        wheel.set(0, u64::MAX);
        wheel.set(1, u64::MAX - 1);
        assert!(wheel.next_tick().is_some_and(|tick| tick < u64::MAX));
        assert_eq!(due(&mut wheel, u64::MAX - 1), vec![1]);
        assert_eq!(wheel.next_tick(), Some(u64::MAX));
        assert_eq!(due(&mut wheel, u64::MAX), vec![0]);
    }

    #[test]
    fn setting_reserved_timers_allocates_nothing() {
        let mut wheel = TimerWheel::new(0);
        wheel.reserve(1_000);
        let before = wheel.timers.capacity();
        for timer in 0..1_000 {
            wheel.set(timer, u64::from(timer));
        }
        assert!(before >= 1_000);
        assert_eq!(wheel.timers.capacity(), before);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set { timer: u32, later: i64 },
        Cancel(u32),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let timer = || 0..24_u32;
        let later = prop_oneof![
            4 => -70..200_i64,
            4 => 0..100_000_i64,
            1 => 0..i64::MAX,
        ];
        prop_oneof![
            6 => (timer(), later).prop_map(|(timer, later)| Step::Set { timer, later }),
            2 => timer().prop_map(Step::Cancel),
            3 => prop_oneof![4 => 0..100_u64, 4 => 0..100_000_u64, 1 => 0..u64::MAX / 8]
                .prop_map(Step::Pass),
        ]
    }

    proptest! {
        #[test]
        fn timers_expire_as_in_a_sorted_map(
            start in prop_oneof![0..1_000_u64, any::<u64>()],
            steps in prop::collection::vec(step(), 1..300),
        ) {
            let mut wheel = TimerWheel::new(start);
            let mut now = start;
            // Timers by tick and order of setting, and the key of each timer.
            let mut model: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let mut keys: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for (number, step) in (0..).zip(steps) {
                match step {
                    Step::Set { timer, later } => {
                        let tick = now.saturating_add_signed(later);
                        wheel.set(timer, tick);
                        let latest = now.saturating_add(TimerWheel::AHEAD_MAX);
                        let key = (tick.clamp(now, latest), number);
                        if let Some(old) = keys.insert(timer, key) {
                            model.remove(&old);
                        }
                        model.insert(key, timer);
                    }
                    Step::Cancel(timer) => {
                        wheel.cancel(timer);
                        if let Some(old) = keys.remove(&timer) {
                            model.remove(&old);
                        }
                    }
                    Step::Pass(ticks) => {
                        now = now.saturating_add(ticks);
                        let mut expected = vec![];
                        while let Some(entry) = model.first_entry().filter(|e| e.key().0 <= now) {
                            let timer = entry.remove();
                            keys.remove(&timer);
                            expected.push(timer);
                        }
                        prop_assert_eq!(due(&mut wheel, now), expected);
                    }
                }
                let first = model.keys().next().map(|key| key.0);
                let bound = wheel.next_tick();
                prop_assert_eq!(bound.is_some(), first.is_some());
                if let (Some(bound), Some(first)) = (bound, first) {
                    prop_assert!(now <= bound && bound <= first);
                    if first >> DIGIT_BITS == now >> DIGIT_BITS {
                        prop_assert_eq!(bound, first);
                    }
                }
            }
        }
    }
}
