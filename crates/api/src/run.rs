//! Runs on a server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Request for a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// What to run.
    pub plan: PlanSource,
    /// Name of the run in the history.
    #[serde(default)]
    pub name: Option<String>,
    /// Port of the server, or interface, for each port of the plan that names none, or another one.
    #[serde(default)]
    pub ports: BTreeMap<String, String>,
    /// Options.
    #[serde(default)]
    pub options: RunOptions,
    /// Uploaded captures by the file names in the plan, if the names differ.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Start of the run.
    #[serde(default)]
    pub start: StartRequest,
    /// What happens to the run when the lease of one of its ports ends.
    #[serde(default)]
    pub when_lease_ends: WhenLeaseEnds,
    /// Whether other shared runs of the same user may use the same ports at the same time.
    #[serde(default)]
    pub shared: bool,
    /// Command line, for the history; empty if there is none.
    #[serde(default)]
    pub command: Vec<String>,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PlanSource {
    /// Text of a plan in YAML or JSON.
    Text(String),
    /// A plan as a JSON document.
    Document(Value),
    /// Name of a stored plan.
    Stored(String),
    /// Streams of TRex for each port of the server, by port number.
    TrexStreams(BTreeMap<String, TrexStreams>),
    /// A stateful profile of TRex as a JSON document.
    TrexProfile(TrexProfile),
    /// Captures to replay.
    Replay(Box<ReplayRequest>),
}

/// Streams of TRex on a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrexStreams {
    /// Port of the server, or interface.
    pub interface: String,
    /// List of streams, as TRex's client writes them; null for a port that only receives.
    #[serde(default)]
    pub streams: Option<Value>,
}

/// A stateful profile of TRex.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrexProfile {
    /// The profile as TRex's client writes it.
    pub profile: Value,
    /// Whether clients and servers use IPv6.
    #[serde(default)]
    pub ipv6: bool,
}

/// Captures to replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayRequest {
    /// Names of uploaded captures, in the order of sending.
    pub captures: Vec<String>,
    /// Port of the server, or interface, that sends.
    pub port: String,
    /// Port or interface for the packets of servers; null to send all on `port`.
    pub second_port: Option<String>,
    /// Assignment of packets to ports, as `--split` of `wirestorm replay` takes it. Needed with a
    /// `second_port`.
    pub split: Option<String>,
    /// Port or interface where the frames should arrive; null to receive nothing.
    pub rx: Option<String>,
    /// Rate: `10kpps`, `1G-l1` (with preamble and gap), `1G-l2` (with FCS), `x2` (twice the speed of
    /// the capture) or `max`; null for the timing of the capture.
    pub rate: Option<String>,
    /// Number of passes; 0 for no end; null for one.
    pub passes: Option<u64>,
    /// Maximum number of frames.
    pub packets: Option<u64>,
    /// Whether each pass has its own IP addresses.
    pub unique_ip: bool,
    /// Edits by the names of the flags of `wirestorm replay` without the leading dashes, such as
    /// `{"enet-dmac": "02:00:00:00:00:01", "ttl": "64"}`; null for none.
    pub edits: Value,
    /// Whether to read all captures before the first frame leaves.
    pub preload: bool,
}

/// Options of a run. Times are texts with a unit, such as `30s`. An option that is null has the
/// default of the command line; one that the kind of run does not have is an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptions {
    /// Maximum duration.
    pub duration: Option<String>,
    /// Factor, such as `2`, or total load of a port, such as `50%` or `10kpps`. Clients take only a
    /// factor.
    pub multiplier: Option<String>,
    /// Backend that sends and receives frames; `auto` by default.
    pub backend: Option<String>,
    /// Number of sending threads.
    pub workers: Option<u16>,
    /// Late frames: `bounded:MS`, `bounded:unlimited`, `strict:MS` or `stretch`.
    pub catch_up: Option<String>,
    /// Send even on the interface of the default route.
    pub force_interface: Option<bool>,
    /// Count received frames of measured flows for each VLAN.
    pub per_vlan: Option<bool>,
    /// Allowed rate error in percent.
    pub tolerance: Option<f64>,
    /// Clients: time for open connections to finish after the duration.
    pub drain_timeout: Option<String>,
    /// Clients: longest time that an interface may be down.
    pub link_down_timeout: Option<String>,
    /// Clients: maximum receive delay under load.
    pub rx_coalesce: Option<String>,
    /// Clients: interval of the time series in the result.
    pub interval: Option<String>,
    /// Clients: maximum number of concurrent connections on each port.
    pub flows_max: Option<u32>,
    /// Clients: seed of random numbers.
    pub seed: Option<u64>,
    /// Clients: verify checksums on virtual interfaces with AF_XDP too.
    pub verify_checksums: Option<bool>,
}

/// Start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartRequest {
    /// As soon as it is prepared.
    #[default]
    Now,
    /// By the command `start`.
    OnCommand,
    /// At a time in nanoseconds since the Unix epoch.
    AtUnixNs(u64),
}

/// What happens to a run when the lease of one of its ports ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenLeaseEnds {
    /// The run continues.
    #[default]
    Continue,
    /// The run stops.
    Stop,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Opening files and ports, resolving neighbours.
    Preparing,
    /// Everything is open; nothing was sent.
    Prepared,
    /// Waiting for the start time.
    Armed,
    /// Sending.
    Running,
    /// Sending nothing new; waiting for the last arrivals or for open connections.
    Draining,
    /// Ended normally.
    Finished,
    /// Failed to start, or ended by an error.
    Failed,
    /// Stopped early.
    Interrupted,
    /// The process that executed the run ended before the run did.
    Died,
}

