//! What a run of clients and servers reports.
//!
//! The JSON form is `wirestorm.emulation/1`, described by `schemas/wirestorm.emulation.1.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;
use wirestorm_stack::content::{MessageCounters, SessionCounters};
use wirestorm_stack::endpoint::{Endpoint, Remaining, StampedTimes, Tally, Times};
use wirestorm_stack::program::{Statistic, Statistics};

use super::details::FlowReport;
use super::found::{FailureReport, Told, TransactionReport};
use super::groups::GroupReport;
use super::latency::LatencyReport;
use super::moved::Moved;
use super::steer::Detail;
use super::timeline::FlowSeries;
use super::tunnels::TunnelsReport;
use super::watch::FlowWatch;
use crate::port::Choice;
use crate::result::HistogramReport;

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.emulation/1";

/// The result of a run of clients and servers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EmulationResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// From the start to the end of the last port's work, in seconds.
    pub elapsed_s: f64,
    /// From the start until no more connections were to be made: limits were reached, and the
    /// interval of the last one was over, which may be later than the end; or the duration was
    /// over. Without clients, until the last one came. In seconds.
    pub load_s: f64,
    /// Each port of the plan that has clients or servers.
    pub ports: Vec<PortReport>,
    /// Sums of the templates of each group that the plan names, over all ports.
    pub groups: Vec<GroupReport>,
    /// How long answers to the plan's probes took.
    pub latency: Vec<LatencyReport>,
    /// Whether it was ended by a signal.
    pub interrupted: bool,
    /// What went wrong; what was counted before stands.
    pub errors: Vec<String>,
    /// What one should know.
    pub notes: Vec<String>,
}

/// One port.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PortReport {
    /// Its name in the plan.
    pub name: String,
    /// Its interface.
    pub interface: String,
    /// What carried its frames.
    pub backend: &'static str,
    /// Why that.
    pub why: String,
    /// Connections, and flows of UDP.
    pub flows: FlowsReport,
    /// What became of them over time.
    pub series: FlowSeries,
    /// The same of each template that has clients or servers here.
    pub templates: Vec<TemplateReport>,
    /// Those of them that were followed.
    pub followed: Vec<FlowReport>,
    /// What TCP counted, by BSD's names, of which TRex's are those with `tcps_` before them.
    pub tcp: BTreeMap<&'static str, u64>,
    /// What UDP counted, by TRex's names without `udps_` before them.
    pub udp: BTreeMap<&'static str, u64>,
    /// What programs counted, A to D: TRex's `user_counter_A` and so on.
    pub counters: BTreeMap<&'static str, u64>,
    /// How long connections took.
    pub times: TimesReport,
    /// What became of TLS, where any of them have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// Messages of HTTP/1.1, where any of their programs follow them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http1: Option<Http1Report>,
    /// What became of HTTP/2, where any of them have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Report>,
    /// What became of what it sent, where the plan impairs that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impairment: Option<ImpairmentReport>,
    /// What became of frames in tunnels, where the plan has any there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnels: Option<TunnelsReport>,
    /// Frames that left; what it says as a host, answers to pings among them, and pings that measure
    /// latency leave beside it and are not counted, though what arrives of them is.
    pub sent: u64,
    /// Their bytes without FCS.
    pub sent_bytes: u64,
    /// Frames that the interface refused.
    pub failed: u64,
    /// Frames that were not sent, as the interface was down or the run over.
    pub unsent: u64,
    /// How often the interface was down.
    pub outages: u64,
    /// How long it was down, in seconds; 0 too where that was over before it was looked at.
    pub down_s: f64,
    /// Frames that arrived.
    pub received: u64,
    /// Their bytes without FCS.
    pub received_bytes: u64,
    /// Frames that arrived and that there was no room for.
    pub missed: u64,
    /// CPU time that its worker took, in seconds.
    pub cpu_s: f64,
    /// CPU time that taking frames in cost beside that, on the CPUs of whoever delivered them, in
    /// seconds: that of a program at the interface's ingress. Known where the kernel measures it
    /// (`sysctl kernel.bpf_stats_enabled=1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_cpu_s: Option<f64>,
}

