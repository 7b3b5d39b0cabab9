//! Report of a port from the counters of its worker.

use std::collections::BTreeMap;

use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;
use wirestorm_model::program::UserCounter;
use wirestorm_stack::content::{MessageCounters, SessionCounters};
use wirestorm_stack::endpoint::{Endpoint, Remaining, StampedTimes, Tally, Times};
use wirestorm_stack::program::Statistics;

use super::neighbour_changes::NeighbourChanges;
use super::owner::TemplateOwner;
use super::watch::FlowWatch;
use crate::backend::Choice;
use crate::lifecycle::Detail;
use crate::result::{
    Achieved, ConnectionsReport, FlowCountsReport, FlowSeries, HistogramReport, Http1Report,
    Http2Report, Label, PortReport, ReceiveReport, StampedReport, TemplateReport, TimesReport,
    TlsReport, TransmitReport, TunnelsReport,
};

/// Final state of a port's worker.
pub(in crate::emulation) struct WorkerOutcome {
    pub(in crate::emulation) endpoint: Endpoint,
    pub(in crate::emulation) watch: FlowWatch,
    pub(in crate::emulation) choice: Choice,
    pub(in crate::emulation) impairment: Option<ImpairmentCounters>,
    pub(in crate::emulation) tunnels: Option<TunnelsReport>,
    pub(in crate::emulation) transmitted: TransmitCounters,
    pub(in crate::emulation) received: ReceiveCounters,
    /// Number of outages of the interface, and their total time.
    pub(in crate::emulation) outages: u64,
    pub(in crate::emulation) down: Duration,
    /// Time since the start.
    pub(in crate::emulation) elapsed: Duration,
    pub(in crate::emulation) cpu: CpuTime,
    /// Message of the error that ended the run.
    pub(in crate::emulation) error: Option<String>,
    /// Changes of next hops' Ethernet addresses.
    pub(in crate::emulation) neighbour_changes: NeighbourChanges,
}

impl WorkerOutcome {
    /// Returns the final counters.
    pub(in crate::emulation) fn counted(&self) -> WorkerCounters<'_> {
        WorkerCounters {
            endpoint: &self.endpoint,
            watch: &self.watch,
            choice: &self.choice,
            impairment: self.impairment,
            tunnels: self.tunnels,
            transmitted: self.transmitted,
            received: self.received,
            outages: self.outages,
            down: self.down,
            elapsed: self.elapsed,
            cpu: self.cpu,
        }
    }
}

/// CPU time of a port.
#[derive(Clone, Copy, Default)]
pub(in crate::emulation) struct CpuTime {
    pub(in crate::emulation) worker: Duration,
    /// Receive time outside the worker thread; `None` if unknown.
    pub(in crate::emulation) ingress: Option<Duration>,
}

/// Counters of a port's worker, at the end or during a run.
pub(in crate::emulation) struct WorkerCounters<'a> {
    pub(in crate::emulation) endpoint: &'a Endpoint,
    pub(in crate::emulation) watch: &'a FlowWatch,
    pub(in crate::emulation) choice: &'a Choice,
    pub(in crate::emulation) impairment: Option<ImpairmentCounters>,
    pub(in crate::emulation) tunnels: Option<TunnelsReport>,
    pub(in crate::emulation) transmitted: TransmitCounters,
    pub(in crate::emulation) received: ReceiveCounters,
    pub(in crate::emulation) outages: u64,
    pub(in crate::emulation) down: Duration,
    /// Time since the start.
    pub(in crate::emulation) elapsed: Duration,
    pub(in crate::emulation) cpu: CpuTime,
}

