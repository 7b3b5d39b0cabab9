//! A replay of captures: every value has its unit, and [`ReplayPlan::check`] finds values that
//! contradict each other.

mod check;
mod words;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::edit::EditOptions;
use crate::sides::SidesOptions;
use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::pace::Pace;
use wirestorm_base::time::Duration;

pub use check::PlanConflict;
pub use words::{
    WordError, parse_catch_up, parse_packet_list, parse_passes_milli, parse_percent, parse_seconds,
};

/// Where frames go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Out of one interface, or of two: the second takes the server side. Written as
    /// `veth0` or `netns/NAME:veth0`.
    Interfaces {
        /// The interface for everything, or for the client side.
        primary: String,
        /// The interface for the server side.
        secondary: Option<String>,
    },
    /// Into a capture file.
    File(PathBuf),
    /// Nowhere.
    Memory {
        /// Whether each side has a port of its own.
        by_side: bool,
    },
}

impl Target {
    /// How many ports frames leave through: one for everything, or one for each side.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Interfaces { secondary: Some(_), .. } | Self::Memory { by_side: true } => 2,
            Self::Interfaces { .. } | Self::Memory { .. } | Self::File(_) => 1,
        }
    }
}

/// How packets get their side: the first interface sends the client's, the second the server's.
/// Where there is one output, both leave through it, and edits can differ by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SideChoice {
    /// All through the first.
    #[default]
    One,
    /// As a file of tcpprep says.
    Cache(PathBuf),
    /// The captures come in pairs: the first of each is the client's side.
    Pairs,
    /// Decided on the fly.
    Rules(SidesOptions),
}

/// How packets are shown while they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// A line for each.
    Lines,
    /// Through tcpdump, with these arguments.
    Tcpdump(String),
}

/// Which addresses change from pass to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniquePlan {
    /// Whether the ports change too.
    pub ports: bool,
    /// Passes with the same addresses, in thousandths; 1,000 or more.
    pub passes_milli: u64,
}

/// What looks at what arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivePlan {
    /// The interface, written as a target's.
    pub interface: String,
    /// Whether content and order are compared with what was sent.
    pub verify: bool,
}

/// When sending ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Passes over all captures; `u64::MAX`: until interrupted.
    pub passes: u64,
    /// Stop after N frames.
    pub packets: u64,
    /// Time from the first frame on.
    pub duration: Duration,
}

/// How flows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// Idle time, by the capture's clock, after which the same key is a new flow.
    pub expiry: Option<Duration>,
    /// Flows told apart at most.
    pub flows_max: usize,
}

/// A replay.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Captures, directories of captures, `-` for standard input.
    pub captures: Vec<PathBuf>,
    /// Where frames go.
    pub target: Target,
    /// Which interface for which packet.
    pub sides: SideChoice,
    /// What is changed in every frame.
    pub edits: EditOptions,
    /// Whether every packet is shown.
    pub show: Option<Show>,
    /// Whether the user says how many packets come next.
    pub asks: bool,
    /// How fast.
    pub pace: Pace,
    /// What becomes of late frames.
    pub policy: DeparturePolicy,
    /// When it ends.
    pub limits: Limits,
    /// Pause between passes.
    pub pass_delay: Duration,
    /// Whether the captures are read before the first frame leaves.
    pub preload: bool,
    /// Whether flows are counted, and how.
    pub flows: Option<FlowPlan>,
    /// Other addresses in every pass.
    pub unique: Option<UniquePlan>,
    /// Only these packets of each file, by number from 1.
    pub only: Option<Vec<RangeInclusive<u64>>>,
    /// Not these.
    pub except: Vec<RangeInclusive<u64>>,
    /// Frames as long as they were on the wire, zeros for what the capture lacks.
    pub original_length: bool,
    /// What looks at what arrives.
    pub receive: Option<ReceivePlan>,
    /// Threads that send.
    pub workers: u16,
    /// How far the achieved rate may be off before the run counts as short, in millionths.
    pub tolerance_ppm: u32,
    /// Whether an interface with the default route may be used.
    pub force_interface: bool,
}
