//! Streams of frames: the words that plans and the engine share.
//!
//! A stream makes its frames from one template. Its [`Program`] says what differs from frame to
//! frame, its [`Transmission`] when frames leave.
//!
//! # Every value follows from the frame's number
//!
//! The value of a [`Variable`] is a function of the number of the frame in its stream, counted
//! from 0, and of nothing else. Several workers can therefore share a stream, each taking every
//! n-th frame, and send the same set of frames as one worker; a stream that is paused goes on
//! where it was; and what was sent can be told from the plan alone. [`Variable::value`] is that
//! function, written as it reads; the engine computes the same values step by step.

mod program;
mod transmission;
mod variable;

pub use program::{ByteOrder, Checksum, Program, PseudoHeader, Step, Write};
pub use transmission::{Departures, Mode, Speed, Transmission};
pub use variable::{Advance, Values, Variable, draw};

use alloc::string::String;
use alloc::vec::Vec;

/// What a stream sends, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name in the plan, for results and messages.
    pub name: String,
    /// The template: the first frame before its program ran, without FCS.
    pub template: Vec<u8>,
    /// What differs from frame to frame.
    pub program: Program,
    /// When frames leave.
    pub transmission: Transmission,
    /// Whether each frame carries a signature in its last 18 bytes, by which it is recognised
    /// where it arrives. The template has zeros there, so that checksums in it are right for any
    /// signature; a checksum that is made right covers the signature whole or not at all.
    pub is_measured: bool,
    /// Whether frames are counted where they arrive by a mark in their IP header, because they
    /// have no room for a signature: see [`wirestorm_wire::mark`]. The template has mark 0; a stream gets
    /// its own when it is sent. No stream is both measured and marked.
    pub is_marked: bool,
}
