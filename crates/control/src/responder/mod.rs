//! A host on an interface, besides the kernel's: answers ARP, neighbour discovery and pings,
//! resolves neighbours and sends pings.

mod moves;
mod ping;
mod prober;
mod station;
mod threads;

pub(crate) use moves::NeighbourChanges;
pub use ping::{PingOptions, PingReply, PingReport, ping};
pub(crate) use prober::{ProbeRecord, ProbeSchedule, ProbeTarget, Prober, UdpReplyReceiver};
pub use station::{HostError, PacketSocketHost};
pub(crate) use station::{REQUESTS_MAX, UnansweredRequest, VlanHostConfig};
pub(crate) use threads::ResponderThreads;
