//! The metrics: name, unit, type, help, and the counter that each one reads.
//!
//! Names follow <https://prometheus.io/docs/practices/naming/>: base units, `_total` for counters.

use wirestorm_control::result::Kind;
use wirestorm_control::{FlowSnapshot, PortSnapshot, Snapshot};

/// A metric family, with the function that reads its value from the object that it is about.
pub(super) struct Family<Of> {
    /// Name without prefix, unit and `_total`.
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) metric_type: Type,
    pub(super) help: &'static str,
    /// Kind of the runs that have the metric; `None` for all.
    kind: Option<Kind>,
    /// `None` if the object has no such value.
    pub(super) value: fn(&Of) -> Option<Value>,
}

/// Unit, which ends the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A number of the things that the name has.
    None,
    Bytes,
    Seconds,
    /// A part of a whole, 0 to 1.
    Ratio,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Info,
}

/// Value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Count(u64),
    Real(f64),
}

impl<Of> Family<Of> {
    /// Returns whether runs of this kind have the metric.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|only| only == kind)
    }

    const fn new(
        metric_type: Type,
        (name, unit): (&'static str, Unit),
        help: &'static str,
        value: fn(&Of) -> Option<Value>,
    ) -> Self {
        Self { name, unit, metric_type, help, kind: None, value }
    }

    const fn counter(
        name: &'static str,
        help: &'static str,
        value: fn(&Of) -> Option<Value>,
    ) -> Self {
        Self::new(Type::Counter, (name, Unit::None), help, value)
    }

    const fn bytes(
        name: &'static str,
        help: &'static str,
        value: fn(&Of) -> Option<Value>,
    ) -> Self {
        Self::new(Type::Counter, (name, Unit::Bytes), help, value)
    }

    const fn gauge(
        name: (&'static str, Unit),
        help: &'static str,
        value: fn(&Of) -> Option<Value>,
    ) -> Self {
        Self::new(Type::Gauge, name, help, value)
    }

    /// Restricts the family to runs of a kind.
    const fn only(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }
}

const fn count(value: u64) -> Option<Value> {
    Some(Value::Count(value))
}

type Run = Family<Snapshot>;
type Port = Family<PortSnapshot>;
type Flow = Family<FlowSnapshot>;

/// Families whose values do not come from a snapshot.
pub(super) const BUILD: Family<()> =
    Family::new(Type::Info, ("build", Unit::None), "Version of Wirestorm.", |()| None);
pub(super) const RUNS_OMITTED: Family<()> = Family::counter(
    "runs_omitted",
    "Runs without metrics because too many others are active.",
    |()| None,
);
pub(super) const STATE: Family<()> = Family::gauge(
    ("run_state", Unit::None),
    "State of the run: 1 for the current state, 0 for the others.",
    |()| None,
);
pub(super) const FLOWS_OMITTED: Family<()> = Family::gauge(
    ("run_flows_omitted", Unit::None),
    "Flows without metrics because there are too many.",
    |()| None,
);

/// Families of a run.
pub(super) const RUN_FAMILIES: &[Run] = &[
    Run::gauge(("run_elapsed", Unit::Seconds), "Time since the start of the run.", |run| {
        Some(Value::Real(run.elapsed.as_secs_f64()))
    }),
    Run::gauge(
        ("run_completed", Unit::Ratio),
        "Completed part of the run, 0 to 1, if its end is known.",
        |run| run.fraction.map(|part| Value::Real(part.clamp(0.0, 1.0))),
    ),
    Run::new(
        Type::Counter,
        ("run_worker_cpu", Unit::Seconds),
        "CPU time of the worker threads, without kernel threads.",
        |run| Some(Value::Real(run.worker_time.as_secs_f64())),
    ),
    Run::counter("replay_passes", "Completed passes over the captures.", |run| {
        count(run.replay.passes)
    })
    .only(Kind::Replay),
    Run::counter("replay_flows", "Flows started, restarts after the expiry included.", |run| {
        count(run.replay.flows)
    })
    .only(Kind::Replay),
    Run::counter(
        "replay_underruns",
        "Times that a worker had nothing to send because reading the captures was too slow.",
        |run| count(run.replay.underruns),
    )
    .only(Kind::Replay),
];

/// Families of a port.
pub(super) const PORT_FAMILIES: &[Port] = &[
    Port::counter("port_sent_frames", "Frames sent.", |port| count(port.transmitted.sent)),
    Port::bytes("port_sent", "Bytes of the frames sent, without FCS.", |port| {
        count(port.transmitted.sent_bytes)
    }),
    Port::counter("port_failed_frames", "Frames that the interface rejected.", |port| {
        count(port.transmitted.failed)
    }),
    Port::counter("port_unsent_frames", "Frames dropped because they were too late.", |port| {
        count(port.transmitted.unsent)
    }),
    Port::counter(
        "port_send_retries",
        "Send attempts repeated because a queue was full or the interface was busy.",
        |port| {
            let tx = &port.transmitted;
            count(tx.retried_no_buffers + tx.retried_again)
        },
    ),
    Port::counter("port_received_frames", "Frames received.", |port| count(port.received.received)),
    Port::bytes("port_received", "Bytes of the frames received, without FCS.", |port| {
        count(port.received.received_bytes)
    }),
    Port::counter(
        "port_receive_dropped_frames",
        "Frames that arrived and were dropped because the port had no buffer.",
        |port| count(port.received.rx_dropped),
    ),
    Port::counter("connections_established", "Connections established.", |port| {
        count(port.connections.established)
    })
    .only(Kind::Emulation),
    Port::gauge(("connections_active", Unit::None), "Open connections.", |port| {
        count(port.connections.active)
    })
    .only(Kind::Emulation),
    Port::counter(
        "connections_failed",
        "Connections that ended without a close by both sides.",
        |port| count(port.connections.failed),
    )
    .only(Kind::Emulation),
    Port::bytes("connections_sent", "Payload bytes sent, without retransmissions.", |port| {
        count(port.connections.sent_bytes)
    })
    .only(Kind::Emulation),
    Port::bytes("connections_received", "Payload bytes received in sequence.", |port| {
        count(port.connections.received_bytes)
    })
    .only(Kind::Emulation),
    Port::counter("connections_retransmitted_segments", "Retransmitted data segments.", |port| {
        count(port.connections.retransmitted)
    })
    .only(Kind::Emulation),
    Port::counter("impairment_entered_frames", "Frames that entered the link.", |port| {
        port.impairment.map(|link| Value::Count(link.entered))
    }),
    Port::bytes("impairment_entered", "Bytes that entered the link, without FCS.", |port| {
        port.impairment.map(|link| Value::Count(link.entered_bytes))
    }),
    Port::counter("impairment_delivered_frames", "Frames that left the link.", |port| {
        port.impairment.map(|link| Value::Count(link.delivered))
    }),
    Port::bytes("impairment_delivered", "Bytes that left the link, without FCS.", |port| {
        port.impairment.map(|link| Value::Count(link.delivered_bytes))
    }),
    Port::counter("impairment_lost_frames", "Frames lost at random.", |port| {
        port.impairment.map(|link| Value::Count(link.lost))
    }),
    Port::counter("impairment_duplicated_frames", "Duplicates created.", |port| {
        port.impairment.map(|link| Value::Count(link.duplicated))
    }),
    Port::counter("impairment_corrupted_frames", "Frames with a flipped bit.", |port| {
        port.impairment.map(|link| Value::Count(link.corrupted))
    }),
    Port::counter("impairment_reordered_frames", "Frames that later ones overtook.", |port| {
        port.impairment.map(|link| Value::Count(link.reordered))
    }),
    Port::counter("impairment_queue_dropped_frames", "Frames that met a full queue.", |port| {
        port.impairment.map(|link| Value::Count(link.queue_dropped))
    }),
    Port::counter(
        "impairment_buffer_dropped_frames",
        "Frames that met a full delay buffer: the link differs from its configuration.",
        |port| port.impairment.map(|link| Value::Count(link.delay_buffer_full)),
    ),
];

/// Families of a flow of a plan of streams. Only measured flows have received ones.
pub(super) const FLOW_FAMILIES: &[Flow] = &[
    Flow::counter("flow_sent_frames", "Frames sent.", |flow| count(flow.sent.frames)),
    Flow::bytes("flow_sent", "Bytes of the frames sent, without FCS.", |flow| {
        count(flow.sent.bytes)
    }),
    Flow::counter("flow_unsent_frames", "Frames skipped because they were late.", |flow| {
        count(flow.sent.unsent)
    }),
    Flow::counter("flow_received_frames", "Distinct frames received.", |flow| {
        flow.received.map(|received| Value::Count(received.frames))
    }),
    Flow::bytes("flow_received", "Bytes received without FCS, duplicates included.", |flow| {
        flow.received.map(|received| Value::Count(received.bytes))
    }),
    Flow::counter("flow_duplicated_frames", "Duplicates received.", |flow| {
        flow.received.map(|received| Value::Count(received.duplicated))
    }),
    Flow::counter("flow_reordered_frames", "Frames received after one sent later.", |flow| {
        flow.received.map(|received| Value::Count(received.reordered))
    }),
    Flow::gauge(
        ("flow_delay_mean", Unit::Seconds),
        "Mean delay of the frames since the start of the run.",
        |flow| Some(Value::Real(flow.received?.delay_mean_ns? / 1e9)),
    ),
];
