//! A host on an interface, besides the kernel's: answers ARP, neighbour discovery and pings,
//! resolves neighbours and sends pings.

mod device_hosts;
mod neighbour_changes;
mod packet_socket_host;
mod ping;
mod prober;
mod threads;

pub use device_hosts::{DeviceHost, DeviceHosts};
pub(crate) use neighbour_changes::NeighbourChanges;
pub use packet_socket_host::{HostError, PacketSocketHost};
pub(crate) use packet_socket_host::{REQUESTS_MAX, UnansweredRequest, VlanHostConfig};
pub use ping::{PingOptions, PingReply, PingReport, ping};
pub(crate) use prober::{ProbeRecord, ProbeSchedule, ProbeTarget, Prober, UdpReplyReceiver};
pub(crate) use threads::ResponderThreads;
