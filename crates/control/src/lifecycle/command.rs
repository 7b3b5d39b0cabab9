//! Commands of a run.

use std::net::IpAddr;

use wirestorm_model::tunnel::ClientTunnels;

use super::flow_control::FlowCommand;
use super::load_control::{LoadControl, LoadFactor, TunnelChangeError};
use crate::result::Kind;

/// A command to a run. Workers execute it within 25 ms.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Stop as soon as possible. The result covers the run so far.
    Stop,
    /// Pause until [`Command::Resume`]. Schedules continue where they were.
    Pause,
    /// Continue after [`Command::Pause`].
    Resume,
    /// Change flows of a plan of streams.
    Flows {
        /// Indices of the flows in the plan.
        flows: Vec<usize>,
        /// Command to the flows.
        command: FlowCommand,
    },
    /// Start no more connections, as at the end of the duration.
    EndLoad,
    /// Multiply the loads of the plan: rates, numbers of concurrent flows, throughputs. A rate that
    /// would be out of range keeps its value.
    ScaleLoad(LoadFactor),
    /// Enable or disable clients by address range. A disabled client starts no connections; its
    /// open connections continue.
    Clients {
        /// First and last address of each range.
        ranges: Vec<(IpAddr, IpAddr)>,
        /// Whether to enable the clients.
        on: bool,
    },
    /// Change the tunnels of clients.
    Tunnels(Vec<ClientTunnels>),
    /// End the reception of flows from ports on other machines, once as many frames have arrived as
    /// those have sent, or no more arrive.
    SentElsewhere {
        /// Frames for each port of the plan, by index.
        frames: Vec<u64>,
    },
}

/// Error of a command. A failed command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The run has ended.
    #[error("the run is over ({state})")]
    Over {
        /// Final state of the run.
        state: &'static str,
    },
    /// Runs of this kind do not support the command.
    #[error("a run of kind {kind} has no command {command:?}; its commands are: {commands}")]
    Unsupported {
        /// Kind of the run.
        kind: &'static str,
        /// Name of the command.
        command: &'static str,
        /// Supported commands.
        commands: String,
    },
    /// The plan has no such flow.
    #[error("found flow number {found}, expected less than {flows} (flows of the plan)")]
    NoFlow {
        /// Index in the command.
        found: usize,
        /// Number of flows in the plan.
        flows: usize,
    },
    /// The run is not prepared yet.
    #[error("the run is not prepared: wait until it is")]
    NotPrepared,
    /// Frames are too long for the interface.
    #[error("found frames of {length} bytes, expected at most {length_max} (MTU of the interface)")]
    LongFrames {
        /// Length in bytes, without FCS.
        length: usize,
        /// Maximum length.
        length_max: usize,
    },
    /// The disabled clients would form too many ranges.
    #[error(
        "disabled clients would form more than {most} ranges: use larger ranges",
        most = LoadControl::RANGES_MAX
    )]
    TooManyRanges,
    /// The tunnels cannot be changed.
    #[error(transparent)]
    Tunnels(#[from] TunnelChangeError),
}

impl Command {
    /// Returns the name of the command in APIs and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Flows { .. } => "flows",
            Self::EndLoad => "end_load",
            Self::ScaleLoad(_) => "scale_load",
            Self::Clients { .. } => "clients",
            Self::Tunnels(_) => "tunnels",
            Self::SentElsewhere { .. } => "sent_elsewhere",
        }
    }

    /// Returns the names of the commands that runs of a kind support.
    pub const fn of_kind(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Replay => &["stop", "pause", "resume"],
            Kind::Streams => &["stop", "pause", "resume", "flows", "sent_elsewhere"],
            Kind::Emulation => {
                &["stop", "pause", "resume", "end_load", "scale_load", "clients", "tunnels"]
            }
            Kind::Pktgen => &["stop", "pause", "resume"],
            Kind::Impair => &["stop"],
        }
    }
}
