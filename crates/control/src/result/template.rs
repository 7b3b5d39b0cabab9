//! Reports on templates (clients or servers that share a program) and on template groups.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::{TcpCounts, TemplateFlowCounts, UdpCounts};
use super::sessions::add_counts;
use super::{
    FlowSeries, HistogramReport, Http1Report, Http2Report, Label, PortReport, TimesReport,
    TlsReport,
};

/// Names in `flows` of the outcomes that count as failed.
pub const FAILED_FLOWS: [&str; 10] = [
    "refused",
    "unreachable",
    "reset",
    "reset_after_close",
    "syn_timeout",
    "retransmission_timeout",
    "keepalive_timeout",
    "session_failed",
    "program_failed",
    "idle_timeout",
];

/// Result of the client or server side of a template.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TemplateReport {
    /// Name in the plan.
    pub name: String,
    /// Group in the plan.
    pub group: Option<String>,
    /// `client` or `server`.
    pub side: Label,
    /// Flow counts by name. `active_max` of a group is the sum over its templates: an upper bound.
    #[schemars(with = "TemplateFlowCounts")]
    pub flows: BTreeMap<Label, u64>,
    /// Time series.
    pub series: FlowSeries,
    /// TCP counters.
    #[schemars(with = "TcpCounts")]
    pub tcp: BTreeMap<Label, u64>,
    /// UDP counters.
    #[schemars(with = "UdpCounts")]
    pub udp: BTreeMap<Label, u64>,
    /// Program counters.
    pub counters: BTreeMap<Label, u64>,
    /// Connection times.
    pub times: TimesReport,
    /// Datagram latency (TRex add-on `latency`).
    pub datagram_latency: Option<StampedReport>,
    /// Transactions in program order.
    pub transactions: Vec<TransactionReport>,
    /// Program failures by step and cause.
    pub failures: Vec<FailureReport>,
    /// TLS statistics.
    pub tls: Option<TlsReport>,
    /// HTTP/1.1 statistics.
    pub http1: Option<Http1Report>,
    /// HTTP/2 statistics.
    pub http2: Option<Http2Report>,
}

/// Latency of datagrams that carry their departure time. The side that sends first measures the
/// round trip, the other side the one-way delay. One-way delays require both sides on one machine,
/// because clocks are not synchronised. Negative values and values above 30 minutes are not
/// counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StampedReport {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Sum of the latencies in microseconds.
    pub total_us: u64,
    /// Minimum latency in microseconds.
    pub min_us: Option<u64>,
    /// Maximum latency in microseconds.
    pub max_us: Option<u64>,
    /// Latency histogram; empty before the end of the run.
    pub times: HistogramReport,
}

/// Transactions with the same name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TransactionReport {
    /// Name in the program.
    pub name: String,
    /// Transactions started; `time.count` of them finished.
    pub started: u64,
    /// Minimum; null without finished transactions.
    pub min_ns: Option<u64>,
    /// Mean; null without finished transactions.
    pub mean_ns: Option<u64>,
    /// Duration.
    pub time: HistogramReport,
}

/// Flows whose program failed at the same step for the same cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FailureReport {
    /// Step, such as `program[2].expect`.
    pub step: String,
    /// Cause.
    pub cause: Label,
    /// Number of flows.
    pub flows: u64,
    /// Offset of the first difference in bytes, if known.
    pub offset: Option<u64>,
    /// Expected pattern or bytes; non-printable bytes are escaped.
    pub expected: Option<String>,
    /// Received bytes.
    pub found: String,
    /// Whether the received bytes were recorded.
    pub found_recorded: bool,
}

/// Result of one side of a group: the sum over its templates.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GroupReport {
    /// Number of templates in the group.
    pub templates: u64,
    /// Sum over the templates; `name` is the name of the group.
    #[serde(flatten)]
    pub sum: TemplateReport,
}

impl GroupReport {
    /// Returns the sum of each group and side of all ports, ordered by their first template.
    pub(crate) fn of_ports(ports: &[PortReport]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut places = BTreeMap::new();
        for template in ports.iter().flat_map(|port| &port.templates) {
            let Some(name) = &template.group else { continue };
            let place = *places.entry((name.as_str(), &template.side)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => {
                    group.templates += 1;
                    group.sum.add(template);
                }
                None => groups.push(Self {
                    templates: 1,
                    sum: TemplateReport { name: name.clone(), ..template.clone() },
                }),
            }
        }
        groups
    }
}

impl TemplateReport {
    /// Adds the counts of another template of the same side and the same run.
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
            datagram_latency: stamped,
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
            self.datagram_latency.get_or_insert_default().add(other);
        }
        for other in transactions {
            match self.transactions.iter_mut().find(|it| it.name == other.name) {
                Some(sum) => sum.add(other),
                None => self.transactions.push(other.clone()),
            }
        }
        for other in failures {
            match self.failures.iter_mut().find(|it| it.has_same_cause(other)) {
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
    /// Merges the latencies of `other`.
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
    /// Merges the transactions of `other`, which have the same name.
    pub(crate) fn add(&mut self, other: &Self) {
        // The names are equal. The new mean is the mean of both, weighted by their counts.
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
    /// Returns whether `other` has the same step, cause and expected bytes. Templates of a group
    /// may share a program.
    pub(crate) fn has_same_cause(&self, other: &Self) -> bool {
        (&self.step, &self.cause, &self.expected) == (&other.step, &other.cause, &other.expected)
    }
}
