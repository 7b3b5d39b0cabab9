//! Due times of records.
//!
//! The schedule is absolute: every due time is the start plus an exact sum, so neither rounding
//! errors nor delays accumulate. All workers of a run compute the same schedule for all records,
//! and each sends only its own.

use wirestorm_base::pace::Pace;
use wirestorm_base::rate::{Decimal, FixedStepTicker, Rate, Ticker};
use wirestorm_base::resident::CapturedGap;
use wirestorm_base::time::{Duration, Instant};

/// Due times along the records of a run.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    ticker: Option<Ticker>,
    /// Due time of the next record; under `Pace::Capture`, of the previous one.
    due: Instant,
    /// Under `Pace::Capture`: a timestamp and its due time, from which the others follow.
    anchor: Option<(Instant, Instant)>,
    /// Under `Pace::Capture`: timestamp of the previous record.
    timestamp_before: Instant,
    /// Records left in the current group.
    group_left: u32,
}

impl Schedule {
    /// Creates a schedule whose first record is due at `start`.
    pub fn new(pace: Pace, start: Instant) -> Self {
        let ticker = match pace {
            Pace::Packets { rate, .. } | Pace::Bits { rate, .. } => Some(Ticker::new(rate)),
            Pace::TopSpeed | Pace::Capture { .. } => None,
        };
        let group_left = match pace {
            Pace::Packets { group, .. } => group,
            _ => 0,
        };
        Self { pace, ticker, due: start, anchor: None, timestamp_before: Instant::ZERO, group_left }
    }

    /// Returns the due time of the next record, given its timestamp and frame length without FCS;
    /// [`Instant::ZERO`] if it has none. Must be called once for each record.
    #[inline]
    pub fn next(&mut self, timestamp: Instant, frame_length: usize) -> Instant {
        match self.pace {
            Pace::TopSpeed => Instant::ZERO,
            Pace::Packets { group, .. } => {
                let due = self.due;
                self.group_left -= 1;
                if self.group_left == 0 {
                    self.group_left = group;
                    self.advance(u64::from(group));
                }
                due
            }
            Pace::Bits { layer, .. } => {
                let due = self.due;
                self.advance((frame_length as u64 + layer.overhead()) * 8);
                due
            }
            Pace::Capture { multiplier, gap_max } => {
                self.next_by_capture(timestamp, multiplier, gap_max)
            }
        }
    }

    /// Starts another file or pass: timestamps restart, `delay` after the previous record.
    pub fn restart(&mut self, delay: Duration) {
        self.anchor = None;
        self.due += delay;
    }

    /// Delays all remaining records by `span`.
    pub fn postpone(&mut self, span: Duration) {
        self.due += span;
        if let Some((_, due)) = &mut self.anchor {
            *due += span;
        }
    }

    fn advance(&mut self, units: u64) {
        if let Some(ticker) = &mut self.ticker {
            self.due = self.due.saturating_add(ticker.step(units));
        }
    }

    fn next_by_capture(
        &mut self,
        timestamp: Instant,
        multiplier: Decimal,
        gap_max: Duration,
    ) -> Instant {
        let (anchor, anchor_due) = *self.anchor.get_or_insert((timestamp, self.due));
        let first = timestamp == anchor && self.timestamp_before < anchor;
        let elapsed = timestamp.saturating_since(anchor).as_nanos();
        // One nanosecond of the capture lasts denominator / digits nanoseconds.
        let scaled = u128::from(elapsed) * u128::from(multiplier.denominator)
            / u128::from(multiplier.digits.max(1));
        let elapsed = Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX));
        // A record with an earlier timestamp than its predecessors is due with the latest of them.
        let mut due = anchor_due.saturating_add(elapsed).max(self.due);
        if !first && due.saturating_since(self.due) > gap_max {
            due = self.due.saturating_add(gap_max);
            self.anchor = Some((timestamp, due));
        }
        self.timestamp_before = timestamp;
        self.due = due;
        due
    }
}

/// Times between some of the records of a schedule, for a port that sends them by itself.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// Under `Pace::Capture`.
    schedule: Schedule,
    /// Under `Pace::Capture`: due times of this record, and of the record of the last gap.
    due: Instant,
    last_due: Instant,
    /// At a rate: what a nanosecond has, and the units from the record of the last gap to this one.
    rate: Option<Rate>,
    units: u64,
    /// Units of this record.
    own_units: u64,
    /// Pauses since the record of the last gap.
    pause: Duration,
}

impl Gaps {
    /// Starts at the beginning of a schedule; `None` if there are no gaps, or a port cannot keep them.
    pub(super) fn new(pace: Pace) -> Option<Self> {
        let rate = match pace {
            Pace::TopSpeed | Pace::Packets { group: 2.., .. } => return None,
            Pace::Packets { rate, .. } | Pace::Bits { rate, .. } => Some(rate),
            Pace::Capture { .. } => None,
        };
        Some(Self {
            schedule: Schedule::new(pace, Instant::ZERO),
            due: Instant::ZERO,
            last_due: Instant::ZERO,
            rate,
            units: 0,
            own_units: 0,
            pause: Duration::ZERO,
        })
    }