impl WorkerCounters<'_> {
    /// Sums the HTTP/1.1 messages of all templates that receive them; `None` without such a
    /// template. HTTP/2 messages reach programs in HTTP/1.1 form, but do not count.
    fn http1(&self, owners: &[TemplateOwner]) -> Option<Http1Report> {
        let following = owners.iter().enumerate().filter(|(_, owner)| owner.has_http1);
        let messages = following
            .filter_map(|(place, _)| Some(*self.endpoint.tally(place)?.findings.messages()));
        let sum = messages.reduce(|mut sum, it| {
            sum.merge(&it);
            sum
        });
        sum.as_ref().map(http1)
    }

    /// Builds the report. `owners` has the owner of each template. Parts that `detail` excludes are
    /// empty.
    pub(in crate::emulation) fn report(
        &self,
        name: &str,
        interface: &str,
        owners: &[TemplateOwner],
        detail: Detail,
    ) -> PortReport {
        let is_all = detail == Detail::All;
        let templates = if detail == Detail::Port { &[] } else { owners };
        // This iterates over all flows.
        let remaining = if is_all { self.endpoint.remaining() } else { Vec::new() };
        let templates = templates.iter().enumerate().filter_map(|(place, owner)| {
            let remaining = remaining.get(place).copied().unwrap_or_default();
            let all = is_all.then(|| (self.watch.timeline.template_series(place), remaining));
            Some(template(owner, self.endpoint.tally(place)?, all))
        });
        let has_tls = is_all && owners.iter().any(|owner| owner.has_tls);
        let has_http2 = is_all && owners.iter().any(|owner| owner.has_http2);
        let transmitted = &self.transmitted;
        let connections = ConnectionsReport {
            flows: flow_counts(self.endpoint, &remaining),
            series: if is_all { self.watch.timeline.total_series() } else { FlowSeries::default() },
            sampled_flows: match detail {
                Detail::Port => Vec::new(),
                Detail::Templates | Detail::All => self.watch.flows(owners),
            },
            tcp: named(self.endpoint.tcp().iter()),
            udp: named(self.endpoint.udp().iter()),
            counters: counters(&self.endpoint.statistics()),
            times: match is_all {
                true => times(&self.endpoint.times()),
                false => TimesReport::default(),
            },
            tls: has_tls.then(|| tls(self.endpoint.sessions())),
            http1: is_all.then(|| self.http1(owners)).flatten(),
            http2: has_http2.then(|| http2(&self.endpoint.sessions())),
        };
        PortReport {
            name: name.to_owned(),
            interface: interface.to_owned(),
            backend: Some(self.choice.backend.name.into()),
            backend_reason: Some(self.choice.why.clone()),
            tx: Some(TransmitReport::over(transmitted, self.elapsed.as_secs_f64())),
            rx: Some(ReceiveReport {
                packets: self.received.received,
                bytes: self.received.received_bytes,
                dropped: self.received.rx_dropped,
                ..ReceiveReport::default()
            }),
            connections: Some(connections),
            templates: templates.collect(),
            impairment: self.impairment.as_ref().map(Into::into),
            tunnels: self.tunnels,
            outages: self.outages,
            down_s: self.down.as_secs_f64(),
            cpu_s: Some(self.cpu.worker.as_secs_f64()),
            ingress_cpu_s: self.cpu.ingress.map(|it| it.as_secs_f64()),
        }
    }
}

/// Sums the transmit counters of all ports.
pub(in crate::emulation) fn achieved(ports: &[PortReport], elapsed: Duration) -> Achieved {
    let mut sum = TransmitCounters::default();
    for tx in ports.iter().filter_map(|port| port.tx.as_ref()) {
        sum.sent += tx.packets;
        sum.sent_bytes += tx.bytes;
        sum.failed += tx.failed;
        sum.unsent += tx.unsent;
        sum.retried_no_buffers += tx.retried.no_buffers;
        sum.retried_again += tx.retried.busy;
    }
    Achieved { tx: TransmitReport::over(&sum, elapsed.as_secs_f64()), ..Achieved::default() }
}

/// Returns counters by name.
fn named<'a>(counters: impl Iterator<Item = (&'static str, &'a str, u64)>) -> BTreeMap<Label, u64> {
    counters.map(|(name, _, value)| (name.into(), value)).collect()
}

/// Builds the report of a template. `all` has the parts of a full report only.
fn template(
    owner: &TemplateOwner,
    tally: &Tally,
    all: Option<(FlowSeries, Remaining)>,
) -> TemplateReport {
    let is_all = all.is_some();
    let (series, remaining) = all.unwrap_or_default();
    let mut flows = named(tally.flows.iter());
    if is_all {
        flows.insert("syn_sent".into(), remaining.syn_sent);
        flows.insert("unfinished".into(), remaining.unfinished);
    }
    TemplateReport {
        name: owner.name.clone(),
        group: owner.group.clone(),
        side: owner.side.into(),
        flows,
        series,
        tcp: named(tally.tcp.iter()),
        udp: named(tally.udp.iter()),
        counters: counters(&tally.statistics),
        times: if is_all { times(&tally.times) } else { TimesReport::default() },
        datagram_latency: tally.stamped.as_ref().map(|it| stamped(it, is_all)),
        transactions: match is_all {
            true => owner.names.transactions(&tally.findings),
            false => Default::default(),
        },
        failures: owner.names.failures(&tally.findings),
        tls: (is_all && owner.has_tls).then(|| tls(tally.sessions.clone())),
        http1: (is_all && owner.has_http1).then(|| http1(tally.findings.messages())),
        http2: (is_all && owner.has_http2).then(|| http2(&tally.sessions)),
    }
}