/// What became of what a port was to send.
///
/// Every frame that entered, and every copy, is in exactly one of `lost`, `queue_dropped`,
/// `no_room`, `delivered` and `held`.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ImpairmentReport {
    /// Frames that were to be sent.
    pub entered: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames and copies in which a bit was changed.
    pub corrupted: u64,
    /// Frames and copies dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames and copies dropped because too many were held.
    pub no_room: u64,
    /// Frames and copies that were sent.
    pub delivered: u64,
    /// Those of them that were sent behind a frame that had entered later.
    pub reordered: u64,
    /// Frames and copies that were held in the end, and not sent.
    pub held: u64,
}

impl ImpairmentReport {
    fn of(counters: &ImpairmentCounters) -> Self {
        Self {
            entered: counters.entered,
            lost: counters.lost,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            queue_dropped: counters.queue_dropped,
            no_room: counters.no_room,
            delivered: counters.delivered,
            reordered: counters.reordered,
            held: counters.held(),
        }
    }
}

/// Connections of a port, and flows of UDP.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowsReport {
    /// Flows that were still there in the end; the sum of `syn_sent`, `time_wait` and `unfinished`.
    /// The first and the last of these are told then alone.
    pub active: u64,
    /// Connections whose SYN nobody had answered by then, and that were not given up yet.
    pub syn_sent: u64,
    /// Connections in TIME-WAIT: both sides had closed them.
    pub time_wait: u64,
    /// Those of them whose program or TLS has failed: they would be among those that failed when
    /// TIME-WAIT is over.
    pub time_wait_failed: u64,
    /// Flows that had begun and were not over.
    pub unfinished: u64,
    /// The most at once, those in TIME-WAIT included.
    pub active_max: u64,
    /// Connections that both sides closed, and flows of UDP whose program ended.
    pub closed: u64,
    /// Flows that ended otherwise; the sum of the ten that follow.
    pub failed: u64,
    /// Connections that the peer reset in answer to SYN, and flows to ports where it has nobody.
    pub refused: u64,
    /// Flows of which a router or a host said that no way leads to the peer.
    pub unreachable: u64,
    /// Connections that the peer reset later.
    pub reset: u64,
    /// Connections that the peer closed, and reset as more was sent to it: an idle timeout of its,
    /// say.
    pub reset_after_close: u64,
    /// Connections of which SYN was never answered.
    pub unanswered: u64,
    /// Connections of which nothing was acknowledged any more.
    pub timed_out: u64,
    /// Connections whose peer did not answer keepalive probes.
    pub vanished: u64,
    /// Connections whose TLS failed.
    pub session_failed: u64,
    /// Flows whose program failed: something else came than it expects.
    pub program_failed: u64,
    /// Flows of UDP that were dropped for want of traffic.
    pub idle: u64,
    /// Connections that their program reset, as it says.
    pub aborted: u64,
    /// Connections that the peer reset, as its program says.
    pub reset_meant: u64,
    /// Connections that replaced one that the server had closed between two requests.
    pub reconnected: u64,
    /// Connections that were open when the run ended, and were reset.
    pub reset_at_end: u64,
    /// Connections that were open when the run ended, and could not be reset in time.
    pub left_open: u64,
    /// Flows that could not be made or taken, for there were too many.
    pub overflow: u64,
    /// Flows that could not be made, for their addresses and ports were in use.
    pub tuple_in_use: u64,
    /// Flows that were due and not made, for as many were there as there may be at once (`at_most`).
    pub skipped: u64,
    /// Flows that were due and not made, for there was no time for them.
    pub late: u64,
    /// Flows that were due and not made, for all clients were switched off.
    pub switched_off: u64,
    /// Segments and datagrams of no flow.
    pub no_flow: u64,
    /// Segments and datagrams of no flow to Ethernet addresses of others, or of groups; they are
    /// neither answered nor part of `no_flow` and `no_template`.
    pub for_others: u64,
    /// Segments and datagrams of no flow from or to addresses that no host has, or from port 0 of
    /// UDP, which are not answered either.
    pub impossible: u64,
    /// Connections asked for at ports where nobody listens.
    pub no_template: u64,
    /// Connections whose first bytes no server waits for.
    pub no_match: u64,
    /// Segments that did not fit a frame, and were not sent.
    pub too_long: u64,
    /// Flows that programs of these have asked for, and that were made.
    pub flows_total: u64,
    /// Those of them that are of another template.
    pub flows_other: u64,
    /// Fragments of packets that arrived.
    pub fragments: u64,
    /// Packets that were put together out of them.
    pub reassembled: u64,
    /// Packets of which fragments were missing for 60 seconds, or in the end.
    pub fragments_incomplete: u64,
    /// Packets whose fragments overlapped, and that were passed over.
    pub fragments_overlapping: u64,
    /// Packets in fragments that were given up, as too many were incomplete.
    pub fragments_no_room: u64,
    /// Messages of routers that a packet was too long for the next link.
    pub too_big: u64,
    /// Messages that a peer, or who waits at a port of it, cannot be reached.
    pub unreachable_heard: u64,
    /// Messages to peers that nobody waits at a port of ours, or speaks a protocol, of which 1,000 a
    /// second are sent.
    pub unreachable_sent: u64,
    /// Messages to peers that not all fragments of a packet came in time.
    pub time_exceeded_sent: u64,
    /// Packets that were damaged or cut short.
    pub damaged: u64,
    /// Packets of other protocols; ARP, neighbour discovery and pings are none of them.
    pub other_protocol: u64,
}