    /// Goes on to the next record; see [`Schedule::next`].
    pub(super) fn advance(&mut self, timestamp: Instant, frame_length: usize) {
        if self.rate.is_none() {
            self.due = self.schedule.next(timestamp, frame_length);
            return;
        }
        self.units += self.own_units;
        self.own_units = match self.schedule.pace {
            Pace::Bits { layer, .. } => (frame_length as u64 + layer.overhead()) * 8,
            _ => 1,
        };
    }

    /// Starts another file or pass; see [`Schedule::restart`].
    pub(super) fn restart(&mut self, delay: Duration) {
        self.schedule.restart(delay);
        self.pause = self.pause.saturating_add(delay);
    }

    /// Returns the time from the record of the last gap, or from the start, to this one.
    pub(super) fn take(&mut self) -> CapturedGap {
        let Some(rate) = self.rate else {
            let gap = self.due.saturating_since(self.last_due).as_nanos();
            self.last_due = self.due;
            return CapturedGap { gap, rest: 0 };
        };
        let [gap, rest, ..] = FixedStepTicker::new(rate, self.units).parts();
        let gap = gap.saturating_add(self.pause.as_nanos());
        (self.units, self.pause) = (0, Duration::ZERO);
        CapturedGap { gap, rest }
    }

    /// Returns the fractions of a nanosecond in the remainders of gaps.
    pub(super) fn fractions(&self) -> u64 {
        self.rate.map_or(1, |rate| {
            let [.., fractions] = FixedStepTicker::new(rate, 1).parts();
            fractions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use wirestorm_base::rate::{Layer, Rate};

    const START: Instant = Instant::from_nanos(1_000);

    fn dues(schedule: &mut Schedule, stamps: &[u64], length: usize) -> Vec<u64> {
        stamps
            .iter()
            .map(|&stamp| {
                schedule.next(Instant::from_nanos(stamp), length).as_nanos() - START.as_nanos()
            })
            .collect()
    }

    fn capture(multiplier: &str, gap_max: Duration) -> Pace {
        Pace::Capture { multiplier: Decimal::parse(multiplier).unwrap(), gap_max }
    }

    #[test]
    fn capture_timing_follows_the_first_record() {
        let mut schedule = Schedule::new(capture("1", Duration::MAX), START);
        assert_eq!(dues(&mut schedule, &[500, 700, 700, 1_500], 60), [0, 200, 200, 1_000]);
    }

    #[test]
    fn multiplier_divides_gaps_without_drift() {
        let mut schedule = Schedule::new(capture("3", Duration::MAX), START);
        assert_eq!(dues(&mut schedule, &[0, 100, 200, 300], 60), [0, 33, 66, 100]);
        let mut schedule = Schedule::new(capture("0.5", Duration::MAX), START);
        assert_eq!(dues(&mut schedule, &[0, 100, 200], 60), [0, 200, 400]);
    }

    #[test]
    fn earlier_timestamps_are_due_with_the_latest() {
        let mut schedule = Schedule::new(capture("1", Duration::MAX), START);
        assert_eq!(dues(&mut schedule, &[100, 200, 50, 150, 300], 60), [0, 100, 100, 100, 200]);
    }

    #[test]
    fn gaps_are_limited_to_gap_max() {
        let mut schedule = Schedule::new(capture("1", Duration::from_nanos(250)), START);
        assert_eq!(dues(&mut schedule, &[0, 100, 5_100, 5_200], 60), [0, 100, 350, 450]);
    }

    #[test]
    fn next_file_starts_where_the_previous_ended() {
        let mut schedule = Schedule::new(capture("1", Duration::MAX), START);
        dues(&mut schedule, &[9_000, 9_100], 60);
        schedule.restart(Duration::from_nanos(40));
        assert_eq!(dues(&mut schedule, &[10, 30], 60), [140, 160]);
    }

    #[test]
    fn postponed_schedule_keeps_its_gaps() {
        let mut schedule = Schedule::new(capture("1", Duration::MAX), START);
        dues(&mut schedule, &[0, 100], 60);
        schedule.postpone(Duration::from_nanos(1_000));
        assert_eq!(dues(&mut schedule, &[200], 60), [1_200]);
    }

    #[test]
    fn groups_keep_the_average_rate() {
        let rate = Rate::parse_per_second("100M", 1).unwrap();
        let mut schedule = Schedule::new(Pace::Packets { rate, group: 1 }, START);
        assert_eq!(dues(&mut schedule, &[0; 4], 60), [0, 10, 20, 30]);
        let mut schedule = Schedule::new(Pace::Packets { rate, group: 3 }, START);
        assert_eq!(dues(&mut schedule, &[0; 5], 60), [0, 0, 0, 30, 30]);
    }

    #[test]
    fn bit_rate_counts_the_overhead_of_its_layer() {
        let rate = Rate::parse_per_second("1G", 1).unwrap();
        let mut schedule = Schedule::new(Pace::Bits { rate, layer: Layer::Frame }, START);
        assert_eq!(dues(&mut schedule, &[0; 3], 100), [0, 800, 1_600]);
        let mut schedule = Schedule::new(Pace::Bits { rate, layer: Layer::Wire }, START);
        assert_eq!(dues(&mut schedule, &[0; 3], 60), [0, 672, 1_344]);
    }

    #[test]
    fn top_speed_has_no_due_times() {
        let mut schedule = Schedule::new(Pace::TopSpeed, START);
        assert_eq!(schedule.next(Instant::from_nanos(5), 60), Instant::ZERO);
    }
}
