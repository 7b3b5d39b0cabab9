//! Time series of flow counts: the totals of each template at the ends of equal intervals.

use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, Tally};

use crate::result::FlowSeries;

/// Maximum number of intervals, summed over all templates.
const ROWS_MAX: usize = 1 << 15;

/// Returns the maximum number of intervals of each series, which is even. `templates` is the number
/// of series on all ports.
pub(in crate::emulation) const fn intervals_max(templates: usize) -> usize {
    let most = ROWS_MAX / if templates == 0 { 1 } else { templates };
    let most = if most > 512 { 512 } else { most };
    if most < 32 { 32 } else { most & !1 }
}

/// Totals of a template since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    opened: u64,
    /// Current number of flows outside TIME-WAIT.
    held: u64,
    closed: u64,
    failed: u64,
    sent: u64,
    acknowledged: u64,
    received: u64,
}

impl Totals {
    fn of(tally: &Tally) -> Self {
        let Tally { flows, tcp, udp, .. } = tally;
        Self {
            opened: flows.started + tcp.accepts + udp.accepts,
            held: flows.active - flows.waiting,
            closed: flows.closed + flows.aborted + flows.expected_resets,
            failed: flows.failed(),
            sent: tcp.sndbyte_ok + udp.sndbyte,
            acknowledged: tcp.rcvackbyte,
            received: tcp.rcvbyte + udp.rcvbyte,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            opened: self.opened + other.opened,
            held: self.held + other.held,
            closed: self.closed + other.closed,
            failed: self.failed + other.failed,
            sent: self.sent + other.sent,
            acknowledged: self.acknowledged + other.acknowledged,
            received: self.received + other.received,
        }
    }
}

/// Totals at the end of each interval. When `intervals_max` is reached, every second one is dropped
/// and the interval doubles.
#[derive(Clone, Debug)]
pub(in crate::emulation) struct Timeline {
    start: Instant,
    interval: Duration,
    intervals_max: usize,
    /// End of the current interval.
    due: Instant,
    templates: usize,
    /// Totals of each template at each end.
    ends: Vec<Vec<Totals>>,
    /// Time of the last update, once the run has ended.
    end: Option<Instant>,
}

/// Divisor of the interval. A shorter last interval is merged into the one before.
const LAST_INTERVAL_DIVISOR: u64 = 10;

impl Timeline {
    /// Starts the first interval at `start`. `intervals_max` is even and at least 2.
    pub(in crate::emulation) fn new(
        start: Instant,
        interval: Duration,
        intervals_max: usize,
        templates: usize,
    ) -> Self {
        // An interval of 0 would never advance.
        let interval = interval.max(Duration::from_nanos(1));
        let due = start.saturating_add(interval);
        let ends = Vec::with_capacity(intervals_max);
        Self { start, interval, intervals_max, due, templates, ends, end: None }
    }

    /// Records the totals if an interval has ended. Call it before the endpoint's iteration at
    /// `now`. Returns whether an interval has ended.
    #[inline]
    pub(in crate::emulation) fn update(&mut self, now: Instant, endpoint: &Endpoint) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.note(now, endpoint);
        }
        is_due
    }

    #[cold]
    fn note(&mut self, now: Instant, endpoint: &Endpoint) {
        let totals = self.totals(endpoint);
        self.fill(now, &totals);
    }

    /// Records `totals` for each interval that has ended by `now`.
    fn fill(&mut self, now: Instant, totals: &[Totals]) {
        while now >= self.due && self.due < Instant::MAX {
            if self.ends.len() == self.intervals_max {
                self.double_interval();
            } else {
                self.ends.push(totals.to_vec());
            }
            self.due = self.end_of(self.ends.len() as u64 + 1);
        }
    }

    /// Records the final totals. Call it after the last iteration.
    pub(in crate::emulation) fn finish(&mut self, now: Instant, endpoint: &Endpoint) {
        self.update(now, endpoint);
        let totals = self.totals(endpoint);
        self.close(now, totals);
    }

    /// Returns the time of the final totals; the start if there are none yet.
    pub(in crate::emulation) fn end(&self) -> Instant {
        self.end.unwrap_or(self.start)
    }

    /// Extends the series to `end` without further activity, if that is later.
    pub(in crate::emulation) fn extend(&mut self, end: Instant) {
        if end <= self.end() {
            return;
        }
        let Some(totals) = self.ends.pop() else { return };
        self.due = self.end_of(self.ends.len() as u64 + 1);
        self.fill(end, &totals);
        self.close(end, totals);
    }

    /// Ends the current interval at `end`. If the interval has just started, replaces the totals of
    /// the one before.
    fn close(&mut self, end: Instant, totals: Vec<Totals>) {
        if end == self.end_of(self.ends.len() as u64) {
            self.ends.pop();
        }
        self.ends.push(totals);
        self.end = Some(end);
    }

    fn totals(&self, endpoint: &Endpoint) -> Vec<Totals> {
        let totals = |place| endpoint.tally(place).map(Totals::of).unwrap_or_default();
        (0..self.templates).map(totals).collect()
    }

    /// Returns the end of the interval with this number, counted from 1.
    fn end_of(&self, intervals: u64) -> Instant {
        let span = self.interval.as_nanos().saturating_mul(intervals);
        self.start.saturating_add(Duration::from_nanos(span))
    }

    /// Drops every second end and doubles the interval.
    fn double_interval(&mut self) {
        let mut is_second = true;
        self.ends.retain(|_| {
            is_second = !is_second;
            is_second
        });
        self.interval = Duration::from_nanos(self.interval.as_nanos().saturating_mul(2));
    }

    /// Returns the series of the template with this index.
    pub(in crate::emulation) fn template_series(&self, place: usize) -> FlowSeries {
        self.series(|end| end.get(place).copied().unwrap_or_default())
    }

    /// Returns the sum of the series of all templates.
    pub(in crate::emulation) fn total_series(&self) -> FlowSeries {
        self.series(|end| end.iter().fold(Totals::default(), |sum, it| sum.plus(it)))
    }

    fn series(&self, of: impl Fn(&[Totals]) -> Totals) -> FlowSeries {
        // Start of the last interval, which may be shorter than the others.
        let begun = self.end_of((self.ends.len() as u64).saturating_sub(1));
        let mut last = self.end.map_or(self.interval, |end| end.saturating_since(begun));
        let mut ends: Vec<_> = self.ends.iter().collect();
        if ends.len() >= 2
            && last < Duration::from_nanos(self.interval.as_nanos() / LAST_INTERVAL_DIVISOR)
        {
            ends.remove(ends.len() - 2);
            last = last.saturating_add(self.interval);
        }
        let mut series = FlowSeries {
            interval_s: self.interval.as_secs_f64(),
            last_interval_s: last.as_secs_f64(),
            ..FlowSeries::default()
        };
        let mut before = Totals::default();
        for end in ends {
            let now = of(end);
            // Totals only decrease when a flow moves to another template.
            let since = |total: fn(&Totals) -> u64| total(&now).saturating_sub(total(&before));
            series.opened.push(since(|it| it.opened));
            series.concurrent.push(now.held);
            series.closed.push(since(|it| it.closed));
            series.failed.push(since(|it| it.failed));
            series.sent_bytes.push(since(|it| it.sent));
            series.acknowledged_bytes.push(since(|it| it.acknowledged));
            series.received_bytes.push(since(|it| it.received));
            before = now;
        }
        series.sent_goodput_bps = series.rates(&series.acknowledged_bytes);
        series.goodput_bps = series.rates(&series.received_bytes);
        series
    }
}

