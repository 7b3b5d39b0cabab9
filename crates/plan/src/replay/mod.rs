//! Plan of a capture replay: every value has its unit. [`ReplayPlan::check`] finds conflicts.

mod check;
mod option_values;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::edit::EditOptions;
use crate::sides::SidesOptions;
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::pace::Pace;
use wirestorm_base::time::Duration;

pub use check::PlanConflict;
pub use option_values::{
    OptionValueError, parse_catch_up, parse_packet_list, parse_passes_milli, parse_percent,
    parse_seconds,
};

/// Destination of the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One interface, or two: the second sends the server side. Written as `veth0` or
    /// `netns/NAME:veth0`.
    Interfaces {
        /// Interface for all packets, or for the client side.
        primary: String,
        /// Interface for the server side.
        secondary: Option<String>,
    },
    /// A capture file.
    File(PathBuf),
    /// Memory: frames are built, then discarded.
    Memory {
        /// Whether each side has its own port.
        by_side: bool,
    },
}

impl Target {
    /// Returns the number of output ports: one for all packets, or one per side.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Interfaces { secondary: Some(_), .. } | Self::Memory { by_side: true } => 2,
            Self::Interfaces { .. } | Self::Memory { .. } | Self::File(_) => 1,
        }
    }
}

/// Assignment of packets to sides. The first interface sends the client side, the second the server
/// side. With one output both leave through it, and edits can differ by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SideAssignment {
    /// No sides: all packets leave through the first output.
    #[default]
    Single,
    /// From a cache file of tcpprep.
    Cache(PathBuf),
    /// Captures come in pairs: the first of each pair is the client side.
    Pairs,
    /// By rules, during the replay.
    Rules(SidesOptions),
}

/// Display of packets while they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketDisplay {
    /// One line per packet.
    Lines,
    /// Piped through tcpdump with these arguments.
    Tcpdump(String),
}

/// Addresses that change from pass to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniquePlan {
    /// Whether the TCP and UDP ports change too.
    pub ports: bool,
    /// Passes with the same addresses, in thousandths; at least 1,000.
    pub passes_milli: u64,
}

/// The receiver of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivePlan {
    /// Receiving interface, in the notation of [`Target::Interfaces`].
    pub interface: String,
    /// Whether to compare content and order with the sent frames.
    pub verify: bool,
}

/// Limits after which the replay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Passes over all captures; `u64::MAX`: until interrupted.
    pub passes: u64,
    /// Maximum frames; `u64::MAX`: no limit.
    pub packets: u64,
    /// Maximum time since the first frame.
    pub duration: Duration,
}

/// Settings of flow statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Idle time in capture time after which the same key starts a new flow.
    pub expiry: Option<Duration>,
    /// Maximum number of tracked flows.
    pub flows_max: usize,
}

/// A replay of captures.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Captures, directories of captures, `-` for standard input.
    pub captures: Vec<PathBuf>,
    /// Destination of the frames.
    pub target: Target,
    /// Assignment of packets to sides.
    pub sides: SideAssignment,
    /// Edits of every frame.
    pub edits: EditOptions,
    /// Display of each packet, if any.
    pub show: Option<PacketDisplay>,
    /// Whether the user enters how many packets to send next (`--oneatatime`).
    pub one_at_a_time: bool,
    /// Pace of the frames.
    pub pace: Pace,
    /// Handling of late frames.
    pub policy: DeparturePolicy,
    /// Limits after which the replay ends.
    pub limits: Limits,
    /// Pause between passes.
    pub pass_delay: Duration,
    /// Whether to read all captures before the first frame leaves.
    pub preload: bool,
    /// Flow statistics, if any.
    pub flows: Option<FlowPlan>,
    /// Address changes from pass to pass, if any.
    pub unique: Option<UniquePlan>,
    /// Packets of each file to send, by number from 1. `None`: all.
    pub include: Option<Vec<RangeInclusive<u64>>>,
    /// Packets of each file to skip, by number from 1.
    pub exclude: Vec<RangeInclusive<u64>>,
    /// Whether to pad truncated packets with zeros to their original length.
    pub original_length: bool,
    /// The receiver, if any.
    pub receive: Option<ReceivePlan>,
    /// Number of sending threads.
    pub workers: u16,
    /// Tolerance of the achieved rate in millionths. A lower rate counts as a shortfall.
    pub tolerance_ppm: u32,
    /// Whether to allow an interface that carries the default route.
    pub force_interface: bool,
}
