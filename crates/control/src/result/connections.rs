//! Reports on connections of emulated clients and servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::{TcpCounts, UdpCounts};
use super::{HistogramReport, Http1Report, Http2Report, Label, TlsReport};

/// Connections of a port's clients and servers, and their UDP flows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConnectionsReport {
    /// Flow counts by outcome, and counts of packets without a flow.
    pub flows: FlowCountsReport,
    /// Time series.
    pub series: FlowSeries,
    /// Sampled flows.
    pub sampled_flows: Vec<SampledFlow>,
    /// TCP counters by BSD name. TRex uses the same names with the prefix `tcps_`.
    #[schemars(with = "TcpCounts")]
    pub tcp: BTreeMap<Label, u64>,
    /// UDP counters by TRex name, without the prefix `udps_`.
    #[schemars(with = "UdpCounts")]
    pub udp: BTreeMap<Label, u64>,
    /// Program counters A to D (`user_counter_A` to `user_counter_D` in TRex).
    pub counters: BTreeMap<Label, u64>,
    /// Connection times.
    pub times: TimesReport,
    /// TLS statistics; null without TLS.
    pub tls: Option<TlsReport>,
    /// HTTP/1.1 statistics; null if no program parses HTTP/1.1.
    pub http1: Option<Http1Report>,
    /// HTTP/2 statistics; null without HTTP/2.
    pub http2: Option<Http2Report>,
}

/// Counts of TCP connections and UDP flows of a port.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowCountsReport {
    /// Open flows at the end: the sum of `syn_sent`, `time_wait` and `unfinished`.
    pub active: u64,
    /// Connections in SYN-SENT.
    pub syn_sent: u64,
    /// Connections in TIME-WAIT.
    pub time_wait: u64,
    /// Connections in TIME-WAIT whose program or TLS failed.
    pub time_wait_failed: u64,
    /// Established flows that have not finished.
    pub unfinished: u64,
    /// Maximum concurrent flows, including TIME-WAIT.
    pub active_max: u64,
    /// Connections closed by both sides, and UDP flows whose program ended.
    pub closed: u64,
    /// Flows that failed: the sum of the ten counters below.
    pub failed: u64,
    /// Connections refused (RST in answer to SYN) and UDP flows to closed ports.
    pub refused: u64,
    /// Flows ended by ICMP unreachable.
    pub unreachable: u64,
    /// Connections reset by the peer.
    pub reset: u64,
    /// Connections that the peer closed and then reset when it received more data.
    pub reset_after_close: u64,
    /// Connections without an answer to SYN before the timeout.
    pub syn_timeout: u64,
    /// Connections ended by the retransmission timeout.
    pub retransmission_timeout: u64,
    /// Connections ended by the keepalive timeout.
    pub keepalive_timeout: u64,
    /// Connections whose TLS or HTTP/2 session failed.
    pub session_failed: u64,
    /// Flows whose program failed: received data did not match.
    pub program_failed: u64,
    /// UDP flows ended by the idle timeout.
    pub idle_timeout: u64,
    /// Connections reset by the local program.
    pub aborted: u64,
    /// Connections reset by the peer as the program expects.
    pub expected_resets: u64,
    /// Connections that replace one which the server closed between two requests.
    pub reconnected: u64,
    /// Connections that were open at the end of the run and that Wirestorm reset.
    pub reset_at_end: u64,
    /// Connections that were open at the end of the run and could not be reset in time.
    pub left_open: u64,
    /// Flows rejected because the flow table was full.
    pub flow_table_full: u64,
    /// Flows not started: no free address and port.
    pub no_free_tuple: u64,
    /// Flows skipped because `concurrent_max` was reached.
    pub skipped: u64,
    /// Flows not started within 1 s of their due time, or before the end.
    pub late: u64,
    /// Flows skipped because all clients were disabled.
    pub clients_disabled: u64,
    /// Segments and datagrams without a flow.
    pub no_flow: u64,
    /// Unmatched packets to a foreign MAC address; not answered.
    pub foreign_mac: u64,
    /// Unmatched packets with martian addresses or UDP port 0; not answered.
    pub martian: u64,
    /// SYNs to ports without a listener.
    pub no_template: u64,
    /// Connections whose first bytes match no server.
    pub no_match: u64,
    /// Segments not sent because they exceed the maximum frame length.
    pub too_long: u64,
    /// Child flows that programs started.
    pub flows_total: u64,
    /// Child flows of another template.
    pub flows_other: u64,
    /// IP fragments received.
    pub fragments: u64,
    /// Packets reassembled.
    pub reassembled: u64,
    /// Reassembly timeouts (60 s, or end of the run).
    pub fragments_incomplete: u64,
    /// Packets dropped because fragments overlap (RFC 5722).
    pub fragments_overlapping: u64,
    /// Packets dropped because the reassembly buffer was full.
    pub fragments_no_room: u64,
    /// ICMP Packet Too Big received.
    pub too_big: u64,
    /// ICMP destination unreachable received.
    pub unreachable_received: u64,
    /// ICMP port or protocol unreachable sent, at most 1,000 per second.
    pub unreachable_sent: u64,
    /// ICMP reassembly time exceeded sent.
    pub time_exceeded_sent: u64,
    /// Malformed or truncated packets.
    pub malformed: u64,
    /// Packets of unsupported IP protocols (not ARP, ND or ICMP echo).
    pub other_protocol: u64,
}

