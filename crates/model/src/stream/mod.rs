//! Streams of frames. Plans and the engine share these types.
//!
//! A stream makes its frames from one template. Its [`Program`] defines the changes from frame to
//! frame, and its [`Transmission`] defines the departure times.
//!
//! # Values depend only on the frame number
//!
//! The value of a [`Variable`] is a function of the number of the frame in its stream, from 0, and
//! of nothing else. So several workers can share a stream: each takes every n-th frame, and
//! together they send the same frames as one worker. A paused stream continues where it stopped.
//! The plan alone determines what was sent.
//!
//! [`Variable::value`] is the reference implementation. The engine computes the same values step by
//! step.

mod frame_bits;
mod member;
mod program;
#[cfg(feature = "strategy")]
pub mod strategy;
mod transmission;
mod variable;

pub use frame_bits::FrameBits;
pub use member::Member;
pub use program::{ByteOrder, Checksum, Program, PseudoHeader, Step, Write};
pub use transmission::{GapDistribution, Mode, Speed, Transmission};
pub use variable::{Advance, Values, Variable};
pub use wirestorm_base::random::draw;

use alloc::string::String;
use alloc::vec::Vec;

/// A stream: its frames and their departure times.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Name in the plan, for results and messages.
    pub name: String,
    /// Template: the first frame before the program runs, without FCS.
    pub template: Vec<u8>,
    /// Changes from frame to frame.
    pub program: Program,
    /// Departure times.
    pub transmission: Transmission,
    /// Whether each frame has a signature of 18 bytes before its trailer, by which the receiver
    /// recognises the frame. The template has zeros there, so that its checksums are valid for any signature.
    /// A corrected checksum covers either the whole signature or none of it.
    pub is_measured: bool,
    /// Bytes behind the signature, such as the FCS of a frame in a tunnel. They are zeros.
    pub trailer: u8,
    /// Whether the receiver counts frames by a mark in the IP header, because they have no room for
    /// a signature; see [`wirestorm_wire::mark`]. The template has mark 0, and the engine assigns
    /// the mark of the stream. `is_measured` and `is_marked` exclude each other.
    pub is_marked: bool,
    /// The part of the frames to send; `None` for all.
    pub member: Option<Member>,
}