impl RunState {
    /// Returns whether the state is final.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Interrupted | Self::Died)
    }
}

impl From<wirestorm_control::RunState> for RunState {
    fn from(state: wirestorm_control::RunState) -> Self {
        use wirestorm_control::RunState as From;
        match state {
            From::Preparing => Self::Preparing,
            From::Prepared => Self::Prepared,
            From::Armed => Self::Armed,
            From::Running => Self::Running,
            From::Draining => Self::Draining,
            From::Finished => Self::Finished,
            From::Failed => Self::Failed,
            From::Interrupted => Self::Interrupted,
        }
    }
}

/// A run of the server, or of another program with the same run history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// ID, also in the run history.
    pub id: String,
    /// Name that the user gave; null without one.
    pub name: Option<String>,
    /// Kind: `streams`, `emulation`, `replay` and so on.
    pub kind: String,
    /// State.
    pub state: RunState,
    /// Whether the whole run is paused. Flows that are paused on their own do not count.
    pub is_paused: bool,
    /// Whether commands paused flows that the command `resume` without names continues. Flows that
    /// the plan starts paused do not count.
    pub has_paused_flows: bool,
    /// User who started it; null for a run of another program.
    pub user: Option<String>,
    /// Session of the user; empty for the default session.
    pub session: String,
    /// Interfaces.
    pub interfaces: Vec<String>,
    /// Time of the request in nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// End in nanoseconds since the Unix epoch; null until the end.
    pub ended_unix_ns: Option<u64>,
    /// Outcome of the verdict, such as `met`; null without a result.
    pub outcome: Option<String>,
    /// Error that ended the run, or a note during the preparation; null without one.
    pub message: Option<String>,
    /// Key figure of the result; null without a result.
    pub figure: Option<Figure>,
    /// Whether the run history holds the result, or will get it. `false` if it could not be written;
    /// the server keeps it in memory then and tries again.
    pub is_saved: bool,
}

/// A key figure of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Unit; empty without one.
    pub unit: String,
}

/// How a run was started.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RunOrigin {
    /// The plan as it was sent: that of a stored plan is its text at the start. Null if the history
    /// does not have it: replays of the command line, and streams or profiles of TRex above 1 MiB.
    pub plan: Option<PlanSource>,
    /// Name of the stored plan, or of the plan's file; null without one.
    pub plan_name: Option<String>,
    /// Uploaded captures by the file names in the plan, also those with the same name.
    pub files: BTreeMap<String, String>,
    /// Ports of the server, or interfaces, by the ports of the plan that the request bound.
    pub ports: BTreeMap<String, String>,
    /// Options; those of a run of the command line are in `command` alone.
    pub options: RunOptions,
    /// Start of the run.
    pub start: StartRequest,
    /// What happens to the run when the lease of one of its ports ends.
    pub when_lease_ends: WhenLeaseEnds,
    /// Whether other shared runs of the same user may use the same ports.
    pub shared: bool,
    /// Command line; empty if there is none.
    pub command: Vec<String>,
}

/// List of runs, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// Runs.
    pub runs: Vec<RunSummary>,
    /// Number of runs in the history, or of active runs in a list of those; also those that the
    /// list leaves out.
    pub total: usize,
    /// Value of `after` for the next, older runs; null if the list has the oldest one.
    pub next: Option<String>,
}

/// A command to a run. Workers follow within 25 ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandRequest {
    /// Start a prepared run.
    Start {
        /// Time in nanoseconds since the Unix epoch; null: as soon as it is prepared.
        #[serde(default)]
        at_unix_ns: Option<u64>,
    },
    /// Stop the run. Its result covers what was sent so far.
    Stop,
    /// Pause the run, or flows of a plan of streams.
    Pause {
        /// Names of the flows; null for the whole run.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Continue the run, or flows of a plan of streams.
    Resume {
        /// Names of the flows; null for the whole run with all flows that commands paused. A flow
        /// that the plan starts paused continues by its name alone, unless a command paused it too.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Set the rate of flows of a plan of streams.
    Rate {
        /// Rate of each flow, such as `10kpps` or `1gbpsl1`.
        rate: String,
        /// Names of the flows; null for all.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Multiply the rates of the plan, or the loads of clients.
    Scale {
        /// Factor of the rates in the plan, such as `0.5`.
        factor: String,
        /// Names of the flows; null for all. Clients take no names.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Set the load as the multiplier of a start does: flows get the rates that they would have if
    /// the run had started with it. Flows at maximum speed keep it.
    Load {
        /// Factor of the rates in the plan, such as `2`, or total load of each port, such as `50%`
        /// (of the line rate), `10kpps`, `1gbps` (frames with FCS) or `1gbpsl1` (with preamble and
        /// gap). Clients take only a factor.
        load: String,
        /// Names of the flows that change; null for all. Clients take no names.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Start flows of a plan of streams, whether they have ended or never started.
    StartFlows {
        /// Names of the flows; null for all.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Stop flows of a plan of streams.
    StopFlows {
        /// Names of the flows; null for all.
        #[serde(default)]
        flows: Option<Vec<String>>,
    },
    /// Start no more connections, as at the end of the duration.
    EndLoad,
    /// Enable or disable clients by address.
    Clients {
        /// First and last address of each range.
        ranges: Vec<(String, String)>,
        /// Whether to enable the clients.
        on: bool,
    },
}