/// The clients or the servers of a template.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TemplateReport {
    /// Its name in the plan.
    pub name: String,
    /// Its group there.
    pub group: Option<String>,
    /// `client` or `server`.
    pub side: &'static str,
    /// What became of its flows, by name. `syn_sent`, `waiting` (those in TIME-WAIT) and
    /// `unfinished` are those that were still there in the end. `active_max` of a group is the sum
    /// of its templates': no more were there at once, but it may have been fewer.
    pub flows: BTreeMap<&'static str, u64>,
    /// What became of them over time.
    pub series: FlowSeries,
    /// What TCP counted.
    pub tcp: BTreeMap<&'static str, u64>,
    /// What UDP counted.
    pub udp: BTreeMap<&'static str, u64>,
    /// What its programs counted.
    pub counters: BTreeMap<&'static str, u64>,
    /// How long its connections took.
    pub times: TimesReport,
    /// How long its datagrams took, where they have their time of departure with them, by TRex's
    /// add-on `latency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamped: Option<StampedReport>,
    /// Transactions that its program times, in its order.
    pub transactions: Vec<TransactionReport>,
    /// Why its program failed, by step and cause.
    pub failures: Vec<FailureReport>,
    /// What became of its TLS, where it has that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
    /// Messages of HTTP/1.1, where its program follows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http1: Option<Http1Report>,
    /// What became of its HTTP/2, where it has that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Report>,
}

/// Whose the templates of an endpoint are, in their order.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) group: Option<String>,
    pub(super) side: &'static str,
    pub(super) has_tls: bool,
    /// Whether its program follows messages of HTTP/1.1.
    pub(super) has_http1: bool,
    pub(super) has_http2: bool,
    pub(super) told: Told,
}

/// How long connections took, from when SYN was to be sent, or arrived.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimesReport {
    /// Until they were established.
    pub connect: HistogramReport,
    /// Until the first byte of data had arrived.
    pub first_byte: HistogramReport,
    /// Until both sides had closed them, or they ended otherwise; TIME-WAIT is not part of it.
    pub whole: HistogramReport,
    /// Not of connections, but of segments: until they were acknowledged, each time that TCP measured
    /// it.
    pub round_trip: HistogramReport,
}

/// How long datagrams took that came with the time at which they had left: to who sent first, until
/// they were answered, and to the other side from end to end. The latter is right where both are on
/// one machine; the clocks of two are not set by each other. Half an hour at most, and none of what
/// is ahead of the clock.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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

impl StampedReport {
    fn of(stamped: &StampedTimes, is_all: bool) -> Self {
        let datagrams = stamped.times.count();
        let micros = |it: Duration| it.as_nanos() / 1_000;
        Self {
            datagrams,
            total_us: stamped.total_micros,
            min_us: stamped.min.map(micros),
            max_us: (datagrams > 0).then(|| micros(stamped.times.max())),
            times: match is_all {
                true => HistogramReport::new(&stamped.times),
                false => HistogramReport::default(),
            },
        }
    }

    /// Adds what others took.
    fn add(&mut self, other: &Self) {
        let Self { datagrams, total_us, min_us, max_us, times } = other;
        self.datagrams += datagrams;
        self.total_us = self.total_us.saturating_add(*total_us);
        self.min_us = self.min_us.into_iter().chain(*min_us).min();
        self.max_us = self.max_us.max(*max_us);
        self.times.add(times);
    }
}

