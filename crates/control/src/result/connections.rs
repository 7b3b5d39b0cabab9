//! Connections of clients and servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistogramReport, Http1Report, Http2Report, Label, TlsReport};

/// Connections of a port's clients and servers, and their UDP flows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConnectionsReport {
    /// What became of them, and of packets without one.
    pub flows: FlowCountsReport,
    /// What became of them over time.
    pub series: FlowSeries,
    /// Those that were sampled.
    pub sampled_flows: Vec<SampledFlow>,
    /// TCP counters, by BSD's names: TRex's are the same with `tcps_` before them.
    pub tcp: BTreeMap<Label, u64>,
    /// UDP counters, by TRex's names without `udps_` before them.
    pub udp: BTreeMap<Label, u64>,
    /// Counters of programs, A to D: TRex's `user_counter_A` and so on.
    pub counters: BTreeMap<Label, u64>,
    /// How long connections took.
    pub times: TimesReport,
    /// TLS, where any of them have it.
    pub tls: Option<TlsReport>,
    /// Messages of HTTP/1.1, where any of their programs parse them.
    pub http1: Option<Http1Report>,
    /// HTTP/2, where any of them have it.
    pub http2: Option<Http2Report>,
}

/// Connections of a port, and flows of UDP.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowCountsReport {
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
    /// Connections that the peer closed, and reset when it got more: after an idle timeout, for
    /// example.
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

/// How long connections took, from when SYN was to be sent, or arrived.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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

/// A flow that was followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SampledFlow {
    /// The name of its template.
    pub template: String,
    /// `client` or `server`.
    pub side: Label,
    /// `tcp` or `udp`.
    pub transport: Label,
    /// Our address and port.
    pub own: String,
    /// The peer's.
    pub peer: String,
    /// When it began, in seconds from the start of the run.
    pub began_s: f64,
    /// Whether it is over: gone, or in TIME-WAIT.
    pub ended: bool,
    /// Its connection when it began, at the end of each interval in which it was there, and when it
    /// was over; nothing of UDP.
    pub samples: Vec<FlowSample>,
}

/// A connection at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSample {
    /// When, in seconds from the start of the run.
    pub at_s: f64,
    /// Its state, as RFC 9293 names it.
    pub state: Label,
    /// The longest data of a segment, in bytes.
    pub mss: u16,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// Where slow start ends, in bytes; none before the first loss.
    pub ssthresh: Option<u32>,
    /// What the peer has room for, in bytes.
    pub send_window: u32,
    /// What we have room for, in bytes.
    pub receive_window: u32,
    /// By how many bits the peer's windows are shifted; none where windows are not scaled.
    pub send_scale: Option<u8>,
    /// By how many bits ours are.
    pub receive_scale: Option<u8>,
    /// Whether timestamps were agreed upon.
    pub timestamps: bool,
    /// Whether losses are told by SACK.
    pub sack: bool,
    /// Whether ECN was agreed upon.
    pub ecn: bool,
    /// How long ago the peer was heard, in milliseconds; none where keepalive is off and there are
    /// no timestamps.
    pub silent_ms: Option<u32>,
    /// Bytes that the program has handed over and that are not acknowledged.
    pub backlog: u32,
    /// Those of them that were never sent.
    pub unsent: u32,
    /// The smoothed round-trip time in microseconds; none before the first was measured.
    pub rtt_us: Option<u32>,
    /// How much round trips vary, in microseconds.
    pub rttvar_us: Option<u32>,
    /// The least round-trip time in microseconds.
    pub rtt_min_us: Option<u32>,
    /// The retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Segments with data sent again. Of those within a millisecond, or 10 us for each flow that is
    /// followed where that is more, 255 are told at most.
    pub retransmitted: u64,
    /// Segments with data that arrived beyond a hole, of which as many are told at most.
    pub out_of_order: u64,
    /// Bytes that were acknowledged.
    pub acknowledged_bytes: u64,
    /// Bytes that were received in sequence.
    pub received_bytes: u64,
}

/// What happened to flows over time, in intervals of equal length from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSeries {
    /// How long each interval is, in seconds.
    pub interval_s: f64,
    /// How long the last one is, in which the run ended: up to a tenth longer than the others,
    /// with what would be too short to have rates of its own.
    pub last_s: f64,
    /// Flows that began in each.
    pub opened: Vec<u64>,
    /// Flows at the end of each, those in TIME-WAIT not counted.
    pub held: Vec<u64>,
    /// Flows that ended in each as they should, those included whose programs reset them. One that
    /// was in TIME-WAIT ends with that, and is no more among those held before.
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

impl FlowSeries {
    /// Adds what others did in the same intervals, as all ports of a run have them.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            interval_s: _,
            last_s: _,
            opened,
            held,
            closed,
            failed,
            sent_bytes,
            acknowledged_bytes,
            // Follow from the bytes.
            sent_goodput_bps: _,
            received_bytes,
            goodput_bps: _,
        } = other;
        let mine = [
            (&mut self.opened, opened),
            (&mut self.held, held),
            (&mut self.closed, closed),
            (&mut self.failed, failed),
            (&mut self.sent_bytes, sent_bytes),
            (&mut self.acknowledged_bytes, acknowledged_bytes),
            (&mut self.received_bytes, received_bytes),
        ];
        for (mine, theirs) in mine {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(sum, count)| *sum += count);
        }
        self.sent_goodput_bps = self.rates(&self.acknowledged_bytes);
        self.goodput_bps = self.rates(&self.received_bytes);
    }

    /// Bytes of each interval in bits a second.
    pub(crate) fn rates(&self, of_each: &[u64]) -> Vec<f64> {
        let rate = |(place, bytes): (usize, &u64)| {
            let is_last = place + 1 == of_each.len();
            let seconds = if is_last { self.last_s } else { self.interval_s };
            *bytes as f64 * 8.0 / seconds.max(1e-9)
        };
        of_each.iter().enumerate().map(rate).collect()
    }
}

impl TimesReport {
    /// Adds what others took.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { connect, first_byte, whole, round_trip } = other;
        self.connect.add(connect);
        self.first_byte.add(first_byte);
        self.whole.add(whole);
        self.round_trip.add(round_trip);
    }
}
