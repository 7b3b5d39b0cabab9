//! What an endpoint counts.

use alloc::boxed::Box;

use super::times::{StampedTimes, Times};
use crate::content::SessionCounters;
use crate::program::{Findings, Statistics};
use crate::tcp::connection::End;
use crate::tcp::counters::{TcpCounters, counters};

counters! {
    /// What became of flows: connections of TCP, and flows of UDP.
    FlowCounters {
        offered: "flows that the load has asked for",
        made: "flows that were made",
        active: "flows now",
        waiting: "those of them that are in TIME-WAIT",
        active_max: "the most at once",
        closed: "connections that both sides closed, and flows of UDP whose program ended",
        refused: "connections that the peer reset in answer to SYN, and flows to ports where it has nobody",
        unreachable: "flows of which a router or a host said that no way leads to the peer",
        reset: "connections that the peer reset later",
        reset_after_close: "connections that the peer closed, and reset as more was sent to it",
        unanswered: "connections of which SYN was never answered",
        timed_out: "connections of which nothing was acknowledged any more",
        keepalive_timeout: "connections whose peer did not answer keepalive probes",
        aborted: "connections reset by the program",
        expected_resets: "connections that the peer reset, as the program expects",
        session_failed: "connections whose session failed, that of TLS say",
        program_failed: "flows whose program failed: something else came than it expects",
        idle: "flows of UDP that were dropped for want of traffic",
        overflow: "flows that could not be made or taken for there were too many",
        tuple_in_use: "flows that could not be made for no free port was found",
        skipped: "flows that were due while as many were there as may be at once",
        late: "flows that were due and not made, for there was no time for them within a second, or the end came",
        switched_off: "flows that were due while all clients were switched off",
        flows_total: "flows that programs of these have asked for, and that were made",
        flows_other: "those of them that are of another template",
        too_long: "segments that did not fit a frame, and were not sent",
        reconnected: "connections that replaced one that the server had closed between two requests",
        reset_at_end: "connections that were open when the run ended, and were reset",
        left_open: "connections that were open when the run ended, and could not be reset in time",
    }
}

impl FlowCounters {
    /// Flows that ended otherwise than they should. A reset that a program says is none of them.
    pub const fn failed(&self) -> u64 {
        self.refused
            + self.unreachable
            + self.reset
            + self.reset_after_close
            + self.unanswered
            + self.timed_out
            + self.keepalive_timeout
            + self.session_failed
            + self.program_failed
            + self.idle
    }

    /// Flows that a load which holds some counts: one in TIME-WAIT is over for its program.
    pub(super) const fn held(&self) -> u64 {
        self.active - self.waiting
    }

    pub(super) const fn note_begin(&mut self) {
        self.active += 1;
        if self.active > self.active_max {
            self.active_max = self.active;
        }
    }

    /// Where connections are counted that ended for a reason.
    pub(super) const fn of(&mut self, end: End) -> &mut u64 {
        match end {
            End::Closed => &mut self.closed,
            End::Refused => &mut self.refused,
            End::Unreachable => &mut self.unreachable,
            End::Reset => &mut self.reset,
            End::ResetAfterClose => &mut self.reset_after_close,
            End::Unanswered => &mut self.unanswered,
            End::TimedOut => &mut self.timed_out,
            End::KeepaliveTimeout => &mut self.keepalive_timeout,
            End::Aborted => &mut self.aborted,
        }
    }
}

counters! {
    /// What was counted of UDP; TRex's names are these with `udps_` before them.
    UdpCounters {
        accepts: "flows that a peer began",
        connects: "flows that were begun",
        closed: "flows that ended, drops included",
        sndbyte: "bytes of data sent",
        sndpkt: "datagrams sent",
        rcvbyte: "bytes of data received",
        rcvpkt: "datagrams received",
        keepdrops: "flows dropped for want of traffic",
        pkt_toobig: "datagrams that are too long for a packet, and were not sent",
        fragmented: "datagrams sent in fragments",
    }
}

counters! {
    /// What belonged to no flow.
    StrayCounters {
        no_flow: "segments and datagrams of no flow",
        no_template: "SYNs to ports that nobody waits at",
        foreign_mac: "segments and datagrams of no flow to Ethernet addresses of others",
        martian: "segments and datagrams of no flow from or to addresses that no host has, or from port 0 of UDP",
        no_match: "connections to a port of which no server waits for their first bytes",
        fragments: "fragments of packets",
        reassembled: "packets that were put together out of fragments",
        fragments_incomplete: "packets of which fragments are missing, or were for 60 seconds",
        fragments_overlapping: "packets whose fragments overlapped, and that were passed over",
        fragments_no_room: "packets in fragments that were given up as too many were incomplete",
        too_big: "messages of routers that a packet was too long for the next link",
        unreachable: "messages that a peer, or who waits at a port of it, cannot be reached",
        unreachable_sent: "messages to peers that nobody waits at a port of ours, or speaks a protocol",
        time_exceeded_sent: "messages to peers that not all fragments of a packet came in time",
        damaged: "packets that were damaged or cut short",
        other_protocol: "packets of other protocols; ARP, neighbour discovery and pings are none",
    }
}

/// What was counted of flows.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What became of them.
    pub flows: FlowCounters,
    /// TCP counters.
    pub tcp: TcpCounters,
    /// UDP counters.
    pub udp: UdpCounters,
    /// What programs counted.
    pub statistics: Statistics,
    /// What programs found.
    pub findings: Findings,
    /// What became of sessions.
    pub sessions: SessionCounters,
    /// How long they took.
    pub times: Times,
    /// How long their datagrams took, where these have their time of departure with them.
    pub stamped: Option<Box<StampedTimes>>,
}

impl Tally {
    /// Bytes of data that were received.
    pub(super) const fn received(&self) -> u64 {
        self.tcp.rcvbyte + self.udp.rcvbyte
    }

    pub(super) fn new() -> Self {
        Self {
            flows: FlowCounters::default(),
            tcp: TcpCounters::default(),
            udp: UdpCounters::default(),
            statistics: Statistics::default(),
            findings: Findings::default(),
            sessions: SessionCounters::default(),
            times: Times::new(),
            stamped: None,
        }
    }
}
