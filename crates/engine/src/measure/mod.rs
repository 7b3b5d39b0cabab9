//! What the device between the ports did to the traffic.

mod delay;
mod distribution;
mod sequence;
mod signature;
mod verify;

pub use delay::{DelayRecord, Jitter, PacketDelayVariation};
pub use distribution::Distribution;
pub use sequence::{Arrived, N_REORDERING_MAX, Sequence, SequenceCounters};
pub use signature::{Found, Signature, find};
pub use verify::{Verifier, VerifyCounters, frame_hash};