/// Connection times. Each time starts when the SYN is due (client) or arrives (server).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TimesReport {
    /// Time to establish the connection.
    pub connect: HistogramReport,
    /// Time to the first payload byte.
    pub time_to_first_byte: HistogramReport,
    /// Connection duration, without TIME-WAIT.
    pub duration: HistogramReport,
    /// TCP round-trip time samples.
    pub round_trip: HistogramReport,
}

/// State samples of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SampledFlow {
    /// Name of the template.
    pub template: String,
    /// `client` or `server`.
    pub side: Label,
    /// `tcp` or `udp`.
    pub transport: Label,
    /// Local address and port.
    pub local: String,
    /// Remote address and port.
    pub remote: String,
    /// Start time in seconds since the start of the run.
    pub start_s: f64,
    /// Whether the flow is closed or in TIME-WAIT.
    pub ended: bool,
    /// State at the start, at the end of each interval and at the close; empty for UDP.
    pub samples: Vec<FlowSample>,
}

/// State of a flow at one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSample {
    /// Time in seconds since the start of the run.
    pub at_s: f64,
    /// TCP state (RFC 9293).
    pub state: Label,
    /// Maximum segment size in bytes.
    pub mss: u16,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow start threshold in bytes; null before the first loss.
    pub ssthresh: Option<u32>,
    /// Send window in bytes.
    pub send_window: u32,
    /// Receive window in bytes.
    pub receive_window: u32,
    /// Send window scale; null without window scaling.
    pub send_window_scale: Option<u8>,
    /// Receive window scale.
    pub receive_window_scale: Option<u8>,
    /// Whether TCP timestamps are in use.
    pub timestamps: bool,
    /// Whether SACK is in use (RFC 2018).
    pub sack: bool,
    /// Whether ECN is in use.
    pub ecn: bool,
    /// Time since the last received segment in milliseconds; null without keepalive and timestamps.
    pub idle_ms: Option<u32>,
    /// Unacknowledged bytes.
    pub bytes_in_flight: u32,
    /// Bytes not sent yet.
    pub unsent: u32,
    /// Smoothed RTT in microseconds; null before the first sample.
    pub rtt_us: Option<u32>,
    /// RTT variation in microseconds.
    pub rttvar_us: Option<u32>,
    /// Minimum RTT in microseconds.
    pub rtt_min_us: Option<u32>,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Retransmitted data segments, at most 255 per millisecond.
    pub retransmitted: u64,
    /// Out-of-order data segments received, at most 255 per millisecond.
    pub out_of_order: u64,
    /// Payload bytes acknowledged.
    pub acknowledged_bytes: u64,
    /// Payload bytes received in sequence.
    pub received_bytes: u64,
}

/// Time series of flow counts, in intervals of equal length from the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowSeries {
    /// Interval length in seconds.
    pub interval_s: f64,
    /// Length of the last interval in seconds.
    pub last_interval_s: f64,
    /// Flows started in each interval.
    pub opened: Vec<u64>,
    /// Concurrent flows at the end of each interval, without TIME-WAIT.
    pub concurrent: Vec<u64>,
    /// Flows closed in each interval, including resets by the program.
    pub closed: Vec<u64>,
    /// Flows failed in each interval.
    pub failed: Vec<u64>,
    /// Payload bytes sent in each interval, without retransmissions.
    pub sent_bytes: Vec<u64>,
    /// Payload bytes acknowledged in each interval (TCP).
    pub acknowledged_bytes: Vec<u64>,
    /// Transmit goodput in bit/s.
    pub sent_goodput_bps: Vec<f64>,
    /// Payload bytes received in sequence in each interval.
    pub received_bytes: Vec<u64>,
    /// Receive goodput in bit/s.
    pub goodput_bps: Vec<f64>,
}

impl FlowSeries {
    /// Adds the counts of `other`, interval by interval. All ports of a run use the same intervals.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            interval_s: _,
            last_interval_s: _,
            opened,
            concurrent: held,
            closed,
            failed,
            sent_bytes,
            acknowledged_bytes,
            // Computed below from the byte counts.
            sent_goodput_bps: _,
            received_bytes,
            goodput_bps: _,
        } = other;
        let mine = [
            (&mut self.opened, opened),
            (&mut self.concurrent, held),
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

    /// Converts the bytes of each interval to bit/s.
    pub(crate) fn rates(&self, of_each: &[u64]) -> Vec<f64> {
        let rate = |(place, bytes): (usize, &u64)| {
            let is_last = place + 1 == of_each.len();
            let seconds = if is_last { self.last_interval_s } else { self.interval_s };
            *bytes as f64 * 8.0 / seconds.max(1e-9)
        };
        of_each.iter().enumerate().map(rate).collect()
    }
}

impl TimesReport {
    /// Merges the times of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { connect, time_to_first_byte: first_byte, duration, round_trip } = other;
        self.connect.add(connect);
        self.time_to_first_byte.add(first_byte);
        self.duration.add(duration);
        self.round_trip.add(round_trip);
    }
}