fn flow_counts(endpoint: &Endpoint, remaining: &[Remaining]) -> FlowCountsReport {
    let (flows, unmatched) = (endpoint.counters(), endpoint.unmatched());
    FlowCountsReport {
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
        syn_timeout: flows.syn_timeout,
        retransmission_timeout: flows.retransmission_timeout,
        keepalive_timeout: flows.keepalive_timeout,
        session_failed: flows.session_failed,
        program_failed: flows.program_failed,
        idle_timeout: flows.idle_timeout,
        aborted: flows.aborted,
        expected_resets: flows.expected_resets,
        reconnected: flows.reconnected,
        reset_at_end: flows.reset_at_end,
        left_open: flows.left_open,
        flow_table_full: flows.flow_table_full,
        no_free_tuple: flows.no_free_tuple,
        skipped: flows.skipped,
        late: flows.late,
        clients_disabled: flows.clients_disabled,
        no_flow: unmatched.no_flow,
        foreign_mac: unmatched.foreign_mac,
        martian: unmatched.martian,
        no_template: unmatched.no_template,
        no_match: unmatched.no_match,
        too_long: flows.too_long,
        flows_total: flows.flows_total,
        flows_other: flows.flows_other,
        fragments: unmatched.fragments,
        reassembled: unmatched.reassembled,
        fragments_incomplete: unmatched.fragments_incomplete,
        fragments_overlapping: unmatched.fragments_overlapping,
        fragments_no_room: unmatched.fragments_no_room,
        too_big: unmatched.too_big,
        unreachable_received: unmatched.unreachable,
        unreachable_sent: unmatched.unreachable_sent,
        time_exceeded_sent: unmatched.time_exceeded_sent,
        malformed: unmatched.malformed,
        other_protocol: unmatched.other_protocol,
    }
}

fn stamped(stamped: &StampedTimes, is_all: bool) -> StampedReport {
    let datagrams = stamped.times.count();
    let micros = |it: Duration| it.as_nanos() / 1_000;
    StampedReport {
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

fn times(times: &Times) -> TimesReport {
    TimesReport {
        connect: HistogramReport::new(&times.connect),
        time_to_first_byte: HistogramReport::new(&times.time_to_first_byte),
        duration: HistogramReport::new(&times.duration),
        round_trip: HistogramReport::new(&times.round_trip),
    }
}

fn tls(sessions: SessionCounters) -> TlsReport {
    let SessionCounters {
        full_handshakes: full,
        resumed_handshakes: resumed,
        truncated,
        mut failures,
        handshake,
        ..
    } = sessions;
    failures.retain(|cause, _| !cause.starts_with(HTTP2_CAUSES));
    let failures = failures.into_iter().map(|(cause, times)| (cause.into(), times)).collect();
    TlsReport {
        full_handshakes: full,
        resumed_handshakes: resumed,
        truncated,
        failures,
        handshake: HistogramReport::new(&handshake),
    }
}

fn http1(messages: &MessageCounters) -> Http1Report {
    let MessageCounters { requests, missing, .. } = *messages;
    Http1Report { requests, responses: by_class(messages), missing }
}

fn http2(sessions: &SessionCounters) -> Http2Report {
    let messages = &sessions.messages;
    let causes = sessions.failures.iter();
    Http2Report {
        requests: messages.requests,
        responses: by_class(messages),
        resets: messages.resets,
        failures: causes
            .filter_map(|(cause, times)| Some((cause.strip_prefix(HTTP2_CAUSES)?.into(), *times)))
            .collect(),
    }
}

/// Returns the number of responses by status class.
fn by_class(messages: &MessageCounters) -> BTreeMap<Label, u64> {
    ["1xx", "2xx", "3xx", "4xx", "5xx"]
        .map(Label::from)
        .into_iter()
        .zip(messages.responses)
        .collect()
}

/// Returns the counters that programs count, `A` to `D`.
fn counters(statistics: &Statistics) -> BTreeMap<Label, u64> {
    let sum = |place| UserCounter::new(place).map(|it| statistics.get(it));
    let named = ["A", "B", "C", "D"].into_iter().enumerate();
    named.filter_map(|(place, name)| Some((name.into(), sum(place)?))).collect()
}

/// Prefix of the causes of HTTP/2 failures.
const HTTP2_CAUSES: &str = "http2: ";
