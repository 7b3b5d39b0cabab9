//! An interface as a host of its own, beside the kernel's: it answers for its addresses, finds
//! its neighbours and pings others.

mod guests;
mod moves;
mod ping;
mod prober;
mod station;

pub(crate) use guests::Guests;
pub(crate) use moves::Moves;
pub use ping::{PingOptions, PingReply, PingReport, ping};
pub(crate) use prober::{Asks, ProbeEar, ProbeRecord, ProbeTimes, Prober};
pub use station::{HostError, Station};
pub(crate) use station::{Residence, Silence, TRIES};
