//! What the device between the ports did to the traffic.

mod sequence;
mod signature;
mod verify;

pub use sequence::{Arrived, N_REORDERING_MAX, Sequence, SequenceCounters};
pub use signature::{Found, Signature, find};
pub use verify::{Verifier, VerifyCounters, frame_hash};
