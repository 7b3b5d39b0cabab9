//! Live counters of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestorm_control::base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_control::base::time::Duration;
use wirestorm_control::{
    ConnectionSnapshot, FlowSnapshot, MeasuredSnapshot, PortSnapshot, Snapshot,
};

use crate::delays::FlowDelays;
use crate::run::RunState;

/// Live counters of a run: totals since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// State of the run.
    pub state: RunState,
    /// Whether the whole run is paused.
    pub is_paused: bool,
    /// During preparation: what the run waits for, or a note; null otherwise.
    pub waiting_for: Option<String>,
    /// Time since the start in nanoseconds.
    pub elapsed_ns: u64,
    /// Completed part of the run, 0 to 1; null if its end is unknown.
    pub fraction: Option<f64>,
    /// Ports, in plan order.
    pub ports: Vec<PortProgress>,
    /// Flows of a plan of streams, in plan order.
    pub flows: Vec<FlowProgress>,
    /// Round-trip times of latency probes.
    pub latency: Vec<LatencyProgress>,
    /// CPU time of all workers in nanoseconds, without kernel threads.
    pub worker_time_ns: u64,
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PortProgress {
    /// Name in the plan.
    pub name: String,
    /// Interface.
    pub interface: String,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Frames that the interface rejected.
    pub tx_failed: u64,
    /// Frames dropped because they were too late.
    pub tx_unsent: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Frames that arrived but were dropped because the port had no buffer.
    pub rx_dropped: u64,
    /// Connections of clients and servers.
    pub connections: ConnectionProgress,
}

/// Connections of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionProgress {
    /// Connections established so far.
    pub established: u64,
    /// Open connections.
    pub active: u64,
    /// Connections that ended without a close by both sides.
    pub failed: u64,
    /// Payload bytes sent, without retransmissions.
    pub tx_bytes: u64,
    /// Payload bytes received in sequence.
    pub rx_bytes: u64,
    /// Retransmitted data segments.
    pub retransmitted: u64,
}

/// Counters of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowProgress {
    /// Name in the plan.
    pub name: Arc<str>,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Frames skipped because they were late.
    pub tx_unsent: u64,
    /// Number of starts.
    pub starts: u32,
    /// Whether the flow is paused on its own. The pause of the whole run does not count.
    pub is_paused: bool,
    /// Counters of the receivers; null for a flow that is not measured.
    pub received: Option<FlowReceived>,
    /// Percentiles and histogram of the delays, if the request asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<FlowDelays>,
}

/// Counters of the receivers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowReceived {
    /// Distinct frames received.
    pub frames: u64,
    /// Bytes received without FCS, duplicates included.
    pub bytes: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Mean delay in nanoseconds; null without timestamps.
    pub delay_mean_ns: Option<f64>,
    /// Shortest delay in nanoseconds; null without timestamps.
    pub delay_min_ns: Option<i64>,
    /// Longest delay in nanoseconds; null without timestamps.
    pub delay_max_ns: Option<i64>,
    /// Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); null without timestamps, and
    /// for flows without sequence numbers.
    pub jitter_ns: Option<u64>,
}

/// Round-trip times of the probes from a port to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyProgress {
    /// Source port.
    pub port: String,
    /// Destination address.
    pub target: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// Mean round-trip time in nanoseconds; null without an answer.
    pub mean_ns: Option<f64>,
    /// Longest round-trip time in nanoseconds; null without an answer.
    pub max_ns: Option<i64>,
}

impl Progress {
    /// Creates the counters of a run without a snapshot.
    pub const fn in_state(state: RunState) -> Self {
        Self {
            state,
            is_paused: false,
            waiting_for: None,
            elapsed_ns: 0,
            fraction: None,
            ports: Vec::new(),
            flows: Vec::new(),
            latency: Vec::new(),
            worker_time_ns: 0,
        }
    }

    /// Converts a snapshot of a run in a state, one that is not paused. `with_flows`: whether to
    /// include the flows.
    pub fn new(snapshot: &Snapshot, state: RunState, with_flows: bool) -> Self {
        let flows = if with_flows { snapshot.flows.as_slice() } else { &[] };
        Self {
            state,
            is_paused: false,
            waiting_for: snapshot.waiting_for.clone(),
            elapsed_ns: snapshot.elapsed.as_nanos(),
            fraction: snapshot.fraction,
            ports: snapshot.ports.iter().map(PortProgress::from).collect(),
            flows: flows.iter().map(FlowProgress::from).collect(),
            latency: snapshot.latency.iter().map(LatencyProgress::from).collect(),
            worker_time_ns: snapshot.worker_time.as_nanos(),
        }
    }

