//! Departure of frames: the schedule, the policy for late frames, and the record.
//!
//! The schedule gives the due time of each frame. After a delay the worker has frames that are past
//! due, and [`CatchUp`] selects what it does with them. [`DepartureScheduler`] decides about each frame and
//! keeps the record. The in-kernel sender follows the same rules (`bpf/send.bpf.c` in the io
//! crate). The port contract tests both.

use crate::histogram::{Histogram, bucket_of};
use crate::time::{Duration, Instant};

/// Policy for frames that are past due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// Sends every frame and returns to the schedule without a long burst. Frames that are late by
    /// at most the backlog leave at once. A longer delay shortens the gaps by [`gap_reduction`] until
    /// the schedule is met again. The total and the average rate of a run stay the same.
    #[default]
    Bounded,
    /// Never closes a gap. Drops a frame that is later than the backlog and counts it as unsent.
    Strict,
    /// Never closes a gap and never drops a frame. The rest of the schedule moves.
    Stretch,
}

/// [`CatchUp`] with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeparturePolicy {
    /// Policy for late frames.
    pub catch_up: CatchUp,
    /// Lateness limit: under `Bounded`, frames up to it leave at once; under `Strict`, later frames
    /// are dropped. `Duration::MAX` under `Bounded` sends all late frames at once, as tcpreplay
    /// does.
    pub backlog: Duration,
}

impl Default for DeparturePolicy {
    /// `Bounded` with 1 ms. This bridges a scheduler tick, but the burst stays too short to distort
    /// the test of a device.
    fn default() -> Self {
        Self { catch_up: CatchUp::Bounded, backlog: Duration::from_millis(1) }
    }
}

/// Divisor for the part of a gap that `Strict` and `Stretch` may close. A tenth keeps the
/// granularity of a port's clock from lowering the rate.
pub const GAP_TOLERANCE_DIVISOR: u64 = 10;

/// Time constant of `Bounded`. Each gap shrinks by the fraction delay / `RECOVERY_TIME_CONSTANT`, so a delay
/// falls by about two thirds within this time.
pub const RECOVERY_TIME_CONSTANT: Duration =
    Duration::from_nanos(1 << RECOVERY_TIME_CONSTANT_SHIFT);
const RECOVERY_TIME_CONSTANT_SHIFT: u32 = 25;

/// Divisor for the part of a gap that `Bounded` always leaves: an eighth. On a busy machine the
/// sender may not get more CPU time than that.
pub const REMAINING_GAP_DIVISOR: u64 = 8;

/// Divisor for the smallest reduction of a gap: 0.8 %, below the tolerance of the target rate.
pub const GAP_REDUCTION_DIVISOR_MAX: u64 = 128;

/// Longest gap for which the reduction is computed, in ns: 9 minutes.
const GAP_REDUCTION_GAP_MAX: u64 = 1 << 39;

/// Returns how much shorter `Bounded` makes a gap while the schedule is `delay` late.
///
/// A stall of some milliseconds, common on virtual machines, raises the rate by a few percent for
/// some tens of milliseconds. Only a stall of tens of milliseconds multiplies the rate.
#[inline]
pub fn gap_reduction(gap: Duration, delay: Duration) -> Duration {
    const SPAN: u64 = RECOVERY_TIME_CONSTANT.as_nanos();
    let share_max = SPAN - SPAN / REMAINING_GAP_DIVISOR;
    let share = delay.as_nanos().clamp(SPAN / GAP_REDUCTION_DIVISOR_MAX, share_max);
    // The clock's smallest step at least, so that short gaps regain time too.
    let part =
        ((gap.as_nanos().min(GAP_REDUCTION_GAP_MAX) * share) >> RECOVERY_TIME_CONSTANT_SHIFT) + 1;
    Duration::from_nanos(part.min(delay.as_nanos()))
}

/// Decision about the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The frame leaves now. It is already in the record.
    Send,
    /// The frame leaves no earlier than this instant.
    Wait(Instant),
    /// The frame is too late under `Strict`. It is already counted as unsent.
    Drop,
}

