//! Flows over time: what each template of a port has counted by the ends of intervals of equal
//! length.

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_stack::endpoint::{Endpoint, Tally};

/// What happened to flows over time, in intervals of equal length from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSeries {
    /// How long each interval is, in seconds.
    pub interval_s: f64,
    /// How long the last one is, in which the run ended.
    pub last_s: f64,
    /// Flows that began in each.
    pub opened: Vec<u64>,
    /// Flows at the end of each, those in TIME-WAIT not counted.
    pub held: Vec<u64>,
    /// Flows that ended in each as they should, those included whose programs reset them.
    pub closed: Vec<u64>,
    /// Flows that ended otherwise.
    pub failed: Vec<u64>,
    /// Bytes of data sent in each, repeats not included.
    pub sent_bytes: Vec<u64>,
    /// Bytes of data that the peers acknowledged in each, over TCP.
    pub acknowledged_bytes: Vec<u64>,
    /// The same in bits a second: goodput of what was sent.
    pub sent_goodput_bps: Vec<f64>,
    /// Bytes of data received in sequence in each.
    pub received_bytes: Vec<u64>,
    /// The same in bits a second: goodput of what was received.
    pub goodput_bps: Vec<f64>,
}

/// Intervals of all templates together, at most.
const ROWS_MAX: usize = 1 << 15;

/// Intervals that are kept where so many templates have some, on both sides; even.
pub(super) const fn intervals_max(templates: usize) -> usize {
    let most = ROWS_MAX / if templates == 0 { 1 } else { templates };
    let most = if most > 512 { 512 } else { most };
    if most < 32 { 32 } else { most & !1 }
}

/// Counts by a moment, all but one since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    opened: u64,
    /// Now.
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
            opened: flows.made + tcp.accepts + udp.accepts,
            held: flows.active - flows.waiting,
            closed: flows.closed + flows.aborted + flows.reset_meant,
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

/// What was counted by the end of each interval. When there are too many, every second end is
/// forgotten, and so intervals are twice as long.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    start: Instant,
    interval: Duration,
    intervals_max: usize,
    /// The end of the present interval.
    due: Instant,
    templates: usize,
    /// For each end what each template had counted.
    ends: Vec<Vec<Totals>>,
    last: Duration,
}

impl Timeline {
    /// Intervals from a time on, `intervals_max` at most, which is even and at least 2.
    pub(super) fn new(
        start: Instant,
        interval: Duration,
        intervals_max: usize,
        templates: usize,
    ) -> Self {
        // None could be that short.
        let interval = interval.max(Duration::from_nanos(1));
        let due = start.saturating_add(interval);
        let ends = Vec::with_capacity(intervals_max);
        Self { start, interval, intervals_max, due, templates, ends, last: Duration::ZERO }
    }

    /// Looks at an endpoint before it does what is to be done at a time. Returns whether an
    /// interval is over.
    #[inline]
    pub(super) fn look(&mut self, now: Instant, endpoint: &Endpoint) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.note(now, endpoint);
        }
        is_due
    }

    #[cold]
    fn note(&mut self, now: Instant, endpoint: &Endpoint) {
        let totals = self.totals(endpoint);
        while now >= self.due && self.due < Instant::MAX {
            if self.ends.len() == self.intervals_max {
                self.halve();
            } else {
                self.ends.push(totals.clone());
            }
            self.due = self.end_of(self.ends.len() as u64 + 1);
        }
    }

    /// The last look, behind all that was done.
    pub(super) fn finish(&mut self, now: Instant, endpoint: &Endpoint) {
        self.look(now, endpoint);
        let begun = self.end_of(self.ends.len() as u64);
        self.last = now.saturating_since(begun);
        if self.last == Duration::ZERO && self.ends.pop().is_some() {
            self.last = self.interval;
        }
        let totals = self.totals(endpoint);
        self.ends.push(totals);
    }

    fn totals(&self, endpoint: &Endpoint) -> Vec<Totals> {
        let totals = |place| endpoint.tally(place).map(Totals::of).unwrap_or_default();
        (0..self.templates).map(totals).collect()
    }

    /// When so many intervals are over.
    fn end_of(&self, intervals: u64) -> Instant {
        let span = self.interval.as_nanos().saturating_mul(intervals);
        self.start.saturating_add(Duration::from_nanos(span))
    }

    fn halve(&mut self) {
        let mut is_second = true;
        self.ends.retain(|_| {
            is_second = !is_second;
            is_second
        });
        self.interval = Duration::from_nanos(self.interval.as_nanos().saturating_mul(2));
    }

    /// What a template did.
    pub(super) fn of_template(&self, place: usize) -> FlowSeries {
        self.series(|end| end.get(place).copied().unwrap_or_default())
    }

    /// What all of them did.
    pub(super) fn of_all(&self) -> FlowSeries {
        self.series(|end| end.iter().fold(Totals::default(), |sum, it| sum.plus(it)))
    }

    fn series(&self, of: impl Fn(&[Totals]) -> Totals) -> FlowSeries {
        let mut series = FlowSeries {
            interval_s: self.interval.as_secs_f64(),
            last_s: self.last.as_secs_f64(),
            ..FlowSeries::default()
        };
        let mut before = Totals::default();
        for (place, end) in self.ends.iter().enumerate() {
            let now = of(end);
            // Nothing that was counted is taken back, but for what moves to another template.
            let since = |total: fn(&Totals) -> u64| total(&now).saturating_sub(total(&before));
            let (acknowledged, received) = (since(|it| it.acknowledged), since(|it| it.received));
            let is_last = place + 1 == self.ends.len();
            let seconds = if is_last { series.last_s } else { series.interval_s };
            series.opened.push(since(|it| it.opened));
            series.held.push(now.held);
            series.closed.push(since(|it| it.closed));
            series.failed.push(since(|it| it.failed));
            series.sent_bytes.push(since(|it| it.sent));
            let rate = |bytes: u64| bytes as f64 * 8.0 / seconds.max(1e-9);
            series.acknowledged_bytes.push(acknowledged);
            series.sent_goodput_bps.push(rate(acknowledged));
            series.received_bytes.push(received);
            series.goodput_bps.push(rate(received));
            before = now;
        }
        series
    }
}

/// What is to be said where series of a run are coarser than was asked for.
pub(super) fn note<'a>(
    asked: Duration,
    timelines: impl IntoIterator<Item = &'a Timeline>,
) -> Option<String> {
    let longest = timelines.into_iter().max_by_key(|it| it.interval)?;
    (longest.interval > asked).then(|| {
        format!(
            "flows over time are told in intervals of {} s instead of {} s: {} are kept at most",
            longest.interval.as_secs_f64(),
            asked.as_secs_f64(),
            longest.intervals_max
        )
    })
}