/// TLS of a port.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TlsReport {
    /// Full handshakes.
    pub full: u64,
    /// Handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Connections that peers ended without close_notify.
    pub truncated: u64,
    /// Connections on which TLS failed, by cause.
    pub failures: BTreeMap<&'static str, u64>,
    /// From when TCP was established, or a program began TLS, until the handshake was over.
    pub handshake: HistogramReport,
}

/// Messages of HTTP/1.1, within TLS or not, that programs have received as such.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http1Report {
    /// Requests that servers got.
    pub requests: u64,
    /// Final responses that clients got, by the class of their status: `2xx`.
    pub responses: BTreeMap<&'static str, u64>,
    /// Responses that clients were to get, and did not get whole, as their connections failed.
    pub missing: u64,
}

impl Http1Report {
    fn of(messages: &MessageCounters) -> Self {
        let MessageCounters { requests, missing, .. } = *messages;
        Self { requests, responses: by_class(messages), missing }
    }

    fn add(&mut self, other: &Self) {
        let Self { requests, responses, missing } = other;
        self.requests += requests;
        add_counts(&mut self.responses, responses);
        self.missing += missing;
    }
}

/// Responses by the class of their status.
fn by_class(messages: &MessageCounters) -> BTreeMap<&'static str, u64> {
    ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(messages.responses).collect()
}

/// What became of HTTP/2.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Http2Report {
    /// Requests that clients sent, or servers got.
    pub requests: u64,
    /// Responses that servers sent, or clients got, by the class of their status: `2xx`.
    pub responses: BTreeMap<&'static str, u64>,
    /// Streams that were reset.
    pub resets: u64,
    /// Connections on which HTTP/2 failed, by cause.
    pub failures: BTreeMap<&'static str, u64>,
}

impl Http2Report {
    /// What causes of its failures begin with.
    const CAUSES: &str = "http2: ";

    fn of(sessions: &SessionCounters) -> Self {
        let messages = &sessions.messages;
        let causes = sessions.failures.iter();
        Self {
            requests: messages.requests,
            responses: by_class(messages),
            resets: messages.resets,
            failures: causes
                .filter_map(|(cause, times)| Some((cause.strip_prefix(Self::CAUSES)?, *times)))
                .collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        let Self { requests, responses, resets, failures } = other;
        self.requests += requests;
        add_counts(&mut self.responses, responses);
        self.resets += resets;
        add_counts(&mut self.failures, failures);
    }
}

impl TlsReport {
    fn of(sessions: SessionCounters) -> Self {
        let SessionCounters { full, resumed, truncated, mut failures, handshake, .. } = sessions;
        failures.retain(|cause, _| !cause.starts_with(Http2Report::CAUSES));
        Self { full, resumed, truncated, failures, handshake: HistogramReport::new(&handshake) }
    }

    fn add(&mut self, other: &Self) {
        let Self { full, resumed, truncated, failures, handshake } = other;
        self.full += full;
        self.resumed += resumed;
        self.truncated += truncated;
        add_counts(&mut self.failures, failures);
        self.handshake.add(handshake);
    }
}

impl FlowsReport {
    fn of(endpoint: &Endpoint, remaining: &[Remaining]) -> Self {
        let (flows, strays) = (endpoint.counters(), endpoint.strays());
        Self {
            active: flows.active,
            syn_sent: remaining.iter().map(|it| it.syn_sent).sum(),
            time_wait: flows.waiting,
            time_wait_failed: remaining.iter().map(|it| it.time_wait_failed).sum(),
            unfinished: remaining.iter().map(|it| it.unfinished).sum(),
            active_max: flows.active_max,
            closed: flows.closed,
            failed: flows.failed(),
            refused: flows.refused,
            unreachable: flows.unreachable,
            reset: flows.reset,
            reset_after_close: flows.reset_after_close,
            unanswered: flows.unanswered,
            timed_out: flows.timed_out,
            vanished: flows.vanished,
            session_failed: flows.session_failed,
            program_failed: flows.program_failed,
            idle: flows.idle,
            aborted: flows.aborted,
            reset_meant: flows.reset_meant,
            reconnected: flows.reconnected,
            reset_at_end: flows.reset_at_end,
            left_open: flows.left_open,
            overflow: flows.overflow,
            tuple_in_use: flows.tuple_in_use,
            skipped: flows.skipped,
            late: flows.late,
            switched_off: flows.switched_off,
            no_flow: strays.no_flow,
            for_others: strays.for_others,
            impossible: strays.impossible,
            no_template: strays.no_template,
            no_match: strays.no_match,
            too_long: flows.too_long,
            flows_total: flows.flows_total,
            flows_other: flows.flows_other,
            fragments: strays.fragments,
            reassembled: strays.reassembled,
            fragments_incomplete: strays.fragments_incomplete,
            fragments_overlapping: strays.fragments_overlapping,
            fragments_no_room: strays.fragments_no_room,
            too_big: strays.too_big,
            unreachable_heard: strays.unreachable,
            unreachable_sent: strays.unreachable_sent,
            time_exceeded_sent: strays.time_exceeded_sent,
            damaged: strays.damaged,
            other_protocol: strays.other_protocol,
        }
    }
}

fn counters(statistics: &Statistics) -> BTreeMap<&'static str, u64> {
    let sum = |place| Statistic::new(place).map(|it| statistics.get(it));
    let named = ["A", "B", "C", "D"].into_iter().enumerate();
    named.filter_map(|(place, name)| Some((name, sum(place)?))).collect()
}

