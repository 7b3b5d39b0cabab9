//! The envelope of a result: kind of run, target, achieved rates, verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Instant;
use wirestorm_io::clock::RealtimeOffset;

use super::{
    DeviceRun, FlowReport, GroupReport, HostFacts, Label, LatencyReport, PortReport,
    TransmitReport, Verdict,
};

/// Name and version of the document format.
pub const SCHEMA: &str = "wirestorm.result/2";

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunResult {
    /// Name and version of the document format.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: Label,
    /// Wirestorm version.
    pub version: Label,
    /// Kind of run.
    pub kind: Kind,
    /// Clock of the run.
    pub clock: ClockKind,
    /// Plan file, or the replayed captures.
    pub plan: Vec<String>,
    /// Whether the run met its target, with reasons if it did not.
    pub verdict: Verdict,
    /// Target of the run.
    pub target: Target,
    /// Transmit totals of all ports.
    pub achieved: Achieved,
    /// Start time and duration.
    pub times: Times,
    /// Machine that ran it.
    pub host: HostFacts,
    /// Whether the run was stopped early.
    pub interrupted: bool,
    /// Errors. Results measured before an error are valid.
    pub errors: Vec<String>,
    /// Notes about the run, such as an interface without carrier.
    pub notes: Vec<String>,
    /// Ports that sent or received.
    pub ports: Vec<PortReport>,
    /// Flows of a plan of streams, in plan order.
    pub flows: Vec<FlowReport>,
    /// Sums of the templates of each group over all ports.
    pub groups: Vec<GroupReport>,
    /// Round-trip times measured by the plan's probes.
    pub latency: Vec<LatencyReport>,
    /// Results of each `start` of a pktgen script, in order.
    pub device_runs: Vec<DeviceRun>,
}

impl RunResult {
    /// Returns the parts that all kinds of runs have, of a run that began at `start` on the
    /// monotonic clock; `None` in virtual time.
    pub(crate) fn begun(kind: Kind, start: Option<Instant>) -> Self {
        let started_unix_ns = start.map(|start| RealtimeOffset::read().to_realtime_nanos(start));
        Self {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            kind,
            times: Times { started_unix_ns, ..Times::default() },
            host: HostFacts::read(),
            ..Self::default()
        }
    }
}

/// Kind of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Replay of captures.
    #[default]
    Replay,
    /// Flows of a plan of streams.
    Streams,
    /// Emulated clients and servers.
    Emulation,
    /// Impaired link between two interfaces.
    Impair,
    /// pktgen script.
    Pktgen,
}

impl Kind {
    /// Returns the name of the kind in results and APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Streams => "streams",
            Self::Emulation => "emulation",
            Self::Impair => "impair",
            Self::Pktgen => "pktgen",
        }
    }
}

/// Clock that a run follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// Clock of the machine.
    #[default]
    Real,
    /// Virtual clock of a simulation.
    Virtual,
}

/// Target of a run. A null field means that the run has no such target.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Target {
    /// Pace of a replay: top speed, capture timing, a frame rate or a bit rate.
    #[schemars(extend("enum" = ["topspeed", "capture", "pps", "bps", null]))]
    pub pace: Option<Label>,
    /// Multiplier of the capture timing or of the plan's rates.
    pub multiplier: Option<f64>,
    /// Frames per second.
    pub pps: Option<f64>,
    /// Bit rate in bit/s.
    pub bps: Option<f64>,
    /// Layer of `bps`: `frames`, `l2` or `l1`.
    pub bps_layer: Option<Label>,
    /// Stop after N frames.
    pub packets: Option<u64>,
    /// Maximum duration in seconds.
    pub duration_s: Option<f64>,
    /// Number of passes over the captures.
    pub passes: Option<u64>,
    /// Seed of the random number generator.
    pub seed: Option<u64>,
    /// Maximum relative rate error in parts per million.
    pub tolerance_ppm: f64,
}

/// Transmit totals of all ports.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Achieved {
    /// Transmit counters and rates.
    #[serde(flatten)]
    pub tx: TransmitReport,
    /// Relative rate error in parts per million, without pauses; null without a common target for
    /// all ports.
    pub rate_error_ppm: Option<f64>,
    /// Completed passes over the captures; null unless the run is a replay.
    pub passes: Option<u64>,
    /// Captured packets dropped by a filter; null unless the run is a replay.
    pub filtered: Option<u64>,
    /// Times that a worker waited for the reader; null unless the run is a replay.
    pub underruns: Option<u64>,
    /// Frames of a capture that the in-kernel sender sent without work of the process; null with other
    /// backends, and unless the run is a replay.
    pub made_in_kernel: Option<u64>,
    /// Why the process gave the frames to the in-kernel sender one by one; null if it did not.
    pub made_by_process: Option<String>,
}

/// Start time and duration of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Times {
    /// Start time in nanoseconds since the Unix epoch; null in virtual time.
    pub started_unix_ns: Option<u64>,
    /// Time from the first to the last departure, in seconds. Rates count the intervals between
    /// departures over this time. In emulation runs: time from the start until the last port ended.
    pub elapsed_s: f64,
    /// Time in seconds in which nothing was due: pauses between passes, and while the run was
    /// paused.
    pub paused_s: f64,
    /// Duration of the load in seconds (emulation runs). The load ends when the clients reach their
    /// limits and the last interval is over, or when the duration is over. A run without clients
    /// counts the time to the last new connection.
    pub load_duration_s: Option<f64>,
}
