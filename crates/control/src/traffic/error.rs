//! Errors of starting a run of streams.

use std::io;

use wirestorm_plan::traffic::PlanErrors;

use crate::lifecycle::Abandoned;
use crate::port::OpenError;
use crate::responder::HostError;

/// Error of starting a run of streams.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The plan is invalid for these ports.
    #[error(transparent)]
    Plan(#[from] PlanErrors),
    /// A port has no interface.
    #[error(
        "port {0:?} has no interface: bind it with --port {0}=INTERFACE, or give it a location"
    )]
    Unbound(String),
    /// An interface does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A frame exceeds the maximum length of the interface.
    #[error(
        "flow {flow:?}: a frame of {length} bytes without FCS exceeds the maximum of {interface}, \
         {length_max}: reduce the size or increase the interface's MTU"
    )]
    TooLong {
        /// Flow.
        flow: String,
        /// Longest frame of the flow in bytes.
        length: usize,
        /// Interface to send on.
        interface: String,
        /// Maximum frame length of the interface in bytes.
        length_max: usize,
    },
    /// All runs of this process together have more streams than there are stream IDs for
    /// signatures.
    #[error("{0} streams are too many: at most 2^24 in all runs together")]
    TooMany(u64),
    /// Another run of this process uses the stream IDs of a test.
    #[error("another run uses some of the stream IDs {first} to {}: begin the test again", first + count)]
    StreamIdsTaken {
        /// First ID.
        first: u32,
        /// Number of IDs.
        count: u32,
    },
    /// Frames from other machines are recognised by their signatures alone.
    #[error(
        "flow {0:?} comes from another machine without a signature: use a packet with room for it"
    )]
    NoSignature(String),
    /// All runs of this process together have more streams than there are marks.
    #[error(
        "stream {0:?} is too short for a signature, and more than {marks} such streams are \
         counted by marks: use a longer packet, or fewer streams at a time",
        marks = wirestorm_wire::mark::COUNT
    )]
    NoMark(String),
    /// The host of a port does not open, or does not find its next hop.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The receiver does not open.
    #[error("{0}")]
    Receive(String),
    /// The run was stopped before it started.
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