impl TemplateReport {
    /// `all`: what is told of those who are told of all.
    fn of(owner: &Owner, tally: &Tally, all: Option<(FlowSeries, Remaining)>) -> Self {
        let is_all = all.is_some();
        let (series, remaining) = all.unwrap_or_default();
        let mut flows: BTreeMap<_, _> =
            tally.flows.iter().map(|(name, _, value)| (name, value)).collect();
        if is_all {
            flows.insert("syn_sent", remaining.syn_sent);
            flows.insert("unfinished", remaining.unfinished);
        }
        Self {
            name: owner.name.clone(),
            group: owner.group.clone(),
            side: owner.side,
            flows,
            series,
            tcp: tally.tcp.iter().map(|(name, _, value)| (name, value)).collect(),
            udp: tally.udp.iter().map(|(name, _, value)| (name, value)).collect(),
            counters: counters(&tally.statistics),
            times: if is_all { TimesReport::of(&tally.times) } else { TimesReport::default() },
            stamped: tally.stamped.as_ref().map(|it| StampedReport::of(it, is_all)),
            transactions: match is_all {
                true => owner.told.transactions(&tally.findings),
                false => Default::default(),
            },
            failures: owner.told.failures(&tally.findings),
            tls: (is_all && owner.has_tls).then(|| TlsReport::of(tally.sessions.clone())),
            http1: (is_all && owner.has_http1).then(|| Http1Report::of(tally.findings.messages())),
            http2: (is_all && owner.has_http2).then(|| Http2Report::of(&tally.sessions)),
        }
    }
}

impl TemplateReport {
    /// Adds what another one of its side tells; both tell of the same time.
    pub(super) fn add(&mut self, other: &Self) {
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

/// Adds counts of the same names.
fn add_counts(sums: &mut BTreeMap<&'static str, u64>, counted: &BTreeMap<&'static str, u64>) {
    for (&name, count) in counted {
        *sums.entry(name).or_default() += count;
    }
}

impl TimesReport {
    fn of(times: &Times) -> Self {
        Self {
            connect: HistogramReport::new(&times.connect),
            first_byte: HistogramReport::new(&times.first_byte),
            whole: HistogramReport::new(&times.whole),
            round_trip: HistogramReport::new(&times.round_trip),
        }
    }

    /// Adds what others took.
    fn add(&mut self, other: &Self) {
        let Self { connect, first_byte, whole, round_trip } = other;
        self.connect.add(connect);
        self.first_byte.add(first_byte);
        self.whole.add(whole);
        self.round_trip.add(round_trip);
    }
}

/// What a port's worker came back with.
pub(super) struct Ended {
    pub(super) endpoint: Endpoint,
    pub(super) watch: FlowWatch,
    pub(super) choice: Choice,
    pub(super) impairment: Option<ImpairmentCounters>,
    pub(super) tunnels: Option<TunnelsReport>,
    pub(super) transmitted: TransmitCounters,
    pub(super) received: ReceiveCounters,
    /// How often its interface was down, and how long.
    pub(super) outages: u64,
    pub(super) down: Duration,
    pub(super) cpu: CpuTime,
    pub(super) error: Option<String>,
    /// Next hops that were elsewhere later.
    pub(super) moved: Moved,
}

impl Ended {
    /// What it has counted.
    pub(super) fn counted(&self) -> Counted<'_> {
        Counted {
            endpoint: &self.endpoint,
            watch: &self.watch,
            choice: &self.choice,
            impairment: self.impairment,
            tunnels: self.tunnels,
            transmitted: self.transmitted,
            received: self.received,
            outages: self.outages,
            down: self.down,
            cpu: self.cpu,
        }
    }
}

/// CPU time that a port took.
#[derive(Clone, Copy, Default)]
pub(super) struct CpuTime {
    pub(super) worker: Duration,
    /// Of a program that takes frames in.
    pub(super) ingress: Option<Duration>,
}

/// What a port's worker has counted.
pub(super) struct Counted<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) watch: &'a FlowWatch,
    pub(super) choice: &'a Choice,
    pub(super) impairment: Option<ImpairmentCounters>,
    pub(super) tunnels: Option<TunnelsReport>,
    pub(super) transmitted: TransmitCounters,
    pub(super) received: ReceiveCounters,
    pub(super) outages: u64,
    pub(super) down: Duration,
    pub(super) cpu: CpuTime,
}