/// Returns a note if the intervals of a run are longer than requested.
pub(in crate::emulation) fn note<'a>(
    requested: Duration,
    timelines: impl IntoIterator<Item = &'a Timeline>,
) -> Option<String> {
    let longest = timelines.into_iter().max_by_key(|it| it.interval)?;
    (longest.interval > requested).then(|| {
        format!(
            "time series have intervals of {} s instead of {} s: the limit is {} intervals",
            longest.interval.as_secs_f64(),
            requested.as_secs_f64(),
            longest.intervals_max
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.saturating_add(Duration::from_nanos(ms * MS))
    }

    fn received(received: u64) -> Vec<Totals> {
        vec![Totals { received, ..Totals::default() }]
    }

    /// Builds a timeline with intervals of 1 s from times in milliseconds and received bytes. The
    /// last time is the end.
    fn timeline(looks: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::new(Instant::ZERO, Duration::from_secs(1), 4, 1);
        for (ms, bytes) in looks {
            timeline.fill(at(*ms), &received(*bytes));
        }
        if let Some((ms, bytes)) = looks.last() {
            timeline.close(at(*ms), received(*bytes));
        }
        timeline
    }

    #[test]
    fn short_last_interval_is_merged_into_the_one_before() {
        let series = timeline(&[(1_000, 100), (2_000, 200), (2_001, 250)]).total_series();
        assert_eq!(series.received_bytes, [100, 150]);
        assert!((series.last_interval_s - 1.001).abs() < 1e-9, "{series:?}");
        assert!((series.goodput_bps[1] - 1_200.0 / 1.001).abs() < 1e-6, "{series:?}");
        let series = timeline(&[(1_000, 100), (2_000, 200), (2_100, 250)]).total_series();
        assert_eq!((series.received_bytes.len(), series.last_interval_s), (3, 0.1), "long enough");
        let series = timeline(&[(1, 100)]).total_series();
        assert_eq!((series.received_bytes, series.last_interval_s), (vec![100], 0.001), "no other");
        let series = timeline(&[(1_000, 100), (2_000, 200)]).total_series();
        assert_eq!((series.received_bytes, series.last_interval_s), (vec![100, 100], 1.0));
    }

    #[test]
    fn finished_intervals_have_rates_before_the_run_ends() {
        let mut timeline = timeline(&[]);
        timeline.fill(at(2_000), &received(100));
        assert_eq!(timeline.total_series().goodput_bps, [800.0, 0.0]);
    }

    #[test]
    fn extended_timeline_has_the_intervals_of_a_longer_run() {
        for (sooner, later) in [(1_990, 2_200), (2_000, 2_500), (900, 9_300), (3_990, 4_010)] {
            let mut of_all = timeline(&[(sooner, 100)]);
            assert_eq!(of_all.end(), at(sooner));
            of_all.extend(at(later));
            let (actual, expected) =
                (of_all.total_series(), timeline(&[(later, 100)]).total_series());
            assert_eq!(actual.last_interval_s, expected.last_interval_s, "{sooner} {later}");
            assert_eq!(actual.interval_s, expected.interval_s, "{sooner} {later}");
            assert_eq!(actual.opened.len(), expected.opened.len(), "{sooner} {later}");
            assert_eq!(actual.received_bytes.iter().sum::<u64>(), 100, "{sooner} {later}");
        }
    }
}
