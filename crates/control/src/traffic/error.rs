//! Why a run of streams does not begin.

use std::io;

use wirestorm_plan::traffic::PlanErrors;

use crate::lifecycle::Abandoned;
use crate::port::OpenError;
use crate::responder::HostError;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The plan makes no sense on these ports.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// A port without an interface.
    #[error(
        "port {0:?} has no interface: bind it with --port {0}=INTERFACE, or give it a location"
    )]
    Unbound(String),
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A frame that a port cannot send.
    #[error(
        "flow {flow:?}: a frame of {length} bytes without FCS is longer than {interface} takes, \
         {length_max}: make the size smaller, or the interface's MTU larger"
    )]
    TooLong {
        /// The flow.
        flow: String,
        /// Its longest frame.
        length: usize,
        /// Interface to send on.
        interface: String,
        /// The longest that it takes.
        length_max: usize,
    },
    /// All runs of this process together have more streams than signatures tell apart.
    #[error("{0} streams are more than can be told apart, 2^24 less those of other runs")]
    TooMany(u64),
    /// All runs of this process together have more streams than marks tell apart.
    #[error(
        "stream {0:?} has no room for a signature and is one of more than {marks}, the marks that \
         such frames are counted by: make its packet longer, or send fewer streams at a time",
        marks = wirestorm_wire::mark::COUNT
    )]
    NoMark(String),
    /// A port is no host, or does not find its next hop.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The receiving end does not open.
    #[error("{0}")]
    Receive(String),
    /// The run was stopped before it began.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
