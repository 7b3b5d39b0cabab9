//! Templates: the clients or servers that share a program, and their groups.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sessions::add_counts;
use super::{FlowSeries, HistogramReport, Http1Report, Http2Report, Label, TimesReport, TlsReport};

/// The clients or the servers of a template.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TemplateReport {
    /// Its name in the plan.
    pub name: String,
    /// Its group there.
    pub group: Option<String>,
    /// `client` or `server`.
    pub side: Label,
    /// What became of its flows, by name. `syn_sent`, `waiting` (those in TIME-WAIT) and
    /// `unfinished` are those that were still there in the end. `active_max` of a group is the sum
    /// of its templates': no more were there at once, but it may have been fewer.
    pub flows: BTreeMap<Label, u64>,
    /// What became of them over time.
    pub series: FlowSeries,
    /// What TCP counted.
    pub tcp: BTreeMap<Label, u64>,
    /// What UDP counted.
    pub udp: BTreeMap<Label, u64>,
    /// What its programs counted.
    pub counters: BTreeMap<Label, u64>,
    /// How long its connections took.
    pub times: TimesReport,
    /// How long its datagrams took, where they have their time of departure with them, by TRex's
    /// add-on `latency`.
    pub stamped: Option<StampedReport>,
    /// Transactions that its program times, in its order.
    pub transactions: Vec<TransactionReport>,
    /// Why its program failed, by step and cause.
    pub failures: Vec<FailureReport>,
    /// What became of its TLS, where it has that.
    pub tls: Option<TlsReport>,
    /// Messages of HTTP/1.1, where its program follows them.
    pub http1: Option<Http1Report>,
    /// What became of its HTTP/2, where it has that.
    pub http2: Option<Http2Report>,
}

/// How long datagrams took that came with the time at which they had left: to who sent first, until
/// they were answered, and to the other side from end to end. The latter is right where both are on
/// one machine; the clocks of two are not set by each other. Half an hour at most, and none of what
/// is ahead of the clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StampedReport {
    /// How many came.
    pub datagrams: u64,
    /// How long all of them took together, in microseconds.
    pub total_us: u64,
    /// How long the fastest took, in microseconds.
    pub min_us: Option<u64>,
    /// How long the slowest took, in microseconds.
    pub max_us: Option<u64>,
    /// How long they took; empty before the end, as all times are.
    pub times: HistogramReport,
}

/// Transactions of one name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TransactionReport {
    /// The name that the program gives them.
    pub name: String,
    /// Those that started; `time.count` of them ended.
    pub started: u64,
    /// The shortest; null where none ended.
    pub min_ns: Option<u64>,
    /// On average; null where none ended.
    pub mean_ns: Option<u64>,
    /// From start to end.
    pub time: HistogramReport,
}

/// Flows whose program failed at one step, for one cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailureReport {
    /// The step, such as `program[2].expect`.
    pub step: String,
    /// Why.
    pub cause: Label,
    /// How many flows.
    pub flows: u64,
    /// Of the first of them: where what came was not what was expected, in bytes, if that is known.
    pub offset: Option<u64>,
    /// What was expected: a pattern, or bytes from a little before there on. Bytes that are no
    /// printable ASCII are escaped.
    pub expected: Option<String>,
    /// What came.
    pub found: String,
    /// Whether that is known: a program that looks at no bytes keeps none.
    pub found_is_known: bool,
}

/// The clients or the servers of all templates of a group, told as those of one template are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupReport {
    /// How many templates are in it.
    pub templates: u64,
    /// Their sum, whose name is the group's.
    #[serde(flatten)]
    pub sum: TemplateReport,
}

impl TemplateReport {
    /// Adds what another one of its side tells; both tell of the same time.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            name: _,
            group: _,
            side: _,
            flows,
            series,
            tcp,
            udp,
            counters,
            times,
            stamped,
            transactions,
            failures,
            tls,
            http1,
            http2,
        } = other;
        add_counts(&mut self.flows, flows);
        self.series.add(series);
        add_counts(&mut self.tcp, tcp);
        add_counts(&mut self.udp, udp);
        add_counts(&mut self.counters, counters);
        self.times.add(times);
        if let Some(other) = stamped {
            self.stamped.get_or_insert_default().add(other);
        }
        for other in transactions {
            match self.transactions.iter_mut().find(|it| it.name == other.name) {
                Some(sum) => sum.add(other),
                None => self.transactions.push(other.clone()),
            }
        }
        for other in failures {
            match self.failures.iter_mut().find(|it| it.is_as(other)) {
                Some(sum) => sum.flows += other.flows,
                None => self.failures.push(other.clone()),
            }
        }
        if let Some(other) = tls {
            self.tls.get_or_insert_default().add(other);
        }
        if let Some(other) = http1 {
            self.http1.get_or_insert_default().add(other);
        }
        if let Some(other) = http2 {
            self.http2.get_or_insert_default().add(other);
        }
    }
}

impl StampedReport {
    /// Adds what others took.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { datagrams, total_us, min_us, max_us, times } = other;
        self.datagrams += datagrams;
        self.total_us = self.total_us.saturating_add(*total_us);
        self.min_us = self.min_us.into_iter().chain(*min_us).min();
        self.max_us = self.max_us.max(*max_us);
        self.times.add(times);
    }
}

impl TransactionReport {
    /// Adds others of this name.
    pub(crate) fn add(&mut self, other: &Self) {
        // The name is the same, and the mean follows from the sum of both.
        let Self { name: _, started, min_ns, mean_ns: _, time } = other;
        let (mine, theirs) = (self.time.count, other.time.count);
        let sum =
            |(mean, count): (Option<u64>, u64)| u128::from(mean.unwrap_or(0)) * u128::from(count);
        let all = sum((self.mean_ns, mine)) + sum((other.mean_ns, theirs));
        let mean = all.checked_div((mine + theirs).into());
        self.mean_ns = mean.map(|mean| u64::try_from(mean).unwrap_or(u64::MAX));
        self.min_ns = self.min_ns.into_iter().chain(*min_ns).min();
        self.started += started;
        self.time.add(time);
    }
}

impl FailureReport {
    /// Whether another one is of the same step and cause, of a group of templates say, whose
    /// programs may be alike.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (&self.step, &self.cause, &self.expected) == (&other.step, &other.cause, &other.expected)
    }
}
