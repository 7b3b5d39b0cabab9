//! The envelope of a result: what ran, what was asked for, what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DeviceRun, FlowReport, GroupReport, HostFacts, Label, LatencyReport, PortReport,
    TransmitReport, Verdict,
};

/// The name and version of the document's form.
pub const SCHEMA: &str = "wirestorm.result/2";

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunResult {
    /// The name and version of this document's form.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: Label,
    /// The version of Wirestorm that ran.
    pub version: Label,
    /// The kind of the run.
    pub kind: Kind,
    /// Which clock the run followed.
    pub clock: ClockKind,
    /// The plan's file, or the captures that were replayed.
    pub plan: Vec<String>,
    /// Whether the run did what was asked for, and if not, why.
    pub verdict: Verdict,
    /// Target of the run.
    pub target: Target,
    /// What was sent, all ports together.
    pub achieved: Achieved,
    /// When the run began, and how long it took.
    pub times: Times,
    /// The machine that ran it.
    pub host: HostFacts,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
    /// Errors; results measured before them are valid.
    pub errors: Vec<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Each port that sent or received.
    pub ports: Vec<PortReport>,
    /// Each flow of a plan of streams, in the plan's order.
    pub flows: Vec<FlowReport>,
    /// Sums of the templates of each group over all ports.
    pub groups: Vec<GroupReport>,
    /// Round-trip times that the plan's probes measured.
    pub latency: Vec<LatencyReport>,
    /// Each start of the devices of a pktgen script, in order.
    pub device_runs: Vec<DeviceRun>,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Captures are replayed.
    #[default]
    Replay,
    /// The flows of a plan of streams are sent.
    Streams,
    /// Clients and servers are emulated.
    Emulation,
    /// Two interfaces are joined by an impaired link.
    Impair,
    /// A pktgen script runs.
    Pktgen,
}

impl Kind {
    /// Its name in results and APIs.
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

/// The clock that a run follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The machine's own.
    #[default]
    Real,
    /// A simulation's: time passes as fast as it is computed.
    Virtual,
}

/// What was asked for; null is "not".
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Target {
    /// What sets the pace of a replay: nothing, the capture's own timing, frames or bits a second.
    #[schemars(extend("enum" = ["topspeed", "capture", "pps", "bps", null]))]
    pub pace: Option<Label>,
    /// Speed-up of the capture's own timing, or of the plan's rates.
    pub multiplier: Option<f64>,
    /// Frames per second.
    pub pps: Option<f64>,
    /// Bits a second.
    pub bps: Option<f64>,
    /// What `bps` counts: `frames`, `l2` or `l1`.
    pub bps_layer: Option<Label>,
    /// Stop after N frames.
    pub packets: Option<u64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Number of loops.
    pub passes: Option<u64>,
    /// Where random numbers come from.
    pub seed: Option<u64>,
    /// How far a rate may be off before the run falls short of its target, in millionths.
    pub tolerance_ppm: f64,
}

/// What was sent, all ports together.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Achieved {
    /// What left.
    #[serde(flatten)]
    pub tx: TransmitReport,
    /// How far the rate was from the target, in millionths, pauses not counted; null where there
    /// is no target for all ports together.
    pub rate_error_ppm: Option<f64>,
    /// Passes over the captures that were completed; null of other runs than replays.
    pub passes: Option<u64>,
    /// Packets of the captures that a filter kept back; null of other runs than replays.
    pub filtered: Option<u64>,
    /// Times that a worker found nothing read yet; null of other runs than replays.
    pub underruns: Option<u64>,
}

/// When a run began, and how long it took.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Times {
    /// The start, in nanoseconds since the Unix epoch; null in virtual time.
    pub started_unix_ns: Option<u64>,
    /// From the first departure to the last, in seconds: rates are those of the intervals between
    /// departures over this time. Of emulated clients and servers, from the start until the last
    /// port ended.
    pub elapsed_s: f64,
    /// The part of it in which nothing was to be sent: pauses between passes, and while the run
    /// was paused.
    pub paused_s: f64,
    /// Of emulated clients and servers, from the start until no more connections were to be made:
    /// limits were reached, and the interval of the last one was over, which may be later than the
    /// end; or the duration was over. Without clients, until the last one came. In seconds.
    pub load_s: Option<f64>,
}
