//! Commands to a run.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use wirestorm_model::tunnel::ClientTunnels;

use super::flow_control::FlowCommand;
use super::load_control::{LoadControl, LoadFactor, TunnelChangeError};
use super::state::Supervised;
use crate::result::Kind;

/// A command to a run. It returns at once; workers follow within 25 ms.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// End as soon as possible; the result is that of the run so far.
    Stop,
    /// Send nothing until [`Command::Resume`]. Schedules go on from where they were.
    Pause,
    /// Go on after [`Command::Pause`].
    Resume,
    /// Change flows of a plan of streams, by their places in the plan.
    Flows {
        /// The flows.
        flows: Vec<usize>,
        /// What they are to do.
        command: FlowCommand,
    },
    /// Make no more connections, as at the end of the duration.
    EndLoad,
    /// Multiply the loads that the plan has: rates, numbers of flows held, throughputs. A rate that
    /// becomes too small or too great for its type stays as it is.
    ScaleLoad(LoadFactor),
    /// Switch clients on or off by their first and last addresses: a client that is off makes no
    /// connections, and those that it has go on.
    Clients {
        /// First and last addresses.
        ranges: Vec<(IpAddr, IpAddr)>,
        /// Whether they are to be on.
        on: bool,
    },
    /// Give clients other tunnels than they have.
    Tunnels(Vec<ClientTunnels>),
}

/// Why a command was not carried out; then nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The run has ended.
    #[error("the run is over ({state})")]
    Over {
        /// How it ended.
        state: &'static str,
    },
    /// Runs of this kind do not know the command.
    #[error("a run of kind {kind} has no command {command:?}; its commands are: {commands}")]
    Unsupported {
        /// The kind of the run.
        kind: &'static str,
        /// The command.
        command: &'static str,
        /// The commands that it has.
        commands: String,
    },
    /// The plan has no such flow.
    #[error("found flow number {found}, expected less than the plan's {flows} flows")]
    NoFlow {
        /// The place that was given.
        found: usize,
        /// How many flows there are.
        flows: usize,
    },
    /// Too many ranges of clients would be off.
    #[error(
        "clients that are off would be more than {most} ranges: switch whole ranges",
        most = LoadControl::RANGES_MAX
    )]
    TooManyRanges,
    /// Tunnels are not changed.
    #[error(transparent)]
    Tunnels(#[from] TunnelChangeError),
}

impl Command {
    /// Its name in APIs and messages.
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
        }
    }

    /// The names of the commands that runs of a kind have.
    pub const fn of_kind(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Replay => &["stop", "pause", "resume"],
            Kind::Streams => &["stop", "pause", "resume", "flows"],
            Kind::Emulation => {
                &["stop", "pause", "resume", "end_load", "scale_load", "clients", "tunnels"]
            }
            Kind::Pktgen => &["stop", "pause", "resume"],
            Kind::Impair => &["stop"],
        }
    }

    pub(super) fn carry_out(self, run: &Supervised) -> Result<(), CommandError> {
        let (kind, command) = (run.kind(), self.name());
        let known = Self::of_kind(kind);
        if !known.contains(&command) {
            let commands = known.join(", ");
            return Err(CommandError::Unsupported { kind: kind.name(), command, commands });
        }
        let controls = &run.controls;
        match self {
            Self::Stop => run.stop(),
            Self::Pause | Self::Resume => {
                controls.paused.store(self == Self::Pause, Ordering::Relaxed);
            }
            Self::Flows { flows, command } => {
                let count = controls.flows.flows();
                if let Some(&found) = flows.iter().find(|flow| **flow >= count) {
                    return Err(CommandError::NoFlow { found, flows: count });
                }
                controls.flows.give(flows, command);
            }
            Self::EndLoad => controls.load.end_load(),
            Self::ScaleLoad(factor) => controls.load.set_load(factor),
            Self::Clients { ranges, on } => {
                if !controls.load.switch_clients(&ranges, on) {
                    return Err(CommandError::TooManyRanges);
                }
            }
            Self::Tunnels(tunnels) => controls.load.change_tunnels(&tunnels)?,
        }
        Ok(())
    }
}