    /// Converts back to a snapshot, for views of runs that show snapshots. It lacks what
    /// [`Progress`] does not have, such as impairments and sampled flows.
    pub fn snapshot(&self) -> Snapshot {
        let ports: Vec<PortSnapshot> = self.ports.iter().map(PortSnapshot::from).collect();
        let mut transmitted = TransmitCounters::default();
        for port in &ports {
            transmitted.merge(&port.transmitted);
        }
        Snapshot {
            waiting_for: self.waiting_for.clone(),
            elapsed: Duration::from_nanos(self.elapsed_ns),
            fraction: self.fraction,
            transmitted,
            ports,
            flows: self.flows.iter().map(FlowSnapshot::from).collect(),
            worker_time: Duration::from_nanos(self.worker_time_ns),
            ..Snapshot::default()
        }
    }
}

impl From<&PortSnapshot> for PortProgress {
    fn from(port: &PortSnapshot) -> Self {
        let (transmitted, received) = (&port.transmitted, &port.received);
        let connections = &port.connections;
        Self {
            name: port.name.clone(),
            interface: port.interface.clone(),
            tx_frames: transmitted.sent,
            tx_bytes: transmitted.sent_bytes,
            tx_failed: transmitted.failed,
            tx_unsent: transmitted.unsent,
            rx_frames: received.received,
            rx_bytes: received.received_bytes,
            rx_dropped: received.rx_dropped,
            connections: ConnectionProgress {
                established: connections.established,
                active: connections.active,
                failed: connections.failed,
                tx_bytes: connections.sent_bytes,
                rx_bytes: connections.received_bytes,
                retransmitted: connections.retransmitted,
            },
        }
    }
}

impl From<&PortProgress> for PortSnapshot {
    fn from(port: &PortProgress) -> Self {
        let connections = &port.connections;
        Self {
            name: port.name.clone(),
            interface: port.interface.clone(),
            transmitted: TransmitCounters {
                sent: port.tx_frames,
                sent_bytes: port.tx_bytes,
                failed: port.tx_failed,
                unsent: port.tx_unsent,
                ..TransmitCounters::default()
            },
            received: ReceiveCounters {
                received: port.rx_frames,
                received_bytes: port.rx_bytes,
                rx_dropped: port.rx_dropped,
            },
            connections: ConnectionSnapshot {
                established: connections.established,
                active: connections.active,
                failed: connections.failed,
                sent_bytes: connections.tx_bytes,
                received_bytes: connections.rx_bytes,
                retransmitted: connections.retransmitted,
            },
            ..Self::default()
        }
    }
}

impl From<&FlowSnapshot> for FlowProgress {
    fn from(flow: &FlowSnapshot) -> Self {
        let received = flow.received.map(|received| FlowReceived {
            frames: received.frames,
            bytes: received.bytes,
            duplicated: received.duplicated,
            reordered: received.reordered,
            delay_mean_ns: received.delay_mean_ns,
            delay_min_ns: received.delay_min_ns,
            delay_max_ns: received.delay_max_ns,
            jitter_ns: received.jitter_ns,
        });
        Self {
            name: Arc::clone(&flow.name),
            tx_frames: flow.sent.frames,
            tx_bytes: flow.sent.bytes,
            tx_unsent: flow.sent.unsent,
            starts: flow.sent.starts,
            is_paused: flow.is_paused,
            received,
            delays: None,
        }
    }
}

impl From<&FlowProgress> for FlowSnapshot {
    fn from(flow: &FlowProgress) -> Self {
        let received = flow.received.map(|received| MeasuredSnapshot {
            frames: received.frames,
            bytes: received.bytes,
            duplicated: received.duplicated,
            reordered: received.reordered,
            delay_mean_ns: received.delay_mean_ns,
            delay_min_ns: received.delay_min_ns,
            delay_max_ns: received.delay_max_ns,
            jitter_ns: received.jitter_ns,
            arrivals: None,
        });
        let mut snapshot = Self { name: Arc::clone(&flow.name), received, ..Self::default() };
        snapshot.is_paused = flow.is_paused;
        let sent = &mut snapshot.sent;
        (sent.frames, sent.bytes) = (flow.tx_frames, flow.tx_bytes);
        (sent.unsent, sent.starts) = (flow.tx_unsent, flow.starts);
        snapshot
    }
}

impl From<&wirestorm_control::result::LatencyReport> for LatencyProgress {
    fn from(report: &wirestorm_control::result::LatencyReport) -> Self {
        Self {
            port: report.port.clone(),
            target: report.target.clone(),
            sent: report.sent,
            received: report.received,
            mean_ns: report.round_trip.mean_ns,
            max_ns: report.round_trip.max_ns,
        }
    }
}
