//! A host on an interface, besides the kernel's: answers ARP, neighbour discovery and pings,
//! resolves neighbours and sends pings.

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
