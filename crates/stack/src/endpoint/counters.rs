//! Counters of an endpoint.

use alloc::boxed::Box;

use super::times::{StampedTimes, Times};
use crate::content::SessionCounters;
use crate::program::{ProgramResults, Statistics};
use crate::tcp::connection::EndReason;
use crate::tcp::counters::{TcpCounters, counters};

counters! {
    /// Outcomes of flows: TCP connections and UDP flows.
    FlowCounters {
        offered: "flows that the load requested",
        started: "flows started",
        active: "open flows",
        waiting: "flows in TIME-WAIT",
        active_max: "maximum concurrent flows",
        closed: "connections that both sides closed, and flows of UDP whose program ended",
        refused: "SYNs answered by a reset, and UDP flows to closed ports",
        unreachable: "flows ended by ICMP unreachable",
        reset: "connections reset by the peer later",
        reset_after_close: "connections closed by the peer, then reset when data was sent",
        syn_timeout: "connections whose SYN was never answered",
        retransmission_timeout: "connections ended by retransmission timeout",
        keepalive_timeout: "connections ended by keepalive",
        aborted: "connections reset by their own program",
        expected_resets: "connections reset by the peer's program on purpose",
        session_failed: "connections whose session failed, such as TLS or HTTP/2",
        program_failed: "flows whose program failed, such as an `expect`",
        idle_timeout: "UDP flows ended by the idle timeout",
        flow_table_full: "flows not started or accepted: too many exist",
        no_free_tuple: "flows not started: no free source port",
        skipped: "flows not started because of `concurrent_max`",
        late: "flows not started within a second, or before the end",
        clients_disabled: "flows not started: all clients switched off",
        flows_total: "flows that programs started or accepted",
        flows_other: "flows that programs started or accepted, of another template",
        too_long: "segments that did not fit a frame, not sent",
        reconnected: "connections opened after a close between two requests",
        reset_at_end: "connections open at the end and reset",
        left_open: "connections open at the end and not reset in time",
    }
}

impl FlowCounters {
    /// Number of failed flows. A reset that a program executes is no failure.
    pub const fn failed(&self) -> u64 {
        self.refused
            + self.unreachable
            + self.reset
            + self.reset_after_close
            + self.syn_timeout
            + self.retransmission_timeout
            + self.keepalive_timeout
            + self.session_failed
            + self.program_failed
            + self.idle_timeout
    }

    /// Number of flows for a load that holds flows. One in TIME-WAIT is over for its program.
    pub(super) const fn held(&self) -> u64 {
        self.active - self.waiting
    }

    pub(super) const fn note_begin(&mut self) {
        self.active += 1;
        if self.active > self.active_max {
            self.active_max = self.active;
        }
    }

    /// Returns the counter of connections that ended for a reason.
    pub(super) const fn of(&mut self, end: EndReason) -> &mut u64 {
        match end {
            EndReason::Closed => &mut self.closed,
            EndReason::Refused => &mut self.refused,
            EndReason::Unreachable => &mut self.unreachable,
            EndReason::Reset => &mut self.reset,
            EndReason::ResetAfterClose => &mut self.reset_after_close,
            EndReason::Unanswered => &mut self.syn_timeout,
            EndReason::TimedOut => &mut self.retransmission_timeout,
            EndReason::KeepaliveTimeout => &mut self.keepalive_timeout,
            EndReason::Aborted => &mut self.aborted,
        }
    }
}

counters! {
    /// UDP counters; TRex's names have the prefix `udps_`.
    UdpCounters {
        accepts: "flows accepted",
        connects: "flows started",
        closed: "flows ended, drops included",
        sndbyte: "bytes of data sent",
        sndpkt: "datagrams sent",
        rcvbyte: "bytes of data received",
        rcvpkt: "datagrams received",
        keepdrops: "flows ended by the idle timeout",
        pkt_toobig: "datagrams too long for a packet, not sent",
        fragmented: "datagrams sent in fragments",
    }
}

counters! {
    /// Counters of packets that belong to no flow.
    UnmatchedCounters {
        no_flow: "segments and datagrams of no flow",
        no_template: "SYNs to closed ports",
        foreign_mac: "segments and datagrams of no flow to foreign or group MACs",
        martian: "segments and datagrams with invalid addresses, or from UDP port 0",
        no_match: "connections whose first bytes match no server",
        fragments: "fragments received",
        reassembled: "packets reassembled",
        fragments_incomplete: "packets with missing fragments, now or after 60 seconds",
        fragments_overlapping: "packets dropped because fragments overlapped",
        fragments_no_room: "fragmented packets dropped: too many were incomplete",
        too_big: "ICMP packet too big received",
        unreachable: "ICMP unreachable received",
        unreachable_sent: "ICMP port or protocol unreachable sent",
        time_exceeded_sent: "ICMP time exceeded (reassembly) sent",
        malformed: "damaged or truncated packets",
        other_protocol: "packets of other protocols, without ARP, neighbour discovery and pings",
    }
}

/// Counters and times of flows.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Outcomes of flows.
    pub flows: FlowCounters,
    /// TCP counters.
    pub tcp: TcpCounters,
    /// UDP counters.
    pub udp: UdpCounters,
    /// Statistics of programs.
    pub statistics: Statistics,
    /// Transactions, failures and messages of programs.
    pub findings: ProgramResults,
    /// Session counters.
    pub sessions: SessionCounters,
    /// Times of flows.
    pub times: Times,
    /// Times of datagrams, if the program stamps them.
    pub stamped: Option<Box<StampedTimes>>,
}

impl Tally {
    /// Bytes of data received.
    pub(super) const fn received(&self) -> u64 {
        self.tcp.rcvbyte + self.udp.rcvbyte
    }

    pub(super) fn new() -> Self {
        Self {
            flows: FlowCounters::default(),
            tcp: TcpCounters::default(),
            udp: UdpCounters::default(),
            statistics: Statistics::default(),
            findings: ProgramResults::default(),
            sessions: SessionCounters::default(),
            times: Times::new(),
            stamped: None,
        }
    }
}