/// Record of the frames that left a port, and of their departure times.
#[derive(Clone, Debug, Default)]
pub struct DepartureRecord {
    /// Frames that left and had a departure time.
    pub frames: u64,
    /// Departure of the first frame, or `None` if none has left.
    pub first: Option<Instant>,
    /// Departure of the last frame, or `None` if none has left.
    pub last: Option<Instant>,
    /// Frames dropped because they were late (`Strict`).
    pub unsent: u64,
    /// Delay of the first frame. It moves the whole schedule.
    pub start_delay: Duration,
    /// Total time by which the schedule moved after the first frame.
    pub shifted: Duration,
    /// Part of `shifted` that shorter gaps have made up (`Bounded`).
    pub recovered: Duration,
    /// Largest lateness of a frame.
    pub lateness_max: Duration,
    /// Time between consecutive departures.
    pub gaps: Histogram,
    /// Absolute difference between each of those gaps and the scheduled gap.
    pub gap_errors: Histogram,
}

impl DepartureRecord {
    /// Records frames that left exactly when due, as in simulated time. Skips frames without a due
    /// time ([`Instant::ZERO`]).
    #[inline]
    pub fn record_exact(&mut self, departures: impl IntoIterator<Item = Instant>) {
        let gaps_before = self.gaps.count();
        for departure in departures {
            if departure == Instant::ZERO {
                continue;
            }
            self.frames += 1;
            match self.last {
                None => self.first = Some(departure),
                Some(last) => self.gaps.record(departure.saturating_since(last)),
            }
            self.last = Some(departure);
        }
        let gaps = self.gaps.count() - gaps_before;
        self.gap_errors.add_bucket(bucket_of(0), gaps);
    }

    /// Adds the record of another queue of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.frames += other.frames;
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
        self.unsent += other.unsent;
        self.start_delay = self.start_delay.max(other.start_delay);
        self.shifted = self.shifted.max(other.shifted);
        self.recovered = self.recovered.max(other.recovered);
        self.lateness_max = self.lateness_max.max(other.lateness_max);
        self.gaps.merge(&other.gaps);
        self.gap_errors.merge(&other.gap_errors);
    }
}

/// Decides about frames in schedule order and keeps the record.
#[derive(Clone, Debug)]
pub struct DepartureScheduler {
    policy: DeparturePolicy,
    record: DepartureRecord,
    /// Due time of the previous frame, schedule shifts included.
    previous_due: Instant,
}

impl DepartureScheduler {
    /// Creates a decider with an empty record.
    pub fn new(policy: DeparturePolicy) -> Self {
        Self { policy, record: DepartureRecord::default(), previous_due: Instant::ZERO }
    }

    /// Decides at time `now` about the next frame, whose scheduled time is `due`.
    pub fn admit(&mut self, now: Instant, due: Instant) -> Admission {
        let moved = self.record.shifted.saturating_sub(self.record.recovered);
        let due = due.saturating_add(self.record.start_delay).saturating_add(moved);
        if now < due {
            return Admission::Wait(due);
        }
        let lateness = now.saturating_since(due);
        let Some(last) = self.record.last else {
            // The schedule begins with the first frame, so there is no gap to close yet.
            self.record.start_delay = lateness;
            self.departed(now, now, Duration::ZERO);
            return Admission::Send;
        };
        let gap = due.saturating_since(self.previous_due);
        let tolerance = Duration::from_nanos(gap.as_nanos() / GAP_TOLERANCE_DIVISOR);
        let earliest = last.saturating_add(gap.saturating_sub(tolerance));
        match self.policy.catch_up {
            CatchUp::Bounded => {
                let excess = lateness.saturating_sub(self.policy.backlog);
                self.record.shifted = self.record.shifted.saturating_add(excess);
                self.departed(now, due.saturating_add(excess), lateness);
                if gap > Duration::ZERO {
                    let delay = self.record.shifted.saturating_sub(self.record.recovered);
                    let part = gap_reduction(gap, delay);
                    self.record.recovered += part;
                    // The next scheduled gap keeps its length, so the reduction counts as a gap
                    // error.
                    self.previous_due = self.previous_due.saturating_sub(part);
                }
            }
            CatchUp::Strict if lateness > self.policy.backlog => {
                self.record.unsent += 1;
                return Admission::Drop;
            }
            CatchUp::Strict | CatchUp::Stretch if now < earliest => {
                return Admission::Wait(earliest);
            }
            CatchUp::Strict => self.departed(now, due, lateness),
            CatchUp::Stretch => {
                let excess = if lateness > tolerance { lateness } else { Duration::ZERO };
                self.record.shifted = self.record.shifted.saturating_add(excess);
                self.departed(now, due.saturating_add(excess), lateness);
            }
        }
        Admission::Send
    }