impl Counted<'_> {
    /// The messages of HTTP/1.1 of all templates that follow them, where there are any. What
    /// programs hear of HTTP/2 has the form of HTTP/1.1, and is none.
    fn http1(&self, owners: &[Owner]) -> Option<Http1Report> {
        let following = owners.iter().enumerate().filter(|(_, owner)| owner.has_http1);
        let messages = following
            .filter_map(|(place, _)| Some(*self.endpoint.tally(place)?.findings.messages()));
        let sum = messages.reduce(|mut sum, it| {
            sum.merge(&it);
            sum
        });
        sum.as_ref().map(Http1Report::of)
    }

    /// `owners`: of the endpoint's templates. What is left out for want of `detail` is empty.
    pub(super) fn report(
        &self,
        name: &str,
        interface: &str,
        owners: &[Owner],
        detail: Detail,
    ) -> PortReport {
        let is_all = detail == Detail::All;
        let told = if detail == Detail::Port { &[] } else { owners };
        // It takes a look at every flow.
        let remaining = if is_all { self.endpoint.remaining() } else { Vec::new() };
        let templates = told.iter().enumerate().filter_map(|(place, owner)| {
            let remaining = remaining.get(place).copied().unwrap_or_default();
            let all = is_all.then(|| (self.watch.timeline.of_template(place), remaining));
            Some(TemplateReport::of(owner, self.endpoint.tally(place)?, all))
        });
        let has_tls = is_all && owners.iter().any(|owner| owner.has_tls);
        let has_http2 = is_all && owners.iter().any(|owner| owner.has_http2);
        PortReport {
            name: name.to_owned(),
            interface: interface.to_owned(),
            backend: self.choice.backend,
            why: self.choice.why.clone(),
            flows: FlowsReport::of(self.endpoint, &remaining),
            series: if is_all { self.watch.timeline.of_all() } else { FlowSeries::default() },
            templates: templates.collect(),
            followed: match detail {
                Detail::Port => Vec::new(),
                Detail::Templates | Detail::All => self.watch.flows(owners),
            },
            tcp: self.endpoint.tcp().iter().map(|(name, _, value)| (name, value)).collect(),
            udp: self.endpoint.udp().iter().map(|(name, _, value)| (name, value)).collect(),
            counters: counters(&self.endpoint.statistics()),
            times: match is_all {
                true => TimesReport::of(&self.endpoint.times()),
                false => TimesReport::default(),
            },
            tls: has_tls.then(|| TlsReport::of(self.endpoint.sessions())),
            http1: is_all.then(|| self.http1(owners)).flatten(),
            http2: has_http2.then(|| Http2Report::of(&self.endpoint.sessions())),
            impairment: self.impairment.as_ref().map(ImpairmentReport::of),
            tunnels: self.tunnels,
            sent: self.transmitted.sent,
            sent_bytes: self.transmitted.sent_bytes,
            failed: self.transmitted.failed,
            unsent: self.transmitted.unsent,
            outages: self.outages,
            down_s: self.down.as_secs_f64(),
            received: self.received.received,
            received_bytes: self.received.received_bytes,
            missed: self.received.missed,
            cpu_s: self.cpu.worker.as_secs_f64(),
            ingress_cpu_s: self.cpu.ingress.map(|it| it.as_secs_f64()),
        }
    }
}
