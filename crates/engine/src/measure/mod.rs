//! What the device between the ports did to the traffic.

mod verify;

pub use verify::{Verifier, VerifyCounters, frame_hash};