    /// Returns the record so far.
    pub fn record(&self) -> &DepartureRecord {
        &self.record
    }

    fn departed(&mut self, now: Instant, due: Instant, lateness: Duration) {
        let record = &mut self.record;
        record.frames += 1;
        record.lateness_max = record.lateness_max.max(lateness);
        match record.last {
            None => record.first = Some(now),
            Some(last) => {
                let gap = now.saturating_since(last);
                let scheduled = due.saturating_since(self.previous_due);
                let error = gap.as_nanos().abs_diff(scheduled.as_nanos());
                record.gaps.record(gap);
                record.gap_errors.record(Duration::from_nanos(error));
            }
        }
        record.last = Some(now);
        self.previous_due = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    const MICROSECOND: u64 = 1_000;

    /// Simulates frames due every 10 us and a worker that runs each microsecond, except from 30 to
    /// 3,030 us. Returns the departure of each of the first 1,000 frames, or `None` if it was
    /// dropped.
    fn departures_around_a_stall(
        policy: DeparturePolicy,
    ) -> (Vec<Option<u64>>, DepartureScheduler) {
        let mut departures = DepartureScheduler::new(policy);
        let mut left = Vec::new();
        let mut now = 0;
        while left.len() < 1_000 {
            let due = Instant::from_nanos(left.len() as u64 * 10 * MICROSECOND);
            match departures.admit(Instant::from_nanos(now), due) {
                Admission::Send => left.push(Some(now)),
                Admission::Drop => left.push(None),
                Admission::Wait(until) => {
                    assert!(until.as_nanos() > now, "a wait ends in the future");
                    now += MICROSECOND;
                    if (30 * MICROSECOND..3_030 * MICROSECOND).contains(&now) {
                        now = 3_030 * MICROSECOND;
                    }
                }
            }
        }
        (left, departures)
    }

    fn policy(catch_up: CatchUp) -> DeparturePolicy {
        DeparturePolicy { catch_up, ..DeparturePolicy::default() }
    }

    /// Simulates frames due every `gap` and a worker that stalls for `stall` before frame `at`. All
    /// other frames leave as soon as allowed. Returns the lateness of each frame in ns.
    fn delays(gap: u64, stall: u64, at: u64, frames: u64) -> (Vec<u64>, DepartureScheduler) {
        let mut departures = DepartureScheduler::new(policy(CatchUp::Bounded));
        let (mut now, mut delays) = (0, Vec::new());
        for frame in 0..frames {
            let due = frame * gap;
            now += if frame == at { stall } else { 0 };
            while let Admission::Wait(until) =
                departures.admit(Instant::from_nanos(now), Instant::from_nanos(due))
            {
                now = until.as_nanos();
            }
            delays.push(now - due);
        }
        (delays, departures)
    }

    #[test]
    fn bounded_sends_one_backlog_at_once_and_the_rest_with_shorter_gaps() {
        let (left, departures) = departures_around_a_stall(policy(CatchUp::Bounded));
        let burst = left.iter().filter(|at| **at == Some(3_030 * MICROSECOND)).count();
        assert!((101..=110).contains(&burst), "{burst}: 1 ms of frames 10 us apart");
        assert_eq!(departures.record().shifted, Duration::from_micros(2_000));
        assert_eq!(departures.record().unsent, 0);
    }

    #[test]
    fn bounded_keeps_the_average_rate_for_any_gap_and_stall() {
        const SECOND: u64 = 1_000_000_000;
        for (gap, stall) in [
            (SECOND / 1_000, SECOND / 2),
            (SECOND / 1_000, 10 * SECOND),
            (SECOND / 10, SECOND / 2),
            (SECOND / 1_000_000, 4_000_000),
            (SECOND / 1_000_000, SECOND / 2),
            (67, 300_000),
        ] {
            // Twice the stall, for a recovery of the same length, and half a second for its slow
            // end.
            let frames = (2 * stall + SECOND / 2) / gap;
            let (delays, departures) = delays(gap, stall, 3, frames);
            let context = format!("gap {gap}, stall {stall}");
            assert_eq!(delays.last(), Some(&0), "{context}: the schedule is kept again");
            let record = departures.record();
            assert_eq!(record.frames, frames, "{context}");
            assert_eq!(record.recovered, record.shifted, "{context}");
            // After the backlog has left at once, at least an eighth of each gap remains.
            let backlog = (MICROSECOND * 1_000 / gap + 1) as usize;
            let closed = delays.windows(2).skip(4 + 9 * backlog);
            let closed = closed.map(|pair| pair[0].saturating_sub(pair[1])).max().unwrap();
            assert!(closed <= gap - gap / REMAINING_GAP_DIVISOR + 1, "{context}: {closed}");
        }
    }

    #[test]
    fn bounded_shortens_gaps_little_after_a_short_stall() {
        let gap = 10 * MICROSECOND;
        let (delays, _) = delays(gap, 3_000 * MICROSECOND, 30, 60_000);
        let closed = delays.windows(2).skip(500);
        let closed = closed.map(|pair| pair[0].saturating_sub(pair[1])).max().unwrap();
        assert!(closed <= gap / 15, "{closed}: 2 ms of delay are 6 % of the span");
        assert_eq!(delays.last(), Some(&0));
    }

    #[test]
    fn gap_part_leaves_an_eighth_of_the_gap_and_never_exceeds_the_delay() {
        let of = |gap, delay| {
            gap_reduction(Duration::from_nanos(gap), Duration::from_nanos(delay)).as_nanos()
        };
        assert_eq!(of(1_000, u64::MAX), 876);
        assert_eq!(of(1_000_000, 100_000), 1_000_000 / GAP_REDUCTION_DIVISOR_MAX + 1);
        assert_eq!(of(1_000_000_000, 500), 500);
        assert_eq!(of(u64::MAX, u64::MAX), GAP_REDUCTION_GAP_MAX - GAP_REDUCTION_GAP_MAX / 8 + 1);
        assert_eq!(of(1_000, 0), 0);
    }

    #[test]
    fn bounded_without_a_bound_returns_to_the_schedule() {
        let policy = DeparturePolicy { catch_up: CatchUp::Bounded, backlog: Duration::MAX };
        let (left, departures) = departures_around_a_stall(policy);
        assert_eq!(left[999], Some(9_990 * MICROSECOND));
        assert_eq!(departures.record().shifted, Duration::ZERO);
        assert_eq!(departures.record().lateness_max, Duration::from_micros(3_000));
    }

    #[test]
    fn strict_keeps_every_gap_and_counts_dropped_frames() {
        let (left, departures) = departures_around_a_stall(policy(CatchUp::Strict));
        let sent: Vec<u64> = left.iter().flatten().copied().collect();
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 9 * MICROSECOND));
        assert_eq!(sent.len() as u64 + departures.record().unsent, 1_000);
        assert!(departures.record().unsent >= 200, "2 of 3 ms are beyond the backlog");
    }

    #[test]
    fn stretch_keeps_every_gap_and_every_frame() {
        let (left, departures) = departures_around_a_stall(policy(CatchUp::Stretch));
        let sent: Vec<u64> = left.iter().flatten().copied().collect();
        assert_eq!(sent.len(), 1_000);
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 9 * MICROSECOND));
        assert!(departures.record().shifted >= Duration::from_micros(2_990));
    }

    #[test]
    fn the_schedule_begins_when_the_first_frame_leaves() {
        let mut departures = DepartureScheduler::new(policy(CatchUp::Bounded));
        let late = Instant::from_nanos(500 * MICROSECOND);
        assert_eq!(departures.admit(late, Instant::ZERO), Admission::Send);
        let due = Instant::from_nanos(10 * MICROSECOND);
        let expected = Instant::from_nanos(510 * MICROSECOND);
        assert_eq!(departures.admit(late, due), Admission::Wait(expected));
        assert_eq!(departures.record().lateness_max, Duration::ZERO);
    }

    #[test]
    fn the_record_holds_gaps_and_their_errors() {
        let (_, departures) = departures_around_a_stall(policy(CatchUp::Bounded));
        let record = departures.record();
        assert_eq!(record.frames, 1_000);
        assert_eq!(record.gaps.count(), 999);
        // The worker runs each microsecond.
        assert!(record.gap_errors.quantile(0.5) <= Some(Duration::from_nanos(1_100)));
        assert_eq!(record.first, Some(Instant::ZERO));
    }
}
